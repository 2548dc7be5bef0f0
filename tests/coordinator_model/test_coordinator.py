"""The model of a partition: offsets, the clock, what cannot be read, snapshots, and independence of how records are cut into batches."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Blame, Certainty, Finding, Status
from coordinator_model.rules import CATALOGUE
from coordinator_model.snapshots import SnapshotError
from coordinator_model.wire.record import Cause, Kind, Loss, pack_loss
from tests.coordinator_model import troubled
from tests.coordinator_model.classic import complete, left_behind, live, replace, settled, static_group, told_to_rejoin
from tests.coordinator_model.conversation import START_US, Asked, Client, Conversation

TROUBLED = troubled.mixed()


def due_of(model: Coordinator) -> int | None:
    """The earliest capture time, in microseconds, at which something may fall due without another record."""
    return min((due for due in (model._scheduler.next_us(), model._own.due_us) if due is not None), default=None)


@given(st.integers(0, len(TROUBLED.records) - 1), st.integers(1, 40))
def test_records_applied_twice_change_nothing(start: int, length: int) -> None:
    model = Coordinator(topic="mirror", partition=0, settings=TROUBLED.settings)
    found: list[Finding] = []
    for index, record in enumerate(TROUBLED.records):
        found.extend(model.receive(record))
        if index == start:
            for again in TROUBLED.records[max(0, start - length) : start + 1]:
                assert model.receive(again) == []
    assert found == TROUBLED.findings


@given(st.integers(0, len(TROUBLED.records)))
def test_starting_in_the_middle_makes_no_finding_that_the_whole_does_not_have(start: int) -> None:
    model = Coordinator(topic="mirror", partition=0, settings=TROUBLED.settings)
    rules = {finding.rule for record in TROUBLED.records[start:] for finding in model.receive(record)}
    assert rules <= {finding.rule for finding in TROUBLED.findings}


def test_every_finding_is_opened_once_and_resolved_once() -> None:
    for id_ in {finding.id for finding in TROUBLED.findings}:
        events = [finding.status for finding in TROUBLED.findings if finding.id == id_]
        assert events[0] is Status.OPEN
        assert events.count(Status.OPEN) == 1
        assert events.count(Status.RESOLVED) <= 1
        assert Status.RESOLVED not in events[:-1]


def test_a_missing_offset_is_a_finding_and_sends_groups_back_to_learning(talk: Conversation) -> None:
    settled(talk)
    assert talk.group_json()["learning"] is None
    talk.lose(7)
    talk.tick()
    finding = talk.the("V-01")
    assert "7 records" in finding.summary
    assert finding.blame.value == "capture"
    assert talk.model.record_counts["missing records"] == 7
    assert talk.group_json()["learning"] == "records of the mirror are missing"


def test_the_first_record_may_have_any_offset(talk: Conversation) -> None:
    talk.offset = 500
    talk.tick()
    assert talk.findings == []
    assert talk.model.next_offset == 501


def test_a_gap_record_is_a_finding_and_sends_groups_back_to_learning(talk: Conversation) -> None:
    settled(talk)
    talk.gap(3)
    assert "3 records" in talk.the("V-04").summary
    assert talk.the("V-04").action == CATALOGUE["V-04"].action
    assert talk.group_json()["learning"] == "the capture lost frames"
    assert talk.model.record_counts["records lost by the capture"] == 3


def test_a_gap_of_one_group_leaves_the_others_alone(talk: Conversation) -> None:
    a, _ = settled(talk)
    other = talk.client("x")
    talk.call(other, wire.HeartbeatRequest(group_id="other", generation_id=7, member_id="m"), wire.HeartbeatResponse())
    loss = pack_loss(Loss(2, 200, talk.now_us - 1_000_000, talk.now_us))
    talk._feed(Kind.GAP, Asked(talk.client("tap"), -1, -1, -1), loss, group="other")
    assert talk.the("V-04").summary == "The capture lost 2 records over 1.0 s: group other back to learning."
    assert talk.group_json()["learning"] is None
    talk.heartbeat(a)
    assert talk.group_json()["generation"] == 3


def test_a_gap_of_a_group_that_was_never_seen_makes_no_group(talk: Conversation) -> None:
    settled(talk)
    talk.model.changed_groups()
    loss = pack_loss(Loss(2, 200, talk.now_us - 1_000_000, talk.now_us))
    talk._feed(Kind.GAP, Asked(talk.client("tap"), -1, -1, -1), loss, group="never-seen")
    assert "group never-seen" in talk.the("V-04").summary
    assert talk.model.changed_groups() == []


def test_a_gap_whose_extent_cannot_be_read_is_a_loss_all_the_same(talk: Conversation) -> None:
    settled(talk)
    talk._feed(Kind.GAP, None, b"\xc1")
    assert "an unknown number of records" in talk.the("V-04").summary
    assert talk.group_json()["learning"] == "the capture lost frames"
    assert talk.model.record_counts["records lost by the capture"] == 0


def test_a_connection_that_cannot_be_followed_is_named(talk: Conversation) -> None:
    a, _ = settled(talk)
    nothing_lost = pack_loss(Loss(0, 0, talk.now_us, talk.now_us))
    talk._feed(Kind.GAP, Asked(a, -1, -1, -1), nothing_lost)
    assert f"sight of connection {a.connection} from {a.host}:{a.port}, which it cannot follow" in talk.the("V-04").summary
    assert "records lost by the capture" not in talk.model.record_counts


@pytest.mark.parametrize(
    ("cause", "words", "advice"),
    [
        (Cause.NOT_DELIVERED, "which it cannot follow", "TLS"),
        (Cause.NOT_CAPTURED, "of which packets are missing", "tcpdump -B"),
        (Cause.ONE_DIRECTION, "of which it has one direction only", "both directions"),
        (99, "which it cannot follow", "TLS"),
    ],
)
def test_V_04_says_what_to_do_about_the_cause_of_the_gap(talk: Conversation, cause, words, advice) -> None:
    a, _ = settled(talk)
    talk._feed(Kind.GAP, Asked(a, -1, -1, -1), pack_loss(Loss(0, 7, talk.now_us, talk.now_us, cause)))
    found = talk.the("V-04")
    assert words in found.summary
    assert advice in found.action
    assert "tap" not in found.action.replace("Envoy's tap", "")


def test_the_end_of_a_connection_makes_no_group(talk: Conversation) -> None:
    talk.close(talk.client("a"))
    assert talk.model.changed_groups() == []
    assert talk.model.record_counts["close"] == 1


def test_an_unreadable_frame_is_a_finding_and_counted(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.raw(a, b"\xff\xff\xff")
    assert talk.the("V-02").group == "g"
    assert talk.model.record_counts["undecodable frames"] == 1
    ((offset, reason),) = talk.model.drain_dead_letters()
    assert (offset, reason in talk.the("V-02").summary) == (talk.offset - 1, True)
    assert talk.model.drain_dead_letters() == []
    assert talk.group_json()["learning"] == "a frame could not be read"


def garbled(talk: Conversation, client: Client, **fields: Any) -> None:
    """A Heartbeat whose answer has four bytes too many and an error code that there is not."""
    body = wire.HeartbeatRequest(group_id="g", generation_id=client.generation, member_id=client.member_id)
    asked = talk.ask(client, body)
    frame = wire.encode_response(wire.HeartbeatResponse(error_code=23_600), api_version=4, correlation_id=asked.exchange)
    talk.now_us += 1_000
    talk._feed(Kind.RESPONSE, asked, fields.pop("frame", frame + b"more"), **fields)


def test_V_02_names_the_broker_whose_answer_is_none(talk: Conversation) -> None:
    """It named no member, no client and no request, and blamed the capture, which had every byte."""
    a, _ = settled(talk)
    garbled(talk, a)
    finding = talk.the("V-02")
    assert (finding.blame, finding.certainty) == (Blame.BROKER, Certainty.CONFIRMED)
    assert (finding.member_id, finding.client_id, finding.client_address) == (a.member_id, "a", f"{a.host}:{a.port}")
    assert finding.summary.startswith(f"The broker 1 answered the Heartbeat v4 of member {a.member_id} (client a at ")
    assert "its error code would be 23600, which no release has" in finding.summary
    assert [frame.frame.partition(":")[0] for frame in finding.evidence] == [
        f"Heartbeat v4 request member {a.member_id}, generation 3",
        "Heartbeat v4 answer that cannot be read",
    ]
    talk.wait(61_000)
    assert talk.the("V-02").status is Status.RESOLVED


def test_V_02_counts_the_unreadable_answers_to_each_member_by_themselves(talk: Conversation) -> None:
    a, b = settled(talk)
    for client in (a, b, a):
        garbled(talk, client)
    assert {(finding.member_id, finding.count) for finding in talk.findings if finding.rule == "V-02"} >= {
        (a.member_id, 2),
        (b.member_id, 1),
    }


def test_V_02_blames_the_capture_for_bytes_that_it_may_have_mixed_up(talk: Conversation) -> None:
    a, _ = settled(talk)
    garbled(talk, a, frame=b"\x00\x00\x99\x99garbage")
    finding = talk.the("V-02")
    assert (finding.blame, finding.certainty) == (Blame.CAPTURE, Certainty.CERTAIN)
    assert (finding.member_id, finding.client_id) == (a.member_id, "a")
    assert "cannot be read" in finding.summary
    assert finding.summary.startswith(f"An answer to the Heartbeat v4 of member {a.member_id} (client a at ")


@pytest.mark.parametrize("restores", [False, True])
def test_V_02_is_one_finding_for_all_frames_that_a_snap_length_has_cut(talk: Conversation, *, restores: bool) -> None:
    """There was one for each member of each group."""
    a, _ = settled(talk)
    beat = wire.encode_request(
        wire.HeartbeatRequest(group_id="g", member_id="m" * 40), api_version=4, correlation_id=9, client_id="a"
    )
    for group in ("g", "h", "h"):
        asked = Asked(a, 12, 4, a.exchange)
        a.exchange += 1
        talk._feed(Kind.REQUEST, asked, beat[:26], cut_bytes=len(beat) - 26, group=group)
        if restores:
            talk.model.drain_dead_letters()
            talk.restore()
    talk.findings += talk.model.conclude()
    finding = talk.the("V-02")
    assert (finding.group, finding.count, finding.blame) == ("", 3, Blame.CAPTURE)
    assert finding.summary == (
        "3 group frames were captured without all of their bytes in partition 0 of mirror, the newest a Heartbeat v4 request of group h, "
        f"26 of {len(beat)} bytes. What they say is not known, and nothing is found in groups whose frames are cut."
    )
    assert finding.action.startswith("Capture whole packets: a snap length of 262,144 bytes (tcpdump -s 0)")
    assert finding.evidence[0].frame.startswith(f"Heartbeat v4 request of group g, 26 of {len(beat)} bytes, correlation id ")
    assert talk.rules() == ["V-02"]
    assert talk.group_json()["learning"] == "a frame could not be read"


def test_V_02_names_a_cut_frame_whose_group_is_cut_off() -> None:
    """It was counted as "Heartbeat req not modelled", and no finding followed."""
    talk = Conversation(group="")
    a = talk.client("a")
    frame = wire.encode_request(wire.HeartbeatRequest(group_id="g"), api_version=4, correlation_id=0, client_id="a")
    talk.raw(a, frame[:10], cut_bytes=len(frame) - 10)
    finding = talk.the("V-02")
    assert finding.summary.startswith(
        "1 group frame was captured without all of its bytes in partition 0 of mirror, the newest a Heartbeat"
    )
    assert talk.model.record_counts == {"cut frames": 1}
    assert len(talk.model.groups) == 0


def test_V_02_says_that_the_monitor_itself_cut_a_frame(talk: Conversation) -> None:
    """It blamed the capture, which had every byte, and advised a longer snap length."""
    a, _ = settled(talk)
    asked = talk.ask_join(a)
    answer = wire.encode_response(wire.JoinGroupResponse(member_id=a.member_id), api_version=9, correlation_id=asked.exchange)
    talk._feed(Kind.RESPONSE, asked, answer, cut_bytes=366_173, capped_bytes=366_173)
    finding = talk.the("V-02")
    assert (finding.group, finding.member_id, finding.blame) == ("g", a.member_id, Blame.CAPTURE)
    assert finding.summary == (
        f"An answer to the JoinGroup v9 of member {a.member_id} (client a at {a.host}:{a.port}, test 1.0) in group g has "
        f"{len(answer) + 366_173:,} bytes and was cut by the monitor at {len(answer):,}, since a longer record does not fit into the mirror "
        "topic. Nothing is wrong with the capture; the group is back to learning."
    )
    assert "snap length" not in finding.action
    assert finding.action.startswith("Capture this broker's traffic to a file and replay it")
    assert talk.rules() == ["V-02"]


def test_V_02_names_the_client_whose_request_is_none(talk: Conversation) -> None:
    a, _ = settled(talk)
    frame = wire.encode_request(wire.HeartbeatRequest(group_id="g"), api_version=4, correlation_id=a.exchange, client_id="a")
    talk.raw(a, frame + b"more")
    finding = talk.the("V-02")
    assert (finding.blame, finding.certainty, finding.client_id) == (Blame.CLIENT, Certainty.CONFIRMED, "a")
    assert "Client a at 10.0.0.1:40001" in finding.summary


def test_V_02_blames_nobody_for_a_version_that_is_not_known(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.raw(a, struct.pack(">hhi", 12, 99, a.exchange) + b"\x00\x01a", version=99)
    finding = talk.the("V-02")
    assert finding.blame is Blame.CAPTURE
    assert "is not a known version" in finding.summary


def test_a_group_whose_first_frame_cannot_be_read_stays_known_and_its_finding_stays_open(talk: Conversation) -> None:
    talk.raw(talk.client("a"), b"\xff\xff\xff")
    talk.wait(10_000)
    assert talk.group_json()["learning"] == "a frame could not be read"
    assert [finding.status for finding in talk.findings] == [Status.OPEN]


def test_a_record_without_a_readable_envelope_is_a_finding_and_the_next_offset_is_expected(talk: Conversation) -> None:
    settled(talk)
    found = talk.model.receive_unreadable(talk.offset, talk.now_us, "g", "record header 'mirror' is missing")
    talk.offset += 1
    assert [finding.rule for finding in found] == ["V-02"]
    assert talk.group_json()["learning"] == "a record could not be read"
    talk.tick()
    assert talk.model.record_counts["missing records"] == 0


def test_an_unreadable_record_moves_the_clock_and_is_counted_once(talk: Conversation) -> None:
    talk.tick()
    at_us = talk.now_us + 5_000_000
    (finding,) = talk.model.receive_unreadable(talk.offset, at_us, None, "no envelope")
    assert "no envelope" in finding.summary
    assert talk.model.now_us == at_us
    assert talk.model.receive_unreadable(talk.offset, at_us, None, "no envelope") == []
    assert talk.model.record_counts["unreadable records"] == 1
    assert talk.model.record_counts["repeated records"] == 1


def test_a_finding_about_the_view_is_resolved_by_the_clock_alone(talk: Conversation) -> None:
    talk.tick()
    talk.model.receive_unreadable(talk.offset, talk.now_us, None, "no envelope")
    due = due_of(talk.model)
    assert due is not None
    assert talk.model.advance(due - 1) == []
    (finding,) = talk.model.advance(due)
    assert (finding.rule, finding.status) == ("V-02", Status.RESOLVED)
    assert due_of(talk.model) is None


def test_a_group_on_whose_timers_the_model_raises_is_learned_anew_and_looked_at_again(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record that moved the clock has no part in it, and is not lost."""
    a, b = settled(talk)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken_model:
        broken_model.setattr("coordinator_model.groups.classic.model.ClassicGroupModel.session_end_us", broken)
        talk.now_us += 1_000_000
        talk.tick()
    assert talk.model.record_counts["groups that the model stumbled over"] == 1
    assert talk.model.record_counts["tick"] == 1
    assert talk.model.drain_dead_letters() == []
    assert talk.group_json()["learning"] == "the model stumbled over it"
    talk.restore()
    talk.round([a, b], 4)
    assert "ZeroDivisionError" in talk.the("V-02").summary
    assert "test_coordinator" in talk.the("V-02").summary, "it says where"
    talk.ask_join(a)
    told_to_rejoin(talk, b, 14)
    assert "R-08" in talk.rules()


def test_a_record_on_which_the_model_raises_is_a_finding_and_the_group_goes_back_to_learning(
    talk: Conversation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, _ = settled(talk)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken_model:
        broken_model.setattr("coordinator_model.coordinator.decode", broken)
        with pytest.raises(ZeroDivisionError):
            talk.heartbeat(a)
    found = talk.model.receive_unreadable(talk.offset - 1, talk.now_us, "g", "the model raised ZeroDivisionError")
    assert [finding.rule for finding in found] == ["V-02"]
    assert talk.model.drain_dead_letters() == [(talk.offset - 1, "the model raised ZeroDivisionError")]
    assert talk.group_json()["learning"] == "a record could not be read"
    assert talk.group_json()["members"] == []
    assert talk.model.groups.opened(("c1", "g"))[0].members == {}, "nobody knows in what state it was left"
    talk.tick()
    assert talk.model.record_counts["missing records"] == 0


def test_a_group_on_which_the_model_raised_does_not_make_it_raise_again(talk: Conversation) -> None:
    """Whatever the error left of it is thrown away, and the group is learned from the next frames on."""
    a, b = settled(talk)
    asked = [talk.ask_join(a), talk.ask_join(b)]
    group, _ = talk.model.groups.opened(("c1", "g"))
    group.connections.clear()  # as a mistake in the model might
    with pytest.raises(KeyError):
        talk.joined(asked[0], generation=4, leader=a, roster=[a, b])
    talk.findings += talk.model.receive_unreadable(talk.offset - 1, talk.now_us, "g", "the model raised KeyError")
    talk.joined(asked[1], generation=4, leader=a, roster=[a, b])
    assert sum(talk.model.counters.unpaired.values()) == 1
    talk.round([a, b], 5)
    live(talk, [a, b], 5)
    assert talk.group_json()["state"] == "Stable"
    assert talk.rules() == ["V-02"]


def test_a_group_on_whose_timers_the_model_raised_does_not_make_it_raise_again(talk: Conversation) -> None:
    a, b = settled(talk)
    group, _ = talk.model.groups.opened(("c1", "g"))
    group.members["half"] = None  # type: ignore[assignment]  # as a mistake in the model might
    live(talk, [a, b], 5)
    assert talk.model.record_counts["groups that the model stumbled over"] == 1
    talk.round([a, b], 5)
    live(talk, [a, b], 5)
    assert talk.group_json()["state"] == "Stable"
    assert talk.rules() == ["V-02"]


def test_what_was_found_before_the_model_raised_is_told_all_the_same(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known as published: it would never be told again."""
    a, _ = settled(talk)
    talk.model.receive_unreadable(talk.offset, talk.now_us, None, "no envelope")
    talk.offset += 1
    due = due_of(talk.model)
    assert due is not None

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    talk.now_us += 120_000_000
    with monkeypatch.context() as broken_model:
        broken_model.setattr("coordinator_model.coordinator.decode", broken)
        with pytest.raises(ZeroDivisionError):
            talk.heartbeat(a)
    found = talk.model.receive_unreadable(talk.offset - 1, talk.now_us, "g", "the model raised ZeroDivisionError")
    view = [finding.status for finding in found if finding.rule == "V-02" and not finding.group]
    assert view == [Status.RESOLVED, Status.OPEN]


def test_an_accepted_heartbeat_of_the_consumer_protocol_names_the_kind_of_group(talk: Conversation) -> None:
    talk.consumer_heartbeat(talk.client("a"))
    assert talk.group_json()["group_type"] == "consumer"
    assert talk.findings == []


@pytest.mark.parametrize(
    ("request_", "reply", "kind"),
    [
        (wire.ShareGroupHeartbeatRequest, wire.ShareGroupHeartbeatResponse, "share"),
        (wire.StreamsGroupHeartbeatRequest, wire.StreamsGroupHeartbeatResponse, "streams"),
    ],
)
def test_an_accepted_heartbeat_of_another_protocol_names_the_kind_of_group(
    talk: Conversation, request_: Any, reply: Any, kind: str
) -> None:
    talk.call(talk.client("a"), request_(group_id="g", member_id="m"), reply(member_id="m", member_epoch=1))
    assert talk.group_json()["group_type"] == kind


def test_a_kind_that_is_known_already_is_no_news(talk: Conversation) -> None:
    a = talk.client("a")
    talk.consumer_heartbeat(a)
    assert len(talk.model.changed_groups()) == 1
    talk.wait(ms=100)  # else the order of the two is not known
    talk.consumer_heartbeat(a)
    assert talk.model.changed_groups() == []


def test_heartbeats_of_a_group_that_is_first_seen_in_mid_life_are_no_news_either(talk: Conversation) -> None:
    """Such groups are what a monitor sees first, and some do not rebalance for weeks."""
    members = [talk.client(name) for name in "ab"]
    for member in members:
        member.member_id, member.generation = member.name, 7
    for _ in range(3):
        for member in members:
            talk.heartbeat(member)
        talk.wait(ms=3_000)
    (before,) = [group.as_json() for group in talk.model.changed_groups()]
    assert (before["learning"], before["generation"]) == ("first seen in mid-life", 7)
    for member in members:
        talk.heartbeat(member)
    assert talk.model.changed_groups() == []
    assert talk.findings == []


@pytest.mark.parametrize(("error", "epoch"), [(69, 0), (25, 3), (0, -1)])
def test_a_refused_heartbeat_of_the_consumer_protocol_tells_no_kind_and_neither_does_a_leave(
    talk: Conversation, error: int, epoch: int
) -> None:
    talk.consumer_heartbeat(talk.client("stray"), error, epoch=epoch)
    assert talk.model.changed_groups() == []
    a, _ = settled(talk)
    talk.consumer_heartbeat(talk.client("stray"), error, epoch=epoch)
    talk.heartbeat(a)
    content = talk.group_json()
    assert (content["group_type"], content["state"], content["learning"], len(content["members"])) == ("classic", "Stable", None, 2)
    assert talk.rules() == (["E-10"] if error == 69 else [])


def test_a_group_that_only_refused_members_of_the_consumer_protocol_is_no_converted_one_once_its_type_is_seen(
    talk: Conversation,
) -> None:
    talk.consumer_heartbeat(talk.client("stray"), 30, epoch=0)
    assert talk.group_json()["group_type"] == "consumer"
    settled(talk)
    content = talk.group_json()
    assert (content["group_type"], content["state"], content["learning"], len(content["members"])) == ("classic", "Stable", None, 2)
    assert "P-12" not in talk.rules()


@pytest.mark.parametrize(("error", "rule"), [(22, "G-01"), (25, "M-01")])
def test_the_zombie_behind_a_stray_refused_heartbeat_of_the_consumer_protocol_is_caught(
    talk: Conversation, error: int, rule: str
) -> None:
    """One such request of a stray client made the group one of the consumer type, and every rule blind until the next join."""
    a, b = settled(talk)
    talk.round([a], 4)
    talk.consumer_heartbeat(talk.client("stray"), 69, epoch=0)
    for _ in range(6):
        talk.wait(3_000)
        talk.heartbeat(b, error)
        talk.heartbeat(a)
    assert talk.settled_rules() == ["E-10", rule]


def test_an_answer_that_cannot_be_read_tells_no_kind(talk: Conversation) -> None:
    a, _ = settled(talk)
    asked = talk.ask(a, wire.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"))
    talk._feed(Kind.RESPONSE, asked, b"\xff")
    assert talk.group_json()["group_type"] == "classic"
    assert talk.rules() == ["V-02"]


def test_classic_members_are_known_on_after_the_group_was_converted_and_when_it_is_classic_again(talk: Conversation) -> None:
    a, b = settled(talk)
    new = talk.client("new", member_id="new-1")
    talk.consumer_heartbeat(new, epoch=4)
    content = talk.group_json()
    assert (content["group_type"], content["generation"]) == ("consumer", 4)
    assert [(member["member_id"], member["protocol"]) for member in content["members"]] == [
        (a.member_id, "classic"),
        (b.member_id, "classic"),
        ("new-1", "consumer"),
    ]
    talk.wait(1_000)
    talk.round([a, b], 9)
    content = talk.group_json()
    assert (content["group_type"], content["state"], content["learning"]) == ("classic", "Stable", None)
    assert [member["member_id"] for member in content["members"]] == [a.member_id, b.member_id]
    assert talk.rules() == ["P-12"]


@pytest.mark.parametrize("found_first", [True, False])
def test_what_was_found_before_a_join_that_converts_the_group_was_asked_is_told(talk: Conversation, *, found_first: bool) -> None:
    """It is one of the type that the group was, and is over. Once the join is asked, the group may be of the other type already."""
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    talk.wait(1_000)
    if found_first:
        talk.heartbeat(first)
    talk.wait(20)
    asked = talk.ask(talk.client("new"), wire.ConsumerGroupHeartbeatRequest(group_id="g", member_id="new-1"))
    if not found_first:
        talk.heartbeat(first)
    talk.answer(asked, wire.ConsumerGroupHeartbeatResponse(member_id="new-1", member_epoch=4))
    talk.wait(20_000)
    told = [(one.status, one.group_type) for one in talk.findings if one.rule == "S-03"]
    assert told == [(Status.OPEN, "classic"), (Status.RESOLVED, "classic")] * found_first


def test_a_late_answer_of_the_time_before_converts_no_group(talk: Conversation) -> None:
    a, b = settled(talk)
    waiting = talk.ask_join(a)
    talk.consumer_heartbeat(talk.client("new"), epoch=4)
    talk.joined(waiting, generation=4, leader=a, roster=[a, b])
    assert talk.group_json()["group_type"] == "consumer"


def test_a_consumer_group_is_forgotten_a_day_after_its_last_frame_and_not_before() -> None:
    talk = Conversation(forget_group_ms=600_000)
    a = talk.client("a")
    for _ in range(3):
        talk.consumer_heartbeat(a)
        talk.wait(400_000)
    (known,) = talk.model.changed_groups()
    assert known.content is not None
    talk.wait(300_000)
    (gone,) = talk.model.changed_groups()
    assert gone.content is None


def test_an_unmodelled_api_that_names_no_kind_makes_no_group(talk: Conversation) -> None:
    talk.raw(talk.client("a"), b"", api_key=16, version=0)
    assert talk.model.record_counts["ListGroups req not modelled"] == 1
    assert talk.model.changed_groups() == []


def test_a_backlog_raises_nothing_that_live_reading_does_not(talk: Conversation) -> None:
    """Deadlines are judged on capture time: reading an hour of records in one go is the same as reading them as they came."""
    a, b = settled(talk)
    live(talk, [a, b], 3_600)
    assert talk.findings == []


def test_an_old_record_does_not_turn_the_clock_back(talk: Conversation) -> None:
    talk.tick()
    talk.now_us -= 5_000_000
    talk.tick()
    assert talk.model.now_us == START_US
    assert talk.model.advance(START_US - 1) == []


def test_a_group_is_forgotten_a_day_after_its_last_frame_and_is_in_no_snapshot_then() -> None:
    talk = Conversation(forget_group_ms=600_000)
    a, b = settled(talk)
    with_group = len(talk.model.snapshot())
    talk.leave(a)
    talk.leave(b)
    talk.model.changed_groups()
    talk.wait(700_000)
    gone = talk.model.changed_groups()
    assert [(snapshot.key, snapshot.as_json()) for snapshot in gone] == [("c1/g", None)]
    assert len(talk.model.snapshot()) < with_group // 2
    assert due_of(Coordinator.restore(talk.model.snapshot())) is None


def test_forgetting_a_group_resolves_what_is_still_open() -> None:
    talk = Conversation(forget_group_ms=600_000)
    a, _ = settled(talk)
    talk.ask_join(a)
    talk.wait(580_000)
    assert talk.the("R-01").status is not Status.RESOLVED
    talk.wait(120_000)
    assert talk.the("R-01").status is Status.RESOLVED


def test_a_held_finding_that_a_late_frame_explains_is_never_heard_of(talk: Conversation) -> None:
    """Two capturers: the answer that says the broker is loading arrives after the blind success that it explains."""
    old = left_behind(talk)
    asker = talk.client("asker")
    talk.heartbeat(old)
    talk.refuse_join(talk.ask_join(asker), 14)
    talk.settle()
    assert "G-02" not in {finding.rule for finding in talk.findings}
    assert talk.model.record_counts["findings withdrawn"] == 1


def test_a_broker_that_loads_excuses_nothing_in_another_cluster(talk: Conversation) -> None:
    """Brokers are numbered from 1 in every cluster."""
    old = left_behind(talk)
    talk.refuse_join(talk.ask_join(talk.client("asker")), 14)
    elsewhere = talk.records.pop()._replace(cluster="c2")
    model = Coordinator(topic="mirror", partition=0)
    for record in (*talk.records, elsewhere):
        model.receive(record)
    talk.model = model
    talk.heartbeat(old)
    assert "G-02" in talk.settled_rules()


def test_a_stranger_whose_join_was_captured_late_is_none(talk: Conversation) -> None:
    a, b = settled(talk)
    late = talk.client("late", member_id="m-late", generation=3)
    asked = talk.ask_join(late)
    talk.heartbeat(late.reconnected())
    talk.joined(asked, generation=3, leader=a, roster=[])
    talk.settle()
    assert "M-02" not in {finding.rule for finding in talk.findings}
    assert b.member_id != late.member_id


def test_changed_groups_are_told_once_and_heartbeats_change_nothing(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.settle()
    (snapshot,) = talk.model.changed_groups()
    content = snapshot.as_json()
    assert content is not None
    assert content["state"] == "Stable"
    assert content["generation"] == 3
    assert {member["client_id"] for member in content["members"]} == {"a", "b"}
    assert talk.model.changed_groups() == []
    live(talk, [a, b], 5)
    assert talk.model.changed_groups() == []


def test_the_next_deadline_is_when_something_falls_due(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.ask_join(a)
    talk.settle()
    due = due_of(talk.model)
    assert due is not None
    assert due > talk.now_us


@pytest.mark.parametrize("blob", [b"", b"\x00", b"\xc1", b"nonsense", b"\x92\x01\x80", b"\x92\x09\x80", b"\x92\x01\x01"])
def test_a_snapshot_that_is_none_is_refused(blob: bytes) -> None:
    with pytest.raises(SnapshotError):
        Coordinator.restore(blob)


def steady() -> Conversation:
    talk = Conversation()
    clients = [talk.client(f"worker-{index}") for index in range(10)]
    talk.round(clients, 5)
    live(talk, clients, 3)
    return talk


def truncated(blob: bytes) -> list[bytes]:
    return [blob[:length] for length in range(0, len(blob), 97)]


def test_a_truncated_snapshot_is_refused_or_refused_group_by_group() -> None:
    blob = steady().model.snapshot()
    for part in truncated(blob):
        with pytest.raises(SnapshotError):
            Coordinator.restore(part)


def test_two_groups_do_not_disturb_each_other(talk: Conversation) -> None:
    a, b = settled(talk)
    other = Conversation("other")
    other.model = talk.model
    talk_offset = talk.offset
    other.offset, other.now_us = talk_offset, talk.now_us
    settled(other, names=("x", "y"), generation=9)
    talk.offset, talk.now_us = other.offset, other.now_us
    live(talk, [a, b], 2)
    assert talk.group_json()["generation"] == 3
    assert talk.findings == []
    assert other.findings == []


def test_a_finding_tells_the_reason_that_the_member_gave_and_its_last_frame(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.hand_out_id(a)
    talk.hand_out_id(b)
    complete(talk, (talk.ask_join(a), talk.ask_join(b, reason="poll timeout has expired")), 3, a, [a, b])
    talk.sync_all([a, b])
    live(talk, [a], 14)
    observed = talk.the("T-04").observed
    assert "poll timeout has expired" in observed
    assert "last frame was a SyncGroup at 22:13:2" in observed


def test_a_log_that_was_cut_back_is_a_finding_and_what_is_written_anew_is_read(talk: Conversation) -> None:
    """What is newer than everything that was seen cannot have been seen, whatever its offset."""
    a, b = settled(talk)
    before = talk.offset
    talk.offset -= 3
    talk.now_us += 1_000_000
    talk.tick()
    assert "cut back from offset" in talk.the("V-01").summary
    assert talk.model.record_counts["offsets gone back"] == 1
    assert talk.group_json()["learning"] == "the mirror's log was cut back"
    talk.round([a, b], 4)
    assert talk.group_json()["learning"] is None
    assert talk.model.next_offset == talk.offset > before
    assert talk.model.record_counts["repeated records"] == talk.model.record_counts["missing records"] == 0


def test_a_mirror_with_more_partitions_is_a_finding_and_its_groups_are_learned_anew(talk: Conversation) -> None:
    """A group that has moved must not look as if its members had fallen silent."""
    settled(talk)
    assert talk.model.on_partition_count(4) == [], "nobody had counted before"
    assert talk.model.on_partition_count(4) == []
    talk.model.changed_groups()
    talk.restore()
    (opened,) = talk.model.on_partition_count(5)
    assert (opened.rule, opened.status, opened.group) == ("V-06", Status.OPEN, "")
    assert "has 5 partitions, where it had 4: 1 group seen in partition 0 may" in opened.summary
    assert talk.model.changed_groups() == [], "its record in the groups topic is not deleted: another partition may have written it"
    talk.wait(600_000)
    assert [finding.rule for finding in talk.findings] == ["V-06"], "nobody is called silent or stuck"
    assert talk.the("V-06").status is Status.RESOLVED


def test_what_was_open_against_a_group_is_resolved_when_the_mirror_has_other_partitions(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.model.on_partition_count(4)
    talk.ask_join(a)
    told_to_rejoin(talk, b, 14)
    assert talk.the("R-08").status is not Status.RESOLVED
    found = talk.model.on_partition_count(5)
    assert [(finding.rule, finding.status) for finding in found] == [("R-08", Status.RESOLVED), ("V-06", Status.OPEN)]
