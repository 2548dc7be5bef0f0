"""What happens to a group on a lawful day. None of it breaks the protocol; what a library makes of it is what is judged."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.libraries import Library
from tests.conformance.stage import REBALANCE_MS, SESSION_MS, Stage
from tests.real.lab.cluster import Site

JOIN_GROUP, SYNC_GROUP = 11, 14
CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT = 68, 76, 88
JOINS = frozenset({JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT})
FRAME_COMES_S = 20.0
#: What a busy machine may add to any scenario: brokers that answer late. It says nothing about the library.
OF_THE_MACHINE = frozenset({"T-06"})
#: A coordinator that is away for longer than a session, and what becomes of members that cannot reach it.
COORDINATOR_AWAY = frozenset({"C-04", "C-14", "R-13", "T-04", "T-05", "T-09", "M-10", "E-09"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario.

    :param play: on a stage that is closed afterwards.
    :param tells: rules whose findings say nothing but what the scenario does.
    :param disturb: what is done to the whole cluster when every library has played so far.
    :param rights: the broker, of which there is one then, knows rights.
    """

    name: str
    does: str
    play: Callable[[Stage], None]
    tells: frozenset[str] = frozenset()
    disturb: Callable[[Site, random.Random], None] | None = None
    needs: Callable[[Library], bool] = lambda _: True
    rights: bool = False


def _one_by_one(stage: Stage) -> None:
    for _ in range(3):
        stage.start()
        stage.settle()
    stage.work(3)


def _rolling_restart(stage: Stage) -> None:
    stage.start(3)
    stage.settle()
    for member in tuple(stage.members):
        stage.close(member)
        stage.again(member)
        stage.work(1)
    stage.settle()


def _kills(stage: Stage) -> None:
    stage.start(3)
    stage.settle()
    for member in tuple(stage.members)[:2]:
        stage.kill(member)
        stage.again(member)
        stage.settle()


def _static(stage: Stage) -> None:
    stage.start(static=True)
    stage.settle()  # so that the first one leads
    stage.start(2, static=True)
    stage.settle()
    first, second, _ = stage.members
    stage.close(first)
    stage.again(first)
    stage.settle(3)
    stage.kill(second)
    if stage.library.protocol == "consumer":
        stage.settle(2)  # whoever comes back sooner is refused for good: UNRELEASED_INSTANCE_ID
    stage.again(second)
    stage.work(2)
    stage.settle(3)


def _scale(stage: Stage) -> None:
    stage.start()
    stage.settle()
    stage.start(3)
    stage.settle()
    while len(stage.members) > 1:
        stage.close(stage.any())
    stage.settle()
    stage.work(2)


def _slow_poll(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    stage.any().tell("block", ms=int(REBALANCE_MS * 1.7))
    stage.work(REBALANCE_MS / 1000 * 2.2)
    stage.settle()


def _suspended(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    member = stage.any()
    member.suspend()
    time.sleep(SESSION_MS / 1000 * 1.6)
    member.resume()
    stage.work(3)
    stage.settle()


def _cut_while_stable(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    for member in tuple(stage.members):
        stage.cut(member)
        stage.work(2)
    stage.settle()


def _cut_while_joining(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    member = stage.any()
    joins = stage.when(JOINS, member)
    stage.start()
    if joins.wait(FRAME_COMES_S):
        stage.cut(member)
    stage.settle()


def _cut_while_syncing(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    member = stage.any()
    syncs = stage.when({SYNC_GROUP}, member)
    stage.start()
    if syncs.wait(FRAME_COMES_S):
        stage.cut(member)
    stage.settle()


def _more_partitions(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    stage.add_partitions(9)
    stage.work(6)
    stage.settle()


def _topic_anew(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    stage.recreate_topic()
    stage.work(6)
    stage.settle()


def _group_deleted(stage: Stage) -> None:
    stage.start()
    stage.settle()
    [member] = stage.members
    member.suspend()
    stage.settle(0)
    stage.delete_group()
    member.resume()
    stage.work(3)
    stage.settle()


def _leave(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    member = stage.any()
    member.tell("leave")
    stage.settle(1)
    if stage.library.returns:
        member.tell("subscribe", topics=[stage.topic])
        stage.settle()


def _rights_taken(stage: Stage) -> None:
    stage.start(2)
    stage.settle()
    stage.forbid()
    stage.work(SESSION_MS / 1000 * 0.6)
    stage.permit()
    stage.work(2)
    for member in tuple(stage.members):  # some end with the error, others need to be told
        stage.close(member)
        stage.again(member)
    stage.settle()


def _cooperative(stage: Stage) -> None:
    stage.assignor = "cooperative-sticky"
    stage.start(2)
    stage.settle()
    stage.start(2)
    stage.settle()
    stage.close(stage.any())
    stage.kill(stage.any())
    stage.settle()


def _committing(how: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.commits = how
        stage.start(2)
        stage.settle()
        stage.work(2)
        stage.start()
        stage.settle()
        stage.work(2)
        stage.close(stage.any())
        stage.settle()

    return play


def _two_members(stage: Stage) -> None:
    stage.start(2)
    stage.settle()


def _restart_brokers(site: Site, rng: random.Random) -> None:
    for broker in rng.sample(site.brokers, len(site.brokers)):
        broker.restart()
        time.sleep(3)


def _kill_brokers(site: Site, rng: random.Random) -> None:
    for broker in rng.sample(site.brokers, len(site.brokers)):
        broker.kill()
        broker.start()
        time.sleep(3)


def _move_coordinators(site: Site, rng: random.Random) -> None:
    first = rng.randrange(3)
    for shift in range(3):
        site.move_coordinators(first + shift)
        time.sleep(3)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(name="one-by-one", does="three members start one after the other", play=_one_by_one),
    Scenario(name="rolling-restart", does="three members are closed and started again, one after the other", play=_rolling_restart),
    Scenario(name="kills", does="members are killed and started again at once", play=_kills, tells=frozenset({"T-04", "T-09"})),
    Scenario(
        name="static",
        does="of three static members one is closed, one killed; both start again within their session",
        play=_static,
        tells=frozenset({"T-04", "T-09", "C-14"}),  # they end without LeaveGroup, and may be away for longer than a session
        needs=lambda library: library.static,
    ),
    Scenario(name="scale", does="one member, then four, then one", play=_scale),
    Scenario(
        name="slow-poll",
        does="processing takes 1.7 times as long as the rebalance timeout",
        play=_slow_poll,
        tells=frozenset({"T-05", "R-07", "M-10"}),  # it joins, is late, joins again and leaves: four rebalances in a row
    ),
    Scenario(
        name="suspended",
        does="SIGSTOP for 1.6 sessions, then SIGCONT",
        play=_suspended,
        tells=frozenset({"T-04", "T-05", "M-10", "E-09"}),
    ),
    Scenario(name="cut-stable", does="all connections of each member are cut", play=_cut_while_stable),
    Scenario(
        name="cut-joining",
        does="a member's connections are cut when it has sent JoinGroup, or the heartbeat of a newer protocol",
        play=_cut_while_joining,
    ),
    Scenario(
        name="cut-syncing",
        does="a member's connections are cut when it has sent SyncGroup",
        play=_cut_while_syncing,
        needs=lambda library: library.protocol == "classic",
    ),
    Scenario(name="partitions", does="the topic gets three more partitions", play=_more_partitions),
    Scenario(name="topic-anew", does="the topic is deleted and created again", play=_topic_anew, tells=frozenset({"O-07"})),
    Scenario(
        name="group-deleted",
        does="the only member is suspended, its empty group deleted, and it goes on",
        play=_group_deleted,
        tells=frozenset({"T-04", "T-05", "G-05", "M-10", "E-09", "E-10"}),
    ),
    Scenario(
        name="leave",
        does="a member leaves the group, and subscribes again",
        play=_leave,
        tells=frozenset({"R-07"}),  # one client joins, leaves, joins and leaves
    ),
    Scenario(
        name="rights-taken",
        does="the right to read the group is taken away for more than half a session; then the members start again",
        play=_rights_taken,
        tells=frozenset(
            {"O-09", "C-14", "T-04", "T-09", "M-10", "G-08"}
        ),  # commits are refused; who gives up hangs up, in a JoinGroup too
        rights=True,
    ),
    Scenario(
        name="cooperative",
        does="cooperative-sticky: two members, then four, one is closed, one killed",
        play=_cooperative,
        tells=frozenset({"T-04", "T-09", "R-05"}),  # it is killed while the others join
        needs=lambda library: "cooperative-sticky" in library.assignors,
    ),
    Scenario(
        name="commits-sync",
        does="synchronous commits through two rebalances",
        play=_committing("sync"),
        needs=lambda library: library.commits,
    ),
    Scenario(
        name="commits-async",
        does="asynchronous commits through two rebalances",
        play=_committing("async"),
        needs=lambda library: library.commits,
    ),
    Scenario(
        name="transactions",
        does="offsets in transactions through two rebalances",
        play=_committing("transaction"),
        needs=lambda library: library.transactions,
    ),
    Scenario(name="restarts", does="each broker is restarted", play=_two_members, tells=COORDINATOR_AWAY, disturb=_restart_brokers),
    Scenario(
        name="crashes",
        does="each broker is killed and started again",
        play=_two_members,
        tells=COORDINATOR_AWAY,
        disturb=_kill_brokers,
    ),
    Scenario(
        name="coordinator-moved",
        does="the partitions of __consumer_offsets get other leaders, three times",
        play=_two_members,
        tells=COORDINATOR_AWAY,
        disturb=_move_coordinators,
    ),
)
