"""Which cluster the brokers in captured packets belong to, if there are several: groups of two clusters may have one name.

Answers to Metadata (from version 2 on) and DescribeCluster name the cluster and the addresses of its brokers. Where a broker advertises a
name instead of an address, its clients show the cluster: those that talk to brokers of one cluster alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.wire.record import MIRRORED_API_KEYS
from streaming.mirror.answer_fields import AnswerFields
from streaming.mirror.frames import REQUEST_PREFIX, SIZE_PREFIX
from streaming.mirror.listener import written
from streaming.mirror.pcap.segments import Segment, ends, reverse
from streaming.mirror.topics import METADATA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streaming.mirror.pcap.connection import Endpoint

_DESCRIBE_CLUSTER: Final = 60
_NAMING: Final = frozenset({METADATA, _DESCRIBE_CLUSTER})
_OF_CONSUMERS: Final = frozenset(key.to_bytes(2, "big") for key in MIRRORED_API_KEYS | _NAMING)
_VERSIONS: Final = 32
_LONGEST_NAME: Final = 1_000
_LONGEST_BEGINNING: Final = 64 * 1024
"""Bytes of an answer in which the brokers and the name of the cluster have to stand."""
_CONNECTIONS_AT_MOST: Final = 100_000
_CLIENT_ID: Final = SIZE_PREFIX + REQUEST_PREFIX


class _Asked(NamedTuple):
    """A request whose answer names the cluster."""

    correlation_id: bytes
    api_key: int
    api_version: int


class _Begun(NamedTuple):
    """An answer of which only the beginning has come so far."""

    asked: _Asked
    data: bytes
    next_sequence: int


class Clusters:
    """Looks at all segments of captures."""

    def __init__(self) -> None:
        self._asked: dict[bytes, _Asked] = {}  # by the direction of the answer
        self._begun: dict[bytes, _Begun] = {}
        self._answered: dict[Endpoint, set[str]] = {}  # who answered → which cluster it named
        self._listed: dict[Endpoint, set[str]] = {}  # address of a broker → clusters that list it
        self._talks: set[tuple[bytes, bytes]] = set()  # direction of requests, and their client id

    def noted(self, segments: Iterable[tuple[int, Segment]]) -> Iterator[tuple[int, Segment]]:
        """Pass on segments with their times, once they are noted."""
        for one in segments:
            self._note(one[1])
            yield one

    def _note(self, segment: Segment) -> None:
        """Note what the next segment shows. An answer that does not begin with a segment is passed over; others will come."""
        key, sequence, _, _, payload, _ = segment
        if not payload:
            return
        begun = self._begun.pop(key, None)
        if begun is not None and begun.next_sequence == sequence:
            self._answer(key, begun.asked, begun.data + payload, sequence + len(payload))
            return
        asked = self._asked.get(key)
        if asked is not None and payload[SIZE_PREFIX : SIZE_PREFIX + 4] == asked.correlation_id:
            del self._asked[key]
            self._answer(key, asked, payload, sequence + len(payload))
        else:
            self._request(key, payload)

    def by_address(self) -> dict[str, str]:
        """Return the cluster of each broker's address of which that is known; nothing if there are fewer than two clusters."""
        known = {address: next(iter(names)) for address, names in (self._listed | self._answered).items() if len(names) == 1}
        if len(set(known.values())) < 2:
            return {}
        asked: dict[tuple[str, bytes], set[Endpoint]] = {}  # by host and client id
        for key, client_id in self._talks:
            (host, _), broker = ends(key)
            asked.setdefault((host, client_id), set()).add(broker)
        found: dict[Endpoint, set[str]] = {}
        for addresses in asked.values():
            names = {known[address] for address in addresses if address in known}
            for address in addresses if len(names) == 1 else ():
                found.setdefault(address, set()).update(names)
        shown = {address: next(iter(names)) for address, names in found.items() if len(names) == 1}
        return {written(*address): cluster for address, cluster in (shown | known).items()}

    def _request(self, key: bytes, payload: bytes) -> None:
        """Note who asks whom, if a segment begins with a request."""
        if payload[4:6] not in _OF_CONSUMERS or len(payload) < _CLIENT_ID + 2 or len(self._talks) >= _CONNECTIONS_AT_MOST:
            return
        api_key, api_version = int.from_bytes(payload[4:6], "big"), int.from_bytes(payload[6:8], "big")
        length = int.from_bytes(payload[_CLIENT_ID : _CLIENT_ID + 2], "big", signed=True)
        if api_version < _VERSIONS and -1 <= length <= _LONGEST_NAME:
            self._talks.add((key, payload[_CLIENT_ID + 2 : _CLIENT_ID + 2 + max(length, 0)]))
            if api_key in _NAMING:
                self._asked[reverse(key)] = _Asked(payload[8:12], api_key, api_version)

    def _answer(self, key: bytes, asked: _Asked, data: bytes, next_sequence: int) -> None:
        found: dict[str, Any] = {}
        try:
            for name, value in AnswerFields(data[SIZE_PREFIX:], asked.api_key, asked.api_version):
                found[name] = value
                if "brokers" in found and "cluster_id" in found:
                    break
        except IndexError:
            if len(data) < _LONGEST_BEGINNING:
                self._begun[key] = _Begun(asked, data, next_sequence & 0xFFFFFFFF)
            return
        except UnicodeDecodeError:
            return
        if cluster := found.get("cluster_id"):
            self._answered.setdefault(ends(key)[0], set()).add(cluster)
            for broker in found["brokers"]:
                address = broker["host"], int.from_bytes(broker["port"], "big")
                self._listed.setdefault(address, set()).add(cluster)
