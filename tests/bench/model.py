"""How fast the model takes frames in, and what it keeps: ``make bench-model``.

Steady traffic of many groups: every member of every group heartbeats and is answered, decode included, one core, no I/O. As many
groups of the consumer protocol (KIP-848) take turns with the classic ones. Time is
that of the processor, so other work on the machine counts little. Absolute figures are this machine's; beside them stands the decoder alone
over the same frames, as a ratio that travels.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.gc_tuning import keep_collections_short
from tests.coordinator_model.conversation import START_US, Client, Conversation
from tests.coordinator_model.epochs import INTERVAL_MS, Epochs, foo
from tests.coordinator_model.rules.generations import parts, share_out

GENERATION = 5


class Crowd(NamedTuple):
    model: Coordinator
    members: list[tuple[str, Client]]  #: (group, client)
    offset: int
    now_us: int


def settle(groups: int, members: int) -> Crowd:
    """Every group joins and syncs once. Each member has a partition."""
    model = Coordinator(topic="mirror", partition=0)
    crowd: list[tuple[str, Client]] = []
    offset, latest_us = 0, START_US
    for number in track(range(groups), description="groups form", transient=True):
        talk = Conversation(f"group-{number}")
        talk.model, talk.offset, talk.now_us = model, offset, START_US + number
        clients = [talk.client(f"worker-{number}-{index}") for index in range(members)]
        for index, client in enumerate(clients):
            client.connection = f"{number}-{index}"
            client.member_id = f"worker-{number}-{index}-8f14e45f-ceea-467f-9b2c-{number:06d}{index:06d}"
        talk.join_all(clients, GENERATION)
        share_out(talk, clients, {client: parts(index) for index, client in enumerate(clients)}, talk.protocol)
        offset, latest_us = talk.offset, max(latest_us, talk.now_us)
        crowd += [(talk.group, client) for client in clients]
        model.drain_events()  # as the job does
    return Crowd(model, crowd, offset, latest_us + 1_000_000)


def settle_epochs(groups: int, members: int) -> Crowd:
    """Every group of the consumer protocol has one partition for each member."""
    model = Coordinator(topic="mirror", partition=0)
    crowd: list[tuple[str, Client]] = []
    offset, latest_us = 0, START_US
    for number in range(groups):
        talk = Epochs(f"group-{number}")
        talk.model, talk.offset, talk.now_us = model, offset, START_US + number
        clients = [talk.member(f"worker-{number}-{index}") for index in range(members)]
        for index, client in enumerate(clients):
            client.connection = f"{number}-{index}"
            talk.joins(client, 2 + index, foo(index))
        for client in clients:
            talk.beats(client, 1 + members)
        offset, latest_us = talk.offset, max(latest_us, talk.now_us)
        crowd += [(talk.group, client) for client in clients]
        model.drain_events()
    return Crowd(model, crowd, offset, latest_us + 1_000_000)


def classic_heartbeat(group: str, client: Client) -> tuple[Any, Any]:
    """Request and response."""
    return wire.HeartbeatRequest(group_id=group, generation_id=GENERATION, member_id=client.member_id), wire.HeartbeatResponse()


def consumer_heartbeat(group: str, client: Client) -> tuple[Any, Any]:
    """Request and response."""
    epoch = client.generation
    asked = wire.ConsumerGroupHeartbeatRequest(group_id=group, member_epoch=epoch, member_id=client.member_id)
    answer = wire.ConsumerGroupHeartbeatResponse(member_id=client.member_id, member_epoch=epoch, heartbeat_interval_ms=INTERVAL_MS)
    return asked, answer


def heartbeats(
    crowd: Crowd, rounds: int, exchange_of: Callable[[str, Client], tuple[Any, Any]], version: int
) -> list[MirrorRecord]:
    """``rounds`` heartbeats of every member, each answered, three seconds apart."""
    records = []
    offset, now_us = crowd.offset, crowd.now_us
    step_us = max(1, 3_000_000 // (2 * len(crowd.members)))
    for _ in range(rounds):
        for group, client in crowd.members:
            asked, answer = exchange_of(group, client)
            number = client.exchange
            frames = (
                (Kind.REQUEST, wire.encode_request(asked, api_version=version, correlation_id=number, client_id=client.name)),
                (Kind.RESPONSE, wire.encode_response(answer, api_version=version, correlation_id=number)),
            )
            called = (client.connection, number, asked.API_KEY, version, number)
            envelope = (*called, client.name, "10.0.0.1:3333", "test 1.0", 0, 0)
            for kind, frame in frames:
                records.append(MirrorRecord(0, offset, group, kind, now_us, "c1", "1", *envelope, frame))
                offset += 1
                now_us += step_us
            client.exchange += 1
    return records


def timed(records: Iterable[MirrorRecord], model: Coordinator) -> float:
    started = time.process_time()
    for record in records:
        if model.receive(record):
            raise SystemExit("steady traffic raised a finding: the bench measures nothing")
    return time.process_time() - started


def decoded(records: list[MirrorRecord]) -> float:
    started = time.process_time()
    for record in records:
        wire.decode(record.frame, request=record.kind is Kind.REQUEST, api_key=record.api_key, api_version=record.api_version)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()

    keep_collections_short()  # as the job's workers do
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    crowd = settle(options.groups, options.members)
    formed_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    records = heartbeats(crowd, options.runs, classic_heartbeat, 4)
    consumers = settle_epochs(options.groups, options.members)
    consumer_records = heartbeats(consumers, options.runs, consumer_heartbeat, 1)
    per_run, per_consumer_run = len(records) // options.runs, len(consumer_records) // options.runs
    model, rates, decode_rates = crowd.model, [], []
    consumer_rates, consumer_decode_rates = [], []
    for run in track(range(options.runs), description="heartbeats", transient=True):
        part = records[run * per_run : (run + 1) * per_run]
        decode_rates.append(per_run / decoded(part))
        rates.append(per_run / timed(part, model))
        part = consumer_records[run * per_consumer_run : (run + 1) * per_consumer_run]
        consumer_decode_rates.append(per_consumer_run / decoded(part))
        consumer_rates.append(per_consumer_run / timed(part, consumers.model))

    model.changed_groups()  # as the job does before it packs
    started = time.process_time()
    whole = model.snapshot()
    first_s = time.process_time() - started
    last = heartbeats(crowd._replace(offset=records[-1].offset + 1, now_us=records[-1].at_us + 1), 1, classic_heartbeat, 4)
    timed(last, model)
    started = time.process_time()
    model.snapshot()
    steady_s = time.process_time() - started
    started = time.process_time()
    Coordinator.restore(whole)
    restore_s = time.process_time() - started

    table = Table(title=f"{options.groups:,} groups of {options.members} members, one core", box=None, title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    rate, decode_rate = statistics.median(rates), statistics.median(decode_rates)
    consumer_rate = statistics.median(consumer_rates)
    rows = (
        ("frames per CPU-second through the model, decode included (median)", f"{rate:,.0f}"),
        ("  lowest and highest run", f"{min(rates):,.0f} to {max(rates):,.0f}"),
        ("frames per CPU-second through the decoder alone", f"{decode_rate:,.0f}"),
        ("  model beside decoder", f"{rate / decode_rate:.2f}"),
        ("the same, groups of the consumer protocol", f"{consumer_rate:,.0f}"),
        ("  through the decoder alone", f"{statistics.median(consumer_decode_rates):,.0f}"),
        ("  time of a frame beside that of a classic group's", f"{rate / consumer_rate:.2f}"),
        ("snapshot, bytes per group", f"{len(whole) / options.groups:,.0f}"),
        ("snapshot, every group changed", f"{first_s:.2f} s"),
        ("snapshot, nothing but heartbeats", f"{steady_s:.2f} s"),
        ("restore (groups are unpacked when needed)", f"{restore_s:.3f} s"),
        ("memory per group", f"{(formed_kib - before_kib) / options.groups:.1f} KiB"),
    )
    for row in rows:
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
