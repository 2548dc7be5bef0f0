"""What the capture itself is found to miss."""

from __future__ import annotations

from coordinator_model import wire
from coordinator_model.finding import Blame
from tests.coordinator_model.classic import beat, complete
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epochs import Epochs


def captured_round(talk: Conversation, seen: list[Client], past: list[Client], generation: int) -> None:
    """A rebalance of all of them, of which only the frames of some are captured."""
    everybody = [*seen, *past]
    asked = [talk.ask_join(client) for client in seen]
    talk.wait(100)
    complete(talk, asked, generation, seen[0], everybody)
    talk.sync_all(seen, leader=seen[0])


def members(talk: Conversation) -> tuple[list[Client], list[Client]]:
    seen, past = [talk.client("a"), talk.client("b")], [talk.client("sneaks")]
    for client in (*seen, *past):
        client.member_id = f"{client.name}-1"
    return seen, past


def test_V_10_names_no_single_one_of_several(talk: Conversation) -> None:
    seen, past = members(talk)
    past.append(talk.client("hides"))
    past[-1].member_id = "hides-1"
    for generation in (3, 4):
        captured_round(talk, seen, past, generation)
        beat(talk, seen, 20)
    finding = talk.the("V-10")
    assert "sneaks-1, hides-1" in finding.summary
    assert finding.member_id is None


def test_V_10_names_a_member_that_gets_past_the_tap(talk: Conversation) -> None:
    seen, past = members(talk)
    captured_round(talk, seen, past, 3)
    beat(talk, seen, 20)
    assert talk.rules() == []  # its join may have come before the capture began
    captured_round(talk, seen, past, 4)
    beat(talk, seen, 20)
    assert talk.rules() == ["V-10"]
    finding = talk.the("V-10")
    assert (finding.member_id, finding.generation) == ("sneaks-1", 4)
    assert finding.summary.startswith("1 of 3 members of group g do not pass the tap: no frame of sneaks-1 was captured")


def test_V_10_is_over_when_the_member_comes_through_the_tap(talk: Conversation) -> None:
    seen, past = members(talk)
    captured_round(talk, seen, past, 3)
    captured_round(talk, seen, past, 4)
    beat(talk, seen, 20)
    captured_round(talk, [*seen, *past], [], 5)
    beat(talk, [*seen, *past], 20)
    assert talk.rules() == ["V-10"]
    assert [finding.status.value for finding in talk.findings if finding.rule == "V-10"] == ["open", "resolved"]


def test_V_10_is_silent_after_a_gap_and_about_static_members(talk: Conversation) -> None:
    seen, past = members(talk)
    captured_round(talk, seen, past, 3)
    talk.gap()
    captured_round(talk, seen, past, 4)
    beat(talk, seen, 20)
    past[0].instance_id = "i-1"
    past[0].member_id = "sneaks-2"
    captured_round(talk, seen, past, 5)
    beat(talk, seen, 20)
    assert "V-10" not in talk.rules()


def test_V_10_is_silent_about_a_client_that_went_away_while_it_joined(talk: Conversation) -> None:
    seen, past = members(talk)
    captured_round(talk, seen, [], 3)
    gone = talk.client("gone")
    talk.ask_join(gone)
    talk.close(gone)
    captured_round(talk, seen, past, 4)
    beat(talk, seen, 20)
    assert "V-10" not in talk.rules()


# ---------------------------------------------------------------------------------------------------- V-10, groups with epochs

Member = wire.ConsumerGroupDescribeResponseMember


def two_members() -> tuple[Epochs, list[Client]]:
    """Two members of a consumer group, followed for longer than any session lasts."""
    talk = Epochs()
    clients = [talk.member("a"), talk.member("b")]
    for epoch, client in enumerate(clients, 1):
        talk.joins(client, epoch)
    beat(talk, clients, 80)
    return talk, clients


def describe(talk: Epochs, *extra: Member, error_code: int = 0) -> None:
    """An admin client asks, and the coordinator lists the two members and others."""
    listed = (Member(member_id="a-id"), Member(member_id="b-id"), *extra)
    group = wire.ConsumerGroupDescribeResponseDescribedGroup(
        group_id=talk.group, error_code=error_code, group_state="Stable", members=listed
    )
    request = wire.ConsumerGroupDescribeRequest(group_ids=(talk.group,))
    talk.call(talk.client("admin"), request, wire.ConsumerGroupDescribeResponse(groups=(group,)), version=1)


SNEAKS = Member(member_id="sneaks-id", client_id="sneaks", client_host="/10.0.0.9")


def test_V_10_names_a_member_with_an_epoch_that_a_description_lists_and_no_frame() -> None:
    talk, clients = two_members()
    describe(talk, SNEAKS)
    talk.live(clients, 5)
    assert talk.rules() == []
    talk.live(clients, 10)
    finding = talk.the("V-10")
    assert (finding.blame, finding.member_id, finding.group_type) == (Blame.CAPTURE, "sneaks-id", "consumer")
    assert finding.summary.startswith(
        "1 of 3 members of group g do not pass the tap: no frame of sneaks-id (client sneaks at 10.0.0.9) was captured"
    )
    assert len(finding.evidence) == 1


def test_V_10_names_none_of_several_members_with_an_epoch_alone() -> None:
    talk, clients = two_members()
    describe(talk, SNEAKS, Member(member_id="creeps-id", client_id="creeps", client_host="/10.0.0.8"))
    talk.live(clients, 15)
    finding = talk.the("V-10")
    assert finding.member_id is None
    assert (
        "no frame of sneaks-id (client sneaks at 10.0.0.9), creeps-id (client creeps at 10.0.0.8) was captured" in finding.summary
    )


def test_V_10_of_a_member_with_an_epoch_is_over_when_it_is_seen_or_no_longer_listed() -> None:
    for later in (lambda talk: talk.joins(talk.member("sneaks"), 3), describe):
        talk, clients = two_members()
        describe(talk, SNEAKS)
        talk.live(clients, 15)
        later(talk)
        talk.live(clients, 5)
        assert [finding.status.value for finding in talk.findings if finding.rule == "V-10"] == ["open", "resolved"]


def test_V_10_of_a_member_with_an_epoch_is_over_ten_minutes_after_the_last_description() -> None:
    talk, clients = two_members()
    describe(talk, SNEAKS)
    talk.live(clients, 590)
    assert talk.the("V-10").status.value == "open"
    talk.live(clients, 15)
    assert talk.the("V-10").status.value == "resolved"


def test_V_10_is_silent_where_a_member_with_an_epoch_may_have_come_unseen() -> None:
    talk, clients = two_members()
    describe(talk, Member(member_id="static-id", instance_id="i-1"))  # it may be away
    describe(talk, SNEAKS, error_code=30)
    talk.live(clients, 20)
    talk.gap()
    talk.live(clients, 30)
    describe(talk, SNEAKS)  # frames were lost a session ago
    talk.live(clients, 20)
    assert "V-10" not in talk.rules()


def test_V_10_of_a_member_with_an_epoch_survives_a_restart_of_the_monitor() -> None:
    talk, clients = two_members()
    describe(talk, SNEAKS)
    talk.restore()
    talk.live(clients, 15)
    assert talk.rules() == ["V-10"]
