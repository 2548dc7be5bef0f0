"""Every answer of many lawful lives of a group, judged by the protocol's table: ``python -m tests.coordinator_model.shadow``.

A lawful answer that no row explains would be a finding about an innocent. What the rows say became of the sender is held against what
the handlers took it for. The lives are those of the reference coordinator, which does not know the table; their capture is then spoilt
in each way that a capture can be.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.classic.positions import Later, Positions, Verdict, judge
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.protocol.classic import TABLE, Generation, Sender
from coordinator_model.groups.protocol.table import Effect, ways
from coordinator_model.groups.records import Exchange, LeaveFacts
from coordinator_model.groups.responses import leave_outcomes
from coordinator_model.releases import BrokerVersion, first_release
from coordinator_model.settings import Settings
from coordinator_model.wire import API_NAMES, decode, error_name
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    NOT_ADMITTED,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from coordinator_model.wire.record import Kind, MirrorRecord
from tests.coordinator_model.lives import SKEW_MS, Spoil, from_the_middle, is_error, late, lossy, skewed
from tests.coordinator_model.reference.history import OLD, Plan, acts, plans

JUDGED = {HEARTBEAT, SYNC_GROUP, OFFSET_COMMIT, TXN_OFFSET_COMMIT, JOIN_GROUP, LEAVE_GROUP, DELETE_GROUPS}


class Waiting(NamedTuple):
    """A refusal that a later success would show to be unlawful, and what that success must show."""

    exchange: Exchange
    verdict: Verdict
    later: Later


def known(group: ClassicGroup) -> tuple[frozenset[str], frozenset[str]]:
    """Whom a group knows as members, and which ids it knows to be pending."""
    return frozenset(member.id for member in group.present_members()), frozenset(group.issued)


def became(
    group: ClassicGroup, exchange: Exchange, error: int, sender: tuple[str, str | None], *, is_member: bool
) -> list[frozenset[str]]:
    """What each row that gives an answer says of the sender and the group."""
    positions = Positions(group, exchange, sender)
    oldest = first_release(exchange.api_key, exchange.api_version)
    return [
        way.row.effects
        for way in ways(TABLE, exchange.api_key, exchange.api_version, error, oldest)
        if positions.comes_from(way.sender, held=way.row.ends_hold)
        and not (is_member and way.sender is Sender.PENDING)
        and (way.generation is Generation.NONE) == (exchange.generation < 0)
        and (way.phase != "L" or group.loading_near(exchange.broker, exchange.res_us))
    ]


class Shadow:
    """Judges every answer that a model takes in."""

    def __init__(self) -> None:
        self.judged: Counter[str] = Counter()
        self.unlawful: list[tuple[ClassicGroup, Verdict]] = []
        self.differences: list[str] = []  #: between the rows and the handlers
        self.waiting: list[Waiting] = []
        self.errors: list[Finding] = []  #: what the model reports at severity error or above

    def response(self, group: ClassicGroup, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Any, ...]:
        exchange, before, incarnation = group.open.get((record.connection, record.exchange)), known(group), group.incarnation
        events = GroupModel.response(group, record, body, correlation_id)
        if exchange is not None and exchange.api_key in JUDGED and correlation_id == exchange.correlation_id:
            self._contradict(group, exchange, body)
            for error, sender in answers(exchange, body):
                self._judge(group, exchange, error, sender)
                if group.incarnation == incarnation:
                    self._compare(group, exchange, error, sender, before)
        return events

    def _judge(self, group: ClassicGroup, exchange: Exchange, error: int, sender: tuple[str, str | None]) -> None:
        self.judged[f"{API_NAMES[exchange.api_key]} {error_name(error) if error else 'success'}"] += 1
        verdict = group.judge(exchange, error, named=sender)
        if verdict is not None:
            self.unlawful.append((group, verdict))
        elif error in NOT_ADMITTED and exchange.api_key not in {LEAVE_GROUP, TXN_OFFSET_COMMIT} and group.newest_generation:
            generation = group.newest_generation.generation
            for later in (Later(generation, in_sync=True), Later(generation), Later(member=True)):
                verdict = judge(group, exchange, error, BrokerVersion(), later=later)
                if verdict is not None:
                    self.waiting.append(Waiting(exchange, verdict, later))

    def _compare(
        self,
        group: ClassicGroup,
        exchange: Exchange,
        error: int,
        sender: tuple[str, str | None],
        before: tuple[frozenset[str], frozenset[str]],
    ) -> None:
        """Note where the handlers took an answer for something else than the rows."""
        rows = became(group, exchange, error, sender, is_member=sender[0] in before[0])
        if not rows or not group.settled:
            return
        (members, pending), member, newest = known(group), group.members.get(sender[0]), group.newest_generation
        surely = frozenset.intersection(*rows)
        serves = exchange.api_key == HEARTBEAT and not error and (newest is None or newest.generation == exchange.generation)
        loads = group.loading_near(exchange.broker, exchange.res_us)
        proven = member is not None and member.proven_us == exchange.res_us
        differs = {
            "id given": (Effect.ISSUED in surely) != bool(pending - before[1]),
            "still a member": Effect.REMOVED in surely and sender[0] in members,
            "no member": not error and Effect.REMOVED not in surely and sender[0] in before[0] - members,
            "session": serves and not loads and (Effect.SESSION in surely) != proven,
        }
        self.differences += [f"{API_NAMES[exchange.api_key]} {exchange.key}: {what}" for what, does in differs.items() if does]

    def _contradict(self, group: ClassicGroup, exchange: Exchange, body: Any) -> None:
        """Find the refusals that this success shows to have been unlawful."""
        if not group.settled or group.newest_generation is None or not group.connections:
            self.waiting = []
        phases = group.phases_proven_by(exchange) if self.waiting else frozenset()
        if not phases:
            return
        joined = exchange.api_key == JOIN_GROUP
        generation, member_id = (body.generation_id, body.member_id) if joined else (exchange.generation, exchange.member_id)
        skew_us = group.clock_skew_us
        for one in self.waiting:
            if one.exchange.res_us + skew_us >= exchange.effective_us:
                continue
            unbroken = one.later.generation == generation and ("P" not in phases or not one.later.in_sync)
            same = one.later.member and one.exchange.member_id == member_id
            if unbroken or same:
                self.unlawful.append((group, one.verdict))


def answers(exchange: Exchange, body: Any) -> Iterator[tuple[int, tuple[str, str | None]]]:
    """The errors of an answer, and whom each is about."""
    own = (exchange.member_id, exchange.instance_id)
    if exchange.api_key == LEAVE_GROUP:
        assert isinstance(exchange.facts, LeaveFacts)
        for id_, instance_id, error in leave_outcomes(exchange, body):
            yield error, (id_, instance_id)
    elif exchange.api_key in {OFFSET_COMMIT, TXN_OFFSET_COMMIT, DELETE_GROUPS}:
        for error in exchange.error_codes:
            yield error, own
    elif exchange.api_key != JOIN_GROUP or exchange.error:
        yield exchange.error, own


@contextmanager
def shadowed() -> Iterator[Shadow]:
    """Let a shadow judge what models take in meanwhile."""
    shadow = Shadow()

    def response(group: ClassicGroup, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Any, ...]:
        return shadow.response(group, record, body, correlation_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClassicGroupModel, "response", response)
        yield shadow


@contextmanager
def verdicts() -> Iterator[list[Verdict]]:
    """The unlawful ones among the answers captured meanwhile."""
    found: list[Verdict] = []
    with shadowed() as shadow:
        yield found
    found.extend(verdict for _, verdict in shadow.unlawful)


def judged(records: list[MirrorRecord], own: Settings | None = None) -> Shadow:
    """Replay a capture; return what its answers are judged to be, once late frames have come."""
    model = Coordinator(topic="mirror", partition=0, settings=own)
    with shadowed() as shadow:
        for record in records:
            shadow.errors.extend(filter(is_error, model.receive(record)))
    shadow.unlawful = [(group, verdict) for group, verdict in shadow.unlawful if not joined_late(verdict.exchange, records)]
    return shadow


def joined_late(exchange: Exchange, records: list[MirrorRecord]) -> bool:
    """Return True if the JoinGroup success that made the sender a member was captured before the answer, and came after it."""
    return any(
        (body.error_code, body.member_id, body.generation_id) == (0, exchange.member_id, exchange.generation)
        for record in records
        if record.api_key == JOIN_GROUP and record.kind is Kind.RESPONSE
        if record.offset > exchange.response_offset and record.at_us < exchange.res_us
        for body in [decode(record.frame, request=False, api_key=JOIN_GROUP, api_version=record.api_version).body]
    )


# ---------------------------------------------------------------------------------------------------- captures that are spoilt

LATEST_MS = 2_000


def plain(records: list[MirrorRecord], _: Random) -> list[MirrorRecord]:
    return records


class Life(NamedTuple):
    spoil: Spoil
    plans: st.SearchStrategy[Plan]
    settings: Settings | None = None


FAILOVERS = ("fail over", "unload", "reload", "broker crash", "restart", "cut", "subscribe")
KINDS = {
    "plain": Life(plain, plans()),
    "clocks 100 ms apart": Life(skewed, plans(), Settings(clock_skew_ms=SKEW_MS)),
    "up to 2 s late": Life(late(LATEST_MS), plans(), Settings(reorder_window_ms=LATEST_MS)),
    "loss": Life(lossy, plans()),
    "from the middle": Life(from_the_middle, plans()),
    "failovers": Life(plain, plans(acts=st.lists(acts(FAILOVERS), min_size=3, max_size=8).map(tuple))),
    "old releases": Life(plain, plans(brokers=st.sampled_from(OLD))),
}


class Judged(NamedTuple):
    histories: int
    answers: Counter[str]
    unlawful: list[tuple[Plan, Verdict]]
    errors: list[tuple[Plan, Finding]]
    differences: list[str]


def live(kind: Life, count: int, first_seed: int) -> Judged:
    """Judge the answers of many lawful lives."""
    histories = 0
    answers: Counter[str] = Counter()
    unlawful: list[tuple[Plan, Verdict]] = []
    errors: list[tuple[Plan, Finding]] = []
    differences: list[str] = []

    @seed(first_seed)
    @settings(max_examples=count, database=None, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
    @given(kind.plans, st.integers(0, 2**32 - 1))
    def lived(plan: Plan, random_seed: int) -> None:
        nonlocal histories
        histories += 1
        records = kind.spoil(plan.run().records, Random(random_seed))
        shadow = judged(records, kind.settings)
        answers.update(shadow.judged)
        unlawful.extend((plan, verdict) for _, verdict in shadow.unlawful)
        errors.extend((plan, finding) for finding in shadow.errors)
        differences.extend(f"{difference} in {plan}" for difference in shadow.differences)

    lived()
    return Judged(histories, answers, unlawful, errors, differences)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    options = parser.parse_args()
    for name in options.kinds:
        found = live(KINDS[name], options.histories, options.seed + 1_000 * list(KINDS).index(name))
        print(
            f"{name:20} histories {found.histories:6,}  answers judged {found.answers.total():9,}  unlawful {len(found.unlawful)}  "
            f"errors {len(found.errors)}  differences {len(found.differences)}",
            flush=True,
        )
        for difference in found.differences[: options.show]:
            print(f"    {difference}")
        for plan, finding in found.errors[: options.show]:
            print(f"    {finding.rule} {finding.summary}\n    {plan}")
        for plan, verdict in found.unlawful[: options.show]:
            print(f"    {verdict.exchange.key} {sorted(verdict.about)} {verdict.text}\n    {plan}")


if __name__ == "__main__":
    main()
