"""A tap that ticks no longer, while another does: V-11."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding, Severity, Status
from coordinator_model.wire.record import Loss, MirrorRecord, Place, as_held, gap, tick
from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Client, Conversation

SECOND_US = 1_000_000
BEGIN_US = 1_800_000_000 * SECOND_US
A, B = Place("web1", "0.0.0.0:9092=kafka-1:9093"), Place("web2", "0.0.0.0:9092=kafka-2:9093,0.0.0.0:9192=kafka-3:9093")


class Mirror:
    """One partition, into which taps tick each second."""

    def __init__(self, partition: int = 0) -> None:
        self.model = Coordinator(topic="mirror", partition=partition)
        self.found: list[Finding] = []
        self.second = 0
        self._offset = 0

    def feed(self, record: MirrorRecord) -> None:
        record.partition, record.offset = self.model.partition, self._offset
        self._offset += 1
        self.found += self.model.receive(record)

    def live(self, seconds: int, taps: Sequence[Place], *, skews_s: Sequence[int] = (), cluster: str = "") -> None:
        for _ in range(seconds):
            self.second += 1
            for number, place in enumerate(taps):
                skew_s = skews_s[number] if skews_s else 0
                at_us = BEGIN_US + (self.second + skew_s) * SECOND_US
                self.feed(tick(at_us, cluster=cluster, connection=f"{place.host}-1", place=place))

    def restored(self) -> None:
        self.model = Coordinator.restore(self.model.snapshot())

    def said(self) -> list[tuple[str, Status, int]]:
        """Rule, status and second of each finding."""
        return [
            (one.rule, one.status, ((one.resolved_at_us or one.updated_at_us) - BEGIN_US) // SECOND_US)
            for one in self.found
            if one.status is not Status.UPDATE
        ]


def test_V_11_names_the_tap_that_is_silent_within_20_s_and_is_over_when_it_is_back() -> None:
    mirror = Mirror()
    mirror.live(10, [A, B])
    mirror.live(30, [A])
    assert mirror.said() == [("V-11", Status.OPEN, 23)]
    finding = mirror.found[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "The tap on host web2 that listens at 0.0.0.0:9092, 0.0.0.0:9192 for kafka-2:9093, kafka-3:9093 has written nothing since "
        "08:00:10, while other taps do: it has ended, or does not reach the mirror topic. Its clients are cut off, or are not seen."
    )
    mirror.live(3, [A, Place(B.host, B.listeners)])
    assert mirror.said()[1:] == [("V-11", Status.RESOLVED, 41)]


def test_V_11_stays_open_over_hours_and_a_restart_and_a_tap_is_missed_for_a_day() -> None:
    mirror = Mirror()
    mirror.live(10, [A, B])
    mirror.live(15, [A])
    mirror.restored()
    mirror.live(7_200, [A])
    assert mirror.said() == [("V-11", Status.OPEN, 23)]
    mirror.second = 86_400
    mirror.live(20, [A])
    assert [rule for rule, status, _ in mirror.said() if status is Status.RESOLVED] == ["V-11"]


@pytest.mark.parametrize("partition", [1, 2])
def test_V_11_is_said_by_one_partition(partition: int) -> None:
    mirror = Mirror(partition)
    mirror.live(10, [A, B])
    mirror.live(30, [A])
    assert mirror.found == []


def test_V_11_says_nothing_while_all_taps_are_silent_and_waits_anew_afterwards() -> None:
    mirror = Mirror()
    mirror.live(10, [A, B])
    mirror.second += 60
    mirror.live(11, [A])
    assert mirror.found == []
    mirror.live(3, [A])
    assert [rule for rule, _, _ in mirror.said()] == ["V-11"]


def test_V_11_waits_anew_after_a_gap_of_the_whole_partition() -> None:
    mirror = Mirror()
    mirror.live(10, [A, B])
    mirror.second += 20
    at_us = BEGIN_US + mirror.second * SECOND_US
    mirror.feed(gap(at_us, Loss(10, 100, BEGIN_US + 10 * SECOND_US, at_us), cluster=""))
    mirror.live(11, [A])
    assert [rule for rule, _, _ in mirror.said()] == ["V-04"]


def test_V_11_does_not_take_another_clock_for_silence() -> None:
    mirror = Mirror()
    mirror.live(60, [A, B], skews_s=[0, -40])
    assert mirror.found == []


def test_V_11_does_not_miss_a_pod_in_whose_place_another_stands() -> None:
    mirror = Mirror()
    mirror.live(10, [A, B])
    mirror.live(30, [A, B._replace(host="web3")])
    assert mirror.found == []


def test_V_11_misses_a_tap_on_a_brokers_host_although_others_have_the_same_listeners() -> None:
    mirror = Mirror()
    each = [Place(host, "0.0.0.0:9092=127.0.0.1:9093") for host in ("kafka-1", "kafka-2")]
    mirror.live(10, each)
    mirror.live(30, each[:1])
    assert mirror.said() == [("V-11", Status.OPEN, 23)]
    assert "on host kafka-2" in mirror.found[0].summary


def test_V_11_misses_no_capture_that_does_not_say_where_it_is() -> None:
    mirror = Mirror()
    mirror.live(10, [A])
    mirror.feed(tick(BEGIN_US + 10 * SECOND_US, cluster="", connection="capture"))
    mirror.live(30, [A])
    assert mirror.found == []


class BesideAnotherTap(Conversation):
    """A group whose clients pass the tap ``one``; another tap writes to the same topic."""

    def __init__(self) -> None:
        super().__init__("g")
        self.ticking = {"one": A, "two": B}
        self.kept, self.set_back_us = False, 0

    def client(self, name: str, broker: str = "1", **identity: Any) -> Client:
        client = super().client(name, broker, **identity)
        client.connection = f"one-{self.connections}"
        return client

    def tick(self) -> None:
        for name, place in self.ticking.items():
            set_back_us = self.set_back_us if name == "one" else 0
            record = tick(self.now_us - set_back_us, cluster="c1", connection=name, place=place)
            self.take(as_held(record) if self.kept else record)

    def take(self, record: MirrorRecord) -> None:
        record.partition, record.offset = 0, self.offset
        self.offset += 1
        self.findings += self.model.receive(record)

    def known(self) -> str:
        return self.model.groups.opened(("c1", "g"))[0].learning_because


@pytest.mark.parametrize(("seconds", "said"), [(8, set()), (20, {"V-11"}), (300, {"V-11"})])
def test_nothing_is_said_of_clients_while_their_tap_is_silent_and_the_group_is_learned_again_after_it(
    seconds: int, said: set[str]
) -> None:
    talk = BesideAnotherTap()
    live(talk, settled(talk), 90)
    talk.ticking = {"two": B}
    talk.wait(seconds * 1_000)
    assert set(talk.rules()) == said
    talk.restore()
    talk.wait(2_000)
    talk.ticking = {"one again": A, "two": B}
    talk.wait(120_000)
    assert set(talk.rules()) == said
    assert talk.known() == "the tap was started again"


def test_a_group_is_learned_again_and_watched_once_its_tap_was_silent_for_15_minutes() -> None:
    talk = BesideAnotherTap()
    live(talk, settled(talk), 90)
    talk.ticking = {"two": B}
    talk.wait(1_000_000)
    assert (set(talk.rules()), talk.known()) == ({"V-11"}, "the tap has been silent for 15 minutes")
    moved = [talk.client(name) for name in "cd"]
    for client in moved:
        client.connection = f"two-{client.name}"
    talk.round(moved, 7)
    live(talk, moved, 90)
    assert set(talk.rules()) == {"V-11"}
    live(talk, moved[:1], 90)
    assert "T-04" in talk.rules()


def test_members_behind_a_tap_whose_clock_was_set_back_are_watched_again_after_15_minutes() -> None:
    talk = BesideAnotherTap()
    a, b = settled(talk)
    live(talk, [a, b], 90)
    talk.set_back_us = 8 * SECOND_US
    live(talk, [a, b], 910)
    live(talk, [a], 60)
    assert "T-04" in talk.rules()


def test_members_are_watched_who_asked_for_their_coordinator_through_a_tap_that_is_silent_now() -> None:
    talk = BesideAnotherTap()
    a, b = settled(talk)
    for client in (a, b):
        asking = talk.client(client.name)
        asking.connection = f"two-{client.name}"
        talk.find_coordinator(asking)
    live(talk, [a, b], 90)
    talk.ticking = {"one": A}
    live(talk, [a], 90)
    assert {"V-11", "T-04"} <= set(talk.rules())


def test_a_member_that_falls_silent_while_its_tap_ticks_is_found_beside_another_tap() -> None:
    talk = BesideAnotherTap()
    a, _ = settled(talk)
    live(talk, [a], 90)
    assert "T-04" in talk.rules()


def test_what_a_tap_kept_is_read_before_anything_falls_due_in_its_groups() -> None:
    talk = BesideAnotherTap()
    clients = settled(talk)
    live(talk, clients, 90)
    began_us, known = talk.now_us, talk.known()
    talk.ticking, talk.kept = {"two": B}, True
    talk.wait(40_000)  # what the other one kept comes first
    talk.kept = False
    talk.wait(2_000)
    now_us, talk.now_us, talk.kept = talk.now_us, began_us, True
    talk.ticking = {"one": A}
    live(talk, clients, 41)
    talk.now_us = now_us
    talk.ticking, talk.kept = {"one": A, "two": B}, False
    live(talk, clients, 60)
    assert (set(talk.rules()), talk.known()) == (set(), known)
