"""Family R: workers of one Connect group that read other configurations, or have one address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from coordinator_model.finding import CONFIG, CONFIRMED, ERROR, HEURISTIC, WARNING
from coordinator_model.groups.classic.config_offsets import CONFIG_MISMATCH, Worker
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.rules.base import Breach, Due, Matter, timer_rule
from coordinator_model.wording import clock, counted, some

_TIMES: Final = 3
_NAMED: Final = 4


def _stuck(group: ClassicGroup) -> list[Worker]:
    """Return workers that do not catch up for longer than a member that is gone may be counted among the others."""
    workers = group.recurring.config_offsets.workers.values()
    session_ms = max((worker.session_ms for worker in workers), default=0)
    patience_us = 1_000 * session_ms + group.settings.slack_us(session_ms)
    return [one for one in workers if one.behind >= _TIMES and one.last_us - one.since_us >= patience_us]


def _named(workers: Sequence[Worker]) -> str:
    return some([f"{worker.url} ({worker.client})" for worker in workers], _NAMED)


def _words(stuck: Sequence[Worker], group: str) -> str:
    if len(stuck) == 1:
        return f"Worker {_named(stuck)} of the Connect group {group} stays behind the others: each of its JoinGroups says that it has read"
    return f"Workers {_named(stuck)} of the Connect group {group} stay behind the others: each of their JoinGroups says that they have read"


def _read(stuck: Sequence[Worker]) -> str:
    """Return ``nothing of its config topic``, ``its config topic up to offset 5``, or of several up to which."""
    offsets = sorted({worker.offset for worker in stuck})
    topic = "its config topic" if len(stuck) == 1 else "their config topics"
    if offsets == [-1]:
        return f"nothing of {topic}"
    return f"{topic} up to offset {some([str(offset) for offset in offsets], _NAMED)}"


def _leader_is_behind(stuck: Sequence[Worker]) -> bool:
    return any(worker.error == CONFIG_MISMATCH for worker in stuck)


def _cost(stuck: Sequence[Worker]) -> str:
    if _leader_is_behind(stuck):
        return "The leader has read too little itself, and assigns nothing to anybody"
    if len(stuck) == 1:
        return "It starts nothing of what it is assigned, and joins again without end"
    return "They start nothing of what they are assigned, and join again without end"


@timer_rule(
    "Connect workers read different configs",
    ERROR,
    HEURISTIC,
    CONFIG,
    matter=Matter.RECURRENCE,
    suppressed_by=("C-04", "C-05"),
    quiet_times=2,
)
def R_27(group: ClassicGroup) -> Iterator[Due]:
    """Some workers of a Connect group cannot read what its leader assigns by. They run none of it and join again as fast as they
    are answered; if the leader is among them, nothing is assigned at all.

    Condition: The JoinGroups of a worker, three or more in a row and for longer than a session, say that it has read its config
        topic up to an offset, the same each time, which is below that of the assignment that it had received before. A worker that
        is only late reads to the end before it joins again, and has caught up at the second JoinGroup.
    Expected: All workers of a group read the same config topic to its end.
    Action: Compare bootstrap.servers and config.storage.topic of these workers with those of the others. If they are two Connect
        clusters, give one of them another group.id. If they are the same, the topic was made anew or lost its last records while
        workers ran, which keep their old offset: restart all workers of the group.
    False alarms: None known. Two clusters whose config topics end at the same offset are not told apart until one changes.
    """
    stuck = _stuck(group)
    if not stuck:
        return
    times, asked = sum(worker.behind for worker in stuck), max(worker.asked for worker in stuck)
    since_us, last_us = min(worker.since_us for worker in stuck), max(worker.last_us for worker in stuck)
    ahead = [worker for worker in group.recurring.config_offsets.workers.values() if worker.offset >= asked]

    def describe() -> Breach:
        beside = f"; others read further: {_named(ahead)}" if ahead else ""
        return Breach(
            "",
            f"{_words(stuck, group.name)} {_read(stuck)}, while assignments are made for offset {asked}. {_cost(stuck)}. Either the config "
            "topics differ, as when two Connect clusters have one group.id, or the topic was made anew or lost its last records.",
            f"{counted(times, 'JoinGroup')} since {clock(since_us)} with a config_offset below that of the assignment before"
            f"{', which had the error CONFIG_MISMATCH' if _leader_is_behind(stuck) else ''}{beside}",
            stuck[0].frames,
            generation=group.generation,
        )

    yield Due(last_us, "", ERROR, describe, period_us=2 * max(worker.gap_us for worker in stuck))


@timer_rule("Connect workers with one address", WARNING, CONFIRMED, CONFIG, matter=Matter.RECURRENCE)
def R_28(group: ClassicGroup) -> Iterator[Due]:
    """Workers of a Connect group cannot reach each other: one that does not lead passes requests on to the address of the leader.

    Condition: The JoinGroups of workers with other client ids or hosts name the same address, they were assigned their work in one
        generation, and their connections stand.
    Expected: Each worker has an address of its own, at which the others reach it.
    Action: Set rest.advertised.host.name, and rest.advertised.port where the port is mapped, to an address of that worker alone. A
        name such as localhost is the other one's own.
    False alarms: None known. Two workers with one client id on one host are not told apart.
    """
    at: dict[str, list[Worker]] = {}
    for worker in group.recurring.config_offsets.sharing:
        if worker.connection in group.connections:
            at.setdefault(worker.url, []).append(worker)
    for url, workers in at.items():
        if len(workers) < 2:
            continue

        def describe(url: str = url, workers: Sequence[Worker] = workers) -> Breach:
            newest = group.newest_generation
            return Breach(
                url,
                f"{len(workers)} workers of the Connect group {group.name} say that they are reached at {url}: "
                f"{some([worker.client for worker in workers], _NAMED)}. What others forward to one of them may reach another: changes of "
                "connectors and of their tasks go to the leader so.",
                "one address in the JoinGroups of workers that were assigned their work in the same generation",
                () if newest is None else (newest.proof,),
                generation=group.generation,
            )

        yield Due(min(worker.shares_us for worker in workers), url, WARNING, describe)
