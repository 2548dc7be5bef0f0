"""Alerts of a watch: the notifier on what the engine hands on, with its log in a file."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streaming.notify.file_log import FileDeliveryLog
from streaming.notify.notifier import Notifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streaming.config.settings import MonitorConfig
    from streaming.engine.handover import LocalFeed
    from streaming.watch.shown import Failed


def has_receivers(config: MonitorConfig) -> bool:
    """Whether a configuration names somebody to alert."""
    notify = config.notify
    return bool(notify.alertmanager or notify.webhook or notify.heartbeat or notify.stdout)


def of_one_process(config: MonitorConfig, topic: str, tell: Callable[[str], None]) -> MonitorConfig:
    """Return the configuration without what is made of topics: digests and traces.

    :param topic: the name of the mirror topic in findings.
    """
    for section, given in (("[notify.digest]", config.notify.digest), ("[traces]", config.traces.endpoint)):
        if given:
            tell(f"{section} is left out: it reads the result topics, which 'rebalance-monitor run' writes")
    changes = {
        "notify": config.notify.model_copy(update={"digest": {}}),
        "traces": config.traces.model_copy(update={"endpoint": None}),
        "topics": config.topics.model_copy(update={"mirror": topic}),
    }
    return config.model_copy(update=changes)


@contextmanager
def alerting(config: MonitorConfig, feed: LocalFeed, log: Path, tell: Callable[[str], None], failed: Failed) -> Iterator[None]:
    """Send alerts as long as the context lasts, those that stand at the start among them.

    :raises SetupError: when a receiver is not set up right, or the log cannot be written.
    """
    delivery_log = FileDeliveryLog(log, config.topics.findings, tell=tell)
    stop = threading.Event()
    with Notifier(config, delivery_log, feed=feed, memory=delivery_log.memory, tell=tell, sends_traces=False) as notifier:

        def run() -> None:
            try:
                notifier.run(stop)
            except Exception as error:  # whatever it is, alerts would cease in silence
                failed(error)

        thread = threading.Thread(target=run, name="alerts")
        thread.start()
        tell(f"alerts go to {', '.join(dispatcher.name for dispatcher in notifier.dispatchers)}")
        try:
            yield
        finally:
            stop.set()
            thread.join()
