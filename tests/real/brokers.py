"""Several brokers, for failover of the coordinator."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from streaming.demo.broker import Broker, new_cluster_id


@contextmanager
def frozen(broker: Broker) -> Iterator[None]:
    """Let a broker stand still: its connections stay open, and it does nothing."""
    pid = broker.pid
    assert pid is not None, "the broker runs"
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Cluster:
    """Several brokers with replicated internal topics, for failover of the coordinator; a context manager.

    :param advertised: one mapping per broker. This and the other parameters are those of :class:`Broker`.
    """

    kind: type[Broker] = Broker  #: what its brokers are

    def __init__(
        self,
        size: int = 3,
        *,
        advertised: Sequence[Mapping[str, str]] | None = None,
        listeners: Mapping[str, str] | None = None,
        properties: Mapping[str, str | int] | None = None,
        offsets_partitions: int = 4,
        initial_rebalance_delay_ms: int = 0,
        heap_mib: int = 384,
        jars: Sequence[Path] | None = None,
    ) -> None:
        self.brokers = [
            self.kind(
                node_id=node_id,
                advertised=advertised[node_id - 1] if advertised else None,
                listeners=listeners,
                properties=properties,
                offsets_partitions=offsets_partitions,
                initial_rebalance_delay_ms=initial_rebalance_delay_ms,
                heap_mib=heap_mib,
                jars=jars,
            )
            for node_id in range(1, size + 1)
        ]
        cluster_id = new_cluster_id()
        for broker in self.brokers:
            broker.join(cluster_id, self.brokers)

    @property
    def internal(self) -> str:
        """Bootstrap servers of the internal listeners."""
        return ",".join(broker.internal for broker in self.brokers)

    @property
    def bootstrap(self) -> str:
        """Bootstrap servers of the client listeners: the addresses that they bind to, not the advertised ones."""
        return ",".join(broker.address() for broker in self.brokers)

    def __enter__(self) -> Self:
        try:
            for broker in self.brokers:
                broker.launch()
            for broker in self.brokers:
                broker.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Kill all brokers. A controlled shutdown of a whole cluster would wait for a quorum that shuts down as well."""
        for broker in self.brokers:
            broker.close()
