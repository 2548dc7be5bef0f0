"""The rights on Kafka that each process needs: one table, from which the documentation and a script are made and which is checked.

Read and Write each imply Describe, so that Describe is listed only where it stands alone. Whatever reads without committing needs no right
on its own consumer group (see ``streaming.kafka.clients.without_group``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.config.settings import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

MONITOR, NOTIFY, TAP, RECORD, VERIFY, VIEW = "monitor", "notify", "tap", "record", "verify", "view"


class Need(NamedTuple):
    """An operation that a process performs on some topics, or on every group that is watched and the topics of its members."""

    process: str
    operation: str
    topics: tuple[str, ...]  #: keys of the section [topics]; empty: groups and topics of the watched cluster
    purpose: str
    only_if: str = ""


_RESULTS: Final = ("findings", "groups", "events", "status", "dead_letters", "quality")
_TO_CREATE: Final = "the topics do not exist yet, and topics.create is true"
_WITH_TRACES: Final = "traces.endpoint is set"
_WITH_DIGEST: Final = "a [notify.digest.NAME] is set"
_WITH_LAG: Final = "lag.enabled is true"
_BY_COMMAND: Final = "`topics --config` runs as this user"
_WITH_NOTIFIER: Final = "`notify` runs somewhere"

NEEDS: Final = (
    Need(MONITOR, "Read", ("mirror", "findings", "groups", "status"), "reads the frames; findings of before; its metrics"),
    Need(MONITOR, "Write", _RESULTS, "publishes its results"),
    Need(MONITOR, "Create", _RESULTS, "creates the result topics", _TO_CREATE),
    Need(MONITOR, "Read", ("lag",), "goes on with the lag of before", _WITH_LAG),
    Need(MONITOR, "Write", ("lag",), "publishes the lag of groups", _WITH_LAG),
    Need(MONITOR, "Create", ("lag",), "creates the topic", _WITH_LAG),
    Need(MONITOR, "Describe", (), "asks the watched brokers for the lag of groups", _WITH_LAG),
    Need(MONITOR, "Create", ("mirror", "notifications"), "creates every topic: the command `topics`", _BY_COMMAND),
    Need(MONITOR, "Read", ("notifications",), "misses a notifier that is gone", _WITH_NOTIFIER),
    Need(NOTIFY, "Read", ("findings", "status", "notifications"), "reads what it sends, and what it has sent"),
    Need(NOTIFY, "Read", ("events",), "reads the rebalances that it sends as traces", _WITH_TRACES),
    Need(NOTIFY, "Read", ("groups", "events"), "reads what it sends as the weekly digest", _WITH_DIGEST),
    Need(NOTIFY, "Write", ("notifications",), "keeps what it has sent"),
    Need(NOTIFY, "Create", ("findings", "status", "notifications"), "creates its topics", _TO_CREATE),
    Need(TAP, "Write", ("mirror",), "writes the frames; the command `mirror` does so, too"),
    Need(TAP, "Create", ("mirror",), "creates the mirror topic", "the topic does not exist yet, and --create-topic is given"),
    Need(RECORD, "Read", ("mirror",), "reads the frames"),
    Need(VERIFY, "Read", ("groups",), "reads what the monitor knows of each group"),
    Need(VERIFY, "Describe", (), "asks the watched brokers for their groups, and for the topics of these"),
    Need(
        VIEW,
        "Read",
        ("groups", "findings", "status"),
        "shows them: the commands `groups`, `group`, `findings`, `clients`, `report`, `top` and `web`",
    ),
    Need(
        VIEW,
        "Read",
        ("events",),
        "shows what happened: the commands `rebalances`, `report`, `trace`, `top` and `web`",
        "this is to be shown",
    ),
    Need(
        VIEW,
        "Read",
        ("lag",),
        "shows the lag of groups: the commands `groups`, `group`, `rebalances`, `report` and `web`",
        _WITH_LAG,
    ),
    Need(
        VIEW, "Read", ("mirror",), "frames of a finding, how far the monitor is behind: the command `web`", "these are to be shown"
    ),
)


def topic_needs(
    process: str, topics: Topics, *, traces: bool = True, lag: bool = True, digest: bool = True
) -> Iterator[tuple[str, str]]:
    """Name of topic and operation, for all that a process that runs needs on topics.

    :param traces: whether traces are sent.
    :param lag: whether the lag of groups is asked for.
    :param digest: whether a weekly digest is sent.
    """
    asked = {_WITH_TRACES: traces, _WITH_LAG: lag, _WITH_DIGEST: digest}
    absent = {_BY_COMMAND, _WITH_NOTIFIER, *(condition for condition, is_set in asked.items() if not is_set)}
    for need in NEEDS:
        if need.process == process and need.only_if not in absent:
            yield from ((getattr(topics, key), need.operation) for key in need.topics)


def rights_document() -> str:
    """The table, as docs/rights.md."""
    names = Topics()
    rows = [
        f"| {need.process} | {need.operation} | "
        + (
            ", ".join(f"`{getattr(names, key)}`" for key in need.topics)
            or "each watched group and its topics, on the *watched* cluster"
        )
        + f" | {need.purpose} | {need.only_if or 'always'} |"
        for need in NEEDS
    ]
    return "\n".join(
        [
            "# Rights on Kafka",
            "",
            "Made from `streaming/kafka/required_rights.py` by `make docs`. On a Kafka that denies by default these rights are enough.",
            "",
            "| process | operation | topics or groups | what for | when |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "",
            "Read and Write imply Describe. No process needs a right on a consumer group of its own: all read without committing. A broker",
            "that refuses the group is not an error. `verify` names the groups that it may not see: of a group with epochs Kafka shows",
            "nothing to a user who may not see one of its topics.",
            "",
            "DescribeConfigs on a topic is not needed; with it, the tap and `config check` say how a topic differs.",
            "",
            "[kafka-acls.sh](kafka-acls.sh) grants them with Kafka's own `kafka-acls.sh`, to one user for each process:",
            "",
            "```sh",
            "sh docs/kafka-acls.sh mirror --bootstrap-server kafka:9092 --command-config admin.properties",
            "MONITOR=alice VERIFY=carol sh docs/kafka-acls.sh watched --bootstrap-server watched:9092 --command-config admin.properties",
            "```",
            "",
            "`rebalance-monitor config check --connect` checks the rights of the monitor; with `--for notify`, those of the",
            "notifier, whose user is set then.",
            "",
        ]
    )


def rights_script() -> str:
    """The table as commands, as docs/kafka-acls.sh."""
    names = Topics()
    processes = list(dict.fromkeys(need.process for need in NEEDS))
    lines = {
        where: [
            f'  allow "${need.process.upper()}" --operation {need.operation} '
            + (" ".join(f"--topic {getattr(names, key)}" for key in need.topics) or "--group '*' --topic '*'")
            + ' "$@"'
            for need in NEEDS
            if bool(need.topics) == (where == "mirror")
        ]
        for where in ("mirror", "watched")
    }
    return "\n".join(
        [
            "#!/bin/sh",
            "# Grants what docs/rights.md lists. Made from streaming/kafka/required_rights.py by 'make docs'.",
            "# Usage: kafka-acls.sh mirror|watched --bootstrap-server HOST:PORT [--command-config FILE]",
            "#   mirror   the cluster that keeps the monitor's topics",
            "#   watched  the cluster whose consumer groups are watched",
            "# The users' names and Kafka's script are taken from these variables:",
            "set -eu",
            ': "${KAFKA_ACLS:=kafka-acls.sh}"',
            *(f': "${{{process.upper()}:=rebalance-{process}}}"' for process in processes),
            "",
            "allow() {",
            "  user=$1",
            "  shift",
            '  "$KAFKA_ACLS" --add --allow-principal "User:$user" "$@"',
            "}",
            "",
            'cluster=${1:?"name the cluster: mirror or watched"}',
            "shift",
            'case "$cluster" in',
            "mirror)",
            *lines["mirror"],
            "  ;;",
            "watched)",
            *lines["watched"],
            "  ;;",
            "*)",
            '  echo "error: name the cluster: mirror or watched" >&2',
            "  exit 2",
            "  ;;",
            "esac",
            "",
        ]
    )
