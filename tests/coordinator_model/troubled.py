"""Conversations with many kinds of trouble, for tests of what is stored."""

from __future__ import annotations

from tests.coordinator_model.classic import (
    by_turns,
    complete,
    live,
    pauses,
    replace,
    settled,
    silence,
    static_group,
    told_to_rejoin,
    zombie,
)
from tests.coordinator_model.conversation import ASSIGNED, Conversation
from tests.coordinator_model.rules.coordinators import fail_over
from tests.coordinator_model.rules.generations import deliver, fetch, group, join, owned, parts, share_out, submit
from tests.coordinator_model.rules.loops import flaps, ghost, joins_without_sync


def mixed() -> Conversation:
    """A conversation with several kinds of trouble in it."""
    talk = Conversation()
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    replace(talk, leader, "one")
    talk.heartbeat(second, 82)
    talk.heartbeat(second, 82)
    live(talk, [leader], 5)
    talk.lose(2)
    third = talk.client("three")
    talk.round([leader, third], 4)
    old = third.reconnected()
    old.generation = 3
    talk.round([leader, third], 5)
    zombie(talk, old, 22)
    talk.heartbeat(old)
    talk.ask_join(leader)
    told_to_rejoin(talk, third, 12)
    talk.raw(third, b"\x00\x01garbage")
    talk.wait(120_000)
    return talk


def assignments() -> Conversation:
    """Some of what the family A keeps in mind, and what it takes from requests that break the protocol."""
    talk = Conversation()
    sticky = "cooperative-sticky"
    a, b, c = group(talk, ("a", "b", "c"), protocol=sticky)
    share_out(talk, [a, b, c], {a: parts(0), b: parts(0, 1), "nobody": parts(2), c: parts(0, topic="u")}, sticky)
    talk.settle()
    join(talk, [a, b, c], 4, offers={a: owned(3, 0), b: owned(3, 1)}, protocol=sticky)
    deliver(talk, fetch(talk, b, protocol_name="range"), parts(1), protocol=sticky)
    leads = submit(talk, a, {a: parts(5), b: parts(0), c: ASSIGNED}, protocol_name=sticky)
    deliver(talk, leads, b"", protocol="sticky")
    deliver(talk, fetch(talk, c, protocol_name=sticky), parts(9), protocol=sticky)
    talk.settle()
    talk.heartbeat(c, generation=9)
    live(talk, [a], 30)
    join(talk, [a, b, c], 5)
    share_out(talk, [a, b, c], {})
    talk.wait(70_000)
    join(talk, [a, b, c], 6)
    share_out(talk, [a, b, c], {a: parts(0), b: parts(1)})
    talk.settle()
    join(talk, [a, b, c], 7, offers={a: owned(6, 0), b: owned(6, 0)})
    talk.wait(90_000)
    return talk


def members() -> Conversation:
    """Some of everything that the families G, M and S keep in mind."""
    talk = Conversation()
    leader, first = static_group(talk)
    talk.wait(1_000)
    talk.heartbeat(leader, 22)
    talk.heartbeat(first, 82)
    talk.heartbeat(first, 25)
    talk.wait(1)
    talk.heartbeat(leader)
    first.instance_id = "other"
    talk.heartbeat(first)
    first.instance_id = "i"
    talk.heartbeat(leader, 22, generation=9)
    second = replace(talk, leader, "two")
    talk.wait(1_000)
    talk.heartbeat(first)
    talk.leave(first, 25)
    clone = second.reconnected()
    clone.host = "10.0.0.2"
    by_turns(talk, second, clone, 3)
    talk.round([leader, second], 7)
    talk.wait(1_000)
    talk.join_all([leader, second], 8)
    leader, second = fail_over(talk, [leader, second])
    talk.joined(talk.ask_join(leader), generation=8, leader=leader, roster=[leader, second])
    talk.call(leader, talk.sync_request(leader, [leader, second]), talk.synced())
    talk.heartbeat(second)
    talk.wait(120_000)
    return talk


def sessions() -> Conversation:
    """A conversation with most kinds of this trouble in it."""
    talk = Conversation()
    a, b = settled(talk)
    live(talk, [a, b], 3)
    pauses(talk, [a], b, 8_000, 3)
    talk.heartbeat(b, after_ms=3_500, throttle_ms=0)
    talk.heartbeat(b, throttle_ms=9_000)
    live(talk, [a, b], 6)
    ghost(talk, a, b)
    live(talk, [a], 4)
    b = b.reconnected()
    generation = flaps(talk, talk.client("bad"), [a, b], 4, times=3)
    joins_without_sync(talk, a, b, 3)
    talk.round([a, b], generation + 4)
    lost = talk.client("lost")
    talk.hand_out_id(lost)
    asked = [talk.ask_join(one) for one in (a, b)]
    talk.wait(4_000)
    complete(talk, asked, generation + 5, a, [a, b])
    talk.sync_all([a, b])
    silence(talk, [a], 13_500)
    talk.heartbeat(b)
    talk.leave(b, reason="consumer poll timeout has expired.")
    talk.heartbeat(a, 16)
    for _ in range(28):
        talk.find_coordinator(a, error=15, version=3)
        talk.wait(1_000)
    talk.refuse_join(talk.ask_join(a), 26)
    talk.wait(10_000)
    return talk
