"""Whether a measure grows with time, told from its samples.

A single sample says nothing: a JVM's memory swings with its collector, a checkpoint's size with its clean-up. So the median of the last
third of the time stands against that of its first third.
"""

from __future__ import annotations

import itertools
import statistics
from typing import NamedTuple


class Measure(NamedTuple):
    """What is looked at, and how much more of it at the end is no growth: a share, and so much beside."""

    name: str
    share: float
    beside: float


MEASURES = (
    Measure("JVM MiB", 0.05, 16),
    Measure("worker MiB", 0.05, 8),
    Measure("driver MiB", 0.05, 8),
    Measure("checks MiB", 0.05, 8),
    Measure("JVM threads", 0.0, 3),
    Measure("worker threads", 0.0, 1),
    Measure("driver threads", 0.0, 1),
    Measure("checks threads", 0.0, 1),
    Measure("JVM files", 0.0, 5),
    Measure("worker files", 0.0, 2),
    Measure("driver files", 0.0, 2),
    Measure("checks files", 0.0, 2),
    Measure("checkpoint MiB", 0.10, 8),
    Measure("checkpoint files", 0.10, 20),
)


class Verdict(NamedTuple):
    measure: Measure
    first: float
    middle: float
    last: float

    @property
    def grew(self) -> bool:
        return self.last > self.first * (1 + self.measure.share) + self.measure.beside


def judge(samples: list[dict[str, float]]) -> list[Verdict]:
    """Medians of the three thirds of the samples, for each measure.

    :raises ValueError: when there are fewer than three.
    """
    if len(samples) < 3:
        raise ValueError("too few samples to see a trend; let it run for longer")
    cuts = [0, len(samples) // 3, 2 * len(samples) // 3, len(samples)]
    thirds = [samples[begin:end] for begin, end in itertools.pairwise(cuts)]
    return [
        Verdict(measure, *(statistics.median(each[measure.name] for each in third) for third in thirds)) for measure in MEASURES
    ]
