"""M-13 in groups with epochs: a process that dies and comes back under a new member id, over and over."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epochs import TOPICS, Epochs, foo
from tests.coordinator_model.streams import Shares, Streams


def lives(talk: Epochs, stays: Client, times: int, *, host: str = "10.0.0.2", name: str = "worker", died: str = "closed") -> None:
    """Each life lasts 5 s; the next one begins 2 s after its end."""
    for _ in range(times):
        client = talk.member(name)
        client.host = host
        client.member_id = f"{name}-{len(talk.records)}"
        epoch = stays.generation + 1
        talk.joins(client, epoch, {})
        talk.beats(stays, epoch)
        talk.live([client, stays], 5)
        if died == "left":
            talk.leaves(client)
            talk.beats(stays, epoch + 1)
        if died != "vanished":
            talk.close(client)
        talk.wait(2_000)


def group_of_one(talk: Epochs) -> Client:
    stays = talk.member("stays")
    talk.joins(stays, 2, foo(0, 1, 2))
    return stays


@pytest.mark.parametrize("cut", [False, True])
def test_M_13_fires_at_the_third_return_of_a_member_with_epochs(talk: Epochs, *, cut: bool) -> None:
    stays = group_of_one(talk)
    lives(talk, stays, 3)
    assert talk.rules() == []
    if cut:
        talk.restore()
    lives(talk, stays, 10)
    finding = talk.the("M-13")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.HEURISTIC, Blame.CLIENT)
    assert (finding.client_id, finding.group_type) == ("worker", "consumer")
    assert "Client worker at 10.0.0.2 went away from group g without leaving and came back 10 times since" in finding.summary
    assert "each time its partitions are idle until its session ends, which takes 45.0 to 60.0 s" in finding.summary
    assert talk.rules() == ["M-13"]
    talk.live([stays], 400)
    assert talk.the("M-13").status is Status.RESOLVED


def test_M_13_tells_how_many_dead_members_keep_how_much(talk: Epochs) -> None:
    stays = group_of_one(talk)
    for number in range(5):
        epoch = stays.generation + 1
        client = talk.member("worker")
        client.member_id = f"worker-{number}"
        talk.joins(client, epoch, {})
        talk.beats(stays, epoch - 1, foo(*range(2 - number)))
        talk.beats(stays, epoch, owned=foo(*range(2 - number)))
        if number < 3:
            talk.beats(client, epoch, foo(2 - number))
        talk.close(client)
        talk.live([stays], 5)
    assert "; now 3 dead members keep 3." in talk.the("M-13").summary


@pytest.mark.parametrize("died", ["left", "closed"])
def test_M_13_allows_members_that_leave_and_fewer_deaths(talk: Epochs, died: str) -> None:
    stays = group_of_one(talk)
    lives(talk, stays, 6 if died == "left" else 3, died=died)
    assert "M-13" not in talk.settled_rules()


def test_M_13_allows_processes_of_one_client_id_that_are_killed_together(talk: Epochs) -> None:
    stays = group_of_one(talk)
    for wave in range(2):
        clients = [talk.member("worker") for _ in range(6)]
        for number, client in enumerate(clients):
            client.member_id = f"worker-{wave}-{number}"
            talk.joins(client, stays.generation + 1, {})
            talk.beats(stays, stays.generation + 1)
        talk.live([stays, *clients], 10)
        for client in clients:
            talk.close(client)
        talk.live([stays], 10)
    assert "M-13" not in talk.rules()


def test_M_13_allows_a_client_that_connects_again_under_its_id(talk: Epochs) -> None:
    stays = group_of_one(talk)
    client = talk.member("worker")
    talk.joins(client, 3, {})
    talk.beats(stays, 3)
    for _ in range(6):
        talk.close(client)
        client = client.reconnected()
        talk.beats(client)
        talk.live([stays, client], 10)
    assert talk.rules() == []


def test_M_13_does_not_count_members_that_were_told_that_they_are_none(talk: Epochs) -> None:
    """franz-go takes another id then."""
    stays = group_of_one(talk)
    for number in range(6):
        client = talk.member("worker")
        client.member_id = f"worker-{number}"
        talk.joins(client, stays.generation + 1, {})
        talk.beats(stays, stays.generation + 1)
        talk.refused(client, 25)
        talk.close(client)
        talk.wait(3_000)
    assert "M-13" not in talk.rules()


def test_M_13_fires_for_a_host_that_vanishes_without_closing_its_connection() -> None:
    talk = Epochs(group_consumer_session_timeout_ms=6_000)
    stays = group_of_one(talk)
    for _ in range(5):
        lives(talk, stays, 1, died="vanished")
        talk.live([stays], 10)
    assert talk.the("M-13").client_id == "worker"


def test_M_13_fires_for_a_static_member_whose_successors_die_too(talk: Epochs) -> None:
    stays = group_of_one(talk)
    for number in range(4):
        client = talk.member(f"pod-{number}", "i")
        talk.joins(client, stays.generation + 1, {})
        talk.beats(stays, stays.generation + 1)
        talk.live([client, stays], 5)
        talk.close(client)
        talk.live([stays], 50)
    finding = talk.the("M-13")
    assert finding.instance_id == "i"
    assert finding.summary.startswith("Instance i, client pod-3 at 10.0.0.1 went away")


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(("instance_id", "times"), [(None, 3), ("i", 4)])
def test_M_13_names_the_record_at_which_a_member_with_epochs_dies_each_time(
    version: int, instance_id: str | None, times: int
) -> None:
    """A dynamic member gets the partition when the session of the one that died is over, a static one at once."""
    talk = Epochs(group_consumer_session_timeout_ms=6_000)
    stays = talk.member("stays")
    talk.joins(stays, 2, foo(0))
    talk.commits(stays, version=version, number=1)
    for number in range(5):
        client = talk.member("worker", instance_id)
        client.host, client.member_id = "10.0.0.2", f"worker-{number}"
        epoch = stays.generation + 1
        talk.joins(client, epoch, {} if instance_id is None else foo(1))
        talk.beats(stays, epoch)
        talk.live([client, stays], 10)
        if instance_id is None:
            talk.beats(client, epoch, foo(1))
            talk.beats(client, epoch, owned=foo(1))
        talk.close(client)
        talk.wait(2_000)
        talk.commits(stays, version=version, number=0)
    finding = talk.the("M-13")
    assert finding.summary.endswith(
        f"Each of the last {times} times it held foo-1, whose offset stays at 5: most likely it cannot process the record there."
    )


def test_M_13_names_no_record_if_the_offset_moves_between_the_deaths_of_a_member_with_epochs() -> None:
    talk = Epochs(group_consumer_session_timeout_ms=6_000)
    stays = group_of_one(talk)
    lives(talk, stays, 8)
    assert "whose offset stays" not in talk.the("M-13").summary


def test_M_13_fires_for_a_share_group_and_speaks_of_what_stays_locked(talk: Shares) -> None:
    stays = talk.member("stays")
    talk.shares(stays, 0, 2, (0,))
    for number in range(5):
        client = talk.member("worker")
        client.member_id = f"worker-{number}"
        talk.shares(client, 0, 3 + number, (0,))
        talk.goes_on([client, stays], 5)
        talk.close(client)
        talk.wait(1_000)
    finding = talk.the("M-13")
    assert (finding.group_type, finding.client_id) == ("share", "worker")
    assert "what it had fetched is locked until that time runs out" in finding.summary


def test_M_13_fires_for_a_streams_group_and_speaks_of_tasks(talk: Streams) -> None:
    stays = talk.member("stays")
    talk.enters(stays, 2, (0,))
    for number in range(5):
        client = talk.member("worker")
        client.member_id = f"worker-{number}"
        talk.enters(client, 3 + number)
        talk.told_for([client, stays], 5)
        talk.close(client)
        talk.wait(1_000)
    finding = talk.the("M-13")
    assert (finding.group_type, finding.client_id) == ("streams", "worker")
    assert "its tasks are idle until its session ends" in finding.summary


def replaced(talk: Streams, names: list[str], *, lives_ms: int = 300) -> None:
    """Each client leaves some time after it was given a task, and the next one joins."""
    for number, name in enumerate(names):
        thread = talk.member(name)
        thread.member_id = f"id-{number}"
        talk.enters(thread, 1 + 2 * number, (0,))
        for _ in range(lives_ms // 5_000):
            talk.wait(5_000)
            talk.works(thread)
        talk.wait(lives_ms % 5_000)
        talk.works(thread, -1, asked=-1)
        talk.close(thread)


def test_M_13_fires_for_a_streams_process_whose_threads_end_and_are_replaced(talk: Streams) -> None:
    talk.topics(**{TOPICS["foo"]: "foo"})
    works = talk.member("app-StreamThread-3-consumer")
    talk.enters(works, 1, (0, 1))
    talk.commits(works)
    talk.commits(works, number=1)
    talk.works(works, -1, asked=-1)
    talk.close(works)
    talk.wait(15_000)
    replaced(talk, [f"app-StreamThread-{1 + number % 2}-consumer" for number in range(4)])
    talk.settle()
    finding = talk.the("M-13")
    assert (finding.severity, finding.client_id) == (Severity.WARNING, "app")
    assert "Threads of client app at 10.0.0.1" in finding.summary
    assert "end in Streams group g as soon as they have tasks, and others take their place, 3 times since" in finding.summary
    assert "Nobody moves foo-0 beyond 5 meanwhile: most likely they cannot process the record there." in finding.summary


@pytest.mark.parametrize(
    "names", [["app-StreamThread-1-consumer"], ["app-1"], ["app-1-StreamThread-1-consumer", "app-2-StreamThread-1-consumer"]]
)
def test_M_13_allows_streams_processes_that_are_started_anew_or_of_which_one_follows_the_other(
    talk: Streams, names: list[str]
) -> None:
    replaced(talk, [*names * 6][:6])
    assert "M-13" not in talk.settled_rules()


def test_M_13_allows_threads_of_a_streams_process_that_worked_for_a_while_before_they_left(talk: Streams) -> None:
    replaced(talk, [f"app-StreamThread-{number}-consumer" for number in range(6)], lives_ms=12_000)
    assert "M-13" not in talk.settled_rules()


def test_M_13_allows_a_streams_process_of_several_threads_that_is_started_anew(talk: Streams) -> None:
    for number in range(6):
        threads = [talk.member(f"app-StreamThread-{one}-consumer") for one in range(1, 5)]
        for thread in threads:
            thread.member_id = f"{thread.name}-{number}"
            talk.enters(thread, 1 + 8 * number, (threads.index(thread),))
        talk.wait(300)
        for thread in threads:
            talk.works(thread, -1, asked=-1)
            talk.close(thread)
        talk.wait(2_000)
    assert "M-13" not in talk.settled_rules()


# ----------------------------------------------------------------------------------------------------


def dead_and_starving(talk: Epochs, dead: int) -> Client:
    """Members that hold two partitions each die; the one that is left has nothing."""
    holders = [talk.member(f"dies-{number}") for number in range(dead)]
    for number, client in enumerate(holders):
        talk.joins(client, 2, foo(2 * number, 2 * number + 1))
    starves = talk.member("starves")
    talk.joins(starves, 3, {})
    for client in holders:
        talk.close(client)
    return starves


def test_R_15_warns_of_a_member_that_has_nothing_while_dead_ones_keep_partitions(talk: Epochs) -> None:
    starves = dead_and_starving(talk, 2)
    talk.live([starves], 15)
    assert talk.rules() == []
    talk.live([starves], 10)
    finding = talk.the("R-15")
    assert (finding.severity, finding.member_id) == (Severity.WARNING, "starves-id")
    assert "may wait for 2 dead members: member dies-0-id" in finding.summary
    assert "lost its connection" in finding.summary
    assert "die without leaving" in finding.action
    talk.live([starves], 20)
    talk.beats(starves, 4, foo(0, 1, 2, 3))
    talk.wait(1_500)
    assert talk.the("R-15").status is Status.RESOLVED


def test_R_15_allows_one_dead_member_whose_session_ends_soon(talk: Epochs) -> None:
    starves = dead_and_starving(talk, 1)
    talk.live([starves], 40)
    assert talk.rules() == []


def test_R_15_warns_in_a_streams_group_too(talk: Streams) -> None:
    holders = [talk.member("a"), talk.member("b")]
    for number, client in enumerate(holders):
        talk.enters(client, 2, (number,))
    starves = talk.member("starves")
    talk.enters(starves, 3)
    for client in holders:
        talk.close(client)
    talk.told_for([starves], 25)
    assert talk.the("R-15").group_type == "streams"
    assert "has had no task of group g since " in talk.the("R-15").summary
