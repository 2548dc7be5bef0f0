"""One run of the laboratory, captured three ways at once: by the tap, as packets before it, and in the broker's own log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from test_mirror_cli import _dumpcap

from coordinator_model.events import GroupEvent
from coordinator_model.finding import Blame, Finding, Severity
from streaming.demo import broker as demo_broker
from streaming.engine.engine import Engine
from streaming.mirror.broker_log.history import CoordinatorHistory
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.captures import captured
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import opened
from streaming.mirror.record_file import records
from tests.real.lab.cluster import Site
from tests.real.lab.laboratory import SETTINGS
from tests.real.lab.short_run import short_run

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.lab]

LOGGED = demo_broker._LOG4J.replace("</Loggers>", '<Logger name="kafka.request.logger" level="DEBUG"/></Loggers>')


#: a group without its coordinator, a client that hung up without leaving, JoinGroups that are given up; a session that may have ended
#: while its broker was away
NOT_IN_A_LOG = {"C-14", "T-04", "T-09", "T-10"}
#: a member is silent, or died; T-13 also names those that the laboratory killed just before
GONE = {"T-04", "T-09", "T-10"}
#: what is found instead of a client that hung up, a leader among them, or lost a broker that died: it says nothing more; and a member
#: that is missing while its coordinator is away, which a log shows later
HUNG_UP_UNSEEN = {"M-16", "P-10", "R-02", "R-03", "T-04", "T-13"}
#: a static member that returns is a new one to a coordinator that had removed it
UNSURE_IN_FRAMES = {"not seen", "static member returned"}


class Told(NamedTuple):
    """What one input tells of the run."""

    findings: list[Finding]
    events: list[GroupEvent]
    last_us: int = 0  #: time of its newest record

    def until(self, at_us: int) -> Told:
        """Leave out what was found later: the last record of one input is older than that of another."""
        return self._replace(findings=[one for one in self.findings if one.opened_at_us <= at_us])

    def found(self, groups: Callable[[str], bool]) -> set[tuple[str, str, str | None]]:
        """Rule, group and client of each finding about these groups; no client of what an operator did: it is the first to show it."""
        return {
            (one.rule, one.group, None if one.blame is Blame.OPERATOR else one.client_id)
            for one in self.findings
            if one.group and groups(one.group)
        }

    def costs(self) -> dict[tuple[str, int], tuple[int, float, float | None]]:
        """Group and generation → members, member-seconds and partition-seconds without a holder, None if these are not known."""
        found = {}
        for key, event in self.rebalances().items():
            unheld = event["unheld"]
            unheld_s = None if unheld is None else sum(sum(of_topic.values()) for of_topic in unheld.values())
            found[key] = len(event["members"]), event["cost_member_seconds"], unheld_s
        return found

    def rebalances(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Group and generation of each rebalance of a classic group that was seen to its end, with its event."""
        told = (event.as_json() for event in self.events if event.kind == "rebalance_finished" and event.group_type == "classic")
        return {(event["group"], event["to_generation"]): event for event in told if event["ended"] == "every member was served"}


class Run(NamedTuple):
    tap: Told
    packets: Told
    log: Told  #: with the coordinator's lines
    requests: Told  #: of the same log the request lines alone
    lines: Told
    lied_to: frozenset[str]


def engine(told: Told) -> Engine:
    return Engine(topic="lab", settings=SETTINGS, found=told.findings.append, happened=told.events.append)


def of_tap(recording: Path) -> Told:
    told = Told([], [])
    replayed = engine(told)
    with recording.open("rb") as stream:
        for record in records(opened(stream), pytest.fail):
            replayed.recorded(record)
    replayed.finish()
    return told._replace(last_us=replayed.last_us)


def of_packets(captures: list[Path]) -> Told:
    told = Told([], [])
    replayed = engine(told)
    reader = CaptureReader(replayed.recorded, cluster="lab")
    with contextlib.ExitStack() as stack:
        sources = [opened(stack.enter_context(path.open("rb"))) for path in captures]
        reader.read(in_order([captured(source, pytest.fail) for source in sources]))
        reader.finish()
    replayed.finish()
    return told._replace(last_us=replayed.last_us)


def of_log(log: Path) -> tuple[Told, Told]:
    """What request lines tell, and what coordinators' lines tell."""
    told, said = Told([], []), Told([], [])
    replayed = engine(told)
    story = CoordinatorHistory(said.events.append, "lab")
    reader = RequestLogReader(replayed.recorded, cluster="lab", story=story)
    with log.open("rb") as stream:
        reader.read([reader.entries_in(opened(stream), pytest.fail)])
    reader.finish()
    replayed.finish()
    story.finish()
    return told, said


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("lab")
    captures: list[Path] = []

    @contextlib.contextmanager
    def beside(site: Site) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for number, tap in enumerate(site.taps):
                captures.append(folder / f"{number}.pcapng")
                stack.enter_context(_dumpcap(captures[-1], int(tap.partition(":")[2])))
            yield
            [broker] = site.brokers
            (folder / "server.log").write_bytes(broker.log.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_broker, "_LOG4J", LOGGED)
        result = short_run(folder, beside=beside)
    log, lines = of_log(folder / "server.log")
    alone = folder / "kafka-request.log"
    with (folder / "server.log").open("rb") as whole:
        alone.write_bytes(b"".join(line for line in whole if b"Completed request:" in line))
    requests, _ = of_log(alone)
    tap, packets = of_tap(result.recording), of_packets(captures)
    until_us = min(tap.last_us, packets.last_us)
    of_all = (told.until(until_us) for told in (tap, packets, log, requests))
    return Run(*of_all, lines=lines, lied_to=result.lied_to)


@pytest.mark.timeout(1_200)
def test_packets_give_the_findings_of_the_tap(once: Run) -> None:
    found = once.tap.found(lambda _: True)
    assert once.packets.found(lambda _: True) == found
    assert len(found) > 60


def test_the_log_gives_them_but_for_what_ends_of_connections_and_requests_without_answers_show(once: Run) -> None:
    """Where the proxy falsified an answer the log has the true one."""
    tap, log = (told.found(lambda group: group not in once.lied_to) for told in (once.tap, once.log))
    assert {one for one in tap - log if one[0] not in NOT_IN_A_LOG} == set()
    assert {one for one in log - tap if one[0] not in HUNG_UP_UNSEEN} == set()
    assert len(tap & log) > 30


def test_a_coordinator_was_killed_and_no_input_blames_its_members(once: Run) -> None:
    """The log shows by the numbers of connections that its broker was started anew (Kafka 4.0)."""
    lost_us = {one.group: one.opened_at_us for one in once.tap.findings if one.rule == "C-14" and one.group}
    assert lost_us
    for told in (once.tap, once.packets, once.log, once.requests):
        assert "C-14" in {finding.rule for finding in told.findings}
        assert {
            (one.rule, one.group)
            for one in told.findings
            if one.group in lost_us
            and one.rule in GONE
            and one.severity.rank >= Severity.WARNING.rank
            and abs(one.opened_at_us - lost_us[one.group]) < 60_000_000
        } == set()


@pytest.mark.parametrize("name", ["packets", "log", "requests"])
def test_costs_are_those_of_the_tap_within_a_second_for_each_member_or_null(once: Run, name: str) -> None:
    tap, other = once.tap.costs(), getattr(once, name).costs()
    both = {key for key in tap.keys() & other.keys() if key[0] not in once.lied_to}
    assert len(both) > 30
    for key in both:
        (members, waited_s, unheld_s), (_, other_waited_s, other_unheld_s) = tap[key], other[key]
        assert abs(other_waited_s - waited_s) < members + 1, key
        assert unheld_s is None or other_unheld_s is None or abs(other_unheld_s - unheld_s) < members + 1, key


def test_lines_of_coordinators_tell_each_rebalance_that_frames_tell(once: Run) -> None:
    """That lines and frames come at the same time is asked of nine in ten: where the machine is busy, requests wait for the coordinator."""
    frames = {key: event for key, event in once.log.rebalances().items() if key[0] not in once.lied_to}
    lines = once.lines.rebalances()
    assert frames.keys() <= lines.keys()
    assert len(frames) > 40
    told = {key: (event["cause"], len(event["members"])) for key, event in frames.items() if event["cause"] not in UNSURE_IN_FRAMES}
    assert told == {key: (lines[key]["cause"], len(lines[key]["members"])) for key in told}
    near = [key for key, event in frames.items() if abs(event["took_ms"] - lines[key]["took_ms"]) < 50]
    assert len(near) >= 0.9 * len(frames)
