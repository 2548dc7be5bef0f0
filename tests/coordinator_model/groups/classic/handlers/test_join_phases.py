"""Which JoinGroups begin a join phase, as the group's state shows it: by the column *then* of the protocol's table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from coordinator_model.groups.protocol.classic import TABLE
from coordinator_model.groups.protocol.table import Effect
from tests.cells import Change, changed_table
from tests.coordinator_model.classic import completing_rebalance, settled, static_group
from tests.coordinator_model.conversation import Asked, Client, Conversation

ONE_STEP: Final = 3  #: the last version of JoinGroup whose new members join at once


def new_at_once(talk: Conversation) -> Asked:
    settled(talk)
    client = talk.client("c")
    return talk.ask(client, talk.join_request(client), version=ONE_STEP)


def new(talk: Conversation) -> Asked:
    settled(talk)
    return talk.ask_join(talk.client("c"))


def new_with_its_id(talk: Conversation) -> Asked:
    settled(talk)
    client = talk.client("c")
    talk.hand_out_id(client)
    return talk.ask_join(client)


def new_static(talk: Conversation) -> Asked:
    static_group(talk)
    client = talk.client("c", instance_id="j")
    return talk.ask_join(client)


def returning(talk: Conversation) -> Asked:
    static_group(talk)
    client = talk.client("c", instance_id="i")
    return talk.ask_join(client)


def leader(talk: Conversation) -> Asked:
    return talk.ask_join(settled(talk)[0])


def follower(talk: Conversation) -> Asked:
    return talk.ask_join(settled(talk)[1])


def changed_follower(talk: Conversation) -> Asked:
    return talk.ask_join(settled(talk)[1], protocols=())


def changed_leader(talk: Conversation) -> Asked:
    return talk.ask_join(settled(talk)[0], protocols=())


def joined(talk: Conversation) -> list[Client]:
    """Members of a generation that wait for their assignments, the leader first."""
    return completing_rebalance(talk)


def leader_before_the_sync(talk: Conversation) -> Asked:
    return talk.ask_join(joined(talk)[0])


def follower_before_the_sync(talk: Conversation) -> Asked:
    return talk.ask_join(joined(talk)[1])


def changed_before_the_sync(talk: Conversation) -> Asked:
    return talk.ask_join(joined(talk)[1], protocols=())


STATES: Final[dict[Callable[[Conversation], Asked], str]] = {
    new_at_once: "PreparingRebalance",
    new: "Stable",
    new_with_its_id: "PreparingRebalance",
    new_static: "PreparingRebalance",
    returning: "Stable",
    leader: "PreparingRebalance",
    follower: "Stable",
    changed_follower: "PreparingRebalance",
    changed_leader: "PreparingRebalance",
    leader_before_the_sync: "CompletingRebalance",
    follower_before_the_sync: "CompletingRebalance",
    changed_before_the_sync: "PreparingRebalance",
}

DRIVING: Final = ("J14", "J15", "J16", "J17", "J22", "J23", "J24", "J25", "J26")
"""The rows that decide on JoinGroups of whom is known what they are to the coordinator."""


def state_after(ask: Callable[[Conversation], Asked]) -> str:
    talk = Conversation()
    ask(talk)
    return str(talk.group_json()["state"])


@pytest.mark.parametrize("ask", STATES, ids=lambda ask: ask.__name__)
def test_a_join_begins_a_join_phase_where_the_row_says_so(ask: Callable[[Conversation], Asked]) -> None:
    assert state_after(ask) == STATES[ask]


@pytest.mark.parametrize("name", DRIVING)
def test_another_effect_in_the_table_is_another_state(name: str) -> None:
    row = TABLE[name]
    with changed_table(Change(row, "then prepares", row._replace(effects=row.effects ^ {Effect.PREPARES}))):
        assert any(state_after(ask) != state for ask, state in STATES.items())
