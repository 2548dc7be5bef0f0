"""faust-streaming, a stream processor on aiokafka with an assignor of its own."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
import time
from typing import Any

import faust
from contract import Settings, run

logging.disable(logging.CRITICAL)


class Faust:
    blocked_until = 0.0

    def join(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.subscribe(settings.topics)

    def subscribe(self, topics: list[str]) -> None:
        self._call(self._start(topics))

    async def _start(self, topics: list[str]) -> None:
        settings = self._settings
        self._app = faust.App(
            settings.group,
            broker=[f"kafka://{address}" for address in settings.bootstrap.split(",")],
            broker_client_id=settings.client_id,
            broker_session_timeout=settings.session_timeout_ms / 1000,
            broker_request_timeout=settings.session_timeout_ms / 1000 + 3,
            broker_heartbeat_interval=settings.heartbeat_interval_ms / 1000,
            broker_rebalance_timeout=settings.rebalance_timeout_ms / 1000,
            broker_max_poll_interval=settings.rebalance_timeout_ms / 1000,
            broker_commit_interval=1.0,
            consumer_auto_offset_reset="earliest",
            topic_disable_leader=True,
            web_enabled=False,
            datadir=tempfile.mkdtemp(prefix="conformance-faust-"),
        )
        topic = self._app.topic(*topics, value_serializer="raw")

        @self._app.agent(topic)
        async def work(stream: Any) -> None:
            async for _ in stream:
                time.sleep(max(0.0, self.blocked_until - time.monotonic()))  # noqa: ASYNC251 - an application that computes does so too

        await self._app.start()

    def poll(self, seconds: float) -> None:
        time.sleep(seconds)

    def block(self, seconds: float) -> None:
        self.blocked_until = time.monotonic() + seconds

    def commit(self, how: str) -> None:
        """It commits by itself, once a second."""

    def leave(self) -> None:
        self._call(self._app.stop())

    def close(self) -> None:
        self.leave()

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


run(Faust())
