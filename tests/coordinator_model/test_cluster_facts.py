"""Releases of brokers and names of topics: what shows them, and what the model makes of them."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.cluster_facts import TOPICS_KEPT, ClusterFacts, older_release_shown, release_shown
from coordinator_model.releases import first_release
from coordinator_model.wire.record import Kind, topics
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone
from tests.coordinator_model.epochs import TOPICS, Epochs, foo
from tests.golden import transcript

ADVERTISED = {
    "3.9": {0: 11, 1: 17, 8: 9, 9: 9, 18: 4, 28: 4, 35: 4, 42: 2, 66: 1, 68: 0},
    "4.0": {0: 12, 1: 17, 8: 9, 9: 9, 18: 4, 28: 5, 35: 4, 42: 2, 66: 1, 68: 1},
    "4.1": {0: 13, 1: 18, 8: 9, 9: 9, 18: 4, 28: 5, 35: 4, 42: 2, 66: 2, 68: 1},
    "4.2": {0: 13, 1: 18, 8: 10, 9: 10, 18: 4, 28: 5, 35: 4, 42: 2, 66: 2, 68: 1},
    "4.3": {0: 13, 1: 18, 8: 10, 9: 10, 18: 4, 28: 5, 35: 5, 42: 2, 66: 2, 68: 1},
    "4.4": {0: 13, 1: 18, 8: 10, 9: 10, 18: 5, 28: 6, 35: 5, 42: 3, 66: 2, 68: 1},
}


def greets(talk: Epochs, client: Client, release: str) -> None:
    """The client asks for the versions, and the broker advertises those of a release."""
    listed = tuple(
        wire.ApiVersionsResponseApiVersion(api_key=api_key, min_version=0, max_version=highest)
        for api_key, highest in ADVERTISED[release].items()
    )
    talk.call(client, wire.ApiVersionsRequest(), wire.ApiVersionsResponse(api_keys=listed), version=3)


def test_a_version_has_one_first_release_for_all_that_ask() -> None:
    for name, advertised in ADVERTISED.items():
        release = tuple(map(int, name.split(".")))
        assert all(first_release(api_key, highest) <= release for api_key, highest in advertised.items())
    assert first_release(8, 10) == first_release(9, 10) == (4, 2)


@pytest.mark.parametrize(
    ("release", "shown"),
    [("3.9", None), ("4.0", (4, 0)), ("4.1", (4, 1)), ("4.2", (4, 2)), ("4.3", (4, 3)), ("4.4", (4, 4))],
)
def test_the_release_is_known_by_what_the_one_before_lacks(release: str, shown: tuple[int, int] | None) -> None:
    assert release_shown(ADVERTISED[release]) == shown


def test_a_proxy_that_lowers_versions_and_a_broker_of_another_make_show_less() -> None:
    assert release_shown({**ADVERTISED["4.4"], 9: 9}) == (4, 1)
    assert release_shown({68: 1, 8: 10, 9: 10, 35: 5}) == (4, 0)
    assert release_shown({8: 10, 9: 10}) is None
    assert older_release_shown({8: 10, 9: 10}) == (3, 9)


@pytest.mark.parametrize(
    ("highest", "shown"),
    [
        ({0: 11, 8: 9, 11: 9}, (3, 6)),
        ({8: 8, 11: 9}, (3, 2)),
        ({8: 7, 11: 5, 12: 3}, (2, 3)),
        ({8: 2, 11: 0}, (0, 9)),
        ({}, (0, 9)),
    ],
)
def test_before_4_0_the_newest_version_tells_how_old_a_broker_is_at_least(highest: dict[int, int], shown: tuple[int, int]) -> None:
    assert older_release_shown(highest) == shown


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("lawful-consumer-steady-4.3.1", (4, 3)),
        ("violation-nothing-assigned-4.1.2", (4, 1)),
        ("violation-stale-commit-accepted-4.1.2", (4, 1)),
        ("violation-zombie-member-3.9.2", (4, 0)),
    ],
)
def test_running_brokers_show_their_release(name: str, release: tuple[int, int]) -> None:
    facts = ClusterFacts()
    seen = set()
    for record in transcript.read(name):
        if record.kind is Kind.RESPONSE and record.api_key == 18:
            facts.saw_versions(record.cluster, record.broker, record.frame, record.api_version)
            seen.add(facts.release(record.cluster, record.broker))
    assert seen == {release}


@pytest.mark.parametrize(("release", "found"), [("4.1", []), ("4.2", ["E-16"]), ("4.3", ["E-16"])])
def test_E_16_needs_a_broker_that_takes_unsubscribed_topics_away(talk: Epochs, release: str, found: list[str]) -> None:
    a = talk.member("a")
    greets(talk, a, release)
    talk.joins(a, 2, {"foo": (0,), "bar": (0,)}, "foo")
    assert talk.rules() == found


def test_the_newest_answer_of_a_broker_counts(talk: Epochs) -> None:
    """It may have been replaced by an older one."""
    a = talk.member("a")
    greets(talk, a, "4.3")
    greets(talk, a, "4.1")
    talk.joins(a, 2, {"foo": (0,), "bar": (0,)}, "foo")
    assert talk.rules() == []


def names(talk: Epochs, cluster: str = "c1", **by_name: str) -> None:
    record = topics(talk.now_us, {TOPICS[topic]: name for topic, name in by_name.items()}, cluster=cluster)
    talk.findings += talk.model.receive(record._replace(partition=0, offset=talk.offset))
    talk.offset += 1


def given_up(talk: Epochs) -> str:
    talk.settle()
    (wait,) = talk.group_json()["waits"]
    return str(wait["text"])


def two_topics(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, 2, {"foo": (0, 1), "bar": (0,)}, "foo", "bar")
    talk.joins(b, 3, {}, "foo", "bar")
    talk.beats(a, 2, foo(0))


@pytest.mark.parametrize(("named", "found"), [("bar", ["E-16"]), ("foo", []), (None, [])])
def test_E_16_fires_on_one_topic_of_another_name_and_names_it(talk: Epochs, named: str | None, found: list[str]) -> None:
    """The id of a topic that nobody subscribes to is not named after the topic that somebody does subscribe to."""
    a = talk.member("a")
    greets(talk, a, "4.3")
    if named is not None:
        names(talk, bar=named)
    talk.joins(a, 2, {"bar": (0,)}, "foo")
    assert talk.settled_rules() == found
    if found:
        assert "assigned partitions of bar to member a-id" in talk.the("E-16").summary
        assert talk.the("E-16").summary.endswith("which subscribes to foo.")


def test_findings_name_topics_once_their_names_were_seen(talk: Epochs) -> None:
    names(talk, foo="orders", bar="payments")
    two_topics(talk)
    assert "give up payments-0 and orders-1 at" in given_up(talk)


def test_a_topic_is_named_by_its_id_while_its_name_is_not_known(talk: Epochs) -> None:
    names(talk, "another cluster", foo="orders", bar="payments")
    two_topics(talk)
    assert f"give up {TOPICS['bar']}-0 and {TOPICS['foo']}-1 at" in given_up(talk)


def test_a_name_that_comes_later_is_used_from_then_on(talk: Epochs) -> None:
    two_topics(talk)
    assert TOPICS["bar"] in given_up(talk)
    names(talk, foo="orders", bar="payments")
    talk.joins(talk.member("c"), 3, {}, "foo", "bar")
    assert "give up payments-0 and orders-1 at" in given_up(talk)


def test_a_snapshot_keeps_releases_and_names(talk: Epochs) -> None:
    greets(talk, talk.member("a"), "4.3")
    names(talk, foo="orders", bar="payments")
    talk.restore()
    two_topics(talk)
    assert "give up payments-0 and orders-1 at" in given_up(talk)
    group, _ = talk.model.groups.opened(("c1", "g"))
    assert group.release_of("1") == (4, 3)  # type: ignore[attr-defined]


def test_only_so_many_names_are_kept() -> None:
    facts = ClusterFacts()
    for number in range(TOPICS_KEPT + 5):
        facts.learn_topics("c1", {f"id-{number}": f"topic-{number}"})
    assert [facts.topic_name("c1", f"id-{number}") for number in (4, 5)] == [None, "topic-5"]


def test_a_record_of_a_kind_that_is_not_known_is_counted_and_passed_over(talk: Epochs) -> None:
    a = alone(talk, held=foo(0))
    record = topics(talk.now_us, {}, cluster="c1")._replace(kind=Kind.OTHER, partition=0, offset=talk.offset, frame=b"\xc1")
    assert talk.model.receive(record) == []
    talk.offset += 1
    talk.beats(a)
    assert talk.rules() == []
    assert talk.model.record_counts["other"] == 1
