"""Family P: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model import conversation
from tests.coordinator_model.classic import complete, live, told_to_rejoin
from tests.coordinator_model.conversation import ASSIGNED, Asked, Client, Conversation, assignment, subscription
from tests.coordinator_model.reference import world
from tests.coordinator_model.rules.coordinators import fail_over
from tests.coordinator_model.rules.generations import answer, deliver, entries, fetch, group, join, offer, parts, share_out, submit


def settled(talk: Conversation, *, static: bool = False) -> list[Client]:
    a, b = group(talk, static=static)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    return [a, b]


def restarted(talk: Conversation, client: Client) -> Client:
    """The same static member, started anew."""
    return talk.client(client.name, instance_id=client.instance_id)


# ---------------------------------------------------------------------------------------------------- P-01


@pytest.mark.parametrize(
    "fields",
    [{"protocol_name": "roundrobin"}, {"protocol_type": "connect"}, {"protocol_name": None}, {"protocol_type": None}],
)
def test_P_01_fires_on_a_sync_under_another_protocol(talk: Conversation, fields: dict[str, Any]) -> None:
    _, b = group(talk)
    asked = fetch(talk, b, **fields)
    finding = talk.the("P-01")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.CLIENT
    assert finding.member_id == b.member_id
    talk.answer(asked, talk.synced(23))
    assert talk.settled_rules() == ["P-01"]
    talk.wait(61_000)
    assert talk.the("P-01").status is Status.RESOLVED


def test_P_01_is_the_coordinators_when_it_omits_its_check(talk: Conversation) -> None:
    a, b = group(talk)
    submit(talk, a, {a: parts(0), b: parts(1)})
    deliver(talk, fetch(talk, b, protocol_name="roundrobin"), parts(1))
    talk.settle()
    finding = talk.the("P-01")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert "INCONSISTENT_GROUP_PROTOCOL" in finding.observed


def test_P_01_fires_when_a_sync_is_answered_under_another_protocol(talk: Conversation) -> None:
    a, b = group(talk)
    deliver(talk, submit(talk, a, {a: parts(0), b: parts(1)}), parts(0), protocol="roundrobin")
    talk.settle()
    finding = talk.the("P-01")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert "consumer/roundrobin" in finding.summary


@pytest.mark.parametrize("fields", [{"protocol_name": "sticky"}, {"protocol_type": "connect"}])
def test_P_01_fires_on_a_client_that_goes_on_after_a_foreign_answer(talk: Conversation, fields: dict[str, Any]) -> None:
    a = talk.client("a")
    talk.hand_out_id(a)
    answer(talk, offer(talk, a), generation=1, leader=a.member_id, members=[a], **fields)
    submit(
        talk,
        a,
        {a: parts(0)},
        protocol_type=fields.get("protocol_type", "consumer"),
        protocol_name=fields.get("protocol_name", "range"),
    )
    talk.settle()
    finding = talk.the("P-01")
    assert finding.blame is Blame.CLIENT
    assert "goes on" in finding.summary
    assert "P-03" in talk.rules()


def test_P_01_allows_older_versions_to_say_nothing(talk: Conversation) -> None:
    a, b = group(talk)
    submit(talk, a, {a: parts(0), b: parts(1)})
    asked = talk.ask(b, talk.sync_request(b, [], protocol_type=None, protocol_name=None), version=4)
    talk.answer(asked, wire.SyncGroupResponse(error_code=0, assignment=parts(1)))
    assert talk.settled_rules() == []


def test_P_01_needs_to_have_seen_the_join(talk: Conversation) -> None:
    a = talk.client("a", member_id="a-1", generation=5)
    deliver(talk, fetch(talk, a, protocol_name="mine"), parts(0), protocol="other")
    assert talk.settled_rules() == []


def test_P_01_allows_an_answer_that_names_none(talk: Conversation) -> None:
    a, b = group(talk)
    asked = submit(talk, a, {a: parts(0), b: parts(1)})
    talk.answer(asked, wire.SyncGroupResponse(error_code=0, assignment=parts(0)))
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- P-02


def refused(talk: Conversation, client: Client) -> None:
    talk.refuse_join(offer(talk, client, subscription("t"), "sticky"), 23)
    talk.settle()


def test_P_02_warns_once_and_fires_when_it_repeats(talk: Conversation) -> None:
    settled(talk)
    c = talk.client("c")
    refused(talk, c)
    finding = talk.the("P-02")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CONFIG
    assert "sticky" in finding.summary
    assert "range by a" in finding.summary
    refused(talk, c.reconnected())
    assert talk.the("P-02").severity is Severity.ERROR


def test_P_02_is_resolved_when_it_joins(talk: Conversation) -> None:
    a, b = settled(talk)
    c = talk.client("c")
    refused(talk, c)
    join(talk, [a, b, c], 4)
    talk.settle()
    assert talk.the("P-02").status is Status.RESOLVED


@pytest.mark.parametrize("error", [25, 14, 81])
def test_P_02_is_no_matter_of_other_refusals(talk: Conversation, error: int) -> None:
    settled(talk)
    talk.refuse_join(offer(talk, talk.client("c"), subscription("t"), "sticky"), error)
    assert talk.settled_rules() == []


def test_P_02_is_no_matter_of_a_sync(talk: Conversation) -> None:
    """There the code means another protocol than the group's: P-01 says that."""
    _, b = group(talk)
    talk.answer(fetch(talk, b, protocol_name="sticky"), talk.synced(23))
    assert talk.settled_rules() == ["P-01"]


def test_P_02_counts_each_client_by_itself_and_not_for_ever(talk: Conversation) -> None:
    for number in range(40):
        refused(talk, talk.client(f"c{number}"))
    assert {finding.severity for finding in talk.findings} == {Severity.WARNING}
    assert len(talk.model.groups.opened(("c1", "g"))[0].assignments.refused) == 32


# ---------------------------------------------------------------------------------------------------- P-03


@pytest.mark.parametrize("fields", [{"protocol_name": "sticky"}, {"protocol_type": "connect"}])
def test_P_03_fires_when_the_choice_was_not_offered(talk: Conversation, fields: dict[str, Any]) -> None:
    a = talk.client("a")
    talk.hand_out_id(a)
    answer(talk, offer(talk, a), generation=1, leader=a.member_id, members=[a], **fields)
    talk.settle()
    finding = talk.the("P-03")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    talk.wait(61_000)
    assert talk.the("P-03").status is Status.RESOLVED


@pytest.mark.parametrize(("version", "rules"), [(6, []), (9, ["P-03"])])
def test_P_03_allows_what_old_brokers_answer_a_returning_static_member(talk: Conversation, version: int, rules: list[str]) -> None:
    a, b = group(talk, static=True)
    again = restarted(talk, b)
    protocols = (wire.JoinGroupRequestProtocol(name="sticky", metadata=subscription("t")),)
    asked = talk.ask(again, talk.join_request(again, protocols=protocols), version=version)
    answer(talk, asked, generation=3, leader=a.member_id, member_id="b-2", protocol_type="consumer" if version > 6 else None)
    assert talk.settled_rules() == rules


# ---------------------------------------------------------------------------------------------------- P-04, P-05


def test_P_04_fires_when_a_follower_is_given_the_members(talk: Conversation) -> None:
    a, b = settled(talk)
    answer(talk, offer(talk, b), generation=4, leader=a.member_id, members=[a, b])
    talk.settle()
    finding = talk.the("P-04")
    assert finding.severity is Severity.ERROR
    assert finding.member_id == b.member_id
    talk.wait(61_000)
    assert talk.the("P-04").status is Status.RESOLVED


def test_P_04_fires_when_the_leader_is_given_none(talk: Conversation) -> None:
    a, _ = settled(talk)
    answer(talk, offer(talk, a), generation=4, leader=a.member_id)
    assert talk.settled_rules() == ["P-04"]


def test_P_04_allows_a_static_leader_to_return_before_v9(talk: Conversation) -> None:
    a, _ = settled(talk, static=True)
    again = restarted(talk, a)
    asked = talk.ask(again, talk.join_request(again), version=8)
    answer(talk, asked, generation=3, leader="a-2", member_id="a-2")
    assert talk.settled_rules() == []


def test_P_04_leaves_groups_of_the_new_type_alone(talk: Conversation) -> None:
    a, _ = settled(talk)
    answer(talk, offer(talk, a), generation=4, leader="")
    assert talk.settled_rules() == ["P-12"]


def test_P_05_fires_when_the_leader_is_not_among_the_members(talk: Conversation) -> None:
    a, b = settled(talk)
    answer(talk, offer(talk, a), generation=4, leader=a.member_id, members=[b])
    talk.settle()
    finding = talk.the("P-05")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    talk.wait(61_000)
    assert talk.the("P-05").status is Status.RESOLVED


def test_P_05_is_no_matter_of_a_follower(talk: Conversation) -> None:
    a, b = settled(talk)
    answer(talk, offer(talk, b), generation=4, leader=a.member_id)
    assert talk.settled_rules() == []


def test_P_05_allows_a_static_leader_the_id_that_it_returns_with(talk: Conversation) -> None:
    a, b = settled(talk, static=True)
    new = restarted(talk, a)
    asked = offer(talk, new)
    new.member_id = "a-2"
    answer(talk, asked, generation=3, leader="a-2", member_id="a-2", members=[new, b], skip_assignment=True)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- P-06


def disagree(talk: Conversation, clients: list[Client], leader: str, **fields: Any) -> None:
    """Two wait in the same phase and are answered differently."""
    a, b = clients
    asked = [offer(talk, a, subscription("t"), "range", "sticky"), offer(talk, b, subscription("t"), "range", "sticky")]
    answer(talk, asked[0], generation=4, leader=a.member_id, members=[a, b])
    answer(talk, asked[1], generation=4, leader=leader, **fields)
    talk.settle()


@pytest.mark.parametrize("fields", [{"leader": "somebody"}, {"leader": None, "protocol_name": "sticky"}])
def test_P_06_fires_when_answers_of_one_completion_disagree(talk: Conversation, fields: dict[str, Any]) -> None:
    a, b = settled(talk)
    disagree(talk, [a, b], **{**fields, "leader": fields["leader"] or a.member_id})
    finding = talk.the("P-06")
    assert finding.severity is Severity.CRITICAL
    assert finding.certainty is Certainty.CONFIRMED
    talk.wait(61_000)
    assert talk.the("P-06").status is Status.RESOLVED


def test_P_06_allows_a_static_leader_that_returned(talk: Conversation) -> None:
    a, b = settled(talk, static=True)
    disagree(talk, [a, b], "a-2")  # whose own answer is still on its way
    assert talk.rules() == []


def test_P_06_knows_two_ids_of_one_static_leader(talk: Conversation) -> None:
    a, b = settled(talk, static=True)
    again = restarted(talk, a)
    answer(talk, offer(talk, again), generation=3, leader=a.member_id, member_id="a-2")
    late = offer(talk, b)
    answer(talk, late, generation=3, leader="a-2")
    assert talk.settled_rules() == []


def test_P_06_fires_when_two_static_members_lead(talk: Conversation) -> None:
    a, b = settled(talk, static=True)
    disagree(talk, [a, b], b.member_id, members=[a, b])
    assert "P-06" in talk.rules()


def test_P_06_does_not_compare_answers_that_did_not_overlap(talk: Conversation) -> None:
    """The broker crashed and issues the generation again."""
    a, b = settled(talk)
    asked = offer(talk, a)
    answer(talk, asked, generation=4, leader=a.member_id, members=[a, b])
    answer(talk, offer(talk, b.reconnected()), generation=4, leader=b.member_id, members=[a, b])
    assert talk.settled_rules() == ["G-06"]


def test_P_06_knows_nothing_of_a_leader_that_it_never_saw(talk: Conversation) -> None:
    a, b = talk.client("a", member_id="a-1"), talk.client("b", member_id="b-1")
    asked = [offer(talk, a), offer(talk, b)]
    answer(talk, asked[0], generation=4, leader="x-1")
    answer(talk, asked[1], generation=4, leader="x-2")
    assert talk.settled_rules() == []


def test_P_06_allows_an_old_answer_captured_late(talk: Conversation) -> None:
    a, b = settled(talk)
    late = offer(talk, b.reconnected())
    answer(talk, offer(talk, a), generation=4, leader=a.member_id, members=[a, b])
    answer(talk, late, generation=3, leader=a.member_id)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- P-07


def commit_reply(error: int) -> wire.OffsetCommitResponse:
    done = wire.OffsetCommitResponsePartition(partition_index=0, error_code=error)
    return wire.OffsetCommitResponse(topics=(wire.OffsetCommitResponseTopic(name="t", partitions=(done,)),))


def ask_any(talk: Conversation, client: Client, api_key: int, error: int, *, version: int | None = None) -> None:
    """One request of each API, answered with an error."""
    identity = wire.LeaveGroupRequestMemberIdentity(member_id=client.member_id, group_instance_id=client.instance_id)
    named = {"group_id": "g", "member_id": client.member_id, "group_instance_id": client.instance_id}
    topic = wire.OffsetCommitRequestTopic(name="t", partitions=(wire.OffsetCommitRequestPartition(),))
    txn_topic = wire.TxnOffsetCommitRequestTopic(name="t", partitions=(wire.TxnOffsetCommitRequestPartition(),))
    txn_done = wire.TxnOffsetCommitResponsePartition(partition_index=0, error_code=error)
    found = wire.FindCoordinatorResponseCoordinator(key="g", error_code=error)
    other = wire.FindCoordinatorResponseCoordinator(key="another", error_code=25)
    deleted = wire.DeleteGroupsResponseDeletableGroupResult(group_id="g", error_code=error)
    not_ours = wire.DeleteGroupsResponseDeletableGroupResult(group_id="another", error_code=25)
    left = wire.LeaveGroupResponseMemberResponse(member_id=client.member_id, error_code=error)
    requests: dict[int, tuple[Any, Any, int]] = {
        8: (
            wire.OffsetCommitRequest(**named, generation_id_or_member_epoch=3, topics=(topic,)),
            commit_reply(error),
            9,
        ),
        10: (wire.FindCoordinatorRequest(coordinator_keys=("g",)), wire.FindCoordinatorResponse(coordinators=(found, other)), 4),
        11: (talk.join_request(client), wire.JoinGroupResponse(error_code=error), 9),
        12: (
            wire.HeartbeatRequest(**named, generation_id=3),
            wire.HeartbeatResponse(error_code=error),
            4,
        ),
        13: (wire.LeaveGroupRequest(group_id="g", members=(identity,)), wire.LeaveGroupResponse(members=(left,)), 5),
        14: (talk.sync_request(client, []), talk.synced(error), 5),
        28: (
            wire.TxnOffsetCommitRequest(**named, generation_id_or_member_epoch=3, topics=(txn_topic,)),
            wire.TxnOffsetCommitResponse(topics=(wire.TxnOffsetCommitResponseTopic(name="t", partitions=(txn_done,)),)),
            3,
        ),
        42: (wire.DeleteGroupsRequest(groups_names=("g",)), wire.DeleteGroupsResponse(results=(deleted, not_ours)), 2),
    }
    request, reply, newest = requests[api_key]
    talk.call(client, request, reply, version=newest if version is None else version)


@pytest.mark.parametrize(
    ("api_key", "error"),
    [
        (11, 22),
        (11, 110),
        (11, 111),
        (11, 112),
        (11, 113),
        (11, 27),
        (14, 79),
        (12, 79),
        (13, 79),
        (13, 22),
        (10, 25),
        (8, 79),
        (42, 22),
        (28, 79),
    ],
)
def test_P_07_fires_on_an_error_that_no_coordinator_gives(talk: Conversation, api_key: int, error: int) -> None:
    a, _ = settled(talk)
    ask_any(talk, a, api_key, error)
    talk.settle()
    finding = talk.the("P-07")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert wire.error_name(error) in finding.summary
    talk.wait(61_000)
    assert talk.the("P-07").status is Status.RESOLVED


EVERYWHERE = {35, 30, 15, 24, 16, 14, -1, 42}
ALLOWED = {
    8: {3, 29, 12, 28, 100, 25, 82, 22, 27, 69, 113, 7},
    10: {53, 120, 29},
    11: {26, 81, 23, 79, 25, 82, 27},
    12: {25, 82, 22, 27},
    13: {25, 82},
    14: {27, 25, 82, 22, 23},
    28: {3, 29, 12, 28, 7, 25, 82, 22, 53, 47, 48, 49, 51, 59, 90, 120, 27, 69, 113},
    42: {68, 69},
}


@pytest.mark.parametrize("api_key", ALLOWED)
def test_P_07_allows_what_the_protocol_allows_and_nothing_else(api_key: int) -> None:
    allowed = EVERYWHERE | ALLOWED[api_key]
    for error in sorted(EVERYWHERE.union({110, 111}, *ALLOWED.values())):
        if (api_key, error) == (11, 27):
            continue
        talk = Conversation()
        a = talk.client("a", instance_id="i")
        talk.join_all([a], 3)
        if error != 27:  # which a commit is answered only until its member has its assignment
            talk.sync_all([a])
        ask_any(talk, a, api_key, error, version={8: 10, 10: 5}.get(api_key) if error in {100, 120} else None)
        assert ("P-07" in talk.settled_rules()) == (error not in allowed), (api_key, error)


@pytest.mark.parametrize("api_key", [8, 11, 12, 14, 42])
def test_P_07_allows_from_the_first_version_on_what_every_coordinator_says(api_key: int) -> None:
    for error in EVERYWHERE | ({68, 69} if api_key == 42 else set()):
        talk = Conversation()
        a, _ = settled(talk)
        ask_any(talk, a, api_key, error, version=0)
        assert "P-07" not in talk.settled_rules(), (api_key, error)


@pytest.mark.parametrize(
    ("api_key", "error", "version"), [(11, 79, 3), (11, 82, 4), (14, 23, 4), (14, 82, 2), (12, 82, 2), (8, 69, 8), (8, 82, 6)]
)
def test_P_07_knows_since_when_an_error_exists(talk: Conversation, api_key: int, error: int, version: int) -> None:
    a, _ = settled(talk)
    ask_any(talk, a, api_key, error, version=version)
    assert "P-07" in talk.settled_rules()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_P_07_fires_on_a_leave_that_is_fenced_though_it_can_name_no_instance(talk: Conversation, version: int) -> None:
    """LeaveGroup names instances since v3 (KIP-345)."""
    a, _ = settled(talk)
    request = wire.LeaveGroupRequest(group_id="g", member_id=a.member_id)
    talk.call(a, request, wire.LeaveGroupResponse(error_code=82), version=version)
    assert talk.settled_rules() == ["P-07", "M-10"]


def test_P_07_allows_codes_of_releases_to_come(talk: Conversation) -> None:
    a, _ = settled(talk)
    ask_any(talk, a, 14, max(wire.ERROR_CODES) + 20)
    assert talk.settled_rules() == []


@pytest.mark.parametrize("error", [23_600, -2])
def test_P_07_fires_on_a_code_that_no_release_to_come_will_have(talk: Conversation, error: int) -> None:
    """Bytes of something else were taken for an answer, and passed for an error of a newer release."""
    a, _ = settled(talk)
    talk.heartbeat(a, error)
    assert talk.settled_rules() == ["P-07"]
    assert f"with {error}, which no coordinator gives there" in talk.the("P-07").summary


@pytest.mark.parametrize(("release", "said"), [("2.3", []), ("2.4", ["P-07"])])
def test_P_07_allows_old_brokers_to_see_that_no_assignment_is_there_before_they_look_for_the_member(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch, release: str, said: list[str]
) -> None:
    monkeypatch.setattr(conversation, "VERSIONS", {**conversation.VERSIONS, **world.VERSIONS[release]})
    a, b = settled(talk)
    talk.join_all([b], 4)
    talk.wait(100)
    talk.commit(a, 27)
    assert talk.settled_rules() == said


def test_P_07_allows_a_static_replacement_whose_append_timed_out(talk: Conversation) -> None:
    a, _ = settled(talk, static=True)
    talk.refuse_join(offer(talk, restarted(talk, a)), 27)
    assert talk.settled_rules() == []


def test_P_07_allows_an_upgrade(talk: Conversation) -> None:
    a, b = settled(talk)
    waiting = [offer(talk, a), offer(talk, b)]
    talk.consumer_heartbeat(talk.client("new"))
    for asked in waiting:
        talk.refuse_join(asked, 27)
    assert talk.settled_rules() == ["P-12"]


@pytest.mark.parametrize(("then", "said"), [("it goes on", ["P-07"]), ("it moves", []), ("it dies", [])])
def test_P_07_allows_an_upgrade_that_is_lost_with_its_coordinator(talk: Conversation, then: str, said: list[str]) -> None:
    """Held JoinGroups are answered before the upgrade is written, and no client is told of an upgrade that is not."""
    a, b = settled(talk)
    for asked in (offer(talk, a), offer(talk, b)):
        talk.refuse_join(asked, 27)
    talk.wait(100)
    for one in (a, b):
        if then == "it moves":
            talk.refuse_join(offer(talk, one), 16)
        elif then == "it dies":
            talk.close(one)
    assert talk.settled_rules() == said


# ---------------------------------------------------------------------------------------------------- P-08


def before_the_leader(talk: Conversation) -> tuple[Client, Client]:
    a, b = group(talk)
    deliver(talk, fetch(talk, b), parts(1))
    return a, b


def test_P_08_fires_on_an_assignment_before_there_can_be_one(talk: Conversation) -> None:
    a, b = before_the_leader(talk)
    talk.wait(100)
    deliver(talk, submit(talk, a, {a: parts(0), b: parts(1)}), parts(0))
    talk.settle()
    finding = talk.the("P-08")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert finding.member_id == b.member_id
    talk.wait(61_000)
    join(talk, [a, b], 4)
    talk.settle()
    assert talk.the("P-08").status is Status.RESOLVED


def test_P_08_waits_for_a_request_on_a_slower_connection(talk: Conversation) -> None:
    a, b = before_the_leader(talk)
    now_us = talk.now_us
    talk.now_us -= 1_000
    asked = submit(talk, a, {a: parts(0), b: parts(1)})
    talk.now_us = now_us
    deliver(talk, asked, parts(0))
    assert talk.settled_rules() == []


def test_P_08_allows_a_group_that_was_loaded_stable(talk: Conversation) -> None:
    a, b = settled(talk)
    a, b = fail_over(talk, [a, b])
    answer(talk, offer(talk, b), generation=3, leader=a.member_id)
    deliver(talk, fetch(talk, b), parts(1))
    assert talk.settled_rules() == []


def test_P_08_needs_every_frame(talk: Conversation) -> None:
    _, b = group(talk)
    talk.lose()
    deliver(talk, fetch(talk, b), parts(1))
    assert talk.settled_rules() == ["V-01"]


def test_P_08_fires_on_a_generation_that_was_never_handed_out(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.heartbeat(b, generation=9)
    talk.heartbeat(b, generation=9)
    talk.settle()
    finding = talk.the("P-08")
    assert finding.generation == 9
    assert "never issued" in finding.summary


def test_P_08_waits_for_the_answer_that_hands_it_out(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.wait(1_000)
    asked = offer(talk, a)
    talk.heartbeat(b.reconnected(), generation=4)
    answer(talk, asked, generation=4, leader=a.member_id, members=[a, b])
    assert talk.settled_rules() == []


def test_P_08_ignores_heartbeats_of_a_coordinator_that_loads(talk: Conversation) -> None:
    """It said so of another group: of this one nothing shows that the coordinator was away."""
    a, b = settled(talk)
    c = talk.client("c")
    asked = talk.ask(c, talk.join_request(c, group_id="other"), group="other")
    talk.group = "other"
    talk.refuse_join(asked, 14)
    talk.group = "g"
    talk.heartbeat(b, generation=9)
    live(talk, [a, b], 2)
    assert talk.rules() == []


def test_P_08_does_not_judge_a_round_that_it_did_not_see_begin(talk: Conversation) -> None:
    a = talk.client("a", member_id="a-1")
    answer(talk, offer(talk, a), generation=9, leader="b-1")
    talk.heartbeat(a, generation=11)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- P-09


def test_P_09_fires_when_a_version_is_refused(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.heartbeat(a, 35)
    finding = talk.the("P-09")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert "Heartbeat v4" in finding.summary
    talk.wait(61_000)
    assert talk.the("P-09").status is Status.RESOLVED


def test_P_09_is_a_matter_of_configuration_with_static_members(talk: Conversation) -> None:
    a, _ = settled(talk, static=True)
    talk.heartbeat(a, 35)
    assert talk.the("P-09").blame is Blame.CONFIG


@pytest.mark.parametrize("error", [22, 25, 27])
def test_P_09_is_no_matter_of_other_refusals(talk: Conversation, error: int) -> None:
    a, _ = settled(talk)
    talk.heartbeat(a, error)
    assert "P-09" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- P-10


def timed(talk: Conversation, *timeouts: tuple[int, int], **fields: Any) -> list[Client]:
    """A group whose members have these session and rebalance timeouts."""
    clients = [talk.client(name) for name, _ in zip("abc", timeouts, strict=False)]
    for client in clients:
        talk.hand_out_id(client)
    waiting = [
        talk.ask_join(client, session_timeout_ms=session_ms, rebalance_timeout_ms=rebalance_ms, **fields)
        for client, (session_ms, rebalance_ms) in zip(clients, timeouts, strict=True)
    ]
    complete(talk, waiting, 1, clients[0], clients)
    talk.sync_all(clients)
    talk.settle()
    return clients


@pytest.mark.parametrize(("timeouts", "word"), [((30_000, 10_000), "below session timeout"), ((10_000, 2**31 - 1), "without end")])
def test_P_10_fires_on_timeouts_that_make_no_sense(talk: Conversation, timeouts: tuple[int, int], word: str) -> None:
    a, *_ = timed(talk, timeouts)
    finding = talk.the("P-10")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CONFIG
    assert word in finding.summary
    assert finding.member_id == a.member_id
    talk.leave(a)
    talk.settle()
    assert talk.the("P-10").status is Status.RESOLVED


def test_P_10_allows_streams_and_connect_their_endless_timeout(talk: Conversation) -> None:
    stream = (wire.JoinGroupRequestProtocol(name="stream", metadata=subscription("t")),)
    a = talk.client("a")
    talk.hand_out_id(a)
    asked = talk.ask_join(a, rebalance_timeout_ms=2**31 - 1, protocols=stream)
    answer(talk, asked, generation=1, leader=a.member_id, members=[a], protocol_name="stream")
    assert talk.settled_rules() == []


def test_P_10_only_notes_members_that_differ(talk: Conversation) -> None:
    timed(talk, (10_000, 20_000), (12_000, 20_000))
    finding = talk.the("P-10")
    assert finding.severity is Severity.INFO
    assert "timeouts that differ between members (10000 and 20000 ms, 12000 and 20000 ms)" in finding.summary
    assert finding.member_id is None  # none of them differs more than another


def test_P_10_waits_for_the_whole_member_list(talk: Conversation) -> None:
    a = talk.client("a", member_id="a-1")
    answer(talk, talk.ask_join(a, rebalance_timeout_ms=1), generation=9, leader="b-1")
    assert talk.settled_rules() == ["R-03"]


def test_P_10_fires_on_too_few_heartbeats_once_they_are_regular(talk: Conversation) -> None:
    (a,) = timed(talk, (10_000, 20_000))
    for _ in range(10):
        talk.wait(4_500)
        talk.heartbeat(a)
    talk.commit(a, generation_id_or_member_epoch=-1, member_id="")
    assert talk.settled_rules() == []
    for _ in range(15):
        talk.wait(4_500)
        talk.heartbeat(a)
    b = talk.client("b")
    talk.hand_out_id(b)
    talk.ask_join(b)
    talk.settle()
    assert "heartbeats every 4.5 s" in talk.the("P-10").summary


# ---------------------------------------------------------------------------------------------------- P-11


def skipping(talk: Conversation) -> tuple[Client, Client, Asked]:
    a, b = settled(talk, static=True)
    again = restarted(talk, a)
    asked = offer(talk, again)
    again.member_id = "a-2"
    return again, b, asked


def test_P_11_and_A_08_allow_a_static_leader_that_returns_and_is_told_to_skip(talk: Conversation) -> None:
    a, b, asked = skipping(talk)
    answer(talk, asked, generation=3, leader="a-2", member_id="a-2", members=[a, b], skip_assignment=True)
    deliver(talk, submit(talk, a, {}), parts(0))
    assert talk.settled_rules() == []


def test_P_11_fires_when_a_follower_is_told_to_skip(talk: Conversation) -> None:
    a, b = settled(talk, static=True)
    answer(talk, offer(talk, restarted(talk, b)), generation=3, leader=a.member_id, member_id="b-2", skip_assignment=True)
    talk.settle()
    finding = talk.the("P-11")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    talk.wait(61_000)
    assert talk.the("P-11").status is Status.RESOLVED


def test_P_11_fires_when_nobody_was_replaced(talk: Conversation) -> None:
    a, b = settled(talk)
    answer(talk, offer(talk, a), generation=4, leader=a.member_id, members=[a, b], skip_assignment=True)
    assert "P-11" in talk.settled_rules()


def test_P_11_warns_of_a_leader_that_submits_nevertheless(talk: Conversation) -> None:
    a, b, asked = skipping(talk)
    answer(talk, asked, generation=3, leader="a-2", member_id="a-2", members=[a, b], skip_assignment=True)
    deliver(talk, submit(talk, a, {a: parts(1), b: parts(0)}), parts(0))
    talk.settle()
    finding = talk.the("P-11")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT


# ---------------------------------------------------------------------------------------------------- P-12


def test_P_12_is_no_matter_of_a_refusal_that_names_no_leader(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.refuse_join(offer(talk, a), 25, a.member_id)
    assert talk.settled_rules() == []
    assert talk.group_json()["group_type"] == "classic"


# ---------------------------------------------------------------------------------------------------- P-13


def test_P_13_fires_on_a_subscription_that_is_none(talk: Conversation) -> None:
    a = talk.client("a")
    offer(talk, a, b"\x00\x01\xff")
    finding = talk.the("P-13")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert finding.client_id == "a"
    assert "00 01 ff" in finding.observed
    talk.wait(61_000)
    assert talk.the("P-13").status is Status.RESOLVED


def test_P_13_fires_on_an_assignment_that_is_none(talk: Conversation) -> None:
    a, b = group(talk)
    submit(talk, a, {a: b"\x00", b: b"\x00"})
    talk.settle()
    finding = talk.the("P-13")
    assert a.member_id in finding.summary
    assert finding.count == 1


def test_P_13_allows_no_assignment_and_trailing_bytes(talk: Conversation) -> None:
    a, b = group(talk)
    submit(talk, a, {a: parts(0) + b"more", b: b""})
    offer(talk, talk.client("c"), subscription("t") + b"more")
    assert talk.settled_rules() == []


def test_P_13_leaves_other_protocol_types_alone(talk: Conversation) -> None:
    offer(talk, talk.client("a"), b"?", protocol_type="connect")
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- P-14


def strangely_answered(talk: Conversation) -> list[Client]:
    a, b = group(talk)
    deliver(talk, submit(talk, a, {a: parts(0), b: parts(1)}), parts(0))
    deliver(talk, fetch(talk, b), parts(1), protocol="sticky")
    return [a, b]


def test_P_14_fires_on_a_client_that_goes_on_after_a_foreign_answer(talk: Conversation) -> None:
    a, b = strangely_answered(talk)
    live(talk, [a, b], 10)
    assert talk.rules() == ["P-01"]
    live(talk, [a, b], 5)
    finding = talk.the("P-14")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert finding.member_id == b.member_id
    assert "consumer/sticky" in finding.summary
    join(talk, [a, b], 4)
    share_out(talk, [a, b], {a: ASSIGNED, b: assignment()})
    talk.settle()
    assert talk.the("P-14").status is Status.RESOLVED


def test_P_14_allows_a_client_that_stops(talk: Conversation) -> None:
    a, _ = strangely_answered(talk)
    live(talk, [a], 20)
    assert talk.rules() == ["P-01", "T-04"]


def test_P_14_allows_a_client_that_rejoins(talk: Conversation) -> None:
    a, b = strangely_answered(talk)
    live(talk, [a, b], 5)
    offer(talk, b)
    told_to_rejoin(talk, a, 10)
    assert talk.rules() == ["P-01"]


def test_entries_without_a_member_id_are_nobodys(talk: Conversation) -> None:
    a, b = group(talk)
    nobody = talk.client("x", generation=3)
    deliver(talk, talk.ask(nobody, talk.sync_request(nobody, [], assignments=entries({a: parts(0), b: parts(1)}))), parts(0))
    assert talk.settled_rules() == []
