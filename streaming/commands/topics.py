"""``rebalance-monitor topics``: creates the topics of all processes before any of them runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streaming.commands.options import Partitions, ReplicationFactor, RetentionHours
from streaming.commands.output import fail, stdout
from streaming.config.settings import ConfigError, MonitorConfig, load
from streaming.errors import SetupError
from streaming.kafka.mirror_topic import RETENTION_HOURS, MirrorTopic
from streaming.kafka.topics import PARTITIONS, connect, monitor_topics, notifier_topics, prepare, prepare_notifier
from streaming.published.wire_text import visible


def topics(
    config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Configuration file (TOML).")],
    partitions: Partitions = PARTITIONS,
    replication_factor: ReplicationFactor = -1,
    retention_hours: RetentionHours = RETENTION_HOURS,
) -> None:
    """Create the topics that do not exist: the mirror topic, those of the results, and the notifier's log.

    rebalance-monitor topics --config monitor.toml --partitions 8

    The options are for the mirror topic. The topics of the results are created as [topics] in the configuration says; topics.create = false
    keeps only the other commands from creating them. What exists stays as it is; how a mirror topic differs is printed.
    Run it with the right Create, which the other commands then do not need.
    """
    try:
        for sentence in _create(load(config), MirrorTopic(partitions, replication_factor, retention_hours)):
            stdout().print(visible(sentence))
    except (ConfigError, SetupError) as error:
        fail(error)


def _create(config: MonitorConfig, mirror: MirrorTopic) -> list[str]:
    """Return a sentence for each topic that was created, and for each difference of the mirror topic.

    :raises SetupError: when Kafka does not answer, or a topic cannot be created.
    """
    creating = config.model_copy(update={"topics": config.topics.model_copy(update={"create": True})})
    before = connect(config)[1]
    said = mirror.provide(config.kafka.for_librdkafka(), config.topics.mirror, timeout_s=config.kafka.reach_timeout_s)
    prepare(creating)
    prepare_notifier(creating)
    others = monitor_topics(config) | notifier_topics(config.topics)
    said += [f"created topic {name}" for name in others if name not in before]
    return said or ["all topics exist"]
