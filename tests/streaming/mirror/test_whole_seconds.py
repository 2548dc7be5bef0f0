"""Logs whose times are whole seconds: what they do not prove is nobody's fault.

Logs are made of the golden transcripts, in which every kind of trouble stands.
"""

from __future__ import annotations

import re

import pytest

from coordinator_model.finding import Severity
from tests.golden.transcript import names, read
from tests.samples import sampled
from tests.streaming.mirror.request_log_lines import findings_of, lines_of

GRAVE = {Severity.WARNING, Severity.ERROR, Severity.CRITICAL}

SAMPLE = {
    "lawful-cooperative-4.2.2",
    "lawful-eager-3.9.2",
    "lawful-eager-4.4.0",
    "lawful-transactions-4.3.1",
    "violation-beats-too-seldom-4.3.1",
    "violation-dies-without-leaving-4.3.1",
    "violation-epochs-converted-to-and-fro-4.1.2",
    "violation-epochs-dirty-join-4.2.2",
}
"""Those in which times that are taken at their word, or order that they seem to prove, blame somebody."""


def grave(log: list[bytes]) -> set[tuple[str, str]]:
    return {(one.rule, one.group) for one in findings_of(log)[0] if one.severity in GRAVE}


@pytest.mark.parametrize("name", sampled(names(), SAMPLE))
def test_whole_seconds_find_nothing_that_milliseconds_do_not(name):
    fine = lines_of(read(name))
    coarse = [re.sub(rb",\d{3}\]", b"]", line, count=1) for line in fine]
    assert grave(coarse) <= grave(fine)
