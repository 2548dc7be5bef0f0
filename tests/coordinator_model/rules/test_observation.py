"""What the capture itself is found to miss."""

from __future__ import annotations

from tests.coordinator_model.conversation import Client, Conversation


def captured_round(talk: Conversation, seen: list[Client], past: list[Client], generation: int) -> None:
    """A rebalance of all of them, of which only the frames of some are captured."""
    everybody = [*seen, *past]
    asked = [talk.ask_join(client) for client in seen]
    talk.wait(100)
    for join in asked:
        talk.joined(join, generation=generation, leader=seen[0], roster=everybody)
    talk.sync_all(seen, leader=seen[0])


def live(talk: Conversation, clients: list[Client], seconds: int) -> None:
    for _ in range(seconds):
        talk.wait(1_000)
        for client in clients:
            talk.heartbeat(client)


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
        live(talk, seen, 20)
    finding = talk.the("V-10")
    assert "sneaks-1, hides-1" in finding.summary
    assert finding.member_id is None


def test_V_10_names_a_member_that_gets_past_the_tap(talk: Conversation) -> None:
    seen, past = members(talk)
    captured_round(talk, seen, past, 3)
    live(talk, seen, 20)
    assert talk.rules() == []  # its join may have come before the capture began
    captured_round(talk, seen, past, 4)
    live(talk, seen, 20)
    assert talk.rules() == ["V-10"]
    finding = talk.the("V-10")
    assert (finding.member_id, finding.generation) == ("sneaks-1", 4)
    assert finding.summary.startswith("1 of 3 members of group g do not pass the tap: no frame of sneaks-1 was captured")


def test_V_10_is_over_when_the_member_comes_through_the_tap(talk: Conversation) -> None:
    seen, past = members(talk)
    captured_round(talk, seen, past, 3)
    captured_round(talk, seen, past, 4)
    live(talk, seen, 20)
    captured_round(talk, [*seen, *past], [], 5)
    live(talk, [*seen, *past], 20)
    assert talk.rules() == ["V-10"]
    assert [finding.status.value for finding in talk.findings if finding.rule == "V-10"] == ["open", "resolved"]


def test_V_10_is_silent_after_a_gap_and_about_static_members(talk: Conversation) -> None:
    seen, past = members(talk)
    captured_round(talk, seen, past, 3)
    talk.gap()
    captured_round(talk, seen, past, 4)
    live(talk, seen, 20)
    past[0].instance_id = "i-1"
    past[0].member_id = "sneaks-2"
    captured_round(talk, seen, past, 5)
    live(talk, seen, 20)
    assert "V-10" not in talk.rules()


def test_V_10_is_silent_about_a_client_that_went_away_while_it_joined(talk: Conversation) -> None:
    seen, past = members(talk)
    captured_round(talk, seen, [], 3)
    gone = talk.client("gone")
    talk.ask_join(gone)
    talk.close(gone)
    captured_round(talk, seen, past, 4)
    live(talk, seen, 20)
    assert "V-10" not in talk.rules()
