"""Decoding speed, ours beside others', on the same frames and in one run.

    python -m tests.coordinator_model.wire.bench_decode            the table
    python -m tests.coordinator_model.wire.bench_decode --quick    a tenth of the frames

One core, frames in memory, header and body decoded. The best of five passes counts, by processor time of this process. Peers that are
not installed are left out of the table by name. tshark is timed as a process on a capture of the same frames, less the time it takes for
a capture of one frame.
"""

from __future__ import annotations

import argparse
import functools
import gc
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_model import wire

PASSES = 5
MEMBERS = 100
LEAST_CAPTURED = 8000  # frames; fewer would drown in the time that tshark takes to start
FLOOR = {  # frames a second that this decoder is to reach on one core
    "Heartbeat request v4": 1_300_000,
    "mixed, objects dropped": 500_000,
    "mixed, columns kept": 350_000,
    "JoinGroup response, 100 members": 2_500,
}


class Sent(NamedTuple):
    """A frame with what a capture knows of it."""

    raw: bytes
    request: bool
    key: int
    version: int


def request(body: wire.Request, api_version: int, client: str = "billing-1") -> Sent:
    raw = wire.encode_request(body, api_version=api_version, correlation_id=4711, client_id=client)
    return Sent(raw, True, body.API_KEY, api_version)


def response(body: wire.Response, api_version: int) -> Sent:
    return Sent(wire.encode_response(body, api_version=api_version, correlation_id=4711), False, body.API_KEY, api_version)


def member_id(number: int) -> str:
    return f"billing-{number}-6d7c6a42-7b3a-4f3e-9d3e-{number:012x}"


def heartbeat(number: int) -> list[Sent]:
    body = wire.HeartbeatRequest(group_id="billing", generation_id=5, member_id=member_id(number))
    return [request(body, 4, f"billing-{number}"), response(wire.HeartbeatResponse(), 4)]


def commit(number: int) -> list[Sent]:
    asked = tuple(
        wire.OffsetCommitRequestPartition(partition_index=n, committed_offset=1_000_000 + n, committed_metadata="")
        for n in range(3)
    )
    told = tuple(wire.OffsetCommitResponsePartition(partition_index=n) for n in range(3))
    body = wire.OffsetCommitRequest(
        group_id="billing",
        generation_id_or_member_epoch=5,
        member_id=member_id(number),
        topics=(wire.OffsetCommitRequestTopic(name="orders", partitions=asked),),
    )
    answer = wire.OffsetCommitResponse(topics=(wire.OffsetCommitResponseTopic(name="orders", partitions=told),))
    return [request(body, 9), response(answer, 9)]


def consumer_heartbeat(number: int) -> list[Sent]:
    body = wire.ConsumerGroupHeartbeatRequest(group_id="billing", member_id=member_id(number), member_epoch=5)
    answer = wire.ConsumerGroupHeartbeatResponse(member_id=member_id(number), member_epoch=5, heartbeat_interval_ms=5000)
    return [request(body, 0), response(answer, 0)]


def subscription(number: int) -> bytes:
    owned = wire.ConsumerProtocolSubscriptionTopicPartition(topic="orders", partitions=(number,))
    return wire.encode_subscription(
        wire.ConsumerProtocolSubscription(topics=("orders", "payments"), owned_partitions=(owned,), generation_id=4)
    )


def join(number: int) -> list[Sent]:
    protocol = wire.JoinGroupRequestProtocol(name="cooperative-sticky", metadata=subscription(number))
    body = wire.JoinGroupRequest(
        group_id="billing",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id=member_id(number),
        protocol_type="consumer",
        protocols=(protocol,),
    )
    return [request(body, 9), response(join_answer(1).body, 9)]


class Answer(NamedTuple):
    body: wire.JoinGroupResponse


def join_answer(members: int) -> Answer:
    return Answer(
        wire.JoinGroupResponse(
            generation_id=5,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
            leader=member_id(0),
            member_id=member_id(0),
            members=tuple(
                wire.JoinGroupResponseMember(member_id=member_id(number), metadata=subscription(number))
                for number in range(members)
            ),
        )
    )


def mixed(count: int, newer: Callable[[int], list[Sent]] = consumer_heartbeat) -> list[Sent]:
    """Steady traffic: of 100 exchanges 84 heartbeats, 12 commits, 3 heartbeats of the newer kind, one join."""
    frames: list[Sent] = []
    kinds: list[Callable[[int], list[Sent]]] = [heartbeat] * 84 + [commit] * 12 + [newer] * 3 + [join]
    spread = [kinds[(at * 37) % 100] for at in range(100)]
    at = 0
    while len(frames) < count:
        frames += spread[at % 100](at % 50)
        at += 1
    return frames[:count]


# --------------------------------------------------------------------------------------------------------------------------------


def best_rate(run: Callable[[], None], frames: int) -> float:
    """Frames a second of the best pass."""
    run()
    best = float("inf")
    for _ in range(PASSES):
        gc.collect()
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return frames / best


def ours(frames: list[Sent]) -> Callable[[], None]:
    decode = wire.decode

    def run() -> None:
        for raw, is_request, key, api_version in frames:
            decode(raw, request=is_request, api_key=key, api_version=api_version)

    return run


def ours_columns(frames: list[Sent]) -> Callable[[], None]:
    """What a batch job keeps: a value per frame in each of six columns."""
    decode = wire.decode

    def run() -> None:
        keys: list[int] = []
        correlations: list[int] = []
        groups: list[str | None] = []
        members: list[str | None] = []
        generations: list[int | None] = []
        errors: list[int | None] = []
        for raw, is_request, key, api_version in frames:
            frame = decode(raw, request=is_request, api_key=key, api_version=api_version)
            body: Any = frame.body
            keys.append(key)
            correlations.append(frame.correlation_id)
            if key == 12:
                if is_request:
                    groups.append(body.group_id)
                    members.append(body.member_id)
                    generations.append(body.generation_id)
                    errors.append(None)
                else:
                    groups.append(None)
                    members.append(None)
                    generations.append(None)
                    errors.append(body.error_code)
            else:
                groups.append(getattr(body, "group_id", None))
                members.append(getattr(body, "member_id", None))
                generations.append(getattr(body, "generation_id", None))
                errors.append(getattr(body, "error_code", None))

    return run


def ours_with_subscriptions(frames: list[Sent]) -> Callable[[], None]:
    decode, decode_subscription = wire.decode, wire.decode_subscription

    def run() -> None:
        for raw, is_request, key, api_version in frames:
            body: Any = decode(raw, request=is_request, api_key=key, api_version=api_version).body
            for member in body.members:
                decode_subscription(member.metadata)

    return run


def kio(frames: list[Sent], *, subscriptions: bool = False) -> Callable[[], None]:
    from kio.schema.consumer_protocol_subscription.v3.data import ConsumerProtocolSubscription
    from kio.schema.index import api_key_map  # noqa: F401 - fails early where the installed kio has another form
    from kio.serial import entity_reader

    readers = {(f.request, f.key, f.version): _kio_readers(f) for f in frames}
    read_subscription = entity_reader(ConsumerProtocolSubscription)

    def run() -> None:
        for raw, is_request, key, api_version in frames:
            read_header, read_body = readers[is_request, key, api_version]
            _, at = read_header(raw, 0)
            body, _ = read_body(raw, at)
            if subscriptions:
                for member in body.members:
                    read_subscription(member.metadata, 2)

    return run


@functools.cache
def _kio_readers(sent: Sent) -> tuple[Any, Any]:
    import importlib
    import re

    from kio.serial import entity_reader

    api = wire.API_NAMES[sent.key]
    kind = "Request" if sent.request else "Response"
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", api).lower()
    entity = getattr(importlib.import_module(f"kio.schema.{snake}.v{sent.version}.{kind.lower()}"), api + kind)
    return entity_reader(entity.__header_schema__), entity_reader(entity)


def kafka_python(frames: list[Sent], *, subscriptions: bool = False) -> Callable[[], None] | None:
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    from tests.coordinator_model.wire.peers import kafka_python_classes

    classes = kafka_python_classes()
    if any(wire.API_NAMES[frame.key] + "Request" not in classes for frame in frames):
        return None
    chosen = [(f.raw, classes[wire.API_NAMES[f.key] + ("Request" if f.request else "Response")], f.version) for f in frames]

    def run() -> None:
        for raw, message, api_version in chosen:
            body = message.decode(raw, version=api_version, header=True)
            if subscriptions:
                for member in body.members:
                    ConsumerProtocolSubscription.decode(member.metadata, version=3)

    return run


# --------------------------------------------------------------------------------------------------------------------------------


def capture(frames: list[Sent]) -> Iterator[bytes]:
    """A pcap of one TCP connection that carries the frames, requests to port 9092; 20 bytes of IP and 20 of TCP each."""
    yield struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101)  # raw IP
    sequence = {True: 1, False: 1}
    for at, frame in enumerate(frames):
        payload = struct.pack(">i", len(frame.raw)) + frame.raw
        ports = (50000, 9092) if frame.request else (9092, 50000)
        acknowledged = sequence[not frame.request]
        tcp = struct.pack(">HHIIBBHHH", *ports, sequence[frame.request], acknowledged, 0x50, 0x18, 65535, 0, 0)
        sequence[frame.request] = (sequence[frame.request] + len(payload)) & 0xFFFFFFFF
        addresses = bytes((127, 0, 0, 1, 127, 0, 0, 2)) if frame.request else bytes((127, 0, 0, 2, 127, 0, 0, 1))
        packet = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0) + addresses + tcp + payload
        yield struct.pack("<IIII", at // 1000, at % 1000 * 1000, len(packet), len(packet)) + packet


def numbered(frames: list[Sent]) -> list[Sent]:
    """Each exchange with a correlation id of its own, which tshark needs to pair them."""
    out = []
    for at, frame in enumerate(frames):
        number = struct.pack(">i", at // 2)
        raw = frame.raw[:4] + number + frame.raw[8:] if frame.request else number + frame.raw[4:]
        out.append(frame._replace(raw=raw))
    return out


def tshark_rate(frames: list[Sent]) -> float | None:
    """Frames a second, or None where tshark is not installed."""
    if shutil.which("tshark") is None:
        return None
    frames = frames * max(1, LEAST_CAPTURED // len(frames))
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for count in (2, len(frames)):
            path = Path(folder) / f"{count}.pcap"
            path.write_bytes(b"".join(capture(numbered(frames[:count]))))
            command = [
                "tshark",
                "-r",
                str(path),
                "-d",
                "tcp.port==9092,kafka",
                "-T",
                "fields",
                "-e",
                "kafka.api_key",
                "-e",
                "kafka.consumer_group",
            ]
            best = float("inf")
            for _ in range(2):
                before = os.times()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                after = os.times()
                best = min(best, after.children_user + after.children_system - before.children_user - before.children_system)
            times.append(best)
    return (len(frames) - 2) / max(times[1] - times[0], 1e-9)


# --------------------------------------------------------------------------------------------------------------------------------


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def measure(scale: int) -> Iterator[tuple[str, dict[str, float | str]]]:
    heartbeats = [exchange[0] for exchange in map(heartbeat, range(50))] * (1000 * scale // 50)
    answers = [heartbeat(0)[1]] * (1000 * scale)
    steady = mixed(1000 * scale)
    joined = [response(join_answer(MEMBERS).body, 9)] * (4 * scale)
    workloads: list[tuple[str, list[Sent], Callable[[list[Sent]], Callable[[], None]]]] = [
        ("Heartbeat request v4", heartbeats, ours),
        ("Heartbeat response v4", answers, ours),
        ("mixed, objects dropped", steady, ours),
        ("mixed, columns kept", steady, ours_columns),
        ("the same without KIP-848", mixed(1000 * scale, heartbeat), ours),
        (f"JoinGroup response, {MEMBERS} members", joined, ours_with_subscriptions),
    ]
    for name, frames, our_run in workloads:
        row: dict[str, float | str] = {"ours": best_rate(our_run(frames), len(frames))}
        embedded = our_run is ours_with_subscriptions
        if our_run is not ours_columns:
            row["kio"] = best_rate(kio(frames, subscriptions=embedded), len(frames)) if installed("kio") else "not installed"
            theirs = kafka_python(frames, subscriptions=embedded) if installed("kafka-python") else None
            if not installed("kafka-python"):
                row["kafka-python"] = "not installed"
            else:
                row["kafka-python"] = best_rate(theirs, len(frames)) if theirs else "cannot"
            with_requests = frames if frames[0].request else [frame for answer in frames for frame in (_asked(answer), answer)]
            row["tshark"] = tshark_rate(with_requests) or "not installed"
        yield name, row


def _asked(answer: Sent) -> Sent:
    """The request without which tshark cannot tell what a response is."""
    return (heartbeat if answer.key == 12 else join)(0)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the frames")
    scale = 10 if parser.parse_args().quick else 100
    columns = ["ours", "kio", "kafka-python", "tshark"]
    print(
        f"Python {sys.version.split()[0]}, kio {installed('kio')}, kafka-python {installed('kafka-python')}; frames a second on one core"
    )
    print(f"{'':34}" + "".join(f"{column:>15}" for column in columns) + f"{'to reach':>12}")
    for name, row in measure(scale):
        cells = [row.get(column, "") for column in columns]
        shown = "".join(f"{cell:>15,.0f}" if isinstance(cell, float) else f"{cell:>15}" for cell in cells)
        floor = FLOOR.get(name)
        print(f"{name:34}{shown}{f'{floor:,}' if floor else '':>12}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
