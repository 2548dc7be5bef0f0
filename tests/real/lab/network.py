"""A network that fails on demand: links that pass bytes on, and cut connections or slow down when told to.

It stands between the clients and the tap, so the tap sees what a broker sees. It runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from types import TracebackType
from typing import NamedTuple, Self

_PIECE = 64 * 1024
_START_TIMEOUT_S = 60.0


class Link(NamedTuple):
    """``host:port`` to listen on, and where what comes in is passed on to."""

    listen: str
    upstream: str


class Network:
    """Links; a context manager. Its methods may be called from any thread."""

    def __init__(self, links: list[Link]) -> None:
        self._links = links
        self._delay_s = 0.0
        self._answer_delay_s = 0.0
        self._writers: dict[asyncio.Task[None], tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = {}
        self._loop = asyncio.new_event_loop()
        self._started: Future[None] = Future()
        self._stop = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._run, name="network", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result(_START_TIMEOUT_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_START_TIMEOUT_S)

    def cut(self, share: float, rng: random.Random) -> int:
        """Cut this share of the open connections; gives how many."""
        return self._cut(lambda _: rng.random() < share)

    def cut_from(self, ports: Collection[int]) -> int:
        """Cut the open connections that come from these ports; gives how many."""
        return self._cut(lambda peer: peer[1] in ports)

    def _cut(self, doomed: Callable[[tuple[str, int]], bool]) -> int:
        async def cut() -> int:
            pairs = {pair[0].get_extra_info("peername"): pair for pair in self._writers.values()}
            chosen = [pairs[peer] for peer in sorted(pairs) if doomed(peer)]
            for pair in chosen:
                for writer in pair:
                    writer.transport.abort()
            return len(chosen)

        return asyncio.run_coroutine_threadsafe(cut(), self._loop).result(_START_TIMEOUT_S)

    def delay(self, seconds: float) -> None:
        """Hold every piece back for so long, in both directions; 0 for no longer."""
        self._delay_s = seconds

    def delay_answers(self, seconds: float) -> None:
        """Hold every piece from a broker back for so long; 0 for no longer."""
        self._answer_delay_s = seconds

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            for link in self._links:
                await asyncio.start_server(lambda r, w, to=link.upstream: self._accept(r, w, to), *_split(link.listen))
        except OSError as error:
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        await self._stop.wait()
        for pair in tuple(self._writers.values()):
            for writer in pair:
                writer.transport.abort()
        await self._idle.wait()

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter, upstream: str) -> None:
        try:
            broker, to_broker = await asyncio.open_connection(*_split(upstream))
        except OSError:
            to_client.close()
            return
        task = asyncio.current_task()
        assert task is not None
        self._writers[task] = (to_client, to_broker)
        self._idle.clear()
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(client, to_broker, lambda: self._delay_s))
                both.create_task(self._pump(broker, to_client, lambda: max(self._delay_s, self._answer_delay_s)))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # one side closed
        finally:
            del self._writers[task]
            if not self._writers:
                self._idle.set()
            for writer in (to_client, to_broker):
                with contextlib.suppress(RuntimeError):  # the loop is gone
                    writer.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, delay_s: Callable[[], float]) -> None:
        while piece := await source.read(_PIECE):
            if seconds := delay_s():
                await asyncio.sleep(seconds)
            target.write(piece)
            await target.drain()
        raise asyncio.IncompleteReadError(b"", None)


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
