"""``rebalance-monitor groups``, ``group``, ``findings`` and ``rebalances``: print the monitor's published results as text.

The topics keep the records of a monitor that no longer runs. So a warning is printed if its newest status is old.
"""

from __future__ import annotations

import difflib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from coordinator_model.events import GroupEvent, RebalanceFinished
from coordinator_model.finding import Severity
from coordinator_model.wording import counted, plural
from streaming.commands.options import ConfigOption, JsonOption, PropertiesOption, ServersOption
from streaming.commands.output import fail, print_json, print_warning, stdout, tables
from streaming.config.settings import ConfigError, Topics, load
from streaming.errors import SetupError
from streaming.kafka.client_options import client_options
from streaming.kafka.compacted import CompactedReader, TopicError
from streaming.published.finding_json import from_json
from streaming.published.records import (
    STALE_S,
    Json,
    arrivals_of,
    duration,
    event_of,
    finding_of,
    finding_order,
    group_of,
    is_open,
    lag_of,
    lag_of_rebalance,
    trouble,
    worst_findings,
)
from streaming.published.sentences import lag_facts
from streaming.published.wire_text import harmless, shown_name
from streaming.replay.report import print_finding
from streaming.terminal.tables import (
    arrivals_table,
    findings_table,
    group_facts,
    group_line,
    groups_table,
    member_seconds,
    members_table,
    rebalances_table,
)

_FORMATS: Final[dict[str, Callable[[bytes], Any]]] = {"groups": group_of, "findings": finding_of, "events": event_of}


def groups(
    config: ConfigOption = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the groups with state, members, progress, lag, the members they wait for and open findings; groups with problems come first.

    Progress is by committed offsets: records a second in the last two minutes, what is usual, the last commit, the last hour. The lag, in
    records, is there if the monitor asks for it (lag.enabled).

    rebalance-monitor groups --config monitor.toml

    rebalance-monitor groups --bootstrap-server monitor:9092 --json | jq .state
    """
    published, findings = _read(config, bootstrap_server, command_config, "groups", "findings")
    worst = worst_findings(findings)
    lags = _read_lags(config, bootstrap_server, command_config)
    shown = sorted(published, key=lambda group: trouble(group, worst))
    if as_json:
        _print_json(known | {"lag": lags.get((known["cluster"], known["group"]), {}).get("lag")} for known in shown)
        return
    console = tables()
    console.print(
        groups_table(
            [_harmless(known) for known in shown], worst, {key: lag["lag"] for key, lag in lags.items()}, time.time(), console.width
        )
        if shown
        else "The monitor has not seen any group yet."
    )


def group(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The group's id.")],
    config: ConfigOption = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show one group: its members and their states, the members it waits for, its rebalances, its open findings with evidence.

    rebalance-monitor group orders --config monitor.toml
    """
    published, findings = _read(config, bootstrap_server, command_config, "groups", "findings")
    named = [known for known in published if known["group"] == name]
    if not named:
        near = difflib.get_close_matches(name, [known["group"] for known in published], n=1)
        fail(
            f"the monitor has not seen a group {shown_name(name)}"
            + (f"; did you mean {shown_name(near[0])}?" if near else "; 'groups' lists those it has.")
        )
    lags = _read_lags(config, bootstrap_server, command_config)
    if as_json:
        _print_json(known | {"lag": lags.get((known["cluster"], name))} for known in named)
        return
    console = stdout()
    for known in named:
        _print_group(console, _harmless(known), lags.get((known["cluster"], name)), time.time())
        for finding in findings:
            if (finding["cluster"], finding["group"]) == (known["cluster"], name) and is_open(finding):
                print_finding(console, from_json(_harmless(finding)))


def findings(
    config: ConfigOption = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    *,
    severity: Annotated[Severity, typer.Option(help="List only findings of this severity or above.")] = Severity.INFO,
    group: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="List only findings of this group. Can be repeated.")
    ] = None,
    rule: Annotated[list[str] | None, typer.Option(metavar="ID", help="List only findings of this rule. Can be repeated.")] = None,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Include resolved findings, as long as the topic keeps them.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Print each finding with the expected behaviour, what to do, and its evidence.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the open findings, the most severe first.

    rebalance-monitor findings --config monitor.toml --severity warning

    rebalance-monitor findings --config monitor.toml --group orders --full
    """
    (published,) = _read(config, bootstrap_server, command_config, "findings")
    wanted = [
        finding
        for finding in published
        if (resolved or is_open(finding))
        and Severity(finding["severity"]).rank >= severity.rank
        and (not group or finding["group"] in group)
        and (not rule or finding["rule"] in rule)
    ]
    wanted.sort(key=finding_order)
    if as_json:
        _print_json(wanted)
    elif full:
        console = stdout()
        for finding in wanted:
            print_finding(console, from_json(_harmless(finding)))
    else:
        shown = [_harmless(finding) for finding in wanted]
        tables().print(findings_table(shown, time.time()) if shown else "No finding.")


def rebalances(
    config: ConfigOption = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    *,
    group: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="List only rebalances of this group. Can be repeated.")
    ] = None,
    last_minutes: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="List only rebalances that ended in the last N minutes.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the rebalances that are over, the newest last: cause, who began each, its phases, who came last, what it cost.

    rebalance-monitor rebalances --config monitor.toml --last-minutes 60

    rebalance-monitor rebalances --config monitor.toml --group orders --json | jq .cost_member_seconds

    The cost is in member-seconds: the time in which members did not consume, added up. The topic rebalance-events keeps rebalances for a
    week. If the monitor asks for lag (lag.enabled), the newest rebalance of each group also has how much lag it built up, and how long it
    took until that was gone.
    """
    (published,) = _read(config, bootstrap_server, command_config, "events")
    since_s = 0.0 if last_minutes is None else time.time() - last_minutes * 60
    over: Iterable[RebalanceFinished] = (event for event in published if isinstance(event, RebalanceFinished))
    wanted = sorted(
        (event for event in over if event.at_s >= since_s and (not group or event.group in group)), key=lambda event: event.at_us
    )
    lags = _read_lags(config, bootstrap_server, command_config)
    effects = [lag_of_rebalance(lags.get((event.cluster, event.group)), event) for event in wanted]
    if as_json:
        _print_json(event.as_json() | {"lag": effect and effect._asdict()} for event, effect in zip(wanted, effects, strict=True))
        return
    console = tables()
    if not wanted:
        console.print("No rebalance.")
        return
    console.print(rebalances_table([harmless(event, hide_addresses=False) for event in wanted], console.width, effects))
    cost = member_seconds(sum(event.cost_s or 0.0 for event in wanted))
    console.print(f"\n{counted(len(wanted), 'rebalance')}, {cost} without consuming")


# ---------------------------------------------------------------------------------------------------- reading


def published_groups(config: Path | None, bootstrap_server: str | None, command_config: list[str] | None) -> list[Json]:
    """Read the groups; on an error print it and exit."""
    return _read(config, bootstrap_server, command_config, "groups")[0]


def _read(config: Path | None, bootstrap_server: str | None, command_config: list[str] | None, *names: str) -> list[list[Any]]:
    """Read topics to their end, and return the newest records of each: events, or plain JSON; on an error print it and exit.

    :param names: keys of the section [topics].
    """
    newest: dict[str, dict[str, Any]] = {name: {} for name in names}
    unreadable: Counter[str] = Counter()
    written_s = 0.0
    try:
        properties, topics = results_source(config, bootstrap_server, command_config)
        name_of = {getattr(topics, name): name for name in names}
        with CompactedReader(lambda: properties, (*name_of, topics.status), "the reader") as reader:
            reader.start(patience_s=0)
            for record in reader.history():
                if record.topic == topics.status:
                    written_s = max(written_s, record.written_s)
                    continue
                name = name_of[record.topic]
                content = None if record.value is None else _FORMATS[name](record.value)
                # An event that is written twice has the same id; its key is that of all events of its group.
                key = content.id if isinstance(content, GroupEvent) else record.name
                newest[name].pop(key, None)
                if content is not None:
                    newest[name][key] = content
                elif record.value is not None:
                    unreadable[record.topic] += 1
    except (ConfigError, SetupError) as error:
        fail(error)
    for topic, count in unreadable.items():
        print_warning(
            f"{counted(count, 'record')} of topic {topic} {plural(count, 'does', 'do')} not have this release's format, and "
            f"{plural(count, 'is', 'are')} ignored"
        )
    _warn_if_stale(written_s, topics.status)
    return [list(found.values()) for found in newest.values()]


def _read_lags(config: Path | None, bootstrap_server: str | None, command_config: list[str] | None) -> dict[tuple[str, str], Json]:
    """Read the lag of groups to its end, by cluster and group; nothing where the monitor publishes none."""
    newest: dict[str, Json] = {}
    properties, topics = results_source(config, bootstrap_server, command_config)
    try:
        with CompactedReader(lambda: properties, (topics.lag,), "the reader") as reader:
            reader.start(patience_s=0)
            for record in reader.history():
                newest.pop(record.name, None)
                content = None if record.value is None else lag_of(record.value)
                if content is not None:
                    newest[record.name] = content
    except TopicError:
        return {}
    except SetupError as error:
        fail(error)
    return {(lag["cluster"], lag["group"]): lag for lag in newest.values()}


def results_source(
    config: Path | None, bootstrap_server: str | None, command_config: list[str] | None
) -> tuple[Mapping[str, Any], Topics]:
    """Return the properties of a client for the monitor's Kafka, and its topics.

    :raises ConfigError: when neither option is given, or the configuration is invalid.
    :raises SetupError: when the properties are invalid.
    """
    if config is not None:
        configuration = load(config)
        return configuration.kafka.for_librdkafka(), configuration.topics
    if bootstrap_server is None:
        raise ConfigError("set the monitor's configuration with --config, or its Kafka with --bootstrap-server")
    return client_options(bootstrap_server, command_config), Topics()


def _warn_if_stale(written_s: float, topic: str) -> None:
    """Warn if the monitor's newest status, written at this time, is old; 0 stands for none."""
    age_s = time.time() - written_s
    if not written_s:
        print_warning(f"topic {topic} has no status record: no monitor has run on this Kafka yet")
    elif age_s > STALE_S:
        print_warning(
            f"the monitor wrote its last status {duration(age_s)} ago: it is not running, and the output below is of that age"
        )


# ---------------------------------------------------------------------------------------------------- printing


def _print_group(console: Console, known: Json, lag: Json | None, now_s: float) -> None:
    console.print(group_line(known, now_s))
    if arrivals_of(known):
        console.print(arrivals_table(known))
    for title, value in (*group_facts(known), *lag_facts(lag)):
        console.print(Text.assemble((f"  {title:<14}", "dim"), value))
    if known["members"]:
        console.print(members_table(known))
    console.print()


def _harmless(record: Json) -> Json:
    """Return a record for display: a terminal obeys control characters, and names come from the wire."""
    shown: Json = harmless(record, hide_addresses=False)
    return shown


def _print_json(records: Iterable[Json]) -> None:
    for record in records:
        print_json(record)
