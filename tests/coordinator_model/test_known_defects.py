"""Known defects: each row is quoted by a finding that shows it of a release that has it, and of no other.

The tests of a rule make it speak. They run here again with clients that announce the software of a row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from coordinator_model.finding import Finding
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.known_defects import BROKER, KNOWN_DEFECTS, Defect, Software, known_of, software_of
from coordinator_model.rules import CATALOGUE
from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Client, Conversation, conversation_for
from tests.coordinator_model.epoch_groups import alone
from tests.coordinator_model.epochs import Epochs, foo, shows_release
from tests.coordinator_model.rules.offsets import give, transactional
from tests.coordinator_model.streams import share_storm
from tests.coordinator_model.tests_of_rules import functions_of_rules

ANNOUNCED = {"kafka-clients": "apache-kafka-java", "franz-go": "kgo", "@platformatic/kafka": "platformatic-kafka"}
"""How a library announces itself, where that is not its name."""

ROWS = [
    pytest.param(defect, rule, id=f"{defect.library}-{rule}-{n}") for n, defect in enumerate(KNOWN_DEFECTS) for rule in defect.rules
]


def silent_after_sync(talk: Conversation) -> None:
    a, _ = settled(talk)
    live(talk, [a], 40)


def commits_in_transactions(talk: Conversation) -> None:
    a, b = members = [talk.client("a"), talk.client("b")]
    give(talk, members, 3, {a: (0,), b: (1,)})
    for one in (a, b):
        transactional(talk, one, member_id=one.member_id, generation_id_or_member_epoch=3)
    talk.settle()


SCENARIOS: dict[str, Callable[[Conversation], object]] = {
    "T-04": silent_after_sync,
    "O-05": commits_in_transactions,
    "O-06": commits_in_transactions,
    "R-16": lambda _: share_storm(),
}


def that_speak(rule: str) -> Iterator[Callable[[], object]]:
    """The tests that make a rule speak, with the first of their parameters."""
    for _, tested, speaks, test in functions_of_rules():
        if tested.id == rule and speaks:
            arguments: dict[str, Any] = {}
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "parametrize":
                    names = (
                        [name.strip() for name in mark.args[0].split(",")] if isinstance(mark.args[0], str) else list(mark.args[0])
                    )
                    first = next(iter(mark.args[1]))
                    values = getattr(first, "values", first if len(names) > 1 else (first,))
                    arguments |= dict(zip(names, values, strict=True))
            if "talk" in inspect.signature(test).parameters:
                yield lambda test=test, arguments=arguments: test(talk=conversation_for(test), **arguments)
            else:
                yield lambda test=test, arguments=arguments: test(**arguments)
    if rule in SCENARIOS:
        yield lambda: SCENARIOS[rule](Conversation())


def actions(defect: Defect, rule: str, software: Software) -> list[str]:
    """What the findings of a rule say of what to do, where all clients, or the brokers, are of this software."""
    found: list[Finding] = []
    begin, connect = Conversation.__init__, Client.__init__

    def begin_and_keep(talk: Conversation, *about: Any, **settings: Any) -> None:
        begin(talk, *about, **settings)
        talk.findings = found
        talk.protocol = defect.assignor or talk.protocol

    def announce(client: Client, *about: Any) -> None:
        connect(client, *about)
        if software.library != BROKER:
            client.software = f"{ANNOUNCED.get(software.library, software.library)} {'.'.join(map(str, software.release))}"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Conversation, "__init__", begin_and_keep)
        patch.setattr(Client, "__init__", announce)
        if software.library == BROKER:
            for model in (ClassicGroupModel, EpochGroup):
                patch.setattr(model, "broker_release", software.release)
        for test in that_speak(rule):
            with suppress(AssertionError, IndexError, KeyError):  # it asserts other software, or the first finding of all
                test()
    return [finding.action for finding in found if finding.rule == rule]


def having(defect: Defect) -> Software:
    """A release with the defect."""
    return Software(defect.library, defect.since or ((defect.mended[0] - 1, 9, 9) if defect.mended else (1, 0, 0)))


def lacking(defect: Defect) -> Iterator[Software]:
    """Releases without it, and other software."""
    if defect.mended:
        yield Software(defect.library, defect.mended)
    if defect.since:
        yield Software(defect.library, (defect.since[0], defect.since[1] - 1) if defect.since[1] else (defect.since[0] - 1, 9))
    if defect.library != BROKER:
        yield Software("other", having(defect).release)


@pytest.mark.parametrize(("defect", "rule"), ROWS)
def test_a_finding_of_a_release_with_the_defect_quotes_it_and_of_another_not(defect: Defect, rule: str) -> None:
    software = having(defect)
    quote = defect.quote(software)
    assert any(action.endswith(quote) or f"{quote} Known of" in action for action in actions(defect, rule, software))
    for other in lacking(defect):
        assert [action for action in actions(defect, rule, other) if defect.source in action and defect.does in action] == []


@pytest.mark.parametrize("defect", KNOWN_DEFECTS)
def test_a_row_has_rules_a_public_source_and_releases_in_order(defect: Defect) -> None:
    assert defect.rules
    assert set(defect.rules) <= set(CATALOGUE)
    assert defect.source.startswith(("https://github.com/", "https://docs.rs/"))
    assert not (defect.since and defect.mended) or defect.since < defect.mended


@pytest.mark.parametrize(
    ("announced", "client_id", "assignors", "software"),
    [
        ("librdkafka 2.12.1", "x", (), Software("librdkafka", (2, 12, 1))),
        ("confluent-kafka-python 2.16.1-rdkafka-2.16.0", "x", (), Software("librdkafka", (2, 16, 0))),
        ("apache-kafka-java 4.3.1", "x", (), Software("kafka-clients", (4, 3, 1))),
        ("sarama v1.61.1", "x", (), Software("sarama", (1, 61, 1))),
        ("kgo v1.22.2", "x", (), Software("franz-go", (1, 22, 2))),
        ("kafka-python 3.0.12", "aiokafka-0.14.0", (), Software("kafka-python", (3, 0, 12))),
        ("", "aiokafka-0.14.0", (), Software("aiokafka", (0, 14, 0))),
        ("", "kafka-python-2.0.2", (), Software("kafka-python", (2, 0, 2))),
        ("", "app@host (github.com/segmentio/kafka-go)", (), Software("kafka-go")),
        ("", "kafkajs", ("RoundRobinAssigner",), Software("kafkajs")),
        ("", "orders", ("range",), None),
        ("", None, (), None),
    ],
)
def test_software_is_known_by_what_it_announces_or_by_a_name_that_it_alone_gives(
    announced: str, client_id: str | None, assignors: tuple[str, ...], software: Software | None
) -> None:
    assert software_of(announced, client_id, assignors) == software


def test_a_finding_names_the_releases_where_that_of_the_client_is_not_known() -> None:
    defect = next(one for one in KNOWN_DEFECTS if one.library == "kafkajs" and one.mended)
    assert defect in list(known_of(Software("kafkajs")))
    assert defect.quote(Software("kafkajs")).startswith("Known of kafkajs, before 2.2.4: it does not join again")


def test_a_broker_of_classic_groups_is_as_old_as_the_newest_version_that_it_answered_or_advertises(talk: Conversation) -> None:
    settled(talk)
    group, _ = talk.model.groups.opened(next(iter(talk.model.groups)))
    assert group.broker_release == (3, 2)  # JoinGroup v9
    shows_release(talk, talk.client("tool"), (4, 2))
    assert group.broker_release == (4, 2)


def test_a_broker_of_groups_with_epochs_is_as_old_as_what_it_advertises(talk: Epochs) -> None:
    alone(talk, 1, held=foo(0))
    group, _ = talk.model.groups.opened(next(iter(talk.model.groups)))
    assert group.broker_release == (4, 0)
    shows_release(talk, talk.client("tool"), (4, 2))
    assert group.broker_release == (4, 2)
