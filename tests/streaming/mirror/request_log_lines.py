"""Writes request lines as brokers do, from messages."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from coordinator_model import wire
from coordinator_model.finding import Finding
from coordinator_model.wire.encoder import default_of
from coordinator_model.wire.layouts import LAYOUTS, REQUESTS, RESPONSES, Layout
from coordinator_model.wire.message import Struct
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.engine.engine import Engine
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.pcap.files import opened
from tests.golden.transcript import SETTINGS

BASE_S = 1_700_000_000


def request_line(
    asked: Any,
    answered: Any,
    *,
    over_ms: int,
    took_ms: float = 1.0,
    api_version: int | None = None,
    connection: str = "10.0.0.1:9092-10.0.0.7:40000-0-1",
    correlation_id: int = 1,
    client_id: str | None = "app",
    header: dict[str, Any] | None = None,
    **more: Any,
) -> bytes:
    """A line that was written ``over_ms`` after the base."""
    layout = LAYOUTS[type(asked).__name__]
    version = layout.versions.last if api_version is None else api_version
    key = layout.api_key
    at = datetime.fromtimestamp(BASE_S + over_ms // 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S") + f",{over_ms % 1000:03}"
    told = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": key,
            "requestApiVersion": version,
            "correlationId": correlation_id,
            "clientId": client_id,
            "requestApiKeyName": layout.name,
            **(header or {}),
        },
        "request": plain(asked, REQUESTS[key], version),
        "response": plain(answered, RESPONSES[key], version),
        "connection": connection,
        "totalTimeMs": took_ms,
        "securityProtocol": "SASL_SSL",
        "principal": "User:billing",
        "listener": "CLIENTS",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "4.3.1"},
        **more,
    }
    return f"[{at}] DEBUG Completed request:{json.dumps(told, separators=(',', ':'))} (kafka.request.logger)\n".encode()


def plain(value: Any, layout: Layout, version: int) -> Any:
    """A message as Kafka's JsonConverter writes it."""
    if isinstance(value, Struct):
        fields = layout.structs[type(value).__name__]
        return {
            _camel(field.name): plain(getattr(value, field.name), layout, version)
            for field in fields
            if version in field.versions and (field.tag is None or getattr(value, field.name) != default_of(field))
        }
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return [plain(item, layout, version) for item in value] if isinstance(value, tuple) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def lines_of(found: Iterable[MirrorRecord]) -> list[bytes]:
    """The log that the brokers of a recording would have written, in the order of its answers."""
    asked: dict[tuple[str, int], MirrorRecord] = {}
    numbers: dict[str, int] = {}
    lines: list[bytes] = []
    first_us = 0
    for record in found:
        first_us = first_us or record.at_us
        key = record.connection, record.exchange
        if record.kind is Kind.REQUEST:
            asked[key] = record
        elif record.kind is Kind.RESPONSE and (before := asked.pop(key, None)) is not None:
            api = {"api_key": record.api_key, "api_version": record.api_version}
            number = numbers.setdefault(record.connection, len(numbers))
            over_us = record.at_us - first_us
            try:
                question = wire.decode(before.frame, request=True, **api)
                answer = wire.decode(record.frame, request=False, **api)
            except wire.DecodeError:
                continue
            line = request_line(
                question.body,
                answer.body,
                over_ms=over_us // 1000,
                took_ms=(record.at_us - before.at_us) / 1000,
                api_version=record.api_version,
                connection=f"10.0.0.{crc32(record.broker.encode()) % 200}:9092-{_host(record)}:{40_000 + number}-0-{number}",
                correlation_id=question.correlation_id,
                client_id=before.client_id,
            )
            lines.append(line)
    return lines


def _host(record: MirrorRecord) -> str:
    return record.client_address.rpartition(":")[0] or record.client_address or "10.0.1.1"


def findings_of(log: Iterable[bytes]) -> tuple[list[Finding], RequestLogReader]:
    """What is found in the lines of a log, each finding as it was last, with the reader that read them."""
    found: dict[str, Finding] = {}
    engine = Engine(topic="log", settings=SETTINGS, found=lambda finding: found.update({finding.id: finding}))
    reader = RequestLogReader(engine.recorded)
    reader.read([reader.entries_in(opened(io.BytesIO(b"".join(log))), pytest.fail)])
    reader.finish()
    engine.finish()
    return list(found.values()), reader


BY_BROKERS = Path(__file__).parent / "request_logs"
RELEASES = sorted(path.name.removesuffix(".records.xz") for path in BY_BROKERS.glob("*.records.xz"))
HEARTBEAT = wire.HeartbeatRequest(group_id="billing", generation_id=3, member_id="m-1")


def heartbeat(over_ms: int, error_code: int = 0, **options) -> bytes:
    return request_line(HEARTBEAT, wire.HeartbeatResponse(error_code=error_code), over_ms=over_ms, **options)
