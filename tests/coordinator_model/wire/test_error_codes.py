"""Error codes are an open set."""

from __future__ import annotations

from coordinator_model.wire import ERROR_CODES, error_meaning, error_name


def test_known_codes_have_a_name_and_a_meaning():
    assert error_name(27) == "REBALANCE_IN_PROGRESS"
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert "join again" in error_meaning(79)


def test_unknown_codes_keep_their_number():
    assert error_name(9999) == "9999"
    assert error_meaning(9999) == "a code of no known Kafka release"


def test_the_table_has_no_hole():
    assert list(ERROR_CODES) == list(range(-1, 137))
    assert len({known.name for known in ERROR_CODES.values()}) == 138
