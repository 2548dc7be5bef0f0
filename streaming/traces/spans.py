"""A rebalance that is over as a trace of OpenTelemetry: the rebalance, its phases, and each member that took part.

All ids are made of the rebalance's own facts. So reading the topic again sends the same trace, and not another one.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from streaming.notify.notification import on_one_line
from streaming.published.records import name_of, unheld_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator_model.events import LostMember, RebalanceFinished

_NAME: Final = "rebalance-monitor"
_RESOURCE: Final = Resource({"service.name": _NAME, "service.version": version(_NAME)})
_SCOPE: Final = InstrumentationScope(_NAME, version(_NAME))
_LONGEST: Final = 1_000  #: of an attribute
_MEMBER: Final = {
    "member_id": "rebalance.member.id",
    "instance_id": "rebalance.member.instance_id",
    "client_id": "messaging.client.id",
    "client_address": "client.address",
}
_ROOT: Final = {
    "cluster": "rebalance.cluster",
    "group": "messaging.consumer.group.name",
    "group_type": "rebalance.group_type",
    "incarnation": "rebalance.incarnation",
    "cause": "rebalance.cause",
    "from_generation": "rebalance.from_generation",
    "to_generation": "rebalance.to_generation",
    "last_member": "rebalance.last_member",
    "partitions_moved": "rebalance.partitions.moved",
    "partitions_stayed": "rebalance.partitions.stayed",
    "cost_s": "rebalance.cost.member_seconds",
    "ended": "rebalance.ended",
}
_MOMENTS: Final = {
    "told_us": "told to rejoin",
    "stopped_us": "stopped consuming",
    "joined_us": "sent its JoinGroup",
    "acknowledged_us": "gave partitions up",
    "served_us": "got its assignment",
}


def spans_of(event: RebalanceFinished) -> list[ReadableSpan]:
    """Return the spans of a rebalance that is over, the root first."""
    began_ns, ended_ns = (event.began_us or event.at_us) * 1_000, event.at_us * 1_000
    trace = _Trace(event)
    root = trace.span(
        "rebalance",
        began_ns,
        ended_ns,
        {"messaging.system": "kafka", "rebalance.unheld.partition_seconds": unheld_s(event)}
        | {name: getattr(event, key) for key, name in _ROOT.items()}
        | {f"rebalance.started_by.{key}": getattr(event, key) for key in _MEMBER},
    )
    spans = [root]
    if event.join_ms is not None:
        joined_ns = began_ns + event.join_ms * 1_000_000
        spans.append(trace.span("join phase", began_ns, joined_ns, {}, within=root))
        if event.sync_ms is not None:
            spans.append(trace.span("sync phase", joined_ns, joined_ns + event.sync_ms * 1_000_000, {}, within=root))
    for number, member in enumerate([*event.members, *event.never_came_back]):
        is_last = member.member_id is not None and member.member_id == event.last_member
        spans.append(_member(trace, root, number, member, is_last=is_last))
    return spans


def _member(trace: _Trace, root: ReadableSpan, number: int, member: LostMember, *, is_last: bool) -> ReadableSpan:
    ended_ns = root.end_time or 0
    moments = {words: at_us * 1_000 for name, words in _MOMENTS.items() if (at_us := getattr(member, name, None))}
    served = "got its assignment" in moments
    attributes = {name: getattr(member, key) for key, name in _MEMBER.items()}
    return trace.span(
        f"member {on_one_line(str(name_of(member)), 100)}",
        min([*moments.values(), ended_ns]),
        max(moments.values()) if served else ended_ns,
        attributes | {"rebalance.member.joined_last": is_last},
        within=root,
        number=number,
        events=[Event(words, timestamp=at_ns) for words, at_ns in sorted(moments.items(), key=lambda one: one[1])],
        status=Status(StatusCode.UNSET) if served else Status(StatusCode.ERROR, "it got no assignment in this rebalance"),
    )


def encoded(spans: Iterable[ReadableSpan]) -> bytes:
    """Return an ExportTraceServiceRequest in protobuf."""
    request: bytes = encode_spans(list(spans)).SerializeToString()
    return request


class _Trace:
    """Makes the spans of one rebalance."""

    def __init__(self, event: RebalanceFinished) -> None:
        facts = (event.cluster, event.group, event.incarnation, event.generation, event.id)
        self._facts = "\x00".join(map(str, facts))

    def span(
        self,
        name: str,
        start_ns: int,
        end_ns: int,
        attributes: Mapping[str, Any],
        *,
        within: ReadableSpan | None = None,
        number: int = 0,
        events: Iterable[Event] = (),
        status: Status | None = None,
    ) -> ReadableSpan:
        """Return a span; its id depends on the trace, its name and its number alone."""
        context = SpanContext(
            self._number("", 16),
            self._number(f"{name}\x00{number}", 8),
            is_remote=False,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
        return ReadableSpan(
            name,
            context=context,
            parent=None if within is None else within.context,
            resource=_RESOURCE,
            attributes={key: _plain(value) for key, value in attributes.items() if value is not None},
            events=tuple(events),
            status=status or Status(StatusCode.UNSET),
            start_time=start_ns,
            end_time=max(start_ns, end_ns),
            instrumentation_scope=_SCOPE,
        )

    def _number(self, what: str, size: int) -> int:
        facts = f"{self._facts}\x00{what}".encode(errors="surrogatepass")
        return int.from_bytes(hashlib.blake2s(facts, digest_size=size).digest()) or 1  # 0 is no id


def _plain(value: Any) -> str | bool | int | float:
    """Return an attribute's value; text from the wire without what is no character, and bounded."""
    return value if isinstance(value, bool | int | float) else on_one_line(str(value), _LONGEST)
