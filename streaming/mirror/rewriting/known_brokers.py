"""The brokers that answers have named: where each is, and the port that the tap has for it.

Clients keep the tap's addresses and come back to them after the tap was away. So a broker keeps its port as long as the file is kept,
and the tap opens all ports of the file when it starts, before any client has asked where the brokers are.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from streaming.mirror.rewriting.walk import UnrewritableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = logging.getLogger(__name__)

_FORMAT: Final = 1


@dataclass(slots=True)
class KnownBroker:
    """One broker."""

    host: str
    port: int
    tap_port: int


class KnownBrokers:
    """All brokers of a cluster, by node id.

    :param ports: what the tap may listen on for brokers; None where all share one port.
    :param file: where they are kept; None to keep them in memory.
    """

    def __init__(self, ports: range | None, file: Path | None = None) -> None:
        self._ports = ports
        self._file = file
        self._brokers = _read(file, ports) if file is not None else {}

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(self._brokers)

    def __getitem__(self, node_id: int) -> KnownBroker:
        return self._brokers[node_id]

    def learn(self, node_id: int, host: str, port: int, opened: Callable[[int], bool]) -> KnownBroker:
        """Take over where a broker is; return what is known of it.

        :param opened: opens a port for it and returns False where that is in use.
        :raises UnrewritableError: when no port is left for it.
        """
        known = self._brokers.get(node_id)
        if known is None:
            known = self._brokers[node_id] = KnownBroker(host, port, self._new_port(node_id, opened))
            self._write()
        elif (known.host, known.port) != (host, port):
            log.warning("broker %d has moved from %s:%d to %s:%d", node_id, known.host, known.port, host, port)
            known.host, known.port = host, port
            self._write()
        return known

    def _new_port(self, node_id: int, opened: Callable[[int], bool]) -> int:
        if self._ports is None:
            return 0
        taken = {broker.tap_port for broker in self._brokers.values()}
        size = len(self._ports)
        for step in range(size):
            port = self._ports[(node_id + step) % size]
            if port not in taken and opened(port):
                return port
        raise UnrewritableError(f"none of the {size} ports is left for broker {node_id}: give more with --ports")

    def _write(self) -> None:
        if self._file is None:
            return
        packed = {"format": _FORMAT, "brokers": {str(node_id): asdict(broker) for node_id, broker in self._brokers.items()}}
        part = self._file.with_name(f"{self._file.name}.part")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(packed, indent=1))
            part.replace(self._file)
        except OSError as error:
            log.warning("cannot write %s: %s; after a restart of the tap, brokers may get other ports", self._file, error.strerror)


def _read(file: Path, ports: range | None) -> dict[int, KnownBroker]:
    try:
        packed: dict[str, Any] = json.loads(file.read_text())
        found = {int(node_id): KnownBroker(**values) for node_id, values in packed["brokers"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("cannot read %s: %s; brokers get ports anew", file, error)
        return {}
    return {node_id: broker for node_id, broker in found.items() if ports is None or broker.tap_port in ports}
