"""What the soak calls growth."""

from __future__ import annotations

import pytest

from tests.bench.trend import MEASURES, judge
from tests.bench.usage import Usage


def samples(values: list[float]) -> list[dict[str, float]]:
    return [{measure.name: value for measure in MEASURES} for value in values]


def grown(values: list[float]) -> set[str]:
    return {verdict.measure.name for verdict in judge(samples(values)) if verdict.grew}


def test_what_swings_without_a_trend_has_not_grown():
    assert grown([500, 700, 520, 690, 510, 700] * 10) == set()


def test_what_only_rises_has_grown():
    assert grown([500 + 5 * number for number in range(60)]) == {measure.name for measure in MEASURES}


def test_one_peak_at_the_end_is_no_growth():
    assert grown([500.0] * 59 + [5_000.0]) == set()


def test_a_handful_of_threads_and_files_is_tolerated_and_more_is_not():
    assert grown([100.0] * 20 + [101.0] * 40) == set()
    assert grown([100.0] * 20 + [110.0] * 40) == {
        *(f"{role} {what}" for role in ("JVM", "worker", "driver", "checks") for what in ("threads", "files"))
    }


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="run for longer"):
        judge(samples([1.0, 2.0]))


def test_the_bench_sees_its_own_processes():
    before = Usage.now()
    sum(range(10**6))
    after = Usage.now()
    assert after.by_role["driver"].rss_mib > 1
    assert after.by_role["driver"].files >= 3
    assert after.cpu_since(before)["driver"] > 0
    assert before.by_role["broker"].threads == 0
