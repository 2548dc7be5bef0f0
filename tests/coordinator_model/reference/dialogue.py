"""Scripted conversations with a coordinator, the reference or a running broker, and what it is expected to answer.

A script has a line for each request, with the expected answer behind ``=>``::

    m1 0 => 2:6            joins with epoch 0, is answered epoch 2 and an assignment of six partitions
    m1 2 tp=held => 2      heartbeats at epoch 2, says what it holds; the answer has no assignment
    m1 2 tp=told => 2      acknowledges what it was told
    m2 J => g3~            classic: JoinGroup (``g3`` generation, ``~`` no leader), ``Y`` SyncGroup, ``H`` Heartbeat, ``L`` LeaveGroup
    m2 C 3 held => 0       commits with epoch 3 for a partition that it holds, or ``other`` or ``older``
    wait 1100              milliseconds

Epochs are those of 4.3, whose groups start at 1; up to 4.2 they are one lower. ``<4.2: 110`` behind the expectation is what older
releases answer. ``J&`` leaves the answer open, ``m2 ? => 27`` takes it. ``text`` after ``:`` is a count, never which partitions: that
is the assignor's own affair.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from coordinator_model import wire
from coordinator_model.wire import decode_assignment, encode_assignment, encode_subscription
from tests.coordinator_model.reference.consumer_coordinator import ConsumerCoordinator
from tests.coordinator_model.reference.world import MS, Connection, World

Release = tuple[int, ...]
Owned = frozenset[tuple[str, int]]

VERSIONS = {8: 9, 11: 9, 12: 4, 13: 5, 14: 5, 68: 1}
TOPICS = ("t", "u")
SESSION_MS = 6_000
HEARTBEAT_MS = 1_000
MAX_SIZE = 4
LONGEST_ANSWER_MS = 20_000


class Line(Protocol):
    """One member's connection to the coordinator."""

    def ask(self, body: Any, api_version: int) -> None:
        """Send a request."""

    def take(self) -> Any:
        """The answer to the oldest request that has none yet; None if none comes."""


class Place(Protocol):
    """Where a conversation takes place: a group of its own."""

    release: Release
    group: str

    def line(self, client_id: str) -> Line:
        """A new connection."""

    def wait(self, ms: int) -> None:
        """Let so much time pass."""


# ---------------------------------------------------------------------------------------------------- the reference


class ReferenceLine:
    def __init__(self, world: World, client_id: str) -> None:
        self._world = world
        self._connection = Connection(world, client_id, "1", dict(VERSIONS))
        self._answers: list[Any] = []

    def ask(self, body: Any, api_version: int) -> None:
        self._connection.versions[body.API_KEY] = api_version
        self._connection.ask(body, self._answers.append)

    def take(self) -> Any:
        until_us = self._world.now_us + LONGEST_ANSWER_MS * MS
        while not self._answers and self._world.now_us < until_us:
            self._world.run(self._world.now_us + MS)
        return self._answers.pop(0) if self._answers else None


class ReferencePlace:
    """The reference coordinator, in a world of its own."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.world = World(Random(1))
        self.group = self.world.group
        self.coordinator = ConsumerCoordinator(
            self.world,
            "1",
            [],
            release=release,
            topics=set(TOPICS),
            session_ms=SESSION_MS,
            heartbeat_ms=HEARTBEAT_MS,
            max_size=MAX_SIZE,
            initial_delay_ms=0,
        )
        self.coordinator.active = True

    def line(self, client_id: str) -> ReferenceLine:
        return ReferenceLine(self.world, client_id)

    def wait(self, ms: int) -> None:
        self.world.run(self.world.now_us + ms * MS)


# ---------------------------------------------------------------------------------------------------- who talks


@dataclass
class Speaker:
    """One member, and what it knows."""

    name: str
    line: Line
    id: str = ""
    told: Owned = frozenset()  #: the last assignment
    before: Owned = frozenset()  #: the one before that
    generation: int = -1
    given: Owned = frozenset()  #: by SyncGroup; names instead of ids
    version: int = 0
    read: Callable[[Any], str] = field(default=lambda _: "")


@dataclass(frozen=True)
class Outcome:
    """A line of a script with what came."""

    text: str
    expected: str
    found: str

    def __str__(self) -> str:
        mark = " " if self.expected == self.found else "!"
        return f"{mark} {self.text:44} => {self.expected:10} {'' if mark == ' ' else self.found}".rstrip()


def play(script: str, place: Place) -> list[Outcome]:
    """What a coordinator answers to each line of a script."""
    speakers: dict[str, Speaker] = {}
    outcomes = []
    for line in script.strip().splitlines():
        text, _, expectation = line.partition("=>")
        words = text.split("#")[0].split()
        if not words:
            continue
        if words[0] == "wait":
            place.wait(int(words[1]))
            continue
        name = words[0]
        if name not in speakers:
            speakers[name] = Speaker(name, place.line(name), id=_member_id(place.group, name))
        found = _said(speakers[name], words[1:], place)
        if expectation.strip():
            outcomes.append(Outcome(" ".join(words), _expected(expectation, place.release), found))
    return outcomes


def _member_id(group: str, name: str) -> str:
    return f"{name}-{group}"


def _shifted(epoch: int, release: Release) -> int:
    return epoch - 1 if epoch > 0 and release < (4, 3) else epoch


def _expected(text: str, release: Release) -> str:
    default, *others = [part.strip() for part in text.split("#", maxsplit=1)[0].split(";")]
    for other in others:
        bound, _, value = other.partition(":")
        if release < tuple(int(number) for number in bound.removeprefix("<").split(".")):
            default = value.strip()
            break
    if default.startswith("="):
        return default[1:]
    if default.startswith("g"):
        return default
    match = re.fullmatch(r"e(-?\d+)(:\d+)?", default)
    return f"e{_shifted(int(match[1]), release)}{match[2] or ''}" if match else default


def _said(one: Speaker, words: list[str], place: Place) -> str:
    verb, *rest = words
    if verb == "?":
        return one.read(one.line.take())
    if re.fullmatch(r"-?\d+", verb):
        _heartbeat(one, int(verb), rest, place)
    else:
        _CLASSIC[verb[0]](one, rest, place)
    return "" if verb.endswith("&") else one.read(one.line.take())


# ---------------------------------------------------------------------------------------------------- ConsumerGroupHeartbeat


def _heartbeat(one: Speaker, epoch: int, words: list[str], place: Place) -> None:
    options = dict(word.partition("=")[::2] for word in words)
    joins = epoch == 0
    body = wire.ConsumerGroupHeartbeatRequest(
        group_id=options.get("group", place.group),
        member_id=options.get("id", one.id),
        member_epoch=epoch if "exact" in options else _shifted(epoch, place.release),
        instance_id=_instance(options, place),
        rack_id=options.get("rack"),
        rebalance_timeout_ms=int(options.get("rt", "60000" if joins or "full" in options else "-1")),
        server_assignor=options.get("assignor"),
    )
    if "regex" in options:
        body.subscribed_topic_regex = options["regex"]
    if "names" in options:
        body.subscribed_topic_names = tuple(name for name in options["names"].split(",") if name)
    elif (joins or "full" in options) and "regex" not in options and "nothing" not in options:
        body.subscribed_topic_names = ("t",)
    owned = options.get("tp", "none" if not joins else "")
    if owned != "none":
        body.topic_partitions = _as_topics(_owned(one, owned))
    one.read = lambda answer: _read_heartbeat(one, answer)
    one.line.ask(body, int(options.get("v", "1")))


def _instance(options: dict[str, str], place: Place) -> str | None:
    return None if "i" not in options else f"{options['i']}-{place.group}" if options["i"] else ""


def _owned(one: Speaker, which: str) -> Owned:
    if which == "told":
        return one.told
    if which == "before":
        return one.before
    if which == "alien":
        return frozenset({("AAAAAAAAAAAAAAAAAAAAAQ", 0)})
    return frozenset(sorted(one.told)[: int(which)]) if which else frozenset()


def _as_topics(owned: Owned) -> tuple[wire.ConsumerGroupHeartbeatRequestTopicPartitions, ...]:
    return tuple(
        wire.ConsumerGroupHeartbeatRequestTopicPartitions(
            topic_id=topic, partitions=tuple(sorted(index for other, index in owned if other == topic))
        )
        for topic in sorted({topic for topic, _ in owned})
    )


def _read_heartbeat(one: Speaker, answer: Any) -> str:
    if answer is None:
        return "silence"
    if answer.error_code:
        return str(answer.error_code)
    if answer.member_epoch >= 0 and answer.member_id:
        one.id = answer.member_id
    shown = ""
    if answer.assignment is not None:
        given = frozenset((topic.topic_id, index) for topic in answer.assignment.topic_partitions for index in topic.partitions)
        one.before, one.told = one.told, given
        shown = f":{len(given)}"
    return f"e{answer.member_epoch}{shown}"


# ---------------------------------------------------------------------------------------------------- classic requests


def _join(one: Speaker, words: list[str], place: Place) -> None:
    options = dict(word.partition("=")[::2] for word in words)
    if "new" in options:
        one.id, one.given = "", frozenset()
    elif one.generation < 0 and one.id.startswith(f"{one.name}-{place.group}"):
        one.id = ""
    owned = one.given if "own" in options else frozenset()
    metadata = encode_subscription(
        wire.ConsumerProtocolSubscription(
            topics=tuple(options.get("names", "t").split(",")),
            owned_partitions=tuple(
                wire.ConsumerProtocolSubscriptionTopicPartition(
                    topic=topic, partitions=tuple(sorted(index for other, index in owned if other == topic))
                )
                for topic in sorted({topic for topic, _ in owned})
            ),
            generation_id=one.generation,
        ),
        version=2,
    )
    body = wire.JoinGroupRequest(
        group_id=place.group,
        session_timeout_ms=int(options.get("st", str(SESSION_MS))),
        rebalance_timeout_ms=int(options.get("rt", "60000")),
        member_id=options.get("id", one.id),
        group_instance_id=_instance(options, place),
        protocol_type=options.get("type", "consumer"),
        protocols=(wire.JoinGroupRequestProtocol(name=options.get("protocol", "range"), metadata=metadata),),
    )
    one.read = lambda answer: _read_join(one, answer)
    one.line.ask(body, VERSIONS[11])


def _read_join(one: Speaker, answer: Any) -> str:
    if answer is None:
        return "silence"
    if answer.error_code in {0, 79}:
        one.id = answer.member_id
    if answer.error_code:
        return str(answer.error_code)
    one.generation = answer.generation_id
    leader = "~" if not answer.leader else "*" if answer.leader == answer.member_id else ""
    return f"g{answer.generation_id}{leader}"


def _sync(one: Speaker, words: list[str], place: Place) -> None:
    options = dict(word.partition("=")[::2] for word in words)
    assignments: tuple[wire.SyncGroupRequestAssignment, ...] = ()
    if "lead" in options:
        everything = wire.ConsumerProtocolAssignment(
            assigned_partitions=(wire.ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=tuple(range(6))),),
            user_data=b"mine" if "userdata" in options else None,
        )
        assignments = (wire.SyncGroupRequestAssignment(member_id=one.id, assignment=encode_assignment(everything, version=1)),)
    body = wire.SyncGroupRequest(
        group_id=place.group,
        generation_id=int(options.get("g", str(one.generation))),
        member_id=options.get("id", one.id),
        group_instance_id=_instance(options, place),
        protocol_type="consumer",
        protocol_name=options.get("protocol", "range"),
        assignments=assignments,
    )
    one.read = lambda answer: _read_sync(one, answer)
    one.line.ask(body, VERSIONS[14])


def _read_sync(one: Speaker, answer: Any) -> str:
    if answer is None:
        return "silence"
    if answer.error_code:
        return str(answer.error_code)
    given = decode_assignment(answer.assignment).assigned_partitions if answer.assignment else ()
    one.given = frozenset((topic.topic, index) for topic in given for index in topic.partitions)
    return f"y{len(one.given)}"


def _classic_heartbeat(one: Speaker, words: list[str], place: Place) -> None:
    options = dict(word.partition("=")[::2] for word in words)
    body = wire.HeartbeatRequest(
        group_id=place.group,
        generation_id=int(options.get("g", str(one.generation))),
        member_id=options.get("id", one.id),
        group_instance_id=_instance(options, place),
    )
    one.read = lambda answer: "silence" if answer is None else str(answer.error_code)
    one.line.ask(body, VERSIONS[12])


def _leave(one: Speaker, words: list[str], place: Place) -> None:
    options = dict(word.partition("=")[::2] for word in words)
    whom = _member_id(place.group, options["whom"]) if "whom" in options else options.get("id", one.id)
    entry = wire.LeaveGroupRequestMemberIdentity(member_id=whom, group_instance_id=_instance(options, place))
    one.read = lambda answer: (
        "silence" if answer is None else str(answer.error_code or (answer.members[0].error_code if answer.members else 0))
    )
    one.line.ask(wire.LeaveGroupRequest(group_id=place.group, members=(entry,)), VERSIONS[13])


def _commit(one: Speaker, words: list[str], place: Place) -> None:
    """``C 3 held``: by epoch, for a partition of topic t."""
    epoch, which, *rest = words
    options = dict(word.partition("=")[::2] for word in rest)
    held = {index for _, index in one.told} or {index for _, index in one.given}
    index = min(held, default=0) if which == "held" else min(set(range(6)) - held, default=5)
    number = int(epoch)
    body = wire.OffsetCommitRequest(
        group_id=place.group,
        generation_id_or_member_epoch=number if "exact" in options else _shifted(number, place.release),
        member_id=options.get("id", one.id),
        topics=(
            wire.OffsetCommitRequestTopic(
                name="t", partitions=(wire.OffsetCommitRequestPartition(partition_index=index, committed_offset=1),)
            ),
        ),
    )
    one.read = lambda answer: "silence" if answer is None else str(answer.topics[0].partitions[0].error_code)
    one.line.ask(body, int(options.get("v", "9")))


_CLASSIC: dict[str, Callable[[Speaker, list[str], Place], None]] = {
    "J": _join,
    "Y": _sync,
    "H": _classic_heartbeat,
    "L": _leave,
    "C": _commit,
}
