"""Conversations with a real coordinator whose copies come out of order: a verdict falls that a frame explains which comes late.

Each member below speaks over two connections, and the copies of one of them come later than all others, by less than the reorder window.
If they never came, each conversation would be told as the breach that it looks like.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

import pytest

from coordinator_model.coordinator import Coordinator
from coordinator_model.wire.constants import NONE
from coordinator_model.wire.record import MirrorRecord
from coordinator_model.wire.recording import read_recording
from streaming.demo.raw_client import Connection, find_coordinator
from tests.real.harness import wait_for
from tests.real.lab.epoch_scene import LEAVE, EpochMember
from tests.real.watched import TOPIC, watched

pytestmark = [pytest.mark.real, pytest.mark.long]

LATE = "late"  #: the client id on connections whose copies come late
LATE_US = 300_000
UNRELEASED_INSTANCE_ID = 111
ASIDE = -2
KNOWN_FOR_S = 70.0  #: longer than any session: whoever is a member then has been seen


@dataclass
class Cast:
    """A group with a static member and another one, and everybody's connections."""

    coordinator: str
    group: str

    def __post_init__(self) -> None:
        self.static, self.other = self.member("static", "i-1"), self.member("other")
        for member in (self.static, self.other):
            assert member.join() == NONE
        self.settle()

    def connect(self, name: str, *, comes_late: bool = False) -> Connection:
        return Connection(self.coordinator, client_id=LATE if comes_late else name)

    def member(self, name: str, instance_id: str | None = None, *, comes_late: bool = False) -> EpochMember:
        return EpochMember(self.connect(name, comes_late=comes_late), self.group, (TOPIC,), 60_000, instance_id)

    def elsewhere(self, member: EpochMember, *, comes_late: bool = False) -> EpochMember:
        """The same member over another connection."""
        return replace(member, connection=self.connect("elsewhere", comes_late=comes_late))

    def settle(self) -> None:
        members = (self.static, self.other)

        def settled() -> bool:
            assert [member.beat() for member in members] == [NONE, NONE]
            return self.static.epoch == self.other.epoch and all(member.assigned for member in members)

        wait_for(settled, "both are at one epoch and have partitions", 30)

    def next_epoch(self) -> EpochMember:
        """The other member, which has been given a newer epoch by a late answer."""
        assert self.member("newcomer").join() == NONE
        before, told = self.other.epoch, self.elsewhere(self.other, comes_late=True)

        def risen() -> bool:
            assert told.beat() == NONE
            return told.epoch > before

        wait_for(risen, "the epoch has risen", 30)
        return self.elsewhere(told)


def accepted_after_its_end(cast: Cast) -> None:
    assert cast.other.say(LEAVE).error_code == NONE
    time.sleep(1)
    again = cast.elsewhere(cast.other, comes_late=True)
    assert again.join() == NONE
    assert cast.elsewhere(again).beat() == NONE


def stranger_accepted(cast: Cast) -> None:
    stranger = cast.member("stranger", comes_late=True)
    assert stranger.join() == NONE
    assert cast.elsewhere(stranger).beat() == NONE


def epoch_not_delivered(cast: Cast) -> None:
    assert cast.next_epoch().beat() == NONE


def commit_at_an_epoch_not_delivered(cast: Cast) -> None:
    assert cast.next_epoch().commit() == NONE


def instance_id_held_although_released(cast: Cast) -> None:
    assert cast.static.say(ASIDE).error_code == NONE
    time.sleep(1)
    assert cast.member("second", "i-1", comes_late=True).join() == NONE
    assert cast.member("third", "i-1").join() == UNRELEASED_INSTANCE_ID


KINDS: dict[str, Callable[[Cast], None]] = {
    "E-14": accepted_after_its_end,
    "E-15": stranger_accepted,
    "E-04": epoch_not_delivered,
    "E-20": commit_at_an_epoch_not_delivered,
    "E-18": instance_id_held_although_released,
}


@pytest.mark.timeout(300)
def test_a_verdict_falls_that_a_frame_explains_which_comes_late_within_the_window(tmp_path):
    with watched(tmp_path) as (_, _, front):
        coordinator = find_coordinator(front, "any", client_id="scout")
        time.sleep(1)
        casts = {rule: Cast(coordinator, f"of-{rule}") for rule in KINDS}
        known = time.monotonic() + KNOWN_FOR_S
        while time.monotonic() < known:
            for cast in casts.values():
                cast.settle()
            time.sleep(3)
        for rule, play in KINDS.items():
            play(casts[rule])
        time.sleep(3)
    records = read(tmp_path / "records")
    late = {record.connection for record in records if record.client_id == LATE}
    assert said_of(record for record in records if record.connection not in late) == {f"of-{rule}": {rule} for rule in KINDS}
    assert said_of(delayed(records, late)) == {}


def read(recording: Path) -> list[MirrorRecord]:
    with recording.open("rb") as stream:
        return list(read_recording(stream))


def delayed(records: Iterable[MirrorRecord], late: Collection[str]) -> list[MirrorRecord]:
    """The same records, those of some connections as much later as may be."""
    arrivals = ((record.at_us + (LATE_US if record.connection in late else 0), record) for record in records)
    return [record for _, record in sorted(arrivals, key=itemgetter(0))]


def said_of(records: Iterable[MirrorRecord]) -> dict[str, set[str]]:
    """Group → which of these rules a fresh model speaks of."""
    model = Coordinator(topic="late", partition=0)
    said: dict[str, set[str]] = {}
    for offset, record in enumerate(records):
        for finding in model.receive(record._replace(offset=offset)):
            if finding.rule in KINDS:
                said.setdefault(finding.group, set()).add(finding.rule)
    return said
