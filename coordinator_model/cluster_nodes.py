"""Which addresses of a cluster are one broker: a broker has a listener for each network or way to log in, and an address for each.

A coordinator is a node. FindCoordinator names the node's id with the address for those who ask on that listener, so that two addresses with
one id are one broker. Behind a tap or another address translation the named address is not the one that a capture has: then the client that
was told of a node shows it, by the connection that it opens next and on which it is accepted.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.groups.records import Exchange, host_of
from coordinator_model.wire.record import MirrorRecord

ADDRESSES_KEPT: Final = 1_000
CLIENTS_KEPT: Final = 1_000

_YOUNG: Final = 3
"""A connection on which fewer exchanges came before is new: ApiVersions, perhaps an attempt to join."""


class ClusterNodes:
    """The node ids of brokers' addresses, as far as they are known."""

    __slots__ = ("_named_to", "_nodes")

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str], int] = {}  # (cluster, address) → node id
        self._named_to: dict[tuple[str, str | None, str], tuple[int, int]] = {}  # client → node id, time

    def learn(self, cluster: str, address: str, node_id: int) -> None:
        """Take over whose address this is. The newest counts: an address may pass to another broker."""
        self._nodes.pop((cluster, address), None)
        self._nodes[cluster, address] = node_id
        limit(self._nodes, ADDRESSES_KEPT)

    def coordinator_named(self, record: MirrorRecord, body: Any) -> None:
        """Take over what a FindCoordinator response says."""
        for answer in body.coordinators or (body,):
            if answer.error_code == 0 and answer.node_id >= 0:
                self.learn(record.cluster, f"{answer.host}:{answer.port}", answer.node_id)
                client = (record.cluster, record.client_id, host_of(record.client_address))
                self._named_to.pop(client, None)
                self._named_to[client] = answer.node_id, record.at_us
                limit(self._named_to, CLIENTS_KEPT)

    def coordinator_accepted(self, cluster: str, exchange: Exchange) -> None:
        """Take over that a broker acted as coordinator for a client: if its connection is new, it is the one named to the client."""
        broker, actor = exchange.broker, exchange.actor
        if exchange.key[1] > _YOUNG or (cluster, broker) in self._nodes:
            return
        named = self._named_to.get((cluster, actor.client_id, host_of(actor.address)))
        if named is not None and named[1] <= exchange.inv_us:
            self.learn(cluster, broker, named[0])

    def node_id(self, cluster: str, broker: str) -> int | None:
        """Return the node id of a broker's address, None if it is not known. A capturer may name brokers by their ids."""
        return int(broker) if broker.isdecimal() else self._nodes.get((cluster, broker))

    def are_one(self, cluster: str, one: str, other: str) -> bool:
        """Return True if both are known to be addresses of one broker."""
        return one == other or (self.node_id(cluster, one) == self.node_id(cluster, other) is not None)

    def are_two(self, cluster: str, one: str, other: str) -> bool:
        """Return True if both are known to be addresses of different brokers."""
        first, second = self.node_id(cluster, one), self.node_id(cluster, other)
        return first is not None and second is not None and first != second

    def pack(self) -> list[Any]:
        """Return the addresses as plain values for a snapshot."""
        return [
            [[*key, node_id] for key, node_id in self._nodes.items()],
            [[*client, *named] for client, named in self._named_to.items()],
        ]

    def fill(self, packed: list[Any]) -> None:
        """Take over what :meth:`pack` returned."""
        nodes, clients = packed
        for cluster, address, node_id in nodes:
            self._nodes[cluster, address] = node_id
        for cluster, client_id, host, node_id, at_us in clients:
            self._named_to[cluster, client_id, host] = node_id, at_us


def limit(kept: dict[Any, Any], most: int) -> None:
    """Drop the oldest entries beyond a number."""
    while len(kept) > most:
        del kept[next(iter(kept))]
