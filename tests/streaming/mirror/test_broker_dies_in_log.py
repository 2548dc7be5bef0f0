"""A broker that dies, as the logs of two brokers have it: its lines end, and clients ask the other one for their coordinator."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from coordinator_model import wire
from coordinator_model.events import GroupEvent, RebalanceBegan, RebalanceFinished
from coordinator_model.finding import Finding
from streaming.engine.engine import Engine
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.pcap.files import opened
from tests.coordinator_model.conversation import ASSIGNED, SUBSCRIBED
from tests.golden.transcript import SETTINGS
from tests.streaming.mirror.request_log_lines import BASE_S, findings_of, request_line

DEAD, OTHER = "10.0.0.1:9092", "10.0.0.2:9092"
NOT_COORDINATOR, UNKNOWN_MEMBER_ID = 16, 25
SESSION_MS = 10_000
DIES_MS, TAKEN_OVER_MS, LAST_MS = 60_000, 78_000, 130_000


class Log:
    """The lines of both brokers."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, bytes]] = []
        self._asked = 0

    def ask(
        self, broker: str, client: int, at_ms: int, asked, answered, *, took_ms: int = 2, api_version: int | None = None
    ) -> None:
        """One exchange, on the only connection of a client to a broker."""
        self._asked += 1
        line = request_line(
            asked,
            answered,
            over_ms=at_ms + took_ms,
            took_ms=took_ms,
            api_version=api_version,
            connection=f"{broker}-10.0.1.{client}:4000{client}-0-{client}",
            correlation_id=self._asked,
            client_id=f"app-{client}",
        )
        self._lines.append((at_ms + took_ms, line))

    def joins(
        self, broker: str, group: str, clients: list[int], at_ms: int, generation: int, *, suffix: str = "a", waits_ms: int = 500
    ) -> None:
        """All members join at once, and the first one leads."""
        ids = {client: f"m-{group}-{client}-{suffix}" for client in clients}
        roster = tuple(wire.JoinGroupResponseMember(member_id=id_, metadata=SUBSCRIBED) for id_ in ids.values())
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        for number, (client, id_) in enumerate(ids.items()):
            asked = wire.JoinGroupRequest(
                group_id=group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=60_000,
                member_id=id_,
                protocol_type="consumer",
                protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED),),
            )
            leads = number == 0
            joined = wire.JoinGroupResponse(
                **named, generation_id=generation, leader=ids[clients[0]], member_id=id_, members=roster if leads else ()
            )
            self.ask(broker, client, at_ms + number, asked, joined, took_ms=waits_ms, api_version=7)
            given = tuple(wire.SyncGroupRequestAssignment(member_id=one, assignment=ASSIGNED) for one in ids.values())
            sync = wire.SyncGroupRequest(
                group_id=group, generation_id=generation, member_id=id_, assignments=given if leads else (), **named
            )
            self.ask(
                broker,
                client,
                at_ms + waits_ms + 100 + number,
                sync,
                wire.SyncGroupResponse(assignment=ASSIGNED, **named),
                api_version=5,
            )

    def beats(self, broker: str, group: str, clients: list[int], during: range, *, generation: int, suffix: str = "a") -> None:
        for client in clients:
            for at_ms in range(during.start + 400 * client, during.stop, 3_000):
                beat = wire.HeartbeatRequest(group_id=group, generation_id=generation, member_id=f"m-{group}-{client}-{suffix}")
                self.ask(broker, client, at_ms, beat, wire.HeartbeatResponse(), api_version=4)

    def searches(self, group: str, client: int, at_ms: int, node: int) -> None:
        host, _, port = (DEAD, OTHER)[node - 1].partition(":")
        answer = wire.FindCoordinatorResponse(node_id=node, host=host, port=int(port))
        self.ask(OTHER, client, at_ms, wire.FindCoordinatorRequest(key=group), answer, api_version=2)

    def failed(self, group: str, client: int, at_ms: int) -> None:
        """What the coordinator of the other broker writes when it ends a session."""
        at = datetime.fromtimestamp(BASE_S + at_ms // 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S,000")
        text = f"Member m-{group}-{client}-a in group {group} has failed, removing it from the group"
        self._lines.append(
            (at_ms, f"[{at}] INFO [GroupCoordinator id=2]: {text} (kafka.coordinator.group.GroupCoordinator)\n".encode())
        )

    @property
    def lines(self) -> list[bytes]:
        return [line for _, line in sorted(self._lines)]


@pytest.fixture
def log() -> Log:
    """A group of the broker that dies, with three members, and one of the other broker."""
    log = Log()
    log.joins(DEAD, "orders", [1, 2, 3], 1_000, 5)
    log.beats(DEAD, "orders", [1, 2, 3], range(3_000, DIES_MS), generation=5)
    log.joins(OTHER, "other", [4, 5], 1_000, 7)
    log.beats(OTHER, "other", [4, 5], range(3_000, LAST_MS), generation=7)
    for client in (1, 2, 3):
        for at_ms in range(DIES_MS + 100 * client, TAKEN_OVER_MS, 2_000):
            log.searches("orders", client, at_ms, 1)
        log.searches("orders", client, TAKEN_OVER_MS + client, 2)
    return log


def said(log: Log) -> dict[tuple[str, str], Finding]:
    return {(one.rule, one.member_id or ""): one for one in findings_of(log.lines)[0] if one.group == "orders"}


def test_members_whose_coordinator_died_are_not_silent_and_C_14_names_it(log):
    log.joins(OTHER, "orders", [1, 2, 3], TAKEN_OVER_MS + 100, 6)
    log.beats(OTHER, "orders", [1, 2, 3], range(TAKEN_OVER_MS + 2_000, LAST_MS), generation=6)
    found = said(log)
    assert {rule for rule, _ in found} == {"C-14"}
    [lost] = found.values()
    assert DEAD in lost.summary


@pytest.mark.parametrize("has_lines", [False, True], ids=["request log", "with server.log"])
def test_members_that_gave_their_ids_up_meanwhile_are_not_silent(log, has_lines):
    """As librdkafka does, if nobody answers for a session. The new coordinator has loaded the old ids, and ends their sessions."""
    log.joins(OTHER, "orders", [1, 2, 3], TAKEN_OVER_MS + 100, 6, suffix="b")
    for client in (1, 2, 3) if has_lines else ():
        log.failed("orders", client, TAKEN_OVER_MS + SESSION_MS)
    log.beats(OTHER, "orders", [1, 2, 3], range(TAKEN_OVER_MS + 2_000, LAST_MS), generation=6, suffix="b")
    assert {rule for rule, _ in said(log)} == {"C-14"}


def causes(log: Log) -> list[tuple[str, str | None]]:
    """Cause and member of each rebalance that began in the group that lost its coordinator."""
    events: list[GroupEvent] = []
    engine = Engine(topic="log", settings=SETTINGS, found=lambda _: None, happened=events.append)
    reader = RequestLogReader(engine.recorded)
    reader.read([reader.entries_in(opened(io.BytesIO(b"".join(log.lines))), pytest.fail)])
    reader.finish()
    engine.finish()
    began = [event for event in events if isinstance(event, RebalanceBegan | RebalanceFinished) and event.group == "orders"]
    return [(event.cause, event.member_id) for event in began]


@pytest.mark.parametrize(
    ("came", "has_lines"),
    [([1, 2, 3], False), ([1, 2], False), ([1, 2], True)],
    ids=["all come back", "one does not", "one does not, with server.log"],
)
def test_a_leader_that_rejoins_under_its_old_id_after_its_coordinator_died_began_the_rebalance(log, came, has_lines):
    """No session had ended: the new coordinator has loaded them, and counts from then on. It waits for the member that does not come."""
    waits_ms = SESSION_MS if len(came) < 3 else 500
    log.joins(OTHER, "orders", came, TAKEN_OVER_MS + 100, 6, waits_ms=waits_ms)
    if has_lines:
        log.failed("orders", 3, TAKEN_OVER_MS + SESSION_MS)
    log.beats(OTHER, "orders", came, range(TAKEN_OVER_MS + waits_ms + 2_000, LAST_MS), generation=6)
    found = causes(log)
    assert ("leader rejoined", "m-orders-1-a") in found
    assert "session expired" not in {cause for cause, _ in found}


def test_a_member_that_dies_beside_a_coordinator_that_answers_is_silent():
    """Its client comes back at once, under another id, and asks for its coordinator."""
    log = Log()
    log.joins(DEAD, "orders", [1, 2, 3], 1_000, 5)
    log.beats(DEAD, "orders", [1, 2], range(3_000, LAST_MS), generation=5)
    log.beats(DEAD, "orders", [3], range(3_000, DIES_MS), generation=5)
    log.joins(OTHER, "other", [4, 5], 1_000, 7)
    log.beats(OTHER, "other", [4, 5], range(3_000, LAST_MS), generation=7)
    log.searches("orders", 3, DIES_MS + 1_000, 1)
    assert ("T-04", "m-orders-3-a") in said(log)


def test_a_broker_that_answers_on_another_listener_is_there():
    """Both stand in one log, with one host: its members are silent, and it is not lost."""
    log, inside = Log(), "10.0.0.1:9093"
    log.joins(DEAD, "orders", [1, 2, 3], 1_000, 5)
    log.beats(DEAD, "orders", [1, 2, 3], range(3_000, DIES_MS), generation=5)
    log.joins(inside, "other", [4, 5], 1_000, 7)
    log.beats(inside, "other", [4, 5], range(3_000, LAST_MS), generation=7)
    log.searches("orders", 3, DIES_MS + 1_000, 1)
    assert {rule for rule, _ in said(log)} == {"T-04"}
