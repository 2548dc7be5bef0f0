"""Streams and share groups: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.wire.record import topics
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import over
from tests.coordinator_model.epochs import RT_MS, TOPICS, Epochs, foo, shows_release
from tests.coordinator_model.streams import Shares, Streams

# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name", "severity", "lasts_s"),
    [
        (1, "missing source topics", Severity.WARNING, 20),
        (2, "wrong partition counts", Severity.WARNING, 20),
        (3, "missing internal topics", Severity.ERROR, 60),
        (6, "missing client tags", Severity.WARNING, 60),
    ],
)
def test_R_19_fires_when_a_status_lasts_longer_than_is_normal(
    talk: Streams, code: int, name: str, severity: Severity, lasts_s: int
) -> None:
    a = talk.member("a")
    talk.enters(a, 1, (), (code, "Source topics payments are missing."))
    talk.told_for([a], lasts_s - 5, (code, "Source topics payments are missing."))
    assert talk.rules() == []
    talk.told_for([a], 10, (code, "Source topics payments are missing."))
    talk.settle()
    finding = talk.the("R-19")
    assert (finding.severity, finding.certainty, finding.blame) == (severity, Certainty.CERTAIN, Blame.CONFIG)
    assert f"({name})" in finding.observed
    assert (finding.member_id, finding.client_id) == (None, None)  # it concerns all members
    assert "“Source topics payments are missing.”" in finding.summary
    talk.works(a, 2, (0, 1))
    talk.wait(1_500)
    assert talk.the("R-19").status is Status.RESOLVED
    assert talk.rules() == ["R-19"]


@pytest.mark.parametrize("code", [1, 2])
def test_R_19_is_an_error_after_a_minute(talk: Streams, code: int) -> None:
    a = talk.member("a")
    talk.enters(a, 1, (), (code, "payments"))
    talk.told_for([a], 60, (code, "payments"))
    assert talk.the("R-19").severity is Severity.WARNING
    talk.told_for([a], 5, (code, "payments"))
    finding = talk.the("R-19")
    assert (finding.severity, finding.count) == (Severity.ERROR, 9)
    assert " s by now." in finding.summary


@pytest.mark.parametrize(("statuses", "rules"), [([(1, "payments")], ["R-19"]), ([], ["R-14"])])
def test_R_14_leaves_tasks_of_a_missing_source_topic_to_R_19(
    talk: Streams, statuses: list[tuple[int, str]], rules: list[str]
) -> None:
    """Nobody is to get them: the coordinator takes them from all members."""
    a = talk.member("a")
    talk.enters(a, 1, (0, 1))
    talk.works(a, owned=(0, 1))
    talk.works(a, None, (), *statuses)
    talk.told_for([a], RT_MS // 2_000 + 5, *statuses)
    assert talk.settled_rules() == rules


def test_R_19_fires_although_clients_give_up_and_come_back_under_other_ids(talk: Streams) -> None:
    """The Java client leaves at the first such answer."""
    stays = talk.member("stays")
    talk.enters(stays, 1, (), (1, "payments"))
    for number in range(8):
        client = talk.member(f"a{number}")
        talk.enters(client, 2 + 2 * number, (), (1, "payments"))
        talk.works(client, -1, asked=-1)
        talk.told_for([stays], 10, (1, "payments"))
    assert talk.the("R-19").severity is Severity.ERROR


def test_R_19_fires_when_the_assignment_stays_delayed(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 1, (), (5, ""))
    talk.told_for([a], 40, (5, ""))
    assert talk.the("R-19").severity is Severity.WARNING


def test_R_19_does_not_join_what_two_members_were_told_when_nobody_was_there_between(talk: Streams) -> None:
    """The first dies at once, so nobody asks the broker to make the topic until the second comes."""
    first, second = talk.member("a"), talk.member("b")
    talk.enters(first, 1, (), (3, "internal"))
    talk.close(first)
    talk.wait(55_000)
    talk.enters(second, 2, (), (3, "internal"))
    talk.told_for([second], 20, (3, "internal"))
    talk.works(second, 3, (0, 1))
    assert "R-19" not in talk.settled_rules()


def test_R_19_allows_a_delay_for_each_assignment(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 1, ())
    for epoch in range(2, 8):
        talk.works(a, epoch, (epoch,), (5, ""))
        talk.told_for([a], 15)
    assert talk.settled_rules() == []


def told_now_and_then(talk: Streams, code: int) -> Client:
    """A status that comes and goes; an answer without one has null, as brokers of 4.1 answer (KAFKA-19945)."""
    talk.null_statuses = True
    a = talk.member("a")
    talk.enters(a, 1, (), (code, "payments"))
    for _ in range(4):
        talk.told_for([a], 15, (code, "payments"))
        talk.told_for([a], 5)
    talk.settle()
    return a


@pytest.mark.parametrize("code", [1, 2, 3, 5])
def test_R_19_takes_no_status_for_none_where_the_broker_may_be_older_than_4_2(talk: Streams, code: int) -> None:
    a = told_now_and_then(talk, code)
    assert talk.rules() == []
    talk.told_for([a], 70, (code, "payments"))
    talk.told_for([a], 5)
    assert talk.the("R-19").status is Status.RESOLVED


@pytest.mark.parametrize("code", [1, 2, 3])
def test_R_19_takes_no_status_for_an_unchanged_one_since_4_2(talk: Streams, code: int) -> None:
    shows_release(talk, talk.client("admin"), (4, 2))
    told_now_and_then(talk, code)
    assert talk.rules() == ["R-19"]


def test_R_19_warns_of_a_member_with_an_older_topology(talk: Streams) -> None:
    a, old = talk.member("a"), talk.member("old")
    talk.enters(a, 1, (0, 1), topology=1)
    talk.enters(old, 2, (), (0, "topology 0 is stale"))
    for _ in range(14):
        talk.works(a, 2)
        talk.told_for([old], 5, (0, "topology 0 is stale"))
    finding = talk.the("R-19")
    assert (finding.severity, finding.member_id) == (Severity.WARNING, "old-id")
    assert "an older version of the application" in finding.summary
    talk.works(old, 3, (0,))
    talk.wait(1_500)
    assert talk.the("R-19").status is Status.RESOLVED


def test_R_19_names_all_that_have_an_older_version(talk: Streams) -> None:
    a, *old = talk.member("a"), talk.member("old"), talk.member("older")
    talk.enters(a, 1, (0, 1), topology=1)
    for epoch, one in enumerate(old, 2):
        talk.enters(one, epoch, (), (0, "topology 0 is stale"))
    for _ in range(14):
        talk.works(a, 3)
        talk.told_for(old, 5, (0, "topology 0 is stale"))
    finding = talk.the("R-19")
    assert "member old-id " in finding.summary
    assert "member older-id " in finding.summary
    assert " get no tasks" in finding.summary
    assert (finding.member_id, finding.client_id) == (None, None)


# ----------------------------------------------------------------------------------------------------


def fails(talk: Streams, name: str, epoch: int) -> Client:
    client = talk.member(name)
    talk.enters(client, epoch, (0,))
    talk.works(client, None, None, (4, ""), shutdown_application=True)
    return client


def test_R_20_notes_who_asked_the_application_to_stop(talk: Streams) -> None:
    a = fails(talk, "a", 1)
    talk.works(a, None, None, (4, ""), shutdown_application=True)
    finding = talk.the("R-20")
    assert (finding.severity, finding.blame, finding.member_id, finding.count) == (Severity.INFO, Blame.CLIENT, "a-id", 1)
    talk.told_for([a], 1_000)
    assert talk.the("R-20").status is Status.RESOLVED
    assert talk.rules() == ["R-20"]


def test_R_20_fires_when_the_application_comes_back_and_asks_again(talk: Streams) -> None:
    a = fails(talk, "a", 1)
    talk.works(a, -1, asked=-1)
    fails(talk, "b", 3)
    finding = talk.the("R-20")
    assert finding.severity is Severity.CRITICAL
    assert finding.summary.startswith("Member b-id ")
    assert "the application comes back and fails again" in finding.summary


def test_R_20_names_all_that_ask(talk: Streams) -> None:
    fails(talk, "a", 1)
    fails(talk, "b", 2)
    finding = talk.the("R-20")
    assert "to stop, and so did member a-id " in finding.summary
    assert (finding.member_id, finding.client_id) == (None, None)


def test_R_20_quotes_who_asked_where_the_request_was_not_seen(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 1, (0,))
    talk.works(a, None, None, (4, "Streams group member b-id requested a shutdown."))
    finding = talk.the("R-20")
    assert (finding.severity, finding.member_id) == (Severity.INFO, None)
    assert finding.summary == (
        "The members of Streams group g are told to stop, at the request of one that was not seen: “Streams group member b-id requested a "
        "shutdown.”."
    )


def test_R_20_says_nothing_new_when_the_others_are_told_of_a_request_that_was_seen(talk: Streams) -> None:
    other = talk.member("b")
    talk.enters(other, 1, (1,))
    fails(talk, "a", 2)
    talk.works(other, 2, None, (4, "Streams group member a-id requested a shutdown."))
    talk.settle()
    assert (talk.the("R-20").member_id, talk.the("R-20").count) == ("a-id", 1)


def test_R_20_is_no_matter_of_an_ordinary_leave_nor_of_another_status(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 1, (0,), (5, "Assignment delayed."))
    talk.works(a, -1, asked=-1)
    assert talk.settled_rules() == []


# ----------------------------------------------------------------------------------------------------


def told_to_stop(talk: Streams) -> Client:
    """One member asks the application to stop, and another is told so."""
    other = talk.member("b")
    talk.enters(other, 1, (1,))
    fails(talk, "a", 2)
    talk.works(other, 2, None, (4, "Streams group member a-id requested a shutdown."))
    return other


def test_R_23_fires_when_a_member_goes_on_although_it_was_told_to_stop(talk: Streams) -> None:
    other = told_to_stop(talk)
    talk.restore()
    talk.told_for([other], 80, (4, ""))
    finding = talk.the("R-23")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, "b-id")
    assert "goes on in Streams group g although it was told " in finding.summary
    talk.works(other, -1, asked=-1)
    talk.wait(62_000)
    assert talk.the("R-23").status is Status.RESOLVED


def test_R_23_allows_a_member_to_close_within_a_minute(talk: Streams) -> None:
    other = told_to_stop(talk)
    talk.told_for([other], 50, (4, ""))
    talk.works(other, -1, asked=-1)
    assert "R-23" not in talk.settled_rules()


def test_R_23_is_no_matter_of_a_member_that_joins_again(talk: Streams) -> None:
    other = told_to_stop(talk)
    talk.told_for([other], 50, (4, ""))
    talk.enters(other, 5, (1,))
    talk.told_for([other], 50)
    assert "R-23" not in talk.rules()


# ----------------------------------------------------------------------------------------------------


def test_R_21_warns_when_nobody_of_a_share_group_gets_anything(talk: Shares) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.shares(a, 0, 2, ())
    talk.shares(b, 0, 3, ())
    talk.shares(a, 2, 3, ())
    talk.goes_on([a, b], 70)
    finding = talk.the("R-21")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.HEURISTIC, Blame.CONFIG)
    assert "foo may not exist" in finding.summary
    talk.shares(a, 3, 4, (0, 1))
    talk.wait(1_500)
    assert talk.the("R-21").status is Status.RESOLVED
    assert talk.rules() == ["R-21"]


def test_R_21_blames_the_share_coordinator_where_the_topic_is_known_to_exist(talk: Shares) -> None:
    record = topics(talk.now_us, {TOPICS["foo"]: "foo"}, cluster="c1")
    talk.model.receive(record._replace(partition=0, offset=talk.offset))
    talk.offset += 1
    a = talk.member("a")
    talk.shares(a, 0, 2, ())
    talk.goes_on([a], 70)
    assert talk.the("R-21").summary.endswith("foo exists, so the share coordinator has not made the partitions ready.")


def test_R_21_says_after_20_s_that_the_topic_does_not_exist_and_names_the_only_member(talk: Shares) -> None:
    """Seen on 4.3.1: the topic was deleted, and was said to exist."""
    for partitions in (4, 0):
        talk.topics(foo=partitions)
    a = talk.member("a")
    talk.shares(a, 0, 2, ())
    talk.goes_on([a], 15)
    assert talk.rules() == []
    talk.goes_on([a], 10)
    finding = talk.the("R-21")
    assert finding.certainty is Certainty.CONFIRMED
    assert finding.summary.endswith(": foo does not exist.")
    assert finding.member_id == "a-id"


def test_R_21_waits_a_minute_and_allows_one_member_to_have_nothing(talk: Shares) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.shares(a, 0, 2, ())
    talk.goes_on([a], 50)
    talk.shares(a, 2, 3, (0,))
    talk.shares(b, 0, 4, ())
    talk.shares(a, 3, 4)
    talk.goes_on([a, b], 80)
    assert talk.rules() == []


# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [42, 130, 131, 132])
def test_R_22_warns_of_a_topology_that_is_refused(talk: Streams, error: int) -> None:
    talk.enters(talk.member("a"), 1, (0,))
    b = talk.member("b")
    talk.refused_entry(b, error, "Topology updates are not supported yet.")
    finding = talk.the("R-22")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CONFIG, "b-id")
    assert finding.summary.endswith("“Topology updates are not supported yet.”.")
    assert "Where this is another application than the group's members are, give it an application.id of its own." in finding.action
    assert talk.rules() == ["R-22"]
    talk.enters(b, 2, (1,))
    talk.wait(1_500)
    assert talk.the("R-22").status is Status.RESOLVED


def test_R_22_tells_once_of_a_client_that_is_started_anew_and_refused_again(talk: Streams) -> None:
    talk.enters(talk.member("a"), 1, (0,))
    b = talk.member("b")
    for number in range(2):
        b.member_id = f"b-{number}"
        talk.refused_entry(b, 42)
    talk.settle()
    assert talk.the("R-22").count == 2
    assert len({finding.id for finding in talk.findings}) == 1


def test_R_22_is_no_matter_of_other_refusals_nor_of_a_malformed_join(talk: Streams) -> None:
    talk.enters(talk.member("a"), 1, (0,))
    b = talk.member("b")
    for error in (81, 14, 30):
        talk.refused_entry(b, error)
    talk.refused_entry(b, 42, rebalance_timeout_ms=-1)
    talk.call(b, talk.task_beat(b, 1), wire.StreamsGroupHeartbeatResponse(error_code=42))
    assert "R-22" not in talk.settled_rules()


def test_R_22_is_no_matter_of_a_consumer_group(talk: Epochs) -> None:
    talk.joins(talk.member("a"), 2, foo(0))
    talk.refused_join(talk.member("b"), 42)
    assert "R-22" not in talk.settled_rules()


def test_endpoints_of_an_application_are_in_no_finding_and_in_no_view(talk: Streams) -> None:
    """They are host names of its users' making (interactive queries)."""
    a = talk.member("a")
    host = wire.StreamsGroupHeartbeatRequestEndpoint(host="secret.example", port=8080)
    own = wire.StreamsGroupHeartbeatResponseEndpoint(host="secret.example", port=8080)
    talk.call(a, talk.entry(a, user_endpoint=host), talk.tasks_given(a, 1, ()))
    a.generation = 1
    for _ in range(14):
        answer = talk.tasks_given(a, 1, None, (1, "payments"))
        shown = wire.StreamsGroupHeartbeatResponseEndpointToPartitions(user_endpoint=own)
        talk.call(a, talk.task_beat(a, 1), replace(answer, partitions_by_user_endpoint=(shown,)))
        talk.wait(5_000)
    assert talk.rules() == ["R-19"]
    assert "secret.example" not in f"{talk.findings}{talk.group_json()}"


def test_a_snapshot_keeps_statuses_and_requests_to_stop(talk: Streams) -> None:
    fails(talk, "a", 1)
    again = Coordinator.restore(talk.model.snapshot())
    kept, _ = again.groups.opened(("c1", "g"))
    group, _ = talk.model.groups.opened(("c1", "g"))
    assert (kept.status_streaks, kept.shutdowns) == (group.status_streaks, group.shutdowns)  # type: ignore[attr-defined]
    assert kept.shutdowns  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Streams, Shares])
def test_the_first_assignment_of_a_group_that_was_put_off_is_no_change_of_topics(kind: type[Streams | Shares]) -> None:
    """A Streams group waits for more members, a share group until its partitions are ready; then the epoch rises by itself."""
    talk = kind()
    a = talk.member("a")
    for epoch, work in ((1, ()), (2, (0, 1)), (3, (0,))):
        if isinstance(talk, Shares):
            talk.shares(a, max(0, epoch - 1), epoch, work)
        elif epoch == 1:
            talk.enters(a, 1, work, (5, ""))
        else:
            talk.works(a, epoch, work)
        talk.wait(5_000)
    causes = {cause: times for cause, times in talk.group_json()["rebalances"].items() if cause != "joined"}
    assert causes == {"the assignment had been put off": 1, "topics, a pattern or the configuration changed": 1}


def test_a_leave_that_was_answered_as_if_it_had_failed_raised_the_epoch_and_it_is_not_known_who_is_left(talk: Streams) -> None:
    """Seen on 4.3.1 while a follower stood still: the leave counts, and is answered COORDINATOR_NOT_AVAILABLE after 5 s."""
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 1, (0, 1))
    talk.enters(b, 2, ())
    talk.works(a, 2, (0,), owned=(0, 1))
    talk.told_for([a, b], 30)
    talk.turned_away(b, 15, epoch=-1)
    talk.works(a, 3, (0, 1))
    content = talk.group_json()
    assert content["rebalances"] == {"joined": 1, "left": 1}
    assert content["learning"] == "no frame shows whether a request of member b-id took effect"


# ---------------------------------------------------------------------------------------------------- O-06, in Streams groups


def two_with_tasks() -> tuple[Streams, Client, Client]:
    talk = Streams()
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0,))
    talk.enters(b, 3, (1,))
    talk.works(a, 3, None)
    return talk, a, b


def test_O_06_fires_when_a_streams_member_commits_before_and_after_another() -> None:
    talk, a, b = two_with_tasks()
    for one in (a, b, a):
        talk.commits(one)
        talk.wait(500)
    talk.settle()
    finding = talk.the("O-06")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.ERROR, Certainty.CONFIRMED, Blame.CLIENT)
    assert finding.summary.startswith("Two members of group g commit the same partitions in turn: member a-id (client a at ")
    assert finding.summary.endswith(") and member b-id; foo-0.")
    talk.commits(a)
    over(talk)
    assert talk.the("O-06").status is Status.RESOLVED


@pytest.mark.parametrize(
    "why", ["once", "came back", "other partitions", "under way", "a frame is missing", "refused", "consumer group"]
)
def test_O_06_allows_commits_of_a_task_that_may_have_moved(why: str) -> None:
    talk, a, b = two_with_tasks()
    if why == "consumer group":  # O-05 tells of these
        talk = Epochs()
        a, b = talk.member("a"), talk.member("b")
        talk.joins(a, 3, foo(0))
        talk.joins(b, 3, foo(1))
    if why == "under way":
        partition = wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topic = wire.OffsetCommitRequestTopic(name="foo", partitions=(partition,))
        request = wire.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=3, member_id="b-id", topics=(topic,))
        asked = talk.ask(b, request, version=9)
        talk.commits(a)
        done = wire.OffsetCommitResponseTopic(name="foo", partitions=(wire.OffsetCommitResponsePartition(partition_index=0),))
        talk.answer(asked, wire.OffsetCommitResponse(topics=(done,)))
    else:
        talk.commits(a)
        talk.wait(500)
        talk.commits(b, 25 if why == "refused" else 0, number=1 if why == "other partitions" else 0)
    talk.wait(500)
    if why == "a frame is missing":
        talk.gap()
    if why == "came back":
        talk.works(a, 4, None)
    if why != "once":
        talk.commits(a)
    assert "O-06" not in talk.settled_rules()
