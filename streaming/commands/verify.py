"""``rebalance-monitor verify``: compares the monitor's record of each group with the brokers' answers.

Groups change during the comparison, and the monitor lags slightly. So a difference counts only if it persists.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer
from confluent_kafka import KafkaException
from rich.text import Text

from coordinator_model.events import State
from coordinator_model.wording import counted
from streaming.commands.output import EXIT_FOUND, EXIT_OK, fail, stdout
from streaming.config.settings import ConfigError, Topics, load
from streaming.errors import SetupError
from streaming.kafka.acls import grant_groups, user_of
from streaming.kafka.client_options import client_options
from streaming.kafka.compacted import CompactedReader, TopicError
from streaming.published.wire_text import shown_name, visible
from streaming.replay.verify import MOVING, NOT_ALLOWED, Answers, describe_groups, differences, unknown_because

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

_REACH_S: Final = 10.0
_PAUSE_S: Final = 1.0
_GONE: Final = frozenset({State.DEAD.value, State.EMPTY.value, State.UNKNOWN.value})

Known = dict[str, dict[str, Any]]
"""Group → its newest record in the groups topic."""


class VerifyError(RuntimeError):
    """Nothing can be compared; the message gives the reason and the remedy."""


@dataclass(slots=True)
class Verification:
    """The result of a comparison, by group."""

    equal: list[str] = field(default_factory=list)
    different: dict[str, list[str]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)  #: why the monitor does not know the group yet
    refused: dict[str, str] = field(default_factory=dict)  #: why the brokers do not describe the group


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
            help="The monitor's configuration, for its Kafka and groups topic. By default: the watched brokers and the default name.",
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
    """Compare the monitor's view of each group with the brokers' descriptions of it.

    State, type, protocol and members are compared. Groups that the monitor is still learning are listed separately, and so are those that
    the user may not see. Share and Streams groups are described to users who log in by PLAIN, SCRAM or certificate.

        rebalance-monitor verify --bootstrap-server broker1:9094

        rebalance-monitor verify --bootstrap-server broker1:9094 --config monitor.toml --group orders

    The exit status is 0 if all that can be compared is equal, 1 if something differs, 2 if nothing can be compared.
    """
    try:
        watched = client_options(bootstrap_server, command_config)
        monitor, topic, name = _monitor(config, watched)
        with PublishedGroups(monitor, topic) as reader:
            outcome = _compare_until_equal(watched, reader, cluster if cluster is not None else name, group or [], wait)
    except (ConfigError, SetupError, VerifyError) as error:
        fail(error)
    except KafkaException as error:
        fail(f"the watched cluster at {bootstrap_server} cannot be queried: {error.args[0].str()}")
    _show(outcome, stdout())
    raise typer.Exit(EXIT_FOUND if outcome.different else EXIT_OK)


def _monitor(config: Path | None, watched: Mapping[str, Any]) -> tuple[Mapping[str, Any], str, str | None]:
    """Return the client properties for the groups topic, the topic's name, and the name of the watched cluster."""
    if config is None:
        return watched, Topics().groups, None
    configuration = load(config)
    return configuration.kafka.for_librdkafka(), configuration.topics.groups, configuration.cluster or None


class PublishedGroups:
    """Reads the newest record of each group from the groups topic; a context manager.

    :raises SetupError: when the topic cannot be read.
    """

    def __init__(self, client_config: Mapping[str, Any], topic: str) -> None:
        self._newest: dict[str, dict[str, Any]] = {}
        self._reader = CompactedReader(lambda: client_config, (topic,), "verify", reach_timeout_s=_REACH_S)

    def __enter__(self) -> Self:
        try:
            self._reader.start(patience_s=0)
        except TopicError as error:
            self._reader.close()
            raise VerifyError(
                f"{error}. This is the monitor's Kafka: is the monitor running? Set its configuration with --config"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def read(self) -> list[dict[str, Any]]:
        """Return the newest record of each group, up to the current end of the topic.

        :raises SetupError: when the end is not reached, or Kafka refuses the request.
        """
        self._reader.look_at_ends()
        for record in self._reader.history():
            if record.value is None:
                self._newest.pop(record.name, None)
            else:
                self._newest[record.name] = json.loads(record.value)
        return list(self._newest.values())


def _compare_until_equal(
    watched: Mapping[str, Any], reader: PublishedGroups, cluster: str | None, only: list[str], wait_s: float
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
        raise VerifyError(f"the groups topic holds several clusters ({', '.join(map(visible, names))}): name one with --cluster")
    return {record["group"]: record for record in records if cluster in {None, record["cluster"]}}


def _to_compare(known: Known) -> dict[str, str]:
    """Return the groups that exist according to the monitor, and their types."""
    return {name: known[name]["group_type"] for name in _alive(known)}


def _alive(known: Known) -> set[str]:
    return {name for name, record in known.items() if record["state"] not in _GONE and not unknown_because(record)}


def compare(known: Known, answers: Answers, only: Iterable[str] = ()) -> Verification:
    """Compare both sides group by group.

    :param only: the groups to compare; all when empty.
    """
    wanted = set(only)
    outcome = Verification()
    described, alive = answers.described, _alive(known)
    names = described.keys() | answers.refused.keys() | alive
    for name in sorted(names & wanted if wanted else names):
        because = unknown_because(known.get(name))
        if because is not None:
            outcome.unknown[name] = because
        elif name in answers.refused:
            outcome.refused[name] = answers.refused[name]
        elif name not in described:
            outcome.different[name] = [f"the monitor says {known[name]['state']}, the brokers do not know it"]
        elif found := differences(known[name], described[name]):
            outcome.different[name] = found
        else:
            outcome.equal.append(name)
    return outcome


def _nothing_compared(outcome: Verification, only: list[str], watched: Mapping[str, Any]) -> str:
    if outcome.refused:
        refused = set(outcome.refused.values())
        if refused <= set(NOT_ALLOWED.values()):
            return (
                f"user {user_of(watched)} may see none of what the monitor knows on "
                f"{watched['bootstrap.servers']}, {counted(len(outcome.refused), 'group')}; grant the right: {grant_groups(watched)}"
            )
        return f"the brokers describe none of {counted(len(outcome.refused), 'group')}: {'; '.join(sorted(refused))}"
    if not outcome.unknown:
        return f"neither side knows {'group ' + ', '.join(only) if only else 'any group'}"
    name, because = next(iter(outcome.unknown.items()))
    return f"the monitor knows none yet of {counted(len(outcome.unknown), 'group')}; of {shown_name(name)}: {because}"


def _show(outcome: Verification, console: Console) -> None:
    for name, found in outcome.different.items():
        console.print(Text.assemble((shown_name(name), "bold red"), " differs"))
        for difference in found:
            console.print(Text(visible(f"  {difference}")))
    for name, because in (outcome.unknown | outcome.refused).items():
        console.print(Text.assemble((shown_name(name), "yellow"), f" cannot be compared: {visible(because)}"))
    counts = (
        (len(outcome.equal), "equal"),
        (len(outcome.different), "different"),
        (len(outcome.unknown), "not known to the monitor"),
        (len(outcome.refused), "not described by the brokers"),
    )
    console.print(", ".join(f"{count} {what}" for count, what in counts if count))
