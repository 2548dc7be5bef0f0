"""Random records put to two models, one of which is stored and restored after each: ``python -m tests.coordinator_model.restored``.

Both must say the same, event by event and view by view: what a snapshot loses, a restart of the job loses. The records are random lives
of groups whose capture is spoilt and whose answers are altered, and well-formed frames without any sense.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import unified_diff
from itertools import count
from pprint import pformat
from random import Random
from typing import Any, NamedTuple

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.events import GroupEvent
from coordinator_model.finding import Finding
from coordinator_model.group_view import GroupView
from coordinator_model.wire.constants import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT
from coordinator_model.wire.record import Kind, MirrorRecord
from tests.coordinator_model import lives
from tests.coordinator_model.random_frames import CLASSIC, Wire
from tests.coordinator_model.reference import consumer_history, epoch_history, history
from tests.coordinator_model.reference.history import Act

FRAMES = 300  #: of a conversation without sense
_ERRORS = (3, 15, 16, 22, 25, 27, 29, 30, 42, 69, 79, 81, 82, 110, 111, 112, 113, 128)
_KIP_848 = (8, CONSUMER_GROUP_HEARTBEAT)

Records = list[MirrorRecord]


class Told(NamedTuple):
    """What a model says of one record."""

    findings: list[Finding]
    events: list[GroupEvent]
    views: list[GroupView]


class Difference(NamedTuple):
    record: MirrorRecord
    undisturbed: Told
    restored: Told

    @property
    def text(self) -> str:
        """The lines that are not the same; + is what the restored model says."""
        undisturbed, restored = (pformat(one, width=160).splitlines() for one in (self.undisturbed, self.restored))
        return "\n".join([f"at offset {self.record.offset}", *unified_diff(undisturbed, restored, lineterm="", n=0)])


def told(model: Coordinator, record: MirrorRecord) -> Told:
    findings = model.receive(record)
    model.drain_dead_letters()
    return Told(findings, model.drain_events(), model.changed_groups())


def difference(records: Records) -> Difference | None:
    """Return the first one between a model and one that is restored after each record, None if there is none."""
    undisturbed = Coordinator(topic="mirror", partition=0)
    restored = Coordinator(topic="mirror", partition=0)
    for record in records:
        one, other = told(undisturbed, record), told(restored, record)
        if one != other:
            return Difference(record, one, other)
        restored = Coordinator.restore(restored.snapshot())
    return None


# ---------------------------------------------------------------------------------------------------- random records


def senseless(*api_keys: int) -> Callable[[Random], Records]:
    """Well-formed frames, filled at random."""

    def records(random: Random) -> Records:
        frames = Wire(random, api_keys)
        return [frames.next() for _ in range(FRAMES)]

    return records


def lived(plan: Callable[[Random], history.Plan]) -> Callable[[Random], Records]:
    """A life of a group, as a capture shows it that is spoilt in one way, or in none; some of its answers are others."""

    def records(random: Random) -> Records:
        spoil = random.choice((lives.skewed, lives.late(), lives.lossy, lives.from_the_middle, _plain))
        share = random.choice((0, 0.01, 0.1))
        return spoil([_altered(one, random) if random.random() < share else one for one in plan(random).run().records], random)

    return records


def _plain(records: Records, _: Random) -> Records:
    return records


def _altered(record: MirrorRecord, random: Random) -> MirrorRecord:
    """The record as an answer with another error or epoch, if it is an answer that has such a field."""
    if record.kind is not Kind.RESPONSE:
        return record
    decoded = wire.decode(record.frame, request=False, api_key=record.api_key, api_version=record.api_version)
    changes: dict[str, Any] = {"error_code": random.choice((0, *_ERRORS)), "member_epoch": random.randrange(-2, 9)}
    known = [name for name in changes if name in decoded.body.__slots__]
    if not known:
        return record
    name = random.choice(known)
    body = replace(decoded.body, **{name: changes[name]})
    frame = wire.encode_response(body, api_version=record.api_version, correlation_id=decoded.correlation_id)
    return record._replace(frame=frame)


def _acts(random: Random, kinds: tuple[str, ...], latest_ms: int) -> tuple[Act, ...]:
    return tuple(Act(random.randrange(latest_ms), random.choice(kinds), random.randrange(7)) for _ in range(random.randrange(9)))


def _several(random: Random, profile: Callable[[Random], Any]) -> tuple[Any, ...]:
    return tuple(profile(random) for _ in range(random.randrange(1, 5)))


def _classic_profile(random: Random) -> history.Profile:
    return history.Profile(
        static=random.random() < 0.5,
        separate=random.random() < 0.5,
        two_protocols=random.random() < 0.5,
        rebalance_ms=random.choice((8_000, 20_000)),
        session_ms=random.choice((6_000, 10_000)),
        release=random.choice(("newest", *history.OLD)),
    )


def _classic(random: Random) -> history.Plan:
    brokers = random.choice(("newest", *history.OLD))
    return history.Plan(
        random.randrange(2**32), _several(random, _classic_profile), _acts(random, history.ACTS, 50_000), brokers=brokers
    )


def _profile(*libraries: str) -> Callable[[Random], consumer_history.Profile]:
    def profile(random: Random) -> consumer_history.Profile:
        return consumer_history.Profile(
            library=random.choice(libraries),
            static=random.random() < 0.5,
            by_pattern=random.random() < 0.25,
            rebalance_ms=random.choice((10_000, 30_000, 60_000)),
            revoke_ms=random.choice((0, 0, 2_000, 12_000)),
            throws=random.random() < 0.2,
        )

    return profile


def _of(plan: type[Any], acts: tuple[str, ...], brokers: tuple[str, ...], *libraries: str) -> Callable[[Random], history.Plan]:
    profile = _profile(*libraries or ("java",))

    def planned(random: Random) -> Any:
        return plan(
            random.randrange(2**32), _several(random, profile), _acts(random, acts, 120_000), brokers=random.choice(brokers)
        )

    return planned


_WITHOUT_MIGRATION = tuple(act for act in consumer_history.ACTS if act != "migrate")
_MIGRATING = (*consumer_history.ACTS, "migrate", "migrate", "migrate")
_RELEASES = tuple(consumer_history.RELEASES)

KINDS: dict[str, tuple[Callable[[Random], Records], ...]] = {
    "classic": (lived(_classic), senseless(*CLASSIC)),
    "consumer": (
        lived(_of(consumer_history.Plan, _WITHOUT_MIGRATION, _RELEASES, "java", "librdkafka", "franz-go")),
        senseless(*_KIP_848, 13, 42),
    ),
    "share": (lived(_of(epoch_history.SharePlan, epoch_history.SHARE_ACTS, _RELEASES[1:])), senseless(SHARE_GROUP_HEARTBEAT)),
    "streams": (
        lived(_of(epoch_history.StreamsPlan, epoch_history.STREAMS_ACTS, _RELEASES[2:])),
        senseless(8, STREAMS_GROUP_HEARTBEAT),
    ),
    "migrating": (
        lived(_of(consumer_history.Plan, _MIGRATING, _RELEASES, "java", "classic")),
        senseless(*_KIP_848, JOIN_GROUP, 12, 13, 14, JOIN_GROUP),
    ),
}
"""Kind of group → what its records are, in turn."""


def conversations(kind: str, least_records: int, seed: int) -> Iterator[tuple[str, Records]]:
    """Random records of a kind of group with what each was made of, until they are at least so many."""
    records = 0
    for number in count():
        if records >= least_records:
            return
        sources = KINDS[kind]
        made_of = f"{kind}.{seed}.{number}"
        made = sources[number % len(sources)](Random(made_of))
        records += len(made)
        yield made_of, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000, help="of each kind, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    options = parser.parse_args()
    differing = 0
    for kind in options.kinds:
        records, found = 0, []
        for made_of, made in conversations(kind, options.records, options.seed):
            records += len(made)
            differs = difference(made)
            if differs is not None:
                found.append(f"{made_of} {differs.text}")
        print(
            f"{kind:10} records {records:9,}, each with a restore after it; conversations with a difference: {len(found)}",
            flush=True,
        )
        print("".join(f"{one}\n" for one in found[: options.show]), end="")
        differing += len(found)
    raise SystemExit(differing > 0)


if __name__ == "__main__":
    main()
