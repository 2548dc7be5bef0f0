"""What is confirmed or certain rests on frames, not on the estimated state of the group."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import coordinator_model
from coordinator_model.coordinator import Coordinator
from coordinator_model.events import State
from coordinator_model.finding import Certainty, Finding
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.settings import Settings
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.classic import complete, completing_rebalance, live, settled, static_group
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.tests_of_rules import functions_of_rules
from tests.golden import transcript

RULES = Path(coordinator_model.__file__).parent / "rules"


@contextmanager
def estimated(state: State) -> Iterator[None]:
    """Let models take every classic group for being in this state, whatever the frames say."""
    receive = Coordinator.receive

    def received(model: Coordinator, record: MirrorRecord) -> list[Finding]:
        found = list(receive(model, record))
        for group in (model.groups.opened(key)[0] for key in model.groups):
            if isinstance(group, ClassicGroup):  # others keep no estimate
                group.state = state
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Coordinator, "receive", received)
        yield


def proven(records: list[MirrorRecord], settings: Settings) -> set[tuple[str, str]]:
    """Rule and culprit of what is said and no heuristic."""
    model = Coordinator(topic="mirror", partition=0, settings=settings)
    findings = [finding for record in records for finding in model.receive(record)]
    return {(one.rule, one.member_id or one.instance_id or "") for one in findings if one.certainty is not Certainty.HEURISTIC}


def leader_never_syncs(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.ask(b, talk.sync_request(b, []))
    live(talk, [a], 12)


def follower_never_syncs(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    live(talk, [a, b], 12)


def needless(talk: Conversation) -> None:
    leader, first = static_group(talk)
    live(talk, [leader, first], 2)
    talk.close(first)
    new = talk.client(first.name, instance_id=first.instance_id)
    asked = talk.ask_join(new)
    talk.heartbeat(leader, 27)
    again = talk.ask_join(leader)
    talk.joined(again, generation=leader.generation + 1, leader=leader, roster=[leader, new])
    talk.joined(asked, generation=leader.generation, leader=leader, roster=[leader, new], member_id="new")
    talk.settle()


def absent_static(talk: Conversation) -> None:
    a, b = talk.client("a", instance_id="i-a"), talk.client("b", instance_id="i-b")
    for client in (a, b):
        client.member_id = f"m-{client.name}"
    asked = [talk.ask_join(one, session_timeout_ms=120_000, member_id="") for one in (a, b)]
    complete(talk, asked, 3, a, [a, b])
    talk.sync_all([a, b])
    talk.close(b)
    talk.ask_join(a, session_timeout_ms=120_000)
    talk.wait(26_000)


def commit_before_the_assignment(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.join_all([a, b], 4)
    talk.wait(100)
    talk.commit(b)
    talk.settle()


ACTS = {
    "R-02": leader_never_syncs,
    "R-03": follower_never_syncs,
    "S-04": needless,
    "S-06": absent_static,
    "O-03": commit_before_the_assignment,
}


@pytest.mark.parametrize("rule", ACTS)
def test_a_confirmed_finding_is_the_same_whatever_the_estimated_state(talk: Conversation, rule: str) -> None:
    ACTS[rule](talk)
    said = proven(talk.records, talk.settings)
    assert rule in {name for name, _ in said}
    for state in State:
        with estimated(state):
            assert proven(talk.records, talk.settings) == said


@pytest.mark.parametrize("name", transcript.names()[::5])
def test_what_is_confirmed_of_a_transcript_does_not_rest_on_the_estimated_state(name: str) -> None:
    records = transcript.read(name)
    said = proven(records, transcript.SETTINGS)
    with estimated(State.UNKNOWN):
        assert proven(records, transcript.SETTINGS) == said


def whatever_is_estimated(test: Callable[..., None], state: State) -> Callable[..., None]:
    @functools.wraps(test)  # with its parameters
    def run(**arguments: Any) -> None:
        with estimated(state):
            test(**arguments)

    return run


for _name, _rule, _speaks, _test in functions_of_rules():
    if _speaks and _rule.certainty is not Certainty.HEURISTIC:
        _state = tuple(State)[crc32(_name.encode()) % len(State)]  # the same, whatever other tests there are
        globals()[f"{_name}_whatever_the_estimate"] = whatever_is_estimated(_test, _state)  # where pytest looks for tests


def test_no_rule_reads_the_estimated_state() -> None:
    readers = [
        f"{path.name}:{node.lineno}"
        for path in sorted(RULES.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"state", "state_since_us"}
    ]
    assert readers == []


@pytest.mark.parametrize("silent", [0, 1])
def test_R_02_and_R_03_are_heuristic_while_no_frame_shows_that_the_generation_lasts(talk: Conversation, silent: int) -> None:
    """Nobody is heard of after the join phase: another one may have begun unseen."""
    pair = completing_rebalance(talk, session_timeout_ms=60_000)
    if silent:
        talk.call(pair[0], talk.sync_request(pair[0], pair), talk.synced())
    talk.wait(12_000)
    finding = talk.the("R-03" if silent else "R-02")
    assert finding.certainty is Certainty.HEURISTIC
