"""Groups of all types with epochs: conversations that must be told, each beside its lawful twin, which must not.

Here stand the kinds of conversation of which the files of the families have fewer than three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import commits_in_transaction, joined_pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Shares, Streams, answer_to, heartbeat_of, heartbeats

Conversation = Callable[[Any], None]


def known(talk: Epochs, *names: str) -> list[Client]:
    """Members of a group that was seen from its beginning, a minute and a half later, all at the newest epoch."""
    clients = [talk.member(name) for name in names]
    for epoch, client in enumerate(clients, 1):
        heartbeats(talk, client, 0, epoch)
    for client in clients:
        heartbeats(talk, client, answered=len(clients))
    lives(talk, clients, 90)
    return clients


def lives(talk: Epochs, clients: list[Client], seconds: int) -> None:
    for _ in range(seconds // 5):
        for client in clients:
            heartbeats(talk, client)
        talk.wait(5_000)


# ---------------------------------------------------------------------------------------------------- commits


def commit_of_a_stranger(talk: Epochs) -> None:
    known(talk, "a")
    talk.commits(talk.member("x"), epoch=1)


def commit_of_a_stranger_by_topic_id(talk: Epochs) -> None:
    known(talk, "a")
    talk.commits(talk.member("x"), epoch=1, version=10)


def commit_of_a_newcomer(talk: Epochs) -> None:
    known(talk, "a")
    x = talk.member("x")
    heartbeats(talk, x, 0, 2)
    talk.commits(x)


def commit_without_a_member(talk: Epochs) -> None:
    known(talk, "a", "b")
    talk.commits(talk.client("tool"), epoch=-1)


def commit_by_topic_id_without_a_member(talk: Epochs) -> None:
    known(talk, "a")
    talk.commits(talk.client("tool"), epoch=-1, version=10)


def commit_without_a_member_after_one_of_two_left(talk: Epochs) -> None:
    a, b = known(talk, "a", "b")
    heartbeats(talk, b, -1)
    heartbeats(talk, a, answered=3)
    talk.commits(talk.client("tool"), epoch=-1)


def commit_into_an_empty_group(talk: Epochs) -> None:
    for client in known(talk, "a", "b"):
        heartbeats(talk, client, -1)
    talk.commits(talk.client("tool"), epoch=-1)


def commit_at_a_stale_epoch(talk: Epochs) -> None:
    a, _ = known(talk, "a", "b")
    talk.commits(a, epoch=5)


def commit_at_an_epoch_before_the_join(talk: Epochs) -> None:
    _, b = known(talk, "a", "b")
    talk.commits(b, epoch=1)


def commit_in_a_transaction_at_a_stale_epoch(talk: Epochs) -> None:
    _, b = known(talk, "a", "b")
    commits_in_transaction(talk, b, epoch=1)


def commits_at_the_epoch(talk: Epochs) -> None:
    for client in known(talk, "a", "b"):
        talk.commits(client)
        commits_in_transaction(talk, client, epoch=client.generation)


def commit_after_leaving(talk: Epochs) -> None:
    _, b = known(talk, "a", "b")
    heartbeats(talk, b, -1)
    talk.commits(b, epoch=2)


def commit_in_a_transaction_after_leaving(talk: Epochs) -> None:
    _, b = known(talk, "a", "b")
    heartbeats(talk, b, -1)
    commits_in_transaction(talk, b, epoch=2)


def last_commit_of_a_member_that_leaves(talk: Epochs) -> None:
    _, b = known(talk, "a", "b")
    talk.commits(b)
    heartbeats(talk, b, -1)


def handed_over(talk: Epochs) -> tuple[Client, Client]:
    """Partition 1 of topic foo was a's, and is b's."""
    a, b = joined_pair(talk, 1, held=foo(0, 1))
    talk.beats(a, 1, foo(0))
    talk.beats(a, 2, owned=foo(0))
    talk.beats(b, 2, foo(1))
    talk.live([a, b], 20)
    return a, b


def commits_on_what_it_gave_up(talk: Epochs) -> None:
    a, _ = handed_over(talk)
    for _ in range(2):
        talk.commits(a, number=1, version=10)


def commits_on_while_both_live(talk: Epochs) -> None:
    a, b = handed_over(talk)
    for _ in range(3):
        talk.live([a, b], 10)
        talk.commits(a, number=1, version=10)


def commits_on_over_another_connection(talk: Epochs) -> None:
    a, _ = handed_over(talk)
    talk.commits(a, number=1, version=10)
    talk.commits(a.reconnected(), number=1, version=10)


def both_commit_what_they_own(talk: Epochs) -> None:
    a, b = handed_over(talk)
    for _ in range(3):
        talk.commits(a, number=0, version=10)
        talk.commits(b, number=1, version=10)
        talk.live([a, b], 10)


def refused_commits_of_one_that_left(talk: Epochs) -> None:
    a, b = known(talk, "a", "b")
    heartbeats(talk, b, -1)
    heartbeats(talk, a, answered=3)
    for _ in range(5):
        talk.commits(b, 25, epoch=2)
        lives(talk, [a], 5)


def refused_commits_of_one_that_was_removed(talk: Epochs) -> None:
    a, b = known(talk, "a", "b")
    talk.remove(b)
    for _ in range(5):
        talk.commits(b, 25, epoch=2)
        lives(talk, [a], 5)


def one_refused_commit_of_one_that_left(talk: Epochs) -> None:
    a, b = known(talk, "a", "b")
    heartbeats(talk, b, -1)
    heartbeats(talk, a, answered=3)
    talk.commits(b, 25, epoch=2)
    lives(talk, [a], 20)


# ---------------------------------------------------------------------------------------------------- heartbeats and identities


def join_told_that_it_is_no_member(talk: Epochs) -> None:
    known(talk, "a")
    heartbeats(talk, talk.member("b"), 0, error=25)


def join_told_that_its_instance_id_is_fenced(talk: Epochs) -> None:
    known(talk, "a")
    heartbeats(talk, talk.member("b"), 0, error=82)


def keep_alive_called_malformed(talk: Epochs) -> None:
    a, _ = known(talk, "a", "b")
    heartbeats(talk, a, error=42)


def keep_alive_told_of_an_assignor(talk: Epochs) -> None:
    a, _ = known(talk, "a", "b")
    heartbeats(talk, a, error=112)


def keep_alive_told_of_a_pattern(talk: Epochs) -> None:
    a, _ = known(talk, "a", "b")
    heartbeats(talk, a, error=128)


def join_told_that_the_group_is_full(talk: Epochs) -> None:
    known(talk, "a")
    heartbeats(talk, talk.member("b"), 0, error=81)


def healthy_member_told_that_it_is_none(talk: Epochs) -> None:
    a, _ = known(talk, "a", "b")
    heartbeats(talk, a, error=25)


def member_told_after_its_leave_that_it_is_none(talk: Epochs) -> None:
    _, b = known(talk, "a", "b")
    heartbeats(talk, b, -1)
    heartbeats(talk, b, 2, error=25)


def served_after_its_removal(talk: Epochs) -> None:
    _, b = known(talk, "a", "b")
    talk.remove(b)
    heartbeats(talk, b, 2)


def served_over_another_connection_after_its_removal(talk: Epochs) -> None:
    a, b = known(talk, "a", "b")
    talk.remove(b)
    lives(talk, [a], 10)
    heartbeats(talk, b.reconnected(), 2)


def served_with_what_it_owns_after_its_removal(talk: Epochs) -> None:
    a, _ = handed_over(talk)
    talk.remove(a)
    talk.full(a, 2, foo(0), owned=foo(0))


def joins_again_after_its_removal(talk: Epochs) -> None:
    _, b = known(talk, "a", "b")
    talk.remove(b)
    heartbeats(talk, b, 0, 4)
    heartbeats(talk, b)


def static_pair(talk: Epochs) -> tuple[Client, Client]:
    holder, other = talk.member("a", "i"), talk.member("b", "j")
    talk.joins(holder, 1, foo(0, 1))
    talk.joins(other, 2, {})
    talk.beats(holder, 2)
    talk.live([holder, other], 30)
    return holder, other


def second_process_let_in(talk: Epochs) -> None:
    static_pair(talk)
    talk.joins(talk.member("second", "i"), 2, foo(0, 1))


def second_process_let_in_after_the_holder_came_back(talk: Epochs) -> None:
    holder, _ = static_pair(talk)
    talk.leaves(holder, -2)
    back = talk.member("back", "i")
    talk.joins(back, 2, foo(0, 1))
    talk.live([back], 10)
    talk.joins(talk.member("second", "i"), 2, foo(0, 1))


def second_process_let_in_by_a_pattern(talk: Epochs) -> None:
    static_pair(talk)
    talk.joins(talk.member("second", "j"), 2, {}, subscribed_topic_names=None, subscribed_topic_regex="fo+")


def successor_let_in(talk: Epochs) -> None:
    holder, _ = static_pair(talk)
    talk.leaves(holder, -2)
    talk.joins(talk.member("second", "i"), 2, foo(0, 1))


def another_instance_id_refused(talk: Epochs) -> None:
    holder, _ = static_pair(talk)
    holder.instance_id = "k"
    talk.refused(holder, 25)


def another_instance_id_accepted(talk: Epochs) -> None:
    _, other = static_pair(talk)
    other.instance_id = "k"
    talk.beats(other)


def another_instance_id_in_a_full_heartbeat(talk: Epochs) -> None:
    holder, _ = static_pair(talk)
    holder.instance_id = "k"
    talk.refused(holder, 25, owned=foo(0, 1), rebalance_timeout_ms=60_000, subscribed_topic_names=("foo",))


def in_mid_life(talk: Epochs) -> Client:
    """A static member of a group that was seen from mid-life leaves for a while."""
    talk.beats(talk.member("c"), 7, epoch=7)
    static = talk.member("a", "i")
    talk.beats(static, 7, epoch=7)
    talk.leaves(static, -2)
    return static


def released_instance_id_refused_in_mid_life(talk: Epochs) -> None:
    in_mid_life(talk)
    talk.refused_join(talk.member("b", "i"), 111)


def released_instance_id_refused_in_mid_life_to_its_holder(talk: Epochs) -> None:
    static = in_mid_life(talk)
    talk.refused_join(static.reconnected(), 111)


def released_instance_id_refused_after_a_gap(talk: Epochs) -> None:
    holder, other = static_pair(talk)
    talk.gap()
    talk.live([holder, other], 10)
    talk.leaves(holder, -2)
    talk.refused_join(talk.member("second", "i"), 111)


def held_instance_id_refused_in_mid_life(talk: Epochs) -> None:
    static = talk.member("a", "i")
    talk.beats(static, 7, epoch=7)
    talk.refused_join(talk.member("b", "i"), 111)


SAYS_NOTHING: dict[type[Epochs], dict[str, Any]] = {
    Epochs: {"subscribed_topic_names": None},
    Shares: {"subscribed_topic_names": None},
    Streams: {"rebalance_timeout_ms": -1},
}
"""What makes a join one that must be refused."""


def dirty_join_into_an_unknown_group(talk: Epochs) -> None:
    heartbeats(talk, talk.member("a"), 0, error=42, **SAYS_NOTHING[type(talk)])


def dirty_join_into_an_unknown_group_accepted(talk: Epochs) -> None:
    heartbeats(talk, talk.member("a"), 0, 1, **SAYS_NOTHING[type(talk)])


def clean_join_into_an_unknown_group(talk: Epochs) -> None:
    heartbeats(talk, talk.member("a"), 0, 1)


STOP = (4, "Streams group member a-id requested a shutdown.")


def asked_to_stop(talk: Streams) -> tuple[Client, Client]:
    """One member asks the application to stop, and leaves; two others are left."""
    a, b, c = (talk.member(name) for name in "abc")
    for epoch, client in enumerate((a, b, c), 1):
        talk.enters(client, epoch, (epoch,))
    talk.works(a, 3, None, STOP, shutdown_application=True)
    talk.works(a, -1, asked=-1)
    return b, c


def one_goes_on_although_told_to_stop(talk: Streams) -> None:
    b, c = asked_to_stop(talk)
    talk.told_for([b, c], 20, STOP)
    talk.works(c, -1, asked=-1)
    talk.told_for([b], 80, STOP)


def all_go_on_although_told_to_stop(talk: Streams) -> None:
    talk.told_for(list(asked_to_stop(talk)), 80, STOP)


def one_goes_on_and_commits_although_told_to_stop(talk: Streams) -> None:
    b, c = asked_to_stop(talk)
    talk.told_for([b, c], 5, STOP)
    talk.works(c, -1, asked=-1)
    for _ in range(8):
        talk.told_for([b], 10, STOP)
        talk.commits(b)


def all_stop_when_told(talk: Streams) -> None:
    b, c = asked_to_stop(talk)
    talk.told_for([b, c], 20, STOP)
    for client in (b, c):
        talk.works(client, -1, asked=-1)
    talk.wait(80_000)


# ---------------------------------------------------------------------------------------------------- the coordinator


def heartbeat_never_answered(talk: Epochs) -> None:
    a, b = known(talk, "a", "b")
    talk.ask(a, heartbeat_of(talk, a))
    lives(talk, [b], 60)


def connection_lost_with_a_heartbeat_open(talk: Epochs) -> None:
    a, b = known(talk, "a", "b")
    talk.ask(a, heartbeat_of(talk, a))
    lives(talk, [b], 10)
    talk.close(a)
    lives(talk, [a.reconnected(), b], 60)


def keeps_loading(talk: Epochs) -> None:
    refused_for(talk, known(talk, "a", "b"), 14, 80)


def keeps_away(talk: Epochs) -> None:
    refused_for(talk, known(talk, "a", "b"), 15, 45)


def refused_for(talk: Epochs, clients: list[Client], error: int, seconds: int) -> None:
    for _ in range(seconds // 5):
        for client in clients:
            heartbeats(talk, client, error=error)
        talk.wait(5_000)


def loads_for_seconds(talk: Epochs) -> None:
    clients = known(talk, "a", "b")
    refused_for(talk, clients, 14, 20)
    lives(talk, clients, 60)


def away_for_seconds(talk: Epochs) -> None:
    clients = known(talk, "a", "b")
    refused_for(talk, clients, 15, 15)
    lives(talk, clients, 60)


def coordinator_moves(talk: Epochs, times: int, seconds: int) -> None:
    (a,) = known(talk, "a")
    for turn in range(times):
        heartbeats(talk, a, error=16)
        a = a.reconnected(str(turn % 2 + 2))
        heartbeats(talk, a)
        lives(talk, [a], seconds)


def coordinator_keeps_moving(talk: Epochs) -> None:
    coordinator_moves(talk, 4, 15)


def coordinator_moves_twice_as_brokers_are_restarted(talk: Epochs) -> None:
    coordinator_moves(talk, 2, 60)


def looks_for_its_coordinator(talk: Epochs, seconds: int) -> None:
    """All connections end at once, and the clients ask another broker, which names the dead one still, until one takes over."""
    clients = known(talk, "a", "b")
    for client in clients:
        talk.close(client)
    elsewhere = [client.reconnected("2") for client in clients]
    for _ in range(seconds):
        talk.wait(1_000)
        for client in elsewhere:
            talk.find_coordinator(client)
    lives(talk, elsewhere, 20)


def coordinator_lost_for_long(talk: Epochs) -> None:
    looks_for_its_coordinator(talk, 35)


def coordinator_lost_for_seconds(talk: Epochs) -> None:
    looks_for_its_coordinator(talk, 15)


def answered_after(talk: Epochs, ms: int, throttle_ms: int = 0) -> None:
    (a,) = known(talk, "a")
    request = heartbeat_of(talk, a)
    asked = talk.ask(a, request)
    talk.wait(ms)
    talk.answer(asked, answer_to(request, throttle_ms=throttle_ms))


def answered_after_a_third_of_the_session(talk: Epochs) -> None:
    answered_after(talk, 16_000)


def throttled_for_a_third_of_the_session(talk: Epochs) -> None:
    answered_after(talk, 4_000, throttle_ms=4_000)


def answered_after_seconds(talk: Epochs) -> None:
    answered_after(talk, 6_000)


def two_brokers_in_turns(talk: Epochs) -> None:
    in_turns(talk, 8, 0)


def two_brokers_of_which_each_says_that_it_is_not_the_coordinator(talk: Epochs) -> None:
    in_turns(talk, 8, 16)


def in_turns(talk: Epochs, rounds: int, error: int) -> None:
    """Each broker serves its member, over connections that stand, and refuses it before that if there is an error."""
    clients = [talk.member("a"), talk.member("b", broker="2")]
    for client in clients:
        heartbeats(talk, client, 0, 2)
    for _ in range(rounds):
        for client in clients:
            talk.wait(2_000)
            if error:
                heartbeats(talk, client, error=error)
            heartbeats(talk, client)


OF_THE_CAPTURE = {"V-04"}
OF_CONSUMERS = (Epochs,)
OF_STREAMS = (Streams,)
COMMITTING = (Epochs, Streams)
ALL = (Epochs, Shares, Streams)
UNLAWFUL: dict[str, dict[Conversation, tuple[type[Epochs], ...]]] = {
    "O-01": {refused_commits_of_one_that_left: COMMITTING, refused_commits_of_one_that_was_removed: COMMITTING},
    "O-02": {
        commit_of_a_stranger: COMMITTING,
        commit_of_a_stranger_by_topic_id: COMMITTING,
        commit_after_leaving: COMMITTING,
        commit_in_a_transaction_after_leaving: COMMITTING,
    },
    "O-05": {
        commits_on_what_it_gave_up: OF_CONSUMERS,
        commits_on_while_both_live: OF_CONSUMERS,
        commits_on_over_another_connection: OF_CONSUMERS,
    },
    "E-20": {
        commit_without_a_member: COMMITTING,
        commit_by_topic_id_without_a_member: COMMITTING,
        commit_without_a_member_after_one_of_two_left: COMMITTING,
        commit_at_a_stale_epoch: COMMITTING,
        commit_at_an_epoch_before_the_join: COMMITTING,
        commit_in_a_transaction_at_a_stale_epoch: COMMITTING,
    },
    "P-07": {
        join_told_that_it_is_no_member: ALL,
        join_told_that_its_instance_id_is_fenced: (Epochs, Shares),
        keep_alive_called_malformed: (Epochs, Shares),
        keep_alive_told_of_an_assignor: ALL,
        keep_alive_told_of_a_pattern: ALL,
    },
    "E-18": {
        healthy_member_told_that_it_is_none: ALL,
        released_instance_id_refused_in_mid_life: OF_CONSUMERS,
        released_instance_id_refused_in_mid_life_to_its_holder: OF_CONSUMERS,
        released_instance_id_refused_after_a_gap: OF_CONSUMERS,
    },
    "E-14": {
        served_after_its_removal: ALL,
        served_over_another_connection_after_its_removal: ALL,
        served_with_what_it_owns_after_its_removal: OF_CONSUMERS,
    },
    "E-23": {
        second_process_let_in: OF_CONSUMERS,
        second_process_let_in_after_the_holder_came_back: OF_CONSUMERS,
        second_process_let_in_by_a_pattern: OF_CONSUMERS,
    },
    "S-07": {
        another_instance_id_refused: OF_CONSUMERS,
        another_instance_id_accepted: OF_CONSUMERS,
        another_instance_id_in_a_full_heartbeat: OF_CONSUMERS,
    },
    "E-05": {dirty_join_into_an_unknown_group: ALL},
    "E-05 and E-17": {dirty_join_into_an_unknown_group_accepted: ALL},
    "R-20": {all_stop_when_told: OF_STREAMS},
    "R-20 and R-23": {
        one_goes_on_although_told_to_stop: OF_STREAMS,
        all_go_on_although_told_to_stop: OF_STREAMS,
        one_goes_on_and_commits_although_told_to_stop: OF_STREAMS,
    },
    "C-01": {heartbeat_never_answered: ALL},
    "C-04": {coordinator_keeps_moving: ALL},
    "C-05": {two_brokers_in_turns: ALL},
    "C-06": {keeps_loading: ALL},
    "C-13": {keeps_away: ALL},
    "C-14": {coordinator_lost_for_long: ALL},
    "T-06": {answered_after_a_third_of_the_session: ALL},
}
LAWFUL: dict[Conversation, tuple[type[Epochs], ...]] = {
    commit_of_a_newcomer: COMMITTING,
    commit_into_an_empty_group: COMMITTING,
    commits_at_the_epoch: COMMITTING,
    last_commit_of_a_member_that_leaves: COMMITTING,
    one_refused_commit_of_one_that_left: COMMITTING,
    both_commit_what_they_own: OF_CONSUMERS,
    join_told_that_the_group_is_full: ALL,
    member_told_after_its_leave_that_it_is_none: ALL,
    joins_again_after_its_removal: ALL,
    successor_let_in: OF_CONSUMERS,
    clean_join_into_an_unknown_group: ALL,
    held_instance_id_refused_in_mid_life: OF_CONSUMERS,
    connection_lost_with_a_heartbeat_open: ALL,
    coordinator_moves_twice_as_brokers_are_restarted: ALL,
    loads_for_seconds: ALL,
    away_for_seconds: ALL,
    coordinator_lost_for_seconds: ALL,
    answered_after_seconds: ALL,
    throttled_for_a_third_of_the_session: ALL,
    two_brokers_of_which_each_says_that_it_is_not_the_coordinator: ALL,
}


@pytest.mark.parametrize(
    ("rules", "conversation", "kind"),
    [(rules, one, kind) for rules, conversations in UNLAWFUL.items() for one, kinds in conversations.items() for kind in kinds],
)
def test_what_is_unlawful_is_told_by_its_rules_and_by_no_other(rules: str, conversation: Conversation, kind: type[Epochs]) -> None:
    talk = kind()
    conversation(talk)
    assert [told for told in talk.settled_rules() if told not in OF_THE_CAPTURE] == rules.split(" and ")


@pytest.mark.parametrize(("conversation", "kind"), [(one, kind) for one, kinds in LAWFUL.items() for kind in kinds])
def test_what_is_lawful_is_not_told(conversation: Conversation, kind: type[Epochs]) -> None:
    talk = kind()
    conversation(talk)
    assert talk.settled_rules() == []
