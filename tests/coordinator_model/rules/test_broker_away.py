"""A broker that is away is one cause: the members of its groups lost it, and none of them is to blame for what follows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.wording import clock
from tests.coordinator_model.classic import ask_heartbeat, complete, live, settled
from tests.coordinator_model.conversation import Asked, Client, Conversation
from tests.coordinator_model.rules.standstill import patient, replacement

NAMES = {"g": ("a", "b"), "h": ("c",)}


class Fleet:
    """The clients of two groups of one broker."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk
        self.clients: dict[str, list[Client]] = {}
        for group in self.groups():
            self.clients[group] = [talk.client(name) for name in NAMES[group]]
            talk.round(self.clients[group], 1)
        self.live(5)

    def groups(self) -> Iterator[str]:
        for group in NAMES:
            self.talk.group = group
            yield group

    def live(self, seconds: int) -> None:
        for _ in range(seconds):
            self.talk.wait(1_000)
            for group in self.groups():
                for client in self.clients[group]:
                    self.talk.heartbeat(client)

    def hang_up(self, *but: str) -> None:
        """All connections end, within some milliseconds."""
        for group in self.groups():
            if group not in but:
                for client in self.clients[group]:
                    self.talk.now_us += 1_000
                    self.talk.close(client)

    def reconnect(self) -> None:
        self.clients = {group: [one.reconnected() for one in clients] for group, clients in self.clients.items()}

    def is_told_to_wait(self) -> None:
        """The broker has started: it names itself, and is no coordinator yet."""
        self.reconnect()
        for group in self.groups():
            for client in self.clients[group]:
                self.talk.find_coordinator(client)
                self.talk.heartbeat(client, 16)

    def begin_again(self) -> None:
        """The clients have given up their member ids, and the coordinator waits for these until their sessions are over."""
        asked: dict[str, list[Asked]] = {}
        for group in self.groups():
            for client in self.clients[group]:
                client.member_id = ""
                self.talk.hand_out_id(client)
            asked[group] = [self.talk.ask_join(client) for client in self.clients[group]]
        self.talk.wait(8_000)
        for group in self.groups():
            clients = self.clients[group]
            for one in asked[group]:
                self.talk.joined(one, generation=2, leader=clients[0], roster=clients)
            self.talk.sync_all(clients)


def events(talk: Conversation, *kinds: str) -> list[tuple[str, str]]:
    return [(event.group, event.kind) for event in talk.model.drain_events() if event.kind in kinds]


@pytest.mark.parametrize("restored", [False, True])
def test_C_14_tells_of_a_restart_of_the_only_broker_as_one_cause(talk: Conversation, *, restored: bool) -> None:
    """A clean restart of 27 s: sessions were said to be over and members not to have come back while there was no broker."""
    fleet = Fleet(talk)
    talk.model.drain_events()
    fleet.hang_up()
    talk.wait(12_000)
    for talk.group in NAMES:
        assert talk.group_json()["learning"] == "no coordinator since 22:13:25"
    talk.wait(15_000)
    assert events(talk, "session_over", "rebalance_began") == []
    fleet.is_told_to_wait()
    talk.wait(300)
    fleet.begin_again()
    fleet.live(60)
    assert events(talk, "session_over") == []
    findings = talk.found_when_restored() if restored else talk.findings
    assert {finding.rule for finding in findings} == {"C-14"}
    last = {finding.group: finding for finding in findings}
    assert {finding.id for finding in findings} == {finding.id for finding in last.values()}
    assert last["g"].summary == (
        "Group g had no coordinator for 27.3 s after it lost 1 at 22:13:25; 1 answers now, and 2 of its 2 members are back; 2 groups with "
        "3 members lost it then."
    )
    assert last["h"].summary == (
        "Group h had no coordinator for 27.3 s after it lost 1 at 22:13:25; 1 answers now, and its only member is back; 2 groups with "
        "3 members lost it then."
    )
    for finding in last.values():
        assert (finding.severity, finding.blame, finding.status) == (Severity.INFO, Blame.BROKER, Status.RESOLVED)


@pytest.mark.parametrize(
    ("back", "begins"),
    [
        (1, "Group g has 1 member instead of 2 since 22:14:55: member b-"),
        (0, "Nobody reads for group g since 22:14:55: its 2 members"),
    ],
)
def test_T_13_misses_those_who_lost_the_broker_30_s_after_it_is_back(talk: Conversation, back: int, begins: str) -> None:
    fleet = Fleet(talk)
    fleet.live(90)
    fleet.hang_up()
    talk.wait(120_000)
    fleet.reconnect()
    del fleet.clients["g"][back:]
    fleet.live(25)
    assert "T-13" not in {finding.rule for finding in talk.findings}
    fleet.live(20)
    finding = next(finding for finding in talk.findings if finding.rule == "T-13")
    assert finding.summary.startswith(begins)


@pytest.mark.parametrize("hung_up", [False, True])
def test_C_14_tells_of_a_broker_that_hangs_as_one_cause(talk: Conversation, *, hung_up: bool) -> None:
    """Stopped for 40 s, it took requests and answered none: C-01 was said of each member, T-06 of each late answer."""
    fleet = Fleet(talk)
    talk.wait(1_000)
    asked = {group: [ask_heartbeat(talk, client) for client in fleet.clients[group]] for group in fleet.groups()}
    talk.wait(20_000)
    talk.model.drain_events()
    if hung_up:
        fleet.hang_up()
    talk.wait(20_000)
    assert events(talk, "session_over", "rebalance_began") == []
    if hung_up:
        fleet.reconnect()
    else:
        for group in fleet.groups():
            for one in asked[group]:
                talk.answer(one, wire.HeartbeatResponse(error_code=0))
    fleet.live(40)
    assert talk.rules() == ["C-14"]
    last = {finding.group: finding for finding in talk.findings}
    assert len({finding.id for finding in talk.findings}) == len(last) == 2
    took = "41.0" if hung_up else "40.0"
    assert last["g"].summary.startswith(
        f"The coordinator 1 answered nobody in group g for {took} s, from 22:13:26 on; 1 answers now, and 2 of its 2 members are back; "
        "2 groups with 3 members lost it then."
    )
    for finding in last.values():
        assert (finding.severity, finding.certainty, finding.status) == (Severity.ERROR, Certainty.CONFIRMED, Status.RESOLVED)
        assert finding.broker == "1"


def test_C_14_tells_of_a_broker_that_hangs_where_its_clients_wait_for_the_answers_to_their_commits(talk: Conversation) -> None:
    """Where a client sends one request at a time, as kafkajs does, T-04 was said of each of its members."""
    fleet = Fleet(talk)
    asked = {group: [talk.ask(one, talk.commit_request(one, {})) for one in fleet.clients[group]] for group in fleet.groups()}
    talk.wait(12_000)
    for group in fleet.groups():
        for one in asked[group]:
            talk.answer(one, talk.committed({}))
    fleet.live(20)
    assert talk.rules() == ["C-14"]
    assert {finding.observed for finding in talk.findings if finding.status is Status.OPEN} == {
        "1 takes requests that are answered soon, and has answered none of 2 members since"
    }


@pytest.mark.parametrize("waited_s", [6, 12, 14, 30])
def test_a_member_is_not_silent_that_waits_for_the_answer_to_its_commit(talk: Conversation, waited_s: int) -> None:
    """Such a client asks one thing at a time: it was T-04, and T-02 of the coordinator that served it afterwards."""
    client = settled(talk, "a")[0]
    asked = talk.ask(client, talk.commit_request(client, {}))
    talk.wait(waited_s * 1_000)
    talk.answer(asked, talk.committed({}))
    live(talk, [client], 20)
    assert {"T-02", "T-04"}.isdisjoint(talk.rules())


def test_C_14_leaves_a_broker_alone_that_serves_other_groups(talk: Conversation) -> None:
    """Two members were killed; for 16 minutes it was said that their broker may be gone, while it served twenty other groups."""
    fleet = Fleet(talk)
    fleet.hang_up("h")
    dead = fleet.clients.pop("g")
    fleet.clients["g"] = []
    fleet.live(60)
    assert talk.rules() == ["T-09", "T-04"]
    assert {finding.member_id for finding in talk.findings} == {client.member_id for client in dead}
    talk.group = "g"
    assert talk.group_json()["state"] == "Empty"


def test_members_whose_broker_and_all_others_went_with_them_are_not_known(talk: Conversation) -> None:
    """Whether the broker or all of them are gone, no frame shows: nobody is said to be silent, and nothing to be stable."""
    fleet = Fleet(talk)
    fleet.hang_up()
    talk.model.drain_events()
    talk.wait(600_000)
    assert talk.rules() == ["C-14"]
    assert events(talk, "session_over", "rebalance_began", "rebalance_finished") == []
    for talk.group in NAMES:
        shown = talk.group_json()
        assert (shown["state"], shown["learning"]) == ("Unknown", "no coordinator since 22:13:25")
        assert shown["state_since"].startswith("2023-11-14T22:13:25")


def test_a_group_whose_members_all_lost_their_connections_is_in_no_known_state(talk: Conversation) -> None:
    """One group alone: its broker is gone, or all of its clients are. It was said to be stable until their sessions were over."""
    clients = settled(talk)
    for client in clients:
        talk.close(client)
    talk.wait(2_000)
    shown = talk.group_json()
    assert (shown["state"], shown["learning"]) == ("Unknown", "no member has had a connection since 22:13:20")
    again = [client.reconnected() for client in clients]
    live(talk, again, 4)
    assert (talk.group_json()["state"], talk.group_json()["learning"]) == ("Stable", None)


def test_a_group_into_which_nobody_was_let_is_not_said_to_be_in_mid_life(talk: Conversation) -> None:
    stranger = talk.client("stranger")
    for _ in range(3):
        talk.refuse_join(talk.ask_join(stranger), 30)
        talk.wait(1_000)
    shown = talk.group_json()
    assert (shown["state"], shown["members"], shown["learning"]) == ("Unknown", [], "no client was seen to be let in")


def test_sessions_run_again_once_the_broker_answers_another_group(talk: Conversation) -> None:
    """It restarts all sessions when it comes back: one who stays away is silent a session after that, not after its last frame."""
    fleet = Fleet(talk)
    fleet.hang_up()
    talk.wait(60_000)
    talk.model.drain_events()
    fleet.reconnect()
    fleet.clients["h"] = []
    back_us = talk.now_us
    fleet.live(30)
    over = [event for event in talk.model.drain_events() if event.kind == "session_over"]
    assert [event.group for event in over] == ["h"]
    assert over[0].at_us >= back_us + 10_000_000


def test_R_18_says_that_the_coordinator_waits_for_the_members_that_it_has_loaded(talk: Conversation) -> None:
    """Two clients came back under new ids after a restart; it was laid to group.initial.rebalance.delay.ms."""
    talk.group = "h"
    talk.round([other := talk.client("c")], 1)
    talk.group = "g"
    clients = patient(talk, "a", "b")
    lost_us = talk.now_us
    for client in clients:
        talk.close(client)
    talk.group = "h"
    talk.close(other)
    talk.group = "g"
    talk.wait(60_000)
    asked = [replacement(talk, client.name) for client in clients]
    back_us = lost_us + 60_000_000
    talk.wait(22_000)
    assert talk.rules() == ["C-14", "R-18"]
    finding = talk.the("R-18")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.BROKER, None)
    assert (
        f"2 members hold no partitions and wait for the sessions of 2 members to end, 45.0 s after the coordinator came back at "
        f"{clock(back_us)}, which was away from {clock(lost_us)} on and has loaded them: member {clients[0].member_id}"
    ) in finding.summary
    assert finding.action.startswith("Nothing for this time: the wait ends with these sessions.")
    talk.wait(23_000)
    complete(talk, asked, 4, asked[0].client, [one.client for one in asked])
    talk.sync_all([one.client for one in asked])
    talk.settle()
    assert talk.the("R-18").status is Status.RESOLVED
    assert talk.rules() == ["C-14", "R-18"]
