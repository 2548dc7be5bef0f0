"""Quiet points: nothing is done to anybody, the groups come to rest, and the model has to know what the brokers say of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException

from streaming.verify import MOVING, Described, describe_groups, differences, unknown_because
from tests.real.lab.cluster import Site
from tests.real.lab.monitor import Monitor

REST_S = 3.0  # without a change
PATIENCE_S = 90.0
RESTING = frozenset({"Stable", "Empty", "Dead"})


@dataclass(slots=True)
class Comparison:
    """The model held against the brokers at one quiet point."""

    groups: int = 0
    members: int = 0
    unknown: list[str] = field(default_factory=list)  #: groups of which the model says itself that it does not know them
    differences: list[str] = field(default_factory=list)
    restless: list[str] = field(default_factory=list)  #: groups that did not come to rest

    def __str__(self) -> str:
        parts = [f"quiet point: {self.groups} groups, {self.members} members"]
        parts += [f"not known: {', '.join(self.unknown)}"] if self.unknown else []
        parts += [f"never at rest: {', '.join(self.restless)}"] if self.restless else []
        return ", ".join([*parts, *(self.differences or ["equal"])])


def at_quiet_point(site: Site, monitor: Monitor) -> Comparison:
    """Wait until all groups rest, and compare."""
    described = _at_rest(site)
    known: dict[str, dict[str, Any]] = {}
    comparison = Comparison()
    for _ in range(50):  # the tap is a moment behind
        known = monitor.described()
        comparison = _compare(described, known)
        if not comparison.differences:
            break
        time.sleep(0.1)
    return comparison


def _compare(described: dict[str, Described], known: dict[str, dict[str, Any]]) -> Comparison:
    comparison = Comparison(restless=[name for name, group in described.items() if group.state not in RESTING])
    for name, group in sorted(described.items()):
        if name in comparison.restless:
            continue
        comparison.groups += 1
        comparison.members += len(group.members)
        if because := unknown_because(known.get(name)):
            comparison.unknown.append(f"{name} ({because})")
        else:
            comparison.differences += [f"{name}: {difference}" for difference in differences(known[name], group)]
    return comparison


def _at_rest(site: Site) -> dict[str, Described]:
    deadline = time.monotonic() + PATIENCE_S
    last: dict[str, Described] | None = None
    since = time.monotonic()
    while True:
        now = time.monotonic()
        try:
            found = describe_groups({"bootstrap.servers": site.internal})
        except KafkaException as error:
            if error.args[0].code() not in MOVING or now > deadline:
                raise
            time.sleep(0.3)
            continue
        if found != last:
            last, since = found, now
        rests = all(group.state in RESTING for group in found.values())
        if (rests and now - since >= REST_S) or now > deadline:
            return found
        time.sleep(0.3)
