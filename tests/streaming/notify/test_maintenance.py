"""Planned maintenance: when a window is on, by the clock on the wall, and until when it holds back what."""

# ruff: noqa: DTZ001 - a time on the wall has no offset
from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.config.maintenance import Maintenance, held_until

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
HOUR_S = 3600


def at(*wall: int, zone: ZoneInfo = BERLIN) -> float:
    return dt.datetime(*wall, tzinfo=zone).timestamp()


def nightly(**other) -> Maintenance:
    return Maintenance(**{"zone": "Europe/Berlin", "at": dt.time(2, 30), "minutes": 90, **other})


def test_a_range_is_on_from_its_start_until_before_its_end():
    window = Maintenance(zone="Europe/Berlin", starts=dt.datetime(2026, 12, 1, 22), ends=dt.datetime(2026, 12, 2, 4))
    assert window.end_of(at(2026, 12, 1, 22)) == at(2026, 12, 2, 4)
    assert window.end_of(at(2026, 12, 1, 21, 59)) is None
    assert window.end_of(at(2026, 12, 2, 4)) is None


def test_a_time_with_an_offset_needs_no_zone():
    starts = dt.datetime(2026, 12, 1, 22, tzinfo=dt.timezone(dt.timedelta(hours=5)))
    window = Maintenance(zone="Europe/Berlin", starts=starts, ends=starts + dt.timedelta(hours=1))
    assert window.end_of(starts.timestamp()) == starts.timestamp() + HOUR_S


def test_a_recurring_window_goes_over_midnight():
    window = Maintenance(days=["friday"], at=dt.time(23), minutes=120)
    saturday = dt.datetime(2026, 11, 21, 0, 30, tzinfo=dt.UTC).timestamp()
    assert window.end_of(saturday) == dt.datetime(2026, 11, 21, 1, tzinfo=dt.UTC).timestamp()
    assert window.end_of(saturday + 24 * HOUR_S) is None


def test_a_recurring_window_ends_with_its_range():
    window = nightly(starts=dt.datetime(2026, 6, 1), ends=dt.datetime(2026, 6, 3, 3))
    assert window.end_of(at(2026, 6, 2, 2, 45)) == at(2026, 6, 2, 4)
    assert window.end_of(at(2026, 6, 3, 2, 45)) == at(2026, 6, 3, 3)
    assert window.end_of(at(2026, 6, 4, 2, 45)) is None


def test_an_hour_that_is_missing_does_not_take_the_window_with_it():
    # On 29 March 2026 the clock in Berlin goes from 02:00 to 03:00.
    assert nightly().end_of(at(2026, 3, 29, 3, 45)) == at(2026, 3, 29, 5)
    assert nightly().end_of(at(2026, 3, 29, 1, 59)) is None


def test_an_hour_that_comes_twice_has_one_window():
    # On 25 October 2026 the clock in Berlin goes from 03:00 back to 02:00.
    first = dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=0).timestamp()
    assert nightly().end_of(first) == first + 90 * 60
    second = dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1).timestamp()
    assert nightly().end_of(second) == first + 90 * 60
    assert nightly().end_of(second + 31 * 60) is None


@given(
    zone=st.sampled_from(ZONES),
    days=st.sets(st.sampled_from(DAYS), min_size=1),
    begins=st.times(),
    minutes=st.integers(1, 7 * 24 * 60),
    moment=st.datetimes(dt.datetime(2024, 1, 1), dt.datetime(2028, 1, 1)),
)
def test_a_window_is_on_exactly_while_one_of_its_occurrences_lasts(zone, days, begins, minutes, moment):
    window = Maintenance(zone=zone, days=tuple(days), at=begins, minutes=minutes)
    moment_s = moment.replace(tzinfo=dt.UTC).timestamp()
    ends = []
    for back in range(-2, 11):  # every day that may matter, in any zone
        day = moment.date() - dt.timedelta(days=back)
        if DAYS[day.weekday()] in days:
            began = dt.datetime.combine(day, begins, ZoneInfo(zone)).timestamp()
            if began <= moment_s < began + minutes * 60:
                ends.append(began + minutes * 60)
    assert window.end_of(moment_s) == max(ends, default=None)


def test_what_happened_outside_is_not_held():
    assert held_until([nightly()], "orders", at(2026, 6, 2, 2, 29), at(2026, 6, 2, 2, 45)) == at(2026, 6, 2, 2, 29)


def test_what_happened_within_is_held_until_the_end():
    assert held_until([nightly()], "orders", at(2026, 6, 2, 2, 31), at(2026, 6, 2, 2, 45)) == at(2026, 6, 2, 4)


def test_windows_without_a_pause_between_are_one():
    windows = [nightly(), nightly(at=dt.time(4))]
    assert held_until(windows, "orders", at(2026, 6, 2, 2, 31), at(2026, 6, 2, 4, 30)) == at(2026, 6, 2, 5, 30)


def test_a_window_that_never_ends_is_no_endless_loop():
    always = Maintenance(at=dt.time(0), minutes=24 * 60)
    assert held_until([always], "orders", at(2026, 6, 2), at(2027, 6, 2)) > at(2027, 6, 2)


def test_a_window_is_for_the_groups_that_it_names():
    window = nightly(groups=["orders-*", "/eu$/"])
    assert window.concerns("orders-1")
    assert window.concerns("billing-eu")
    assert not window.concerns("billing-us")


@pytest.mark.parametrize("mirror", [True, False])
def test_what_concerns_no_group_is_held_only_by_a_window_that_says_so(mirror):
    assert nightly(groups=["*"], mirror=mirror).concerns("") is mirror
