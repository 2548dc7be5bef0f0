"""What an admin client is told of a group, held against what the model knows of it (V-08)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty
from coordinator_model.wire.record import Kind
from tests.coordinator_model.classic import beat, settled
from tests.coordinator_model.conversation import Client, Conversation


def description(members: Iterable[Client], state: str = "Stable", **fields: Any) -> wire.DescribeGroupsResponse:
    named = tuple(
        wire.DescribeGroupsResponseDescribedGroupMember(member_id=one.member_id, client_id=one.name, client_host=one.host)
        for one in members
    )
    group = wire.DescribeGroupsResponseDescribedGroup(group_id="g", group_state=state, protocol_type="consumer", members=named)
    return wire.DescribeGroupsResponse(groups=(group,), **fields)


def three(talk: Conversation) -> list[Client]:
    members = settled(talk, "abc")
    beat(talk, members, 2)
    return members


def described(talk: Conversation, members: list[Client], *descriptions: wire.DescribeGroupsResponse) -> None:
    """An exporter asks every two seconds; the members go on meanwhile."""
    exporter = talk.client("exporter")
    for answer in descriptions:
        talk.call(exporter, wire.DescribeGroupsRequest(groups=("g",)), answer)
        beat(talk, members, 2)


def test_a_description_that_agrees_is_no_finding(talk: Conversation) -> None:
    members = three(talk)
    described(talk, members, *[description(members)] * 4)
    assert talk.settled_rules() == []


def test_a_member_that_only_one_side_knows_is_a_finding_of_the_monitors_own(talk: Conversation) -> None:
    members = three(talk)
    a, b, c = members
    d = talk.client("d", member_id="d-1")
    described(talk, members, description([a, b, d]), description(members))
    finding = talk.the("V-08")
    assert (finding.blame, finding.certainty, finding.generation) == (Blame.CAPTURE, Certainty.CONFIRMED, 3)
    assert f"d-1 is a member only to the broker; {c.member_id} is no member to the broker" in finding.summary
    assert [frame.frame.split(" (")[0] for frame in finding.evidence][1] == "DescribeGroups v5 answer: success"
    assert talk.rules() == ["V-08"]


def test_a_description_from_before_a_restart_is_held_against_what_comes_after_it(talk: Conversation) -> None:
    members = three(talk)
    described(talk, members, description(members[:2]))
    talk.restore()
    described(talk, members, description(members))
    assert f"{members[2].member_id} is no member to the broker" in talk.the("V-08").summary


def test_another_state_is_a_finding(talk: Conversation) -> None:
    members = three(talk)
    described(talk, members, description(members, "PreparingRebalance"), description(members))
    assert "describes it as PreparingRebalance, and it was Stable" in talk.the("V-08").summary


def test_a_description_is_not_judged_over_a_rebalance(talk: Conversation) -> None:
    members = three(talk)
    described(talk, members, description(members[:2], "PreparingRebalance"))
    for member in members:
        talk.heartbeat(member, 27)
    talk.round(members, 4)
    described(talk, members, description(members))
    assert "V-08" not in talk.rules()


def test_a_description_is_not_judged_without_a_heartbeat_after_it(talk: Conversation) -> None:
    members = three(talk)
    exporter = talk.client("exporter")
    for state in ("PreparingRebalance", "Stable"):
        talk.call(exporter, wire.DescribeGroupsRequest(groups=("g",)), description(members, state))
    assert talk.rules() == []


def test_a_description_is_not_judged_over_a_gap_in_the_capture(talk: Conversation) -> None:
    members = three(talk)
    described(talk, members, description([], "Empty"))
    talk.lose(1)
    described(talk, members, description(members))
    assert "V-08" not in talk.rules()


def test_a_description_of_a_group_that_was_not_seen_makes_no_group(talk: Conversation) -> None:
    described(talk, [], description([]))
    assert len(talk.model.groups) == 0
    assert talk.rules() == []


def test_a_description_that_was_cut_loses_nothing(talk: Conversation) -> None:
    members = three(talk)
    request = wire.encode_request(wire.DescribeGroupsRequest(groups=("g",)), api_version=5, correlation_id=0, client_id="exporter")
    talk.raw(talk.client("exporter"), request[:-1], api_key=15, version=5, cut_bytes=1)
    beat(talk, members, 2)
    assert (talk.rules(), talk.model.changed_groups()[0].content["learning"]) == ([], None)


@pytest.mark.parametrize("capped_bytes", [0, 4_096], ids=["by the capture", "by the monitor"])
def test_a_description_whose_answer_was_cut_is_answered(talk: Conversation, capped_bytes: int) -> None:
    """The answer about 119 groups at once was cut, and the broker stood accused of not giving it (C-01) for each of them."""
    members = three(talk)
    exporter = talk.client("exporter")
    asked = talk.ask(exporter, wire.DescribeGroupsRequest(groups=("g",)))
    answer = wire.encode_response(description(members), api_version=asked.api_version, correlation_id=asked.exchange)
    talk._feed(Kind.RESPONSE, asked, answer[:64], cut_bytes=4_096, capped_bytes=capped_bytes)
    for _ in range(14):
        talk.wait(3_000)
        beat(talk, members, 2)
    assert (talk.rules(), talk.group_json()["learning"]) == ([], None)


def learnt_again(talk: Conversation) -> list[Client]:
    """A group seen in mid-life: its members have heartbeats, and nobody knows who else is a member."""
    members = three(talk)
    talk.lose(1)
    beat(talk, members[:2], 2)
    assert talk.group_json()["learning"] is not None
    return members


def test_descriptions_between_heartbeats_show_the_members_of_a_group_in_mid_life(talk: Conversation) -> None:
    members = learnt_again(talk)
    described(talk, members[:2], description(members), description(members))
    shown = talk.group_json()
    assert (shown["learning"], shown["state"], shown["generation"], shown["leader"]) == (None, "Stable", 3, None)
    assert {member["member_id"] for member in shown["members"]} == {member.member_id for member in members}
    described(talk, members, description(members), description(members))
    talk.round(members, 4)
    assert "V-08" not in talk.rules()


def test_a_member_that_only_a_description_names_is_shown_as_the_broker_describes_it(talk: Conversation) -> None:
    members = learnt_again(talk)
    static = wire.DescribeGroupsResponseDescribedGroupMember(
        member_id="s-1", group_instance_id="s", client_id="far", client_host="/192.0.2.9"
    )
    (group,) = description(members).groups
    told = wire.DescribeGroupsResponse(groups=(with_member(group, static),))
    described(talk, members[:2], told, told)
    (shown,) = [member for member in talk.group_json()["members"] if member["member_id"] == "s-1"]
    assert (shown["instance_id"], shown["client_id"], shown["client_address"]) == ("s", "far", "192.0.2.9")


def with_member(
    group: wire.DescribeGroupsResponseDescribedGroup, member: wire.DescribeGroupsResponseDescribedGroupMember
) -> wire.DescribeGroupsResponseDescribedGroup:
    return wire.DescribeGroupsResponseDescribedGroup(
        group_id=group.group_id,
        group_state=group.group_state,
        protocol_type=group.protocol_type,
        members=(*group.members, member),
    )


def test_after_a_description_a_stranger_that_is_served_is_found(talk: Conversation) -> None:
    members = learnt_again(talk)
    described(talk, members[:2], description(members), description(members))
    stranger = talk.client("z", member_id="z-1", generation=3)
    talk.heartbeat(stranger)
    talk.settle()
    finding = talk.the("M-02")
    assert "z-1 is not in the list of 3 that the coordinator described" in finding.observed


@pytest.mark.parametrize("why", ["rebalancing", "no heartbeat after", "another generation", "an old version", "waiting joins"])
def test_a_description_shows_no_members_where_frames_do_not_bear_it_out(talk: Conversation, why: str) -> None:
    members = learnt_again(talk)
    exporter = talk.client("exporter")
    answer = description(members, "PreparingRebalance" if why == "rebalancing" else "Stable")
    request = wire.DescribeGroupsRequest(groups=("g",))
    talk.call(exporter, request, answer, **({"version": 3} if why == "an old version" else {}))
    if why == "another generation":
        for member in members:
            member.generation = 4
    if why != "no heartbeat after":
        beat(talk, members[:2], 2)
    if why == "waiting joins":
        talk.ask_join(members[0])
    talk.call(exporter, request, description(members))
    assert talk.group_json()["learning"] is not None
