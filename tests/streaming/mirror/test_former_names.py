"""What a log of an older broker shows is found in it: fields were renamed since, and it writes their former names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streaming.mirror.broker_log.reader import RequestLogReader
from tests.golden.transcript import read
from tests.streaming.mirror.request_log_lines import findings_of, lines_of

STALE_COMMIT = "violation-stale-commit-accepted-4.1.2"
OFFSET_COMMIT, TXN_OFFSET_COMMIT = 8, 28
NEW_NAME, FORMER_NAME = b'"generationIdOrMemberEpoch"', b'"generationId"'


def told(log: list[bytes]) -> tuple[set[tuple[str, str, str | None, str]], RequestLogReader]:
    """Rule, severity, member and summary of what is found, with the reader that read the log."""
    found, reader = findings_of(log)
    return {(one.rule, one.severity.value, one.member_id, one.summary) for one in found}, reader


def transactional(line: bytes) -> bytes:
    """The same line with a TxnOffsetCommit (version 3) if it has an OffsetCommit."""
    before, mark, rest = line.partition(b"Completed request:")
    logged, logger, end = rest.rpartition(b" (kafka.")
    fields: dict[str, Any] = json.loads(logged)
    header = fields["requestHeader"]
    if header["requestApiKey"] != OFFSET_COMMIT:
        return line
    header.update(requestApiKey=TXN_OFFSET_COMMIT, requestApiVersion=3, requestApiKeyName="TxnOffsetCommit")
    fields["request"].update(transactionalId="app", producerId=1, producerEpoch=0)
    return before + mark + json.dumps(fields, separators=(",", ":")).encode() + logger + end


def commits() -> list[bytes]:
    return lines_of(read(STALE_COMMIT))


@pytest.mark.parametrize("log", [commits(), [*map(transactional, commits())]], ids=["OffsetCommit", "TxnOffsetCommit"])
def test_a_stale_commit_is_found_under_the_name_that_older_brokers_write(log):
    """OffsetCommit up to Kafka 3.5, TxnOffsetCommit up to 4.3."""
    former = [line.replace(NEW_NAME, FORMER_NAME) for line in log]
    assert former != log
    known, _ = told(log)
    found, reader = told(former)
    assert {rule for rule, *_ in found} >= {"G-02", "O-02"}
    assert found == known
    assert reader.lines.unknown_fields == {}
    assert reader.lines.counts == {}
