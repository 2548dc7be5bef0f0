"""Published events of a group, as tests of advice put them together; times in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordinator_model.events import GroupEvent, event_of
from coordinator_model.wording import iso_utc

Event = dict[str, Any]

START_S = 1_700_000_000.0


_WHERE: Event = {"cluster": "c", "group": "g", "group_type": "classic", "incarnation": 1, "generation": 1, "frame": None}


def at(second: float) -> str:
    return iso_utc(round((START_S + second) * 1e6))


def read(events: Iterable[Event]) -> list[GroupEvent]:
    """What readers make of published events."""
    return [event_of(one) for one in events]


def who(name: str, instance_id: str | None = None) -> Event:
    """A member; what follows a dot is one life of its process."""
    return {"member_id": name, "instance_id": instance_id, "client_id": name.partition(".")[0], "client_address": "10.0.0.1"}


def member(name: str, joined_s: float, served_s: float, *, new: bool = False, stops: bool = True, **said: Any) -> Event:
    return {
        **who(name, said.pop("instance_id", None)),
        "told_at": None,
        "joined_at": at(joined_s),
        "served_at": at(served_s),
        "stopped_at": at(joined_s) if stops else None,
        "new": new,
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000,
        "assignors": ["range"],
        "client_software": "apache-kafka-java 4.3.1",
        **said,
    }


def rebalance(cause: str, by: str, began_s: float, ended_s: float, members: list[Event], **said: Any) -> Event:
    """The record of a rebalance; what it cost is what its members stood still."""
    stood = sum(ended_s - (float(began_s)) for one in members if one["stopped_at"] is not None)
    return {
        "id": f"rebalance_finished-{began_s}-{by}",
        "at": at(ended_s),
        **_WHERE,
        "kind": "rebalance_finished",
        "cause": cause,
        **who(by, said.pop("instance_id", None)),
        "from_generation": 1,
        "to_generation": 2,
        "began_at": at(began_s),
        "took_ms": round((ended_s - began_s) * 1000),
        "join_ms": round((ended_s - began_s) * 1000),
        "sync_ms": 0,
        "members": members,
        "last_member": None,
        "ended": "every member was served",
        "never_came_back": [],
        "cost_member_seconds": stood,
        "unheld": {"t": {str(number): ended_s - began_s for number in range(6)}},
        "partitions_moved": 2,
        "partitions_stayed": 4,
        "waited_for": [],
        "assignor": "range",
        **said,
    }


def happened(kind: str, name: str, second: float, **said: Any) -> Event:
    known = {"id": f"{kind}-{second}-{name}", "at": at(second), **_WHERE, "kind": kind}
    return {**known, **who(name, said.pop("instance_id", None)), **said}


def restart(name: str, life: int, second: float, away_s: float, others: list[str], **said: Any) -> list[Event]:
    """A member leaves and comes back: two rebalances, of 2 s each."""
    old, new = f"{name}.{life}", f"{name}.{life + 1}"
    back_s = second + away_s
    stay = [member(one, second, second + 2, **said) for one in others]
    again = [member(one, back_s, back_s + 2, **said) for one in others]
    return [
        happened("member_left", old, second, reason=None, **said),
        rebalance("member left", old, second, second + 2, stay, **said),
        rebalance("new member", new, back_s, back_s + 2, [*again, member(new, back_s, back_s + 2, new=True, **said)], **said),
    ]
