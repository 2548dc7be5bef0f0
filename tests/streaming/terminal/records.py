"""Published records, made by hand."""

from __future__ import annotations

from coordinator_model.events import event_of
from coordinator_model.wording import iso_utc

NOW_S = 1_790_000_000.0


def iso(at_s):
    return iso_utc(round(at_s * 1e6))


def group(name, *, state="Stable", since_s=NOW_S - 90, clients=(), waits_for=(), learning=None, cluster="lab"):
    """A group as published; ``waits_for`` are indexes of clients."""
    members = [
        {
            "member_id": f"{client}-{number}",
            "instance_id": None,
            "client_id": client,
            "client_address": f"10.0.0.{number}",
            "client_software": "apache-kafka-java 4.1.0",
            "state": "not rejoined" if number in waits_for else "in sync",
            "session_timeout_ms": 45_000,
            "rebalance_timeout_ms": 300_000,
            "last_frame": "Heartbeat",
            "last_frame_at": iso(NOW_S - 3),
        }
        for number, client in enumerate(clients)
    ]
    return {
        "cluster": cluster,
        "group": name,
        "group_type": "classic",
        "state": state,
        "state_since": iso(since_s),
        "learning": learning,
        "coordinator": "kafka-1:9092",
        "generation": 7,
        "leader": members[0]["member_id"] if members else None,
        "protocol": "range",
        "members": members,
        "waits_for": [members[index]["member_id"] for index in waits_for],
        "rebalances": {"new member": 2},
        "last_join_ms": 501,
        "last_sync_ms": 12,
        "errors": {},
        "updated_at": iso(NOW_S - 1),
    }


def committing(name="orders", *, now=2.0, usually=10.0, records=(1_200, 0, 240), **fields):
    """A published group that commits."""
    progress = {
        "last_commit_at": iso(NOW_S - 3),
        "records_per_s": now,
        "usual_records_per_s": usually,
        "until": iso(NOW_S - NOW_S % 120),
        "step_s": 120,
        "records": list(records),
    }
    return group(name, **fields) | {"progress": progress}


def finding(group_name, *, rule="R-01", severity="warning", status="open", summary="somebody did not come", opened_s=NOW_S - 60):
    """A finding as published."""
    return {
        "id": f"{rule}-{group_name}",
        "rule": rule,
        "name": "member does not rejoin",
        "family": "R",
        "severity": severity,
        "certainty": "confirmed",
        "blame": "client",
        "status": status,
        "cluster": "lab",
        "group": group_name,
        "group_type": "classic",
        "incarnation": 1,
        "generation": 7,
        "member_id": None,
        "instance_id": None,
        "client_id": None,
        "client_address": None,
        "client_software": None,
        "opened_at": iso(opened_s),
        "updated_at": iso(NOW_S - 1),
        "resolved_at": None if status != "resolved" else iso(NOW_S),
        "count": 1,
        "summary": summary,
        "expected": "It rejoins.",
        "observed": "It does not.",
        "action": "Look at its poll loop.",
        "evidence": [],
    }


def rebalance(group_name, *, at_s=NOW_S - 600, cost=12.5, cause="new member", generation=7, **changes):
    """The record of a rebalance that is over."""
    return event_of(
        {
            "id": f"rebalance_finished-{group_name}-{at_s}",
            "at": iso(at_s),
            "cluster": "lab",
            "group": group_name,
            "group_type": "classic",
            "incarnation": 1,
            "generation": generation,
            "kind": "rebalance_finished",
            "member_id": "worker-1-x",
            "instance_id": None,
            "client_id": "worker-1",
            "client_address": "10.0.0.1",
            "cause": cause,
            "from_generation": generation - 1,
            "to_generation": generation,
            "began_at": iso(at_s - 2.5),
            "join_ms": 2400,
            "sync_ms": 100,
            "took_ms": 2500,
            "members": [],
            "last_member": "worker-2-y",
            "waited_for": [
                {
                    "member_id": "worker-2-y",
                    "instance_id": None,
                    "client_id": "worker-2",
                    "client_address": "10.0.0.2",
                    "why": "not rejoined",
                    "waited_ms": 2400,
                    "came": True,
                }
            ],
            "partitions_moved": 3,
            "partitions_stayed": 9,
            "cost_member_seconds": cost,
            "unheld": {},
            "ended": "every member was served",
            "frame": None,
            "never_came_back": [],
            "assignor": None,
        }
        | changes
    )
