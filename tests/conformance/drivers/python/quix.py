"""quixstreams, a stream processor on confluent-kafka."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import quixstreams
from contract import Settings, run, tell

logging.getLogger("quixstreams").setLevel(logging.CRITICAL)


class Quix:
    """The application has a loop of its own, in a thread; the block of a driver is the processing of a record that takes so long."""

    blocked_until = 0.0

    def join(self, settings: Settings) -> None:
        self._settings = settings
        self.subscribe(settings.topics)

    def subscribe(self, topics: list[str]) -> None:
        settings = self._settings
        extra = {
            "client.id": settings.client_id,
            "session.timeout.ms": settings.session_timeout_ms,
            "heartbeat.interval.ms": settings.heartbeat_interval_ms,
            "max.poll.interval.ms": settings.rebalance_timeout_ms,
            "partition.assignment.strategy": settings.assignor,
            "topic.metadata.refresh.interval.ms": 2_000,
            **({} if settings.instance_id is None else {"group.instance.id": settings.instance_id}),
        }
        self._application = quixstreams.Application(
            broker_address=settings.bootstrap,
            consumer_group=settings.group,
            auto_offset_reset="earliest",
            commit_interval=1.0,
            consumer_extra_config=extra,
            processing_guarantee="exactly-once" if settings.commits == "transaction" else "at-least-once",
            auto_create_topics=False,
            loglevel=None,
        )
        self._application._setup_signal_handlers = lambda: None  # they want the main thread
        frame = self._application.dataframe(self._application.topic(topics[0], value_deserializer="bytes"))
        frame.update(self._work)
        self._thread = threading.Thread(target=self._run, args=(self._application,), daemon=True)
        self._thread.start()

    def _run(self, application: Any) -> None:
        try:
            application.run()
        except Exception as error:
            tell("failed", error=f"{type(error).__name__}: {error}")

    def _work(self, _: Any) -> None:
        time.sleep(max(0.0, self.blocked_until - time.monotonic()))

    def poll(self, seconds: float) -> None:
        time.sleep(seconds)

    def block(self, seconds: float) -> None:
        self.blocked_until = time.monotonic() + seconds

    def commit(self, how: str) -> None:
        """It commits by itself, once a second."""

    def leave(self) -> None:
        self._application.stop()
        self._thread.join()

    def close(self) -> None:
        self.leave()


run(Quix())
