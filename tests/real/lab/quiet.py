"""Quiet points: nothing is done to anybody, the groups come to rest, and the model has to know what the brokers say of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException

from streaming.replay.verify import DescribedGroup, describe_groups, differences, unknown_because
from tests.real.lab.cluster import Site
from tests.real.lab.monitor import Monitor

REST_S = 3.0  # without a change
PATIENCE_S = 90.0  # for groups that find no rest
ANSWER_PATIENCE_S = 180.0  # for brokers that do not answer: they are up, so they will
# Both sides are snapshots of something that moves: a difference means something only when it lasts. No frame shows the session of a member
# with epochs, so the model keeps a dead one for the longest that brokers allow and its slack, 23 s more than they do.
LASTS_S = 25.0
KEPT_S = 70.0  # so long the model keeps a dead one at most, and begins anew after a pause in which it saw nothing
BLIND_PATIENCE_S = 180.0  # for a machine that is too busy again and again
RESTING = frozenset({"Stable", "Empty", "Dead"})


@dataclass(slots=True)
class Comparison:
    """The model held against the brokers at one quiet point."""

    groups: int = 0
    members: int = 0
    equal: Counter[str] = field(default_factory=Counter)  #: groups by type, and mixed ones
    unknown: list[str] = field(default_factory=list)  #: groups of which the model says itself that it does not know them
    differences: list[str] = field(default_factory=list)
    restless: list[str] = field(default_factory=list)  #: groups that did not come to rest

    @property
    def unlike(self) -> int:
        """How many groups differ, each in one or more ways."""
        return len({difference.partition(": ")[0] for difference in self.differences})

    def __str__(self) -> str:
        parts = [f"quiet point: {self.groups} groups, {self.members} members"]
        parts += [f"not known: {', '.join(self.unknown)}"] if self.unknown else []
        parts += [f"never at rest: {', '.join(self.restless)}"] if self.restless else []
        return ", ".join([*parts, *(self.differences or ["equal"])])


def at_quiet_point(site: Site, monitor: Monitor, newer: Mapping[str, str], least: int = 0) -> Comparison:
    """Wait until all groups rest, and compare.

    :param newer: share and Streams groups, each with its type.
    :param least: so many groups there must be.
    :raises KafkaException: when the brokers do not answer.
    :raises RawClientError: when they do not answer about groups of the newer types.
    """
    differs_since = None
    while True:
        comparison = _compare(_at_rest(site, newer, least), monitor.described())
        if not comparison.differences:
            return comparison
        differs_since = differs_since or time.monotonic()
        lasts_s = time.monotonic() - differs_since
        if lasts_s > BLIND_PATIENCE_S or (lasts_s > LASTS_S and monitor.seen_for_s > KEPT_S):
            return comparison


def _compare(described: dict[str, DescribedGroup], known: dict[str, dict[str, Any]]) -> Comparison:
    comparison = Comparison(restless=[name for name, group in described.items() if group.state not in RESTING])
    for name, group in sorted(described.items()):
        if name in comparison.restless:
            continue
        comparison.groups += 1
        comparison.members += len(group.members)
        if because := unknown_because(known.get(name)):
            comparison.unknown.append(f"{name} ({because})")
        elif unlike := differences(known[name], group):
            comparison.differences += [f"{name}: {difference}" for difference in unlike]
        else:
            comparison.equal[_type_of(known[name])] += 1
    return comparison


def _type_of(group: dict[str, Any]) -> str:
    protocols = {member.get("protocol", group["group_type"]) for member in group["members"]}
    return "mixed" if len(protocols) > 1 else str(group["group_type"])


def _at_rest(site: Site, newer: Mapping[str, str], least: int) -> dict[str, DescribedGroup]:
    """What the brokers say of the groups once that has not changed for a while, or when patience is over."""
    deadline = time.monotonic() + PATIENCE_S
    found, since = _describe(site, newer), time.monotonic()
    while True:
        rests = len(found) >= least and all(group.state in RESTING for group in found.values())
        now = time.monotonic()
        if (rests and now - since >= REST_S) or now > deadline:
            return found
        time.sleep(0.3)
        before, found = found, _describe(site, newer)
        if found != before:
            since = time.monotonic()


def _describe(site: Site, newer: Mapping[str, str]) -> dict[str, DescribedGroup]:
    deadline = time.monotonic() + ANSWER_PATIENCE_S
    while True:
        try:
            answers = describe_groups({"bootstrap.servers": site.internal}, newer)
        except KafkaException:  # a coordinator moves, or has been slow
            if time.monotonic() > deadline:
                raise
        else:
            if not answers.refused or time.monotonic() > deadline:
                return answers.described
        time.sleep(0.3)
