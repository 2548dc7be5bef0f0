"""Brokers of a release that needs ZooKeeper."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

from streaming.demo.broker import HOST, Broker, free_port, guard
from streaming.spark import jvm
from tests.real.brokers import Cluster

TICK_MS = 500
SESSION_MS = 4_000  #: a broker that was killed cannot register again before its session has ended


class ZooKeeperBroker(Broker):
    """A broker that finds its cluster in ZooKeeper."""

    zookeeper: str

    def _format(self, config: Path) -> None:
        """ZooKeeper knows the cluster; there is nothing to format."""

    def _server_properties(self) -> dict[str, str | int]:
        quorum = ("process.roles", "node.id", "controller.", "initial.broker.")
        properties = {name: value for name, value in super()._server_properties().items() if not name.startswith(quorum)}
        for name in ("listeners", "listener.security.protocol.map"):
            places = str(properties[name]).split(",")
            properties[name] = ",".join(place for place in places if not place.startswith("CONTROLLER:"))
        return {
            **properties,
            "broker.id": self.node_id,
            "zookeeper.connect": self.zookeeper,
            "zookeeper.session.timeout.ms": SESSION_MS,
        }


class ZooKeeperCluster(Cluster):
    """Such brokers, and the ZooKeeper that they need; a context manager.

    :param jars: of the release; ZooKeeper is among them.
    """

    kind = ZooKeeperBroker

    def __init__(self, size: int = 3, **options: Any) -> None:
        super().__init__(size, **options)
        self._jars = options["jars"]
        self._port = free_port()
        for broker in self.brokers:
            assert isinstance(broker, ZooKeeperBroker)
            broker.zookeeper = f"{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._data = Path(tempfile.mkdtemp(prefix="rebalance-monitor-zookeeper-"))
        with (self._data / "zookeeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(jvm.java_command(), "-Xmx128m", "-Dzookeeper.admin.enableServer=false"),
                    *("-cp", ":".join(str(jar) for jar in self._jars), "org.apache.zookeeper.server.ZooKeeperServerMain"),
                    *(str(self._port), str(self._data), str(TICK_MS)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard = guard(self._process.pid, self._data)
        return super().__enter__()

    def close(self) -> None:
        super().close()
        for process in (self._process, self._guard):
            process.kill()
            process.wait()
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):
            self._guard.stdin.close()
        shutil.rmtree(self._data, ignore_errors=True)
