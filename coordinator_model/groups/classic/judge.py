"""Judge an answer by the protocol's table: lawful if a row gives it at a moment that frames leave possible.

An answer that no row gives at any possible moment is unlawful. What excludes each row is the proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.finding import Certainty, Evidence
from coordinator_model.groups.classic.positions import (
    GENERATION,
    HOLDER,
    LOADING,
    MEMBER,
    NOTHING_YET,
    PHASE,
    REPLACED,
    REQUEST,
    Later,
    Positions,
    Reason,
)
from coordinator_model.groups.protocol.classic import TABLE, Condition, Generation, Sender
from coordinator_model.groups.protocol.judge import Way, shown, unseen
from coordinator_model.groups.protocol.table import Row
from coordinator_model.groups.records import Exchange
from coordinator_model.releases import BrokerVersion, first_release
from coordinator_model.wire.constants import COORDINATOR_LOAD_IN_PROGRESS

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

UPGRADE: Final = "upgrade"
_NO_UPGRADE: Final = Reason(UPGRADE, "none was seen")
_OTHER_REQUEST: Final = Reason(REQUEST, "this was none")


class Verdict(NamedTuple):
    """An unlawful answer, and what excludes each way to it. Rules check that of an accepted request as an event."""

    exchange: Exchange
    error: int
    excluded: tuple[tuple[Row, str, tuple[Reason, ...]], ...]  #: row, phase, reasons

    @property
    def about(self) -> frozenset[str]:
        """What alone would have had to be different of the group or the sender for the answer to be lawful: any one of these."""
        judged = [{reason.about for reason in reasons} for _, _, reasons in self.excluded]
        decisive = [about for about in judged if not about & {LOADING, UPGRADE, REQUEST}]
        return frozenset(set.intersection(*decisive)) if decisive else frozenset()

    @property
    def certainty(self) -> Certainty:
        """Certain if the exchange itself is the proof, confirmed if it takes what is known of the group."""
        known = any(reason.about != REQUEST for _, _, reasons in self.excluded for reason in reasons)
        return Certainty.CONFIRMED if known else Certainty.CERTAIN

    def why(self, about: str) -> str:
        """Return the first reason of that kind, as half a sentence."""
        return next(reason.text for _, _, reasons in self.excluded for reason in reasons if reason.about == about)

    @property
    def proof(self) -> tuple[Evidence, ...]:
        """Return the frames that exclude the rows, oldest first."""
        found = {frame for _, _, reasons in self.excluded for reason in reasons for frame in reason.proof}
        return tuple(sorted(found, key=lambda frame: frame.at_us))

    @property
    def text(self) -> str:
        """Return what the answer needs, by the rows that give it, and why that was not so."""
        needs: dict[tuple[str, str], dict[str, None]] = {}
        for row, phase, reasons in self.excluded:
            reason = reasons[0]
            needs.setdefault((_needed(row, phase, reason.about, self.error), reason.text), {})[row.name] = None
        if not needs:
            return "no row of the protocol gives that answer"
        parts = [f"{needed} ({', '.join(names)}): {text}" for (needed, text), names in needs.items()]
        return f"it needs {'; or '.join(parts)}"


def _needed(row: Row, phase: str, about: str, error: int) -> str:
    """Return what a row needs that was not so."""
    fixed = {
        LOADING: "a broker that loads the group",
        UPGRADE: "a group that is being upgraded",
        PHASE: f"a group in phase {phase}",
    }
    if about in fixed:
        return fixed[about]
    if about == GENERATION:
        groups_own = Generation.SAME in row.generations or not (row.generations or error)
        return "the group's generation" if groups_own else "another generation than the group's"
    if about == MEMBER:
        return "a member" if row.senders & {Sender.MEMBER, Sender.RENAMED} else "an id that is no member's"
    if about in {REPLACED, HOLDER}:
        return "an instance id that another member holds" if error else "the holder of the instance id"
    return f"a request of a sender that is {' or '.join(sorted(row.senders))}"


def judge(
    group: GroupData,
    exchange: Exchange,
    error: int,
    broker_version: BrokerVersion,
    *,
    later: Later = NOTHING_YET,
    named: tuple[str, str | None] | None = None,
    issued: int | None = None,
) -> Verdict | None:
    """Return the verdict on an answer, None if it may be lawful.

    :param later: what a later answer is supposed to show.
    :param named: member id and instance id that the answer is about, if not the request's own.
    :param issued: the generation that the answer names. A JoinGroup names none; its success names the group's.
    """
    api_key, version = exchange.api_key, exchange.api_version
    positions = Positions(group, exchange, named or (exchange.member_id, exchange.instance_id), later, issued)
    excluded: list[tuple[Row, str, tuple[Reason, ...]]] = []
    oldest = max(broker_version.release, first_release(api_key, version))
    for row in unseen(TABLE, api_key, version, error, oldest):
        reasons = _not_unseen(positions, row)
        if not reasons:
            return None
        excluded.append((row, "", reasons))
    others: dict[Row, None] = {}
    for way in shown(TABLE, api_key, version, error, oldest):
        if (way.generation is Generation.NONE) != (positions.generation < 0):
            continue
        if issued is not None and way.generation is not Generation.SAME:
            continue
        if not positions.comes_from(way.sender, held=way.row.ends_hold):
            others[way.row] = None
            continue
        reasons = _reasons(positions, way, error)
        if not reasons:
            return None
        excluded.append((way.row, way.phase, reasons))
    named_rows = {row for row, _, _ in excluded}
    excluded += [(row, "", (_OTHER_REQUEST,)) for row in others if row not in named_rows]
    return Verdict(exchange, error, tuple(excluded))


def _reasons(positions: Positions, way: Way, error: int) -> tuple[Reason, ...]:
    if way.phase == "L" and error == COORDINATOR_LOAD_IN_PROGRESS:
        return ()  # the answer itself shows that it loads
    phase = positions.not_in_phase(way.phase, way.generation)
    return (
        *(() if phase is None else (phase,)),
        *(() if way.phase == "L" else positions.not_sender(way.sender, way.phase, way.generation)),
    )


def _not_unseen(positions: Positions, row: Row) -> tuple[Reason, ...]:
    """Return why a row does not apply whose reason frames do not show. The upgrade of a group would be seen while a request is held."""
    if row.ends_hold and Condition.UPGRADED in row.conditions and positions.exchange.gap_free:
        return (_NO_UPGRADE,)
    if row.senders and not any(positions.comes_from(sender, held=False) for sender in row.senders):
        return (_OTHER_REQUEST,)
    return ()
