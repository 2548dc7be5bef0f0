"""The API versions that each client speaks: who has to be upgraded before brokers of 4.0."""

from __future__ import annotations

import pytest

from coordinator_model.coordinator import Coordinator
from deploy.layout_notes import VERSIONS
from streaming.sinks.clients import REFUSED_SINCE_4_0, oldest_first
from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.epochs import Epochs, foo


def group(name, *members):
    return {
        "group": name,
        "members": [
            {"client_id": id_, "client_software": software, "client_address": "10.0.0.1", "versions": versions}
            for id_, software, versions in members
        ],
    }


def test_the_oldest_come_first_and_those_that_are_refused_before_all():
    new = ("new", "java 4.0", {"JoinGroup": 9, "OffsetCommit": 9})
    old = ("old", "", {"JoinGroup": 0, "OffsetCommit": 1, "OffsetFetch": 0})
    aged = ("aged", "", {"JoinGroup": 1, "Heartbeat": 0, "SyncGroup": 0, "OffsetCommit": 2})
    middle = ("middle", "java 2.0", {"JoinGroup": 3, "OffsetCommit": 4})
    found = oldest_first([group("a", new, middle), group("b", aged, old, new), group("c", ("unknown", "", {}))])
    assert [(one.client_id, one.verdict) for one in found] == [
        ("old", "Upgrade: 4.0 refuses OffsetCommit v1 and OffsetFetch v0"),
        ("aged", "Check: nothing newer than Kafka 0.10; 4.0 refuses Fetch below v4 and Produce below v3"),
        ("middle", ""),
        ("new", ""),
    ]
    assert found[-1].groups == {"a", "b"}


def test_known_defects_of_a_release_are_named_whether_it_announces_itself_or_not():
    found = oldest_first(
        [
            group(
                "a",
                ("x", "confluent-kafka-python 2.16.1-rdkafka-2.16.0", {"JoinGroup": 5}),
                ("aiokafka-0.14.0", "", {"JoinGroup": 6}),
                ("y", "kafka-clients-of-ours 1.0", {"JoinGroup": 7}),
            )
        ]
    )
    told = {one.client_id: " ".join(one.as_json()["known_defects"]) for one in found}
    assert told["x"].startswith("Known of librdkafka, 2.16.0: it may do the KIP-394 handshake twice")
    assert "librdkafka/issues/5569" in told["x"]
    assert told["aiokafka-0.14.0"].startswith("Known of aiokafka, 0.14.0: it commits without generation")
    assert told["y"] == ""


def test_a_member_that_used_fewer_apis_counts_with_one_that_used_these_and_others():
    joined = ("a", "", {"JoinGroup": 3, "SyncGroup": 2})
    lived = ("a", "", {"JoinGroup": 3, "SyncGroup": 2, "Heartbeat": 2})
    upgraded = ("a", "", {"JoinGroup": 5, "SyncGroup": 2})
    found = oldest_first([group("g", joined, lived), group("h", joined, upgraded)])
    assert [(one.versions, one.groups) for one in found] == [
        ((("Heartbeat", 2), ("JoinGroup", 3), ("SyncGroup", 2)), {"g", "h"}),
        ((("JoinGroup", 5), ("SyncGroup", 2)), {"h"}),
    ]


def test_what_4_0_refuses_is_what_the_notes_of_the_layouts_say():
    dropped = {api: 1 + max(version for version, note in notes.items() if "dropped in Kafka 4.0" in note)
               for api, notes in VERSIONS.items() if any("dropped in Kafka 4.0" in note for note in notes.values())}  # fmt: skip
    assert dropped == REFUSED_SINCE_4_0


def versions_of(talk):
    (shown,) = [one.as_json() for one in talk.model.changed_groups()]
    return {member["client_id"]: member["versions"] for member in shown["members"]}


def test_a_member_of_a_classic_group_has_the_versions_of_its_requests():
    talk = Conversation()
    a, b = settled(talk)
    talk.commit(b)
    live(talk, [a, b], 2)
    known = versions_of(talk)
    assert known == {
        "a": {"JoinGroup": 9, "SyncGroup": 5},
        "b": {"OffsetCommit": 8, "JoinGroup": 9, "SyncGroup": 5},
    }
    talk.model = Coordinator.restore(talk.model.snapshot(), settings=talk.settings)
    talk.commit(a)
    assert versions_of(talk)["b"] == known["b"]


@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "after a restart"])
def test_a_member_with_an_epoch_has_them_too(restarts):
    talk = Epochs()
    a = talk.member("a")
    talk.joins(a, 2, foo(0))
    if restarts:
        talk.model = Coordinator.restore(talk.model.snapshot(), settings=talk.settings)
    talk.commits(a)
    assert versions_of(talk) == {"a": {"OffsetCommit": 9, "ConsumerGroupHeartbeat": 1}}
