"""What a tap stands between: a broker that echoes, a sink that keeps records."""

from __future__ import annotations

import asyncio

HOST = "127.0.0.1"
TIMEOUT_S = 30


class Sink(list):
    def write(self, record) -> None:
        self.append(record)


def run(scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario, TIMEOUT_S))


async def echo(reader, writer) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
        await writer.drain()
    writer.close()


async def until(condition) -> None:
    while not condition():  # noqa: ASYNC110 - it waits for whatever, not for one event
        await asyncio.sleep(0.005)
