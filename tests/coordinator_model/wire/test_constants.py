"""The numbers are those of the schemas and of Kafka's list of errors."""

from __future__ import annotations

import re

import pytest

from coordinator_model.wire import API_NAMES, ERROR_CODES, constants

NUMBERS = {name: value for name, value in vars(constants).items() if isinstance(value, int) and not name.endswith("_SINCE")}
ERRORS = {entry.name: code for code, entry in ERROR_CODES.items()}


def as_constant(api: str) -> str:
    """``TxnOffsetCommit`` → ``TXN_OFFSET_COMMIT``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", api).upper()


APIS = {as_constant(name): key for key, name in API_NAMES.items()}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_that_of_its_name(name):
    known = APIS if name in APIS else ERRORS
    assert known[name] == NUMBERS[name]
