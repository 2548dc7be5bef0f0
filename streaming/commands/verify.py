"""``rebalance-monitor verify``: hold what the monitor publishes of each group against what the brokers say.

The trap: both sides move, and the monitor is a moment behind. So a difference counts only if it is still there after a while.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, Self

import typer
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from rich.console import Console
from rich.text import Text

from coordinator_model.groups.classic.state import State
from streaming.commands.tap import read_producer_config
from streaming.config.settings import ConfigError, Topics, load
from streaming.kafka.acls import REFUSED, grant_groups, user_of
from streaming.kafka.clients import without_group
from streaming.kafka.topics import SILENT_LOGGER
from streaming.kafka.watermarks import bounds_of
from streaming.mirror.destination import not_readable
from streaming.mirror.producer import MirrorError
from streaming.replay.verify import MOVING, Answers, describe_groups, differences, unknown_because

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EXIT_EQUAL: Final = 0
EXIT_DIFFERENT: Final = 1
EXIT_CANNOT: Final = 2

_REACH_S: Final = 10.0
_PAUSE_S: Final = 1.0
_BATCH: Final = 1000
_GONE: Final = frozenset({State.DEAD.value, State.EMPTY.value, State.UNKNOWN.value})

Known = dict[str, dict[str, Any]]
"""Group → its newest record in the groups topic."""


class VerifyError(RuntimeError):
    """There is nothing to compare; the message says why, and what to do."""


@dataclass(slots=True)
class Verification:
    """What came of a comparison, by group."""

    equal: list[str] = field(default_factory=list)
    different: dict[str, list[str]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)  #: why the monitor cannot be held to it
    hidden: list[str] = field(default_factory=list)  #: what this user may not describe


def verify(
    *,
    bootstrap_server: Annotated[
        str, typer.Option(metavar="HOST:PORT[,…]", help="The watched brokers. Use listeners that do not lead through the tap.")
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="The monitor's configuration: where its groups topic is. Without it: on the watched brokers, with its usual name.",
        ),
    ] = None,
    group: Annotated[list[str] | None, typer.Option(help="Compare only this group. Can be repeated.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Name of the watched cluster, if the groups topic holds several.")] = None,
    command_config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|KEY=VALUE",
            help="librdkafka properties for the watched brokers (security.protocol=SSL, …), or a file of them; passwords in a file only.",
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long a difference may last before it is reported.")
    ] = 15.0,
) -> None:
    """Compare the monitor's view of each group with the brokers' answers to DescribeGroups and ConsumerGroupDescribe.

    State, type, protocol and members are compared. Groups that the monitor is still learning are listed separately.

        rebalance-monitor verify --bootstrap-server broker1:9094

        rebalance-monitor verify --bootstrap-server broker1:9094 --config monitor.toml --group orders

    The exit status is 0 if all that can be compared is equal, 1 if something differs, 2 if nothing can be compared.
    """
    try:
        watched = {**read_producer_config(command_config or []), "bootstrap.servers": bootstrap_server}
        monitor, topic, name = _monitor(config, watched)
        with GroupsReader(monitor, topic) as reader:
            outcome = _compare_until_equal(watched, reader, cluster if cluster is not None else name, group or [], wait)
    except (ConfigError, MirrorError, VerifyError) as error:
        _fail(str(error))
    except KafkaException as error:
        _fail(f"Kafka on {bootstrap_server} (the watched cluster) cannot be asked: {error.args[0].str()}")
    _show(outcome, Console(soft_wrap=True, highlight=False))
    raise typer.Exit(EXIT_DIFFERENT if outcome.different else EXIT_EQUAL)


def _monitor(config: Path | None, watched: Mapping[str, Any]) -> tuple[Mapping[str, Any], str, str | None]:
    """Where the groups topic is, its name, and the cluster that the monitor watches."""
    if config is None:
        return watched, Topics().groups, None
    configuration = load(config)
    return configuration.kafka.for_librdkafka(), configuration.topics.groups, configuration.cluster or None


class GroupsReader:
    """Follows the groups topic; a context manager."""

    def __init__(self, client_config: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self._config = dict(client_config)
        self._servers = client_config["bootstrap.servers"]
        self._newest: dict[str, dict[str, Any]] = {}
        self._consumer = Consumer(
            {
                **client_config,
                "group.id": "rebalance-monitor-verify",  # required by the library; no offset is ever committed
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            },
            logger=SILENT_LOGGER,
        )

    def __enter__(self) -> Self:
        try:
            found = self._consumer.list_topics(self._topic, timeout=_REACH_S).topics[self._topic]
        except KafkaException as error:
            self._consumer.close()
            raise self._unreadable(error) from None
        if found.error is not None and found.error.code() in REFUSED:
            self._consumer.close()
            raise self._unreadable(KafkaException(found.error))
        if found.error is not None or not found.partitions:
            self._consumer.close()
            raise VerifyError(
                f"there is no groups topic {self._topic} on {self._servers}: is the monitor running? Name its configuration with --config"
            )
        self._partitions = sorted(found.partitions)
        self._consumer.assign([TopicPartition(self._topic, partition, OFFSET_BEGINNING) for partition in self._partitions])
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def _unreadable(self, error: KafkaException) -> VerifyError:
        why = not_readable(self._config, self._topic, error.args[0])
        return VerifyError(f"the groups topic {self._topic} on {self._servers} (the monitor's Kafka) cannot be read: {why}")

    def read(self) -> list[dict[str, Any]]:
        """The newest record of each group, read up to the end as it is now.

        :raises VerifyError: when the end is not reached, or Kafka refuses.
        """
        try:
            return self._read()
        except KafkaException as error:
            raise self._unreadable(error) from None

    def _read(self) -> list[dict[str, Any]]:
        ends = {}
        for partition in self._partitions:
            first, end = bounds_of(self._consumer, TopicPartition(self._topic, partition), within_s=_REACH_S)
            if first < end:
                ends[partition] = end
        deadline = time.monotonic() + _REACH_S
        while not self._is_at(ends):
            for message in without_group(self._consumer.consume(_BATCH, timeout=0.1)):
                if message.error() is not None:
                    raise KafkaException(message.error())
                key, value = (message.key() or b"").decode(), message.value()
                if value is None:
                    self._newest.pop(key, None)
                else:
                    self._newest[key] = json.loads(value)
                deadline = time.monotonic() + _REACH_S
            if time.monotonic() > deadline:
                raise VerifyError(f"the end of topic {self._topic} cannot be read from {self._servers}")
        return list(self._newest.values())

    def _is_at(self, ends: Mapping[int, int]) -> bool:
        places = self._consumer.position([TopicPartition(self._topic, partition) for partition in ends])
        return all(place.offset >= ends[place.partition] for place in places)


def _compare_until_equal(
    watched: Mapping[str, Any], reader: GroupsReader, cluster: str | None, only: list[str], wait_s: float
) -> Verification:
    deadline = time.monotonic() + wait_s
    while True:
        known = _of_one_cluster(reader.read(), cluster)
        late = time.monotonic() > deadline
        try:
            outcome = compare(known, describe_groups(watched, _to_compare(known)), only)
        except KafkaException as error:
            if late or error.args[0].code() not in MOVING:
                raise
        else:
            if late or not outcome.different:
                break
        time.sleep(_PAUSE_S)
    if not outcome.equal and not outcome.different:
        raise VerifyError(_nothing_compared(outcome, only, watched))
    return outcome


def _of_one_cluster(records: Iterable[dict[str, Any]], cluster: str | None) -> Known:
    records = list(records)
    names = sorted({record["cluster"] for record in records})
    if cluster is None and len(names) > 1:
        raise VerifyError(f"the groups topic holds several clusters ({', '.join(names)}): name one with --cluster")
    return {record["group"]: record for record in records if cluster in {None, record["cluster"]}}


def _to_compare(known: Known) -> set[str]:
    """The groups that the monitor says are there."""
    return {name for name, record in known.items() if record["state"] not in _GONE and not unknown_because(record)}


def compare(known: Known, answers: Answers, only: Iterable[str] = ()) -> Verification:
    """Hold both sides against each other, group by group.

    :param only: the groups that are asked for; all when empty.
    """
    wanted = set(only)
    outcome = Verification()
    described, alive = answers.described, _to_compare(known)
    for name in sorted((described.keys() | alive) & wanted if wanted else described.keys() | alive):
        because = unknown_because(known.get(name))
        if because is not None:
            outcome.unknown[name] = because
        elif name in answers.hidden:
            outcome.hidden.append(name)
        elif name not in described:
            outcome.different[name] = [f"the monitor says {known[name]['state']}, the brokers do not know it"]
        elif found := differences(known[name], described[name]):
            outcome.different[name] = found
        else:
            outcome.equal.append(name)
    return outcome


def _nothing_compared(outcome: Verification, only: list[str], watched: Mapping[str, Any]) -> str:
    if outcome.hidden:
        return (
            f"user {user_of(watched)} is not allowed to see any of the {len(outcome.hidden)} groups on "
            f"{watched['bootstrap.servers']} that the monitor knows; grant the right: {grant_groups(watched)}"
        )
    if not outcome.unknown:
        return f"neither side knows {'group ' + ', '.join(only) if only else 'any group'}"
    name, because = next(iter(outcome.unknown.items()))
    return f"the monitor does not know any of the {len(outcome.unknown)} groups yet; of {name}: {because}"


def _show(outcome: Verification, console: Console) -> None:
    for name, found in outcome.different.items():
        console.print(Text.assemble((name, "bold red"), " differs"))
        for difference in found:
            console.print(Text(f"  {difference}"))
    for name, because in outcome.unknown.items():
        console.print(Text.assemble((name, "yellow"), f" cannot be compared: {because}"))
    for name in outcome.hidden:
        console.print(
            Text.assemble((name, "yellow"), " cannot be compared: not allowed to see it (the right to Describe the group)")
        )
    counts = (
        (len(outcome.equal), "equal"),
        (len(outcome.different), "different"),
        (len(outcome.unknown), "not known to the monitor"),
        (len(outcome.hidden), "not allowed to see"),
    )
    console.print(", ".join(f"{count} {what}" for count, what in counts if count))


def _fail(sentence: str) -> NoReturn:
    for line in sentence.splitlines():
        typer.secho("error: ", err=True, nl=False, fg=typer.colors.RED, bold=True)
        typer.echo(line, err=True)
    raise typer.Exit(EXIT_CANNOT)
