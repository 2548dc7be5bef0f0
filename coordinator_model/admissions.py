"""Frames that show a group to be of another type than it is held as, and the conversion of the group.

A request proves nothing: any client may send a heartbeat of any type to any group, and is refused. It is therefore kept until its
response comes, or the group is converted for another's: then the group gets all that wait, since each may take effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from coordinator_model.finding import Evidence, Finding
from coordinator_model.group_store import GroupStore
from coordinator_model.groups.arrivals import PASSING, REPORTED_ELSEWHERE
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.epochs.heartbeat import refused_by_type
from coordinator_model.groups.epochs.kinds import KIND_BY_API, read_heartbeat
from coordinator_model.groups.epochs.records import JOIN_EPOCH
from coordinator_model.groups.migration import carry_over, kind_shown, may_convert
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.requests import client_of, exchange_of
from coordinator_model.rule_engine import RuleEngine
from coordinator_model.scheduler import GroupKey
from coordinator_model.wire import API_NAMES, decode
from coordinator_model.wire.constants import JOIN_GROUP
from coordinator_model.wire.record import Kind, MirrorRecord

CONVERTING: Final = KIND_BY_API.keys() | {JOIN_GROUP}
"""APIs whose success shows the type of a group."""

_SHOWS: Final = {api_key: kind.name for api_key, kind in KIND_BY_API.items()}
"""API key of a heartbeat → the type of group whose members send it."""

_REQUEST: Final = Kind.REQUEST  # bound once, since every heartbeat uses it
_KEPT: Final = 1_000


class Admissions:
    """The heartbeats whose response will show the type of their group."""

    def __init__(self, groups: GroupStore, rules: RuleEngine, waiting: Iterable[MirrorRecord] = ()) -> None:
        self._groups = groups
        self._rules = rules
        self._waiting = {(record.connection, record.exchange): record for record in waiting}

    def takes(self, record: MirrorRecord, key: GroupKey, body: Any, found: list[Finding]) -> bool:
        """Return True if the frame is not for the group as it is held now; convert the group if it shows another type.

        :param found: receives the findings.
        """
        held = self._groups.kind_of(key)
        shows = _SHOWS.get(record.api_key)
        is_request = record.kind is _REQUEST
        if held == shows and (is_request or not self._waiting):
            return False  # nearly all are so
        if is_request:
            if shows is None:
                return False
            self._waiting[record.connection, record.exchange] = record
            if held == CLASSIC and body.member_epoch == JOIN_EPOCH:
                self._groups.opened(key)[0].effects.note_conversion(_exchange_of(record, body))
                self._groups.changed(key, record.at_us)
            if len(self._waiting) > _KEPT:
                del self._waiting[next(iter(self._waiting))]
            return True
        asked = self._waiting.pop((record.connection, record.exchange), None) if self._waiting else None
        if asked is None:
            if held == shows:
                return False
            self._look_at_join(record, key, body, held, found)
            return shows is not None
        shown = kind_shown(record.api_key, body) or _taken_for(held, asked, body)
        if shown is None or (held and not may_convert(self._groups.opened(key)[0], asked.at_us)):
            if held:
                found.extend(self._refused(asked, record, key, body))
            return True
        if shown != held:
            found.extend(self._convert(record, key, body.member_id, shown))
        found.extend(self._open(asked, key))
        return False

    def _look_at_join(self, record: MirrorRecord, key: GroupKey, body: Any, held: str, found: list[Finding]) -> None:
        """Convert the group if a JoinGroup success shows another type: it names a leader or it does not."""
        if record.api_key != JOIN_GROUP or not held or kind_shown(record.api_key, body) in {None, held}:
            return
        group = self._groups.opened(key)[0]
        asked = group.open.get((record.connection, record.exchange))
        if asked is not None and may_convert(group, asked.inv_us):
            found.extend(self._convert(record, key, body.member_id, kind_shown(record.api_key, body) or ""))

    def _convert(self, record: MirrorRecord, key: GroupKey, member_id: str | None, kind: str) -> Iterator[Finding]:
        """Hold the group as one of another type from here on. What was found in it as the type that it was is over."""
        known = key in self._groups
        old, open_findings = self._groups.opened(key)
        if known:
            yield from self._rules.resolve_as_converted(old, open_findings, record.at_us)
        new = self._groups.replace(key, kind)
        events = carry_over(old, new, record.at_us, member_id, _success(record))
        self._groups.touched(key, record.at_us)
        self._groups.changed(key, record.at_us)
        yield from self._rules.on_events(new, open_findings, events, record.at_us)
        for asked in [one for one in self._waiting.values() if _SHOWS[one.api_key] == kind and (one.cluster, one.group) == key]:
            del self._waiting[asked.connection, asked.exchange]
            yield from self._open(asked, key)

    def _open(self, asked: MirrorRecord, key: GroupKey) -> Iterator[Finding]:
        """Hand over a request that the group was not of the type for."""
        body = decode(asked.frame, request=True, api_key=asked.api_key, api_version=asked.api_version).body
        group, open_findings = self._groups.touched(key, asked.at_us)
        yield from self._rules.on_events(group, open_findings, group.request(asked, body), asked.at_us)

    def _refused(self, asked: MirrorRecord, record: MirrorRecord, key: GroupKey, body: Any) -> Iterator[Finding]:
        asked_body = decode(asked.frame, request=True, api_key=asked.api_key, api_version=asked.api_version).body
        exchange = _exchange_of(asked, asked_body)
        exchange.res_us, exchange.response_offset, exchange.error = record.at_us, record.offset, body.error_code
        group, open_findings = self._groups.touched(key, record.at_us)
        group.arrivals.refused(group, exchange, body)
        events = refused_by_type(group, exchange, body)
        yield from self._rules.on_events(group, open_findings, events, record.at_us)
        if events or group.changed:
            self._groups.changed(key, record.at_us)

    @property
    def waiting(self) -> list[MirrorRecord]:
        """Return the requests, oldest first."""
        return list(self._waiting.values())

    def interrupted(self) -> None:
        """Forget all heartbeats: their answers may be among the frames that are missing."""
        self._waiting.clear()

    def closed(self, connection: str) -> None:
        """Forget the heartbeats of a connection that ended."""
        for key in [key for key in self._waiting if key[0] == connection]:
            del self._waiting[key]


def _exchange_of(asked: MirrorRecord, body: Any) -> Exchange:
    exchange = exchange_of(asked, client_of(asked))
    read_heartbeat(exchange, body)
    return exchange


def _taken_for(held: str, asked: MirrorRecord, body: Any) -> str | None:
    """Return the type of a group of which nothing else is known, for which a client takes it that is not let in."""
    if held or body.error_code in PASSING | REPORTED_ELSEWHERE:
        return None
    request: Any = decode(asked.frame, request=True, api_key=asked.api_key, api_version=asked.api_version).body
    return _SHOWS[asked.api_key] if request.member_epoch == JOIN_EPOCH else None


def _success(record: MirrorRecord) -> Evidence:
    words = f"{API_NAMES[record.api_key]} v{record.api_version} answer: success"
    return Evidence(record.partition, record.offset, record.connection, record.exchange, record.at_us, words)
