"""How a tap stands in for brokers whose advertised addresses it cannot choose: its own addresses, one for each broker."""

from __future__ import annotations

import logging
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from coordinator_model.wire.record import MIRRORED_API_KEYS
from streaming.mirror.listener import Listener, TapError, written
from streaming.mirror.rewriting.answers import AnswerRewriter
from streaming.mirror.rewriting.walk import API_VERSIONS, KNOWN, LAYOUTS, UnrewritableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.mirror.rewriting.known_brokers import KnownBroker, KnownBrokers

log = logging.getLogger(__name__)

_ID: Final = "{id}"
_UNSUPPORTED: Final = 0x7FFF  # a version of ApiVersions that no broker supports

SIGNS_THE_HOST: Final = {
    "GSSAPI": "its tickets are for the broker's host name: the brokers' keytabs need a principal for the tap's name, too",
    "AWS_MSK_IAM": "it signs the broker's host name: let clients use OAUTHBEARER with the MSK IAM token provider, or SCRAM",
}
"""SASL mechanism → why it fails through a tap with an address of its own, and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """The end of a connection that is the tap's: what the client has connected to."""

    host: str
    port: int


@dataclass(slots=True)
class StandInStats:
    """What rewriting has met since the start."""

    ended: int = 0  #: connections that were ended, for an answer could not be rewritten
    lowered: dict[int, tuple[int, int]] = field(default_factory=dict)  #: API key → the broker's last version, and the one offered
    mechanisms: Counter[str] = field(default_factory=Counter)  #: SASL handshakes with mechanisms that sign the host


class StandIn:
    """The tap's addresses for the brokers of one cluster.

    :param brokers: the brokers, and their ports.
    :param advertise: the host that clients are given; ``{id}`` in it stands for the node id. None for the address that the client itself
        has connected to.
    :param by_name: one port serves all brokers: which is meant is known by the name that the client asks for in TLS (SNI).
    :raises TapError: when these do not fit together.
    """

    def __init__(self, brokers: KnownBrokers, advertise: str | None = None, *, by_name: bool = False) -> None:
        self.stats = StandInStats()
        self.by_name = by_name
        self.brokers = brokers
        self._advertise = advertise
        self._open: Callable[[int, int], bool] = lambda _node_id, _port: True
        if by_name and (advertise is None or _ID not in advertise):
            raise TapError(
                "one port for all brokers needs --advertise with {id}, for example broker-{id}.tap.example; or give --ports"
            )
        pattern = re.escape(advertise or "").replace(re.escape(_ID), r"(\d{1,10})")
        self._name = re.compile(pattern, re.IGNORECASE)

    def opens_with(self, opens: Callable[[int, int], bool]) -> None:
        """Say how to listen for a broker, by node id and port; it returns False where the port is in use."""
        self._open = opens

    def rewriter(self, place: Place) -> AnswerRewriter:
        """For one connection of a client."""
        return AnswerRewriter(lambda node_id, host, port: self._translate(place, node_id, host, port), self._note_lowered)

    def listener(self, node_id: int, host: str) -> Listener:
        """Return where the broker of a node id is now, for a new connection to the tap's ``host``."""
        broker: KnownBroker = self.brokers[node_id]
        return Listener(host, broker.tap_port, broker.host, broker.port)

    def node_named(self, server_name: str) -> int | None:
        """Return the node id of a known broker that a client names in TLS, None for the bootstrap address."""
        found = self._name.fullmatch(server_name)
        node_id = int(found[1]) if found else -1
        return node_id if node_id in self.brokers.node_ids else None

    def note_mechanism(self, mechanism: str) -> None:
        """A client begins to log in."""
        why = SIGNS_THE_HOST.get(mechanism)
        if why is None:
            return
        self.stats.mechanisms[mechanism] += 1
        if self.stats.mechanisms[mechanism] == 1:
            log.warning("clients that log in with %s are refused by brokers behind a tap with --rewrite: %s", mechanism, why)

    @property
    def lowered(self) -> list[str]:
        """The APIs of which brokers support newer versions than clients are offered."""
        found = []
        for key, (last, offered) in sorted(self.stats.lowered.items()):
            name = LAYOUTS[key].name.removesuffix("Response")
            found.append(f"{name} {last} → {offered}" if offered >= 0 else f"{name} {last} → none")
        return found

    def _translate(self, place: Place, node_id: int, host: str, port: int) -> tuple[str, int]:
        if not 0 < port <= 65535:
            raise UnrewritableError(f"broker {node_id} is said to be at {written(host, port)}")
        broker = self.brokers.learn(node_id, host, port, lambda tap_port: self._open(node_id, tap_port))
        advertised = place.host if self._advertise is None else self._advertise.replace(_ID, str(node_id))
        return advertised, place.port if self.by_name else broker.tap_port

    def _note_lowered(self, api_key: int, last: int, offered: int) -> None:
        if self.stats.lowered.get(api_key) != (last, offered):
            self.stats.lowered[api_key] = last, offered
            name = LAYOUTS[api_key].name.removesuffix("Response")
            mirrored = "" if api_key in MIRRORED_API_KEYS else " It is none of those the monitor reads."
            log.warning(
                "brokers speak %s up to version %d, this release knows it up to %d: clients are offered no newer one.%s",
                *(name, last, KNOWN[api_key].last, mirrored),
            )


class FirstRequest:
    """The requests of a connection, of which only the first can change: an ApiVersions of a version that this release does not know.

    A broker that supports it would answer in that version. It is asked for one that no broker supports instead, and so names those that it
    does, whereupon the client asks again.
    """

    _SEEN: Final = 8

    def __init__(self) -> None:
        self._held: bytes | None = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the client; return those for the broker."""
        if self._held is None:
            return data
        held = self._held + data
        if len(held) < self._SEEN:
            self._held = held
            return b""
        self._held = None
        key, version = int.from_bytes(held[4:6], "big"), int.from_bytes(held[6:8], "big", signed=True)
        if key == API_VERSIONS and version > KNOWN[API_VERSIONS].last:
            return held[:6] + _UNSUPPORTED.to_bytes(2, "big") + held[8:]
        return held
