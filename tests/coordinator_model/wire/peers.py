"""Reads the oracle's frames with other decoders and says where they and ours differ.

    python -m tests.coordinator_model.wire.peers kio
    python -m tests.coordinator_model.wire.peers kafka-python

prints one line per (message, version, kind of difference), with how many frames show it. A process of its own, because a peer written in
C may take the process with it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import importlib
import inspect
import json
import re
import sys
import uuid
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable
from typing import Any

from coordinator_model import wire
from coordinator_model.wire.message import ZERO_UUID
from tests.coordinator_model.wire.frames import OracleFrame, fixtures

Reader = Callable[[OracleFrame], Any]


class NotSupportedError(Exception):
    """The peer does not have this message or version."""


def plain(value: Any) -> Any:
    """A peer's value in our terms: uuids as Kafka writes them, times in ms, enums as numbers."""
    if isinstance(value, uuid.UUID):
        return urlsafe_b64encode(value.bytes)[:22].decode()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {name.name: plain(getattr(value, name.name)) for name in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, memoryview):
        return bytes(value)
    return value


def differences(peer: Any, ours: Any, path: str = "") -> list[str]:
    """Paths at which they differ; fields that the peer does not have are not compared."""
    if isinstance(peer, dict):
        found = []
        for name, value in peer.items():
            mine = next(
                (
                    n
                    for n in (name, f"{name}_ms", name.replace("generation_id", "generation_id_or_member_epoch"))
                    if hasattr(ours, n)
                ),
                None,
            )
            if mine is None:
                found.append(f"{path}.{name}: a field that we do not have")
            else:
                found += differences(value, getattr(ours, mine), f"{path}.{name}")
        return found
    if isinstance(peer, list) and isinstance(ours, tuple):
        if len(peer) != len(ours):
            return [f"{path}: {len(peer)} elements, not {len(ours)}"]
        return [line for left, right in zip(peer, ours, strict=True) for line in differences(left, right, path)]
    if peer is None and ours == ZERO_UUID:
        return []  # kio's word for it
    return (
        []
        if peer == ours
        else [
            f"{path}: {type(peer).__name__} for {type(ours).__name__}" if type(peer) is not type(ours) else f"{path}: another value"
        ]
    )


def read_with_kio(frame: OracleFrame) -> Any:
    """Header and body; raises :class:`NotSupportedError` where kio has no such module."""
    from kio.serial import entity_reader

    kind = "Request" if frame.is_request else "Response"
    api = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", frame.name.removesuffix(kind)).lower()
    try:
        module = importlib.import_module(f"kio.schema.{api}.v{frame.version}.{kind.lower()}")
    except ImportError:
        raise NotSupportedError from None
    entity = getattr(module, frame.name)
    _, at = entity_reader(entity.__header_schema__)(frame.raw, 0)
    body, used = entity_reader(entity)(frame.raw, at)
    if at + used != len(frame.raw):
        raise ValueError("bytes left over")
    return plain(body)


def kafka_python_classes() -> dict[str, Any]:
    found = {}
    for name in ("admin", "consumer", "metadata", "producer", "sasl", "api_message"):
        module = importlib.import_module(f"kafka.protocol.{name}")
        found.update({cls: value for cls, value in vars(module).items() if inspect.isclass(value)})
    return found


def read_with_kafka_python(frame: OracleFrame) -> Any:
    """The body; raises :class:`NotSupportedError` where kafka-python has no such class or version."""
    message = kafka_python_classes().get(frame.name)
    if message is None or not message.valid_versions[0] <= frame.version <= message.valid_versions[1]:
        raise NotSupportedError
    return plain(message.decode(frame.raw, version=frame.version, header=True).to_dict(json=False))


PEERS: dict[str, Reader] = {"kio": read_with_kio, "kafka-python": read_with_kafka_python}


def tamed(frame: OracleFrame) -> OracleFrame:
    """The same message without what peers are known to stumble over: unknown tags, unknown error codes, times beyond their types."""
    assert frame.layout.api_key is not None
    read = wire.decode(frame.raw, request=frame.is_request, api_key=frame.layout.api_key, api_version=frame.version)
    body = _tame(read.body)
    header = read.header
    if frame.is_request:
        raw = wire.encode_request(body, api_version=frame.version, correlation_id=header.correlation_id, client_id=header.client_id)
    else:
        raw = wire.encode_response(body, api_version=frame.version, correlation_id=header.correlation_id)
    return frame._replace(raw=raw)


def _tame(value: Any, field: str = "") -> Any:
    if isinstance(value, tuple):
        return tuple(_tame(item, field) for item in value)
    if isinstance(value, wire.Struct):
        changed = {name.name: _tame(getattr(value, name.name), name.name) for name in dataclasses.fields(value)}
        if "unknown_tags" in changed:
            changed["unknown_tags"] = ()
        return type(value)(**changed)
    if field == "error_code":
        return abs(value) % 100
    return abs(value) % 1_000_000 if field.endswith("_ms") else value


def compare(read: Reader) -> dict[str, Any]:
    """Pairs compared, and differences by ``message vN: what``."""
    found: Counter[str] = Counter()
    pairs: set[tuple[str, int]] = set()
    frames = 0
    for frame in [tamed(frame) for frame in fixtures() if frame.layout.api_key is not None]:
        try:
            peer = read(frame)
        except NotSupportedError:
            continue
        except Exception as error:
            found[f"{frame.name} v{frame.version}: {type(error).__name__} ({frame.style})"] += 1
            continue
        frames += 1
        pairs.add((frame.name, frame.version))
        for line in set(differences(peer, frame.decode())):
            found[f"{frame.name} v{frame.version}: {line}"] += 1
    return {"pairs": len(pairs), "frames": frames, "differences": dict(found)}


if __name__ == "__main__":
    print(json.dumps(compare(PEERS[sys.argv[1]])))
