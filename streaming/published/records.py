"""Parses published groups and findings for display, and orders groups by how bad their state is.

The topics may hold records of another release or of another program. Such a record is left out and must not raise an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from coordinator_model import events
from coordinator_model.events import RECONCILING, GroupEvent, MemberServed, NamedMember, RebalanceFinished, State
from coordinator_model.finding import Severity, Status
from streaming.published.finding_json import from_json, microseconds

Json = dict[str, Any]

STALE_S: Final = 60.0
"""Age of the newest status from which the monitor counts as stopped: a running monitor writes one every 10 s."""

LATEST_S: Final = 2.0**33
"""Seconds since the epoch, in the year 2242: what is later is no time at which anything was captured."""

_GROUP_FIELDS: Final = frozenset(  #: the fields of a group that are displayed
    {"cluster", "group", "state", "state_since", "learning", "coordinator", "generation", "leader", "protocol", "members"}
    | {"waits_for", "rebalances", "last_join_ms", "last_sync_ms", "errors"}
)
_MEMBER_FIELDS: Final = frozenset({"member_id", "instance_id", "client_id", "client_address", "client_software", "state"})
REBALANCING: Final = (RECONCILING, State.COMPLETING.value, State.PREPARING.value)
STATES: Final = (State.STABLE.value, State.EMPTY.value, State.DEAD.value, State.UNKNOWN.value, *REBALANCING)
"""All states of groups of any type, the least settled last."""

_RANKS: Final = {state: rank for rank, state in enumerate(STATES)}


def group_of(value: bytes | str) -> Json | None:
    """Return the published group; None if the record is not one."""
    try:
        content: Json = msgspec.json.decode(value)
        at_s = seconds(content["state_since"]) if content["state_since"] else 0.0
        readable = (
            content.keys() >= _GROUP_FIELDS
            and 0 <= at_s < LATEST_S
            and all(member.keys() >= _MEMBER_FIELDS for member in content["members"])
            and _is_progress(content.get("progress"))
        )
        return content if readable and content["state"] in STATES else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def _is_progress(content: Json | None) -> bool:
    return content is None or (
        all(moment(content[name]) is not None for name in ("last_commit_at", "until"))
        and all(content[name] is None or content[name] >= 0 for name in ("records_per_s", "usual_records_per_s"))
        and content["step_s"] > 0
        and all(isinstance(records, int) and records >= 0 for records in content["records"])
    )


def finding_of(value: bytes | str) -> Json | None:
    """Return the published finding; None if the record is not one."""
    try:
        content: Json = msgspec.json.decode(value)
        from_json(content)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    return content


def event_of(value: bytes | str) -> GroupEvent | None:
    """Return the published event; None for what is none, or of a kind that this release does not know."""
    try:
        event = events.event_of(msgspec.json.decode(value))
    except (ValueError, RecursionError):
        return None
    return event if 0 < event.at_us < LATEST_S * 1e6 else None


def lag_of(value: bytes | str) -> Json | None:
    """Return the published lag of a group; None for what is none."""
    try:
        content: Json = msgspec.json.decode(value)
        return content if _is_lag(content) else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def _is_lag(content: Json) -> bool:
    return (
        all(isinstance(content[name], str) for name in ("cluster", "group"))
        and isinstance(content["lag"], int)
        and all(isinstance(behind, int) for topic in content["partitions"].values() for behind in topic.values())
        and all(_is_buildup(one) for one in content["rebalances"])
    )


def _is_buildup(content: Json) -> bool:
    generation, gone_at = content["generation"], content["gone_at"]
    return (
        isinstance(content["highest"] - content["before"], int)
        and moment(content["began_at"]) is not None
        and (gone_at is None or moment(gone_at) is not None)
        and (generation is None or isinstance(generation, int))
    )


class RebalanceLag(NamedTuple):
    """What a rebalance did to the lag of its group."""

    built_up: int  #: records
    gone_after_s: float | None  #: from the beginning of the rebalance; None while it is not gone


def lag_of_rebalance(lag: Json | None, event: RebalanceFinished) -> RebalanceLag | None:
    """Return what a rebalance that is over did to the lag, None if that is not known.

    :param lag: what is published of its group.
    """
    known = [one for one in (lag or {}).get("rebalances", ()) if one["generation"] == event.to_generation is not None]
    if not known:
        return None
    nearest = min(known, key=lambda one: abs(seconds(one["began_at"]) - event.began_s))
    gone_s = moment(nearest["gone_at"])
    return RebalanceLag(nearest["highest"] - nearest["before"], None if gone_s is None else max(0.0, gone_s - event.began_s))


def is_open(finding: Json) -> bool:
    """Return True unless the finding is resolved."""
    return bool(finding["status"] != Status.RESOLVED)


def worst_findings(published: Iterable[Json]) -> dict[tuple[str, str], tuple[Severity, int]]:
    """Return the worst severity and the number of open findings by (cluster, group)."""
    found: dict[tuple[str, str], tuple[Severity, int]] = {}
    for finding in published:
        if is_open(finding):
            key, severity = (finding["cluster"], finding["group"]), Severity(finding["severity"])
            before, count = found.get(key, (severity, 0))
            found[key] = (max(before, severity, key=lambda one: one.rank), count + 1)
    return found


def trouble(group: Json, worst: Mapping[tuple[str, str], tuple[Severity, int]]) -> tuple[int, int, str, str]:
    """Return a sort key: the worst open finding first, then the least settled state."""
    severity = worst.get((group["cluster"], group["group"]))
    return (-1 - severity[0].rank if severity else 0, -_RANKS[group["state"]], group["group"], group["cluster"])


def finding_order(finding: Json) -> tuple[bool, int, str]:
    """Return a sort key: those that are open, the most severe first, and of equals the oldest."""
    return not is_open(finding), -Severity(finding["severity"]).rank, finding["opened_at"]


def by_group(findings: Iterable[Json]) -> dict[tuple[str, str], list[Json]]:
    """Return findings by (cluster, group), of each group the worst first."""
    found: dict[tuple[str, str], list[Json]] = {}
    for finding in findings:
        found.setdefault((finding["cluster"], finding["group"]), []).append(finding)
    for of_group in found.values():
        of_group.sort(key=finding_order)
    return found


def member_name(member: Json) -> str:
    """Return the name of a member for display: its instance id, else its client id, else its member id."""
    return str(member["instance_id"] or member["client_id"] or member["member_id"])


def arrivals_of(known: Json) -> list[Json]:
    """Return the clients of a group that have not arrived; none of a record that an older monitor wrote."""
    return list(known.get("arrivals", ()))


def name_of(one: NamedMember | GroupEvent) -> str | None:
    """Return the same of a member in a record, or of an event about one; None without any."""
    names = (getattr(one, name, None) for name in ("instance_id", "client_id", "member_id"))
    return next((str(name) for name in names if name), None)


def moment_of(at_us: int | None) -> float | None:
    """Return a time of an event in seconds since the epoch; None for none."""
    return at_us / 1e6 if at_us and 0 < at_us < LATEST_S * 1e6 else None


def unheld_s(event: RebalanceFinished | MemberServed) -> float | None:
    """Return for how many partition-seconds no member held partitions; None if that is not known."""
    return None if event.unheld is None else sum(one.us for one in event.unheld) / 1_000_000


def seconds(moment: str) -> float:
    """Return the seconds since the epoch of a published time."""
    return microseconds(moment) / 1e6


def moment(text: object) -> float | None:
    """Return a published time in seconds since the epoch; None for what is none."""
    try:
        at_s = seconds(text) if isinstance(text, str) and text else -1.0
    except (ValueError, OverflowError):
        return None
    return at_s if 0 <= at_s < LATEST_S else None


def duration(seconds: float) -> str:
    """Return a duration as short text: ``42 s``, ``3 min``, ``2 h 5 min``, ``3 d``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d"
