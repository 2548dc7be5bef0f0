"""A recorded history, made by hand: records as the topics hold them, of groups in every state, with a rebalance that is stuck."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

from coordinator_model.wording import iso_utc

NOW_S = 1_790_000_000.0
"""Capture time at which the history ends."""

HOSTILE = '<script>alert("x")</script>'
TURNED = "abc\u202egpj.exe"
LONG = "c" * 10_000


_OWN = {
    "told_to_rejoin": {"api": "Heartbeat"},
    "member_joined": {"new": False},
    "member_served": {"partitions": None},
    "told_to_give_up": {"partitions": {}, "keeps": 1},
    "gave_up": {"partitions": {}, "keeps": 0},
    "member_left": {"reason": None},
    "member_replaced": {"replaced_by": None},
    "member_fenced": {"error": "UNKNOWN_MEMBER_ID", "api": None},
    "session_over": {"silent_since": None},
    "rebalance_began": {"reason": None, "from_generation": None},
    "sight_lost": {"reason": "frames are missing"},
    "sight_regained": {"reason": "a new generation"},
}
_OF_NOBODY = {"phase_ended", "sight_lost", "sight_regained"}
_TOLD = {"session_timeout_ms": None, "rebalance_timeout_ms": None, "assignors": [], "client_software": None}


def iso(at_s):
    return None if at_s is None else iso_utc(round(at_s * 1e6))


class Group:
    """Writes the records of one group."""

    def __init__(self, name, clients, *, cluster="prod", static=False, generation=4):
        self.name, self.cluster, self.generation = name, cluster, generation
        self.members = [
            {
                "member_id": f"{client}-{uuid5(NAMESPACE_DNS, f'{name}{number}')}",
                "instance_id": f"{client}" if static else None,
                "client_id": client,
                "client_address": f"10.1.{number // 200}.{number % 200 + 2}",
            }
            for number, client in enumerate(clients)
        ]
        self.records = []
        self._count = 0

    def event(self, kind, at_s, member=None, **more):
        self._count += 1
        named = () if kind in _OF_NOBODY else ("member_id", "instance_id", "client_id", "client_address")
        who = member or dict.fromkeys(named)
        self.records.append(
            {
                "id": f"{self.cluster}/{self.name}/1/{self.generation}/{kind}/{self._count}",
                "at": iso(at_s),
                "cluster": self.cluster,
                "group": self.name,
                "group_type": "classic",
                "incarnation": 1,
                "generation": self.generation,
                "kind": kind,
                "frame": None,
                **who,
                **_OWN.get(kind, {}),
                **more,
            }
        )

    def rebalance(self, at_s, *, join_s=1.0, sync_s=0.3, cause="member joined", starter=0, slow=None, slow_s=0.0, lost=()):
        """A rebalance from beginning to end; one member may come later than all others, and the lost ones never."""
        self.event("rebalance_began", at_s, self.members[starter], cause=cause, from_generation=self.generation)
        joins = {}
        for number in sorted({*range(len(self.members))} - {*lost}):
            told = at_s + 0.05 + 0.4 * join_s * (number % 7) / 7
            joined = at_s + join_s + slow_s if number == slow else told + 0.4 * join_s * (number % 5 + 1) / 5
            joins[number] = (told, joined)
        end_join = max(joined for _, joined in joins.values())
        end = end_join + sync_s
        events = []
        for number, (told, joined) in joins.items():
            member = self.members[number]
            events.append((told, "told_to_rejoin", member, {"api": "Heartbeat"}))
            events.append((joined, "member_joined", member, {}))
            events.append((end_join + 0.02, "member_synced", member, {}))
            events.append((end, "member_served", member, {"partitions": {"orders": [number]}}))
        for when, kind, member, more in sorted(events, key=lambda one: one[0]):
            self.event(kind, when, member, **more)
        gone_s = at_s - 45
        for number in lost:
            self.event("session_over", at_s, self.members[number], silent_since=iso(gone_s))
        self.event("phase_ended", end_join, phase="join", took_ms=round((end_join - at_s) * 1000))
        self.generation += 1
        self.event("phase_ended", end, phase="sync", took_ms=round(sync_s * 1000))
        last = max(joins, key=lambda number: joins[number][1])
        self.event(
            "rebalance_finished",
            end,
            self.members[starter],
            cause=cause,
            from_generation=self.generation - 1,
            to_generation=self.generation,
            began_at=iso(at_s),
            join_ms=round((end_join - at_s) * 1000),
            sync_ms=round(sync_s * 1000),
            took_ms=round((end - at_s) * 1000),
            members=[
                self.members[number]
                | {"told_at": iso(told), "joined_at": iso(joined), "served_at": iso(end), "stopped_at": iso(told), "new": False}
                | _TOLD
                for number, (told, joined) in joins.items()
            ],
            never_came_back=[
                self.members[number]
                | {"told_at": None, "joined_at": None, "served_at": None, "stopped_at": iso(gone_s), "new": False}
                for number in lost
            ],
            last_member=self.members[last]["member_id"],
            waited_for=[
                self.members[last] | {"why": "not rejoined", "waited_ms": round((joins[last][1] - at_s) * 1000), "came": True}
            ],
            assignor=None,
            ended="every member was served",
            partitions_moved=2,
            partitions_stayed=len(self.members),
            cost_member_seconds=round(sum(end - told for told, _ in joins.values()), 1),
            unheld={"orders": {str(number): round(end - told, 3) for number, (told, _) in joins.items()}},
        )
        return end

    def restarts(self, number=2, times=4):
        """One process ends and comes back under its client id, again and again; each time costs the others two rebalances."""
        for turn in range(times):
            at_s = NOW_S - 2_000 + turn * 300
            self.event("member_left", at_s, self.members[number])
            self.rebalance(at_s, cause="member left", starter=number, join_s=8)
            client = self.members[number]["client_id"]
            self.members[number] = self.members[number] | {"member_id": f"{client}-{turn}"}
            self.event("member_joined", at_s + 20, self.members[number], new=True)
            self.rebalance(at_s + 20, cause="new member", starter=number, join_s=8)

    def stuck(self, at_s, missing):
        """A join phase that waits for some members, of whom nothing came since it began."""
        self.event("rebalance_began", at_s, self.members[0], cause="member joined", from_generation=self.generation)
        for number, member in enumerate(self.members):
            if number not in missing:
                self.event("told_to_rejoin", at_s + 0.2 + number % 4 / 10, member, api="Heartbeat")
                self.event("member_joined", at_s + 0.6 + number % 11 / 5, member)
        self.view("PreparingRebalance", at_s, waits_for=missing)

    def view(self, state, since_s, *, waits_for=(), learning=None, findings=0):
        """The group's own record."""
        preparing = state == "PreparingRebalance"
        self.records.append(
            {
                "cluster": self.cluster,
                "group": self.name,
                "group_type": "classic",
                "state": state,
                "state_since": iso(since_s),
                "learning": learning,
                "incarnation": 1,
                "coordinator": "kafka-2:9092",
                "generation": self.generation,
                "leader": self.members[0]["member_id"] if self.members else None,
                "protocol_type": "consumer",
                "protocol": "range",
                "members": [
                    member
                    | {
                        "client_software": "apache-kafka-java 3.9.1",
                        "state": ("not rejoined" if number in waits_for else "rejoining") if preparing else "in sync",
                        "session_timeout_ms": 45_000,
                        "rebalance_timeout_ms": 300_000,
                        "reason": None,
                        "last_frame": "Heartbeat v4 request",
                        "last_frame_at": iso(NOW_S - number % 3),
                    }
                    for number, member in enumerate(self.members)
                ],
                "waits_for": [self.members[number]["member_id"] for number in waits_for],
                "rebalances": {"member joined": 3, "member left": 1},
                "joins": {"count": 4, "total_ms": 9000},
                "syncs": {"count": 4, "total_ms": 800},
                "last_join_ms": 1000,
                "last_sync_ms": 300,
                "errors": {"Heartbeat": {"REBALANCE_IN_PROGRESS": 8}},
                "open_findings": findings,
                "partition": 0,
                "updated_at": iso(NOW_S - 1),
            }
        )

    def finding(self, rule, name, severity, opened_s, number=0, *, status="open", summary=None):
        member = self.members[number]
        self.records.append(
            {
                "id": f"{rule}-{len(self.name):04x}{number:012x}",
                "rule": rule,
                "name": name,
                "family": rule[0],
                "severity": severity,
                "certainty": "confirmed",
                "blame": "client",
                "status": status,
                "cluster": self.cluster,
                "group": self.name,
                "group_type": "classic",
                "incarnation": 1,
                "generation": self.generation,
                **member,
                "client_software": "apache-kafka-java 3.9.1",
                "opened_at": iso(opened_s),
                "updated_at": iso(opened_s + 5),
                "resolved_at": iso(opened_s + 5) if status == "resolved" else None,
                "count": 1,
                "summary": summary
                or f"{member['client_id']} does not rejoin group {self.name}: {len(self.members) - 1} members wait for it.",
                "expected": "A member that is told to rejoin sends JoinGroup within its rebalance timeout.",
                "observed": "No JoinGroup of it since the join phase began, 41 s ago.",
                "action": "Look at the process: a long poll loop, a stopped JVM or a lost network keep it from rejoining.",
                "evidence": [
                    {
                        "partition": 0,
                        "offset": 4_711 + step,
                        "connection": f"{member['client_address']}:5{step}012 kafka-2:9092",
                        "exchange": 88 + step,
                        "at": iso(opened_s - 3 + step),
                        "frame": text,
                    }
                    for step, text in enumerate(
                        (
                            f"Heartbeat v4 request member {member['member_id']}, generation {self.generation}",
                            "Heartbeat v4 response REBALANCE_IN_PROGRESS",
                        )
                    )
                ],
            }
        )


def orders():
    """Three static members, two rebalances, and one that is stuck."""
    group = Group("orders", ["orders-0", "orders-1", "orders-2"], static=True)
    for member in group.members:
        group.event("member_joined", NOW_S - 850, member)
        group.event("member_synced", NOW_S - 847, member)
        group.event("member_served", NOW_S - 846.5, member, partitions={"orders": [0, 1]})
    group.rebalance(NOW_S - 600, join_s=12, sync_s=2, slow=2, slow_s=14)
    group.event("sight_lost", NOW_S - 420, reason="17 frames were not captured")
    group.event("sight_regained", NOW_S - 380, reason="the members were seen again")
    group.event("connection_closed", NOW_S - 300, group.members[1])
    group.event("member_fenced", NOW_S - 290, group.members[1], error="UNKNOWN_MEMBER_ID", api="OffsetCommit")
    group.rebalance(NOW_S - 280, join_s=9, sync_s=1, cause="session ended", starter=1)
    group.stuck(NOW_S - 41, [2])
    group.finding("R-01", "member never rejoins", "error", NOW_S - 30, 2)
    group.finding("T-03", "evicted early", "warning", NOW_S - 290, 1, status="resolved")
    return group.records


def search(members=200):
    """Many members of the same client id, of which three do not rejoin."""
    group = Group("search-indexer", ["indexer"] * members)
    for number, member in enumerate(group.members):
        group.event("member_joined", NOW_S - 700 + number % 4 / 10, member)
        group.event("member_served", NOW_S - 697, member, partitions=None)
    group.rebalance(NOW_S - 400, join_s=20, sync_s=3, slow=17, slow_s=60)
    group.stuck(NOW_S - 95, [17, 90, 133])
    group.finding("R-01", "member never rejoins", "critical", NOW_S - 60, 17)
    return group.records


def hostile():
    """Names that whoever connects may choose."""
    group = Group(HOSTILE, ['"><img src=x onerror=alert(1)>', TURNED, LONG], cluster="prod")
    group.rebalance(NOW_S - 200, join_s=5, cause="member joined")
    group.view("Stable", NOW_S - 194)
    group.finding(
        "M-03", "member id invented", "warning", NOW_S - 100, 1, summary=f"{TURNED} uses an id <b>that no coordinator gave</b>."
    )
    return group.records


def quiet(number, *, cluster="prod"):
    """A group without trouble, with a short past."""
    group = Group(
        f"{('billing', 'mail', 'audit', 'clicks', 'stock')[number % 5]}-{number:04d}",
        [f"c{number}-{each}" for each in range(number % 6 + 1)],
        cluster=cluster,
    )
    end = NOW_S - 3000 + number % 40 * 60
    for _ in range(number % 3):
        end = group.rebalance(end, join_s=3 + number % 5) + 100 + number % 300
    if number % 11 == 7:
        group.members = []
        group.view("Empty", end)
    elif number % 11 == 3:
        group.view("Unknown", end, learning="the mirror began after its members had joined")
    else:
        group.view("Stable", end)
    return group.records


def records(groups=12) -> list[dict]:
    found = [*orders(), *search(), *hostile()]
    for number in range(groups):
        found += quiet(number)
    return found


def write(file: Path, lines: Iterable[dict]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file
