"""Mirror records without the names of their users: the same names get the same pseudonyms, so that the model finds the same.

What stays: times, ports, error codes, generations, epochs, offsets, versions, the names and versions of client libraries, protocol types
and names of assignors, and ids that are random (the UUID in a member id, topic ids). What goes: names of groups, topics, clients, static
members, hosts, clusters, connections, racks and transactions; user data of assignors; metadata of commits.

Texts (the reason of a JoinGroup or LeaveGroup, the message of an error) keep plain words up to the first bracket, quote or colon; known
names among them get their pseudonym. A frame that cannot be read is emptied, and counts as cut.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from hashlib import shake_256
from typing import TYPE_CHECKING, Any, Final, TypeVar

from coordinator_model.wire import DecodeError, decode
from coordinator_model.wire.embedded import (
    CONNECT,
    STREAMS_ASSIGNOR,
    Readable,
    decode_streams_subscription,
    encode_streams_subscription,
    read_member_assignment,
    read_metadata,
)
from coordinator_model.wire.encoder import encode_embedded, encode_request, encode_response
from coordinator_model.wire.layouts import LAYOUTS
from coordinator_model.wire.message import Struct
from coordinator_model.wire.record import NO_END, Kind, MirrorRecord, pack_topics, unpack_topics

if TYPE_CHECKING:
    _Text = TypeVar("_Text", str, "str | None")

# Names of fields → what they name. Fields of other names are in _OF_STRUCTS, or stay as they are: _KEPT.
_NAMES: Final = {
    "client_host": "host",
    "client_id": "client",
    "cluster_id": "cluster",
    "connector": "connector",
    "group_id": "group",
    "group_ids": "group",
    "group_instance_id": "client",
    "groups": "group",
    "groups_names": "group",
    "host": "host",
    "instance_id": "client",
    "named_topology": "topology",
    "process_id": "process",
    "rack_id": "rack",
    "repartition_sink_topics": "topic",
    "sink_topic": "topic",
    "source_topic_regex": "pattern",
    "source_topics": "topic",
    "stores": "store",
    "subscribed_topic_names": "topic",
    "subscribed_topic_regex": "pattern",
    "successors": "node",
    "topic": "topic",
    "topic_name": "topic",
    "topics": "topic",
    "transactional_id": "transaction",
}
_MEMBERS: Final = frozenset({"leader", "member_id"})
_TEXTS: Final = frozenset({"error_message", "reason", "status_detail"})
_URLS: Final = frozenset({"leader_url", "url"})
_SECRET: Final = frozenset({"committed_metadata", "key", "metadata", "user_end_point", "value"})
"""Emptied, unless :data:`_OF_STRUCTS` or the group's protocol type says more."""
_KEPT: Final = frozenset(
    {
        "assignor_name", "client_software_name", "client_software_version", "group_state", "group_type", "protocol_data",
        "protocol_name", "protocol_type", "server_assignor", "states_filter", "subtopology_id", "types_filter",
    }
)  # fmt: skip

_OF_STRUCTS: Final = {
    ("ApiVersionsResponseFinalizedFeatureKey", "name"): "",
    ("ApiVersionsResponseSupportedFeatureKey", "name"): "",
    ("JoinGroupRequestProtocol", "name"): "",
    ("StreamsGroupDescribeResponseTopologyDescriptionNode", "name"): "node",
    ("FindCoordinatorRequest", "coordinator_keys"): "coordinator",
    ("FindCoordinatorRequest", "key"): "coordinator",
    ("FindCoordinatorResponseCoordinator", "key"): "coordinator",
}
_OTHER_LISTENER: Final = NO_END + b" "  #: before the address in an opening
_OTHER_NAMES: Final = "topic"  #: what "name" means in all other structs

_FIRST_ADDRESS: Final = ipaddress.IPv4Address("10.0.0.0")
_UUID: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_RANDOM_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_TOKEN: Final = re.compile(r"[^\s,;]*[^\s,;.!?]")
_PLAIN_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(_[A-Z]+)*|[A-Za-z]+Exception|re-join")
_TEXT_ENDS: Final = re.compile(r"[\[({:'\"“<]")


_FIELDS: Final = {
    name: tuple(field.name for field in fields) for layout in LAYOUTS.values() for name, fields in layout.structs.items()
}
"""Message or struct → its fields."""


class Anonymiser:
    """Replaces names in records, the same name always by the same pseudonym.

    :param secret: from which replacements of bytes are made, so that they cannot be guessed.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(32) if secret is None else secret
        self._pseudonyms: dict[tuple[str, str], str] = {}
        self._anywhere: dict[str, str] = {}  # name → pseudonym, of whatever kind
        self._counts: dict[str, int] = {}
        self._protocol_types: dict[str, str] = {}  # by group

    def record(self, record: MirrorRecord) -> MirrorRecord:
        """Return the record with pseudonyms."""
        frame, cut_bytes = record.frame, record.cut_bytes
        if record.kind in {Kind.REQUEST, Kind.RESPONSE}:
            frame, cut_bytes = self._frame(record)
        elif record.kind is Kind.TOPICS:
            frame = self._topics(frame)
        elif record.kind is Kind.EXPIRED:
            frame = self._member_id(frame.decode("utf-8", "replace")).encode()
        elif record.kind is Kind.OPEN and frame.startswith(_OTHER_LISTENER):
            frame = _OTHER_LISTENER + self._address(frame.removeprefix(_OTHER_LISTENER).decode("utf-8", "replace")).encode()
        return record._replace(
            group=self._name("group", record.group),
            cluster=self._name("cluster", record.cluster),
            broker=self._address(record.broker),
            connection=self._name("connection", record.connection),
            client_id=self._name("client", record.client_id),
            client_address=self._address(record.client_address),
            principal=self._name("principal", record.principal),
            frame=frame,
            cut_bytes=cut_bytes,
        )

    def names(self) -> dict[str, str]:
        """Return pseudonym → name of everything that was replaced, in the order of the records."""
        return {pseudonym: name for (_, name), pseudonym in self._pseudonyms.items()}

    def _frame(self, record: MirrorRecord) -> tuple[bytes, int]:
        """Return the frame, and how many of its bytes are missing."""
        is_request = record.kind is Kind.REQUEST
        if record.cut_bytes:
            return b"", record.cut_bytes + len(record.frame)
        try:
            frame = decode(record.frame, request=is_request, api_key=record.api_key, api_version=record.api_version)
            body = self._struct(frame.body, record.group or "")
            header = frame.header
            if is_request:
                client_id = self._name("client", header.client_id)
                packed = encode_request(
                    body, api_version=header.api_version, correlation_id=header.correlation_id, client_id=client_id
                )
            else:
                packed = encode_response(body, api_version=header.api_version, correlation_id=header.correlation_id)
        except (DecodeError, ValueError):
            return b"", len(record.frame)
        return packed, 0

    # ------------------------------------------------------------------------------------------------ values

    def _struct(self, value: Struct, group: str) -> Any:
        """Return the message or struct with pseudonyms; ``group`` is the one that its record is about."""
        kind = type(value)
        made = {}
        protocol = getattr(value, "name", "") if kind.__name__ == "JoinGroupRequestProtocol" else ""
        if getattr(value, "protocol_type", None):
            self._protocol_types[group] = value.protocol_type  # type: ignore[attr-defined]
        for field in _FIELDS[kind.__name__]:
            made[field] = self._value(kind.__name__, field, getattr(value, field), group, protocol)
        return kind(**made)

    def _value(self, struct: str, field: str, value: Any, group: str, protocol: str) -> Any:
        if isinstance(value, Struct):
            return self._struct(value, group)
        if isinstance(value, tuple):
            return tuple(self._value(struct, field, one, group, protocol) for one in value)
        if isinstance(value, str):
            return self._text(struct, field, value)
        if isinstance(value, bytes | memoryview):
            return self._bytes(field, bytes(value), group, protocol)
        return value

    def _text(self, struct: str, field: str, value: str) -> str:
        if field in _MEMBERS:
            return self._member_id(value)
        if field in _TEXTS:
            return self._words(value)
        if field in _URLS:
            return f"http://{self._name('host', value)}:8083/"
        if (struct, field) in _OF_STRUCTS:
            kind = _OF_STRUCTS[struct, field]
            return self._coordinator_key(value) if kind == "coordinator" else self._name(kind, value) if kind else value
        if field in _NAMES:
            return self._address(value) if _NAMES[field] == "host" else self._name(_NAMES[field], value)
        if field == "name":
            return self._name(_OTHER_NAMES, value)
        return "" if field in _SECRET else value

    def _coordinator_key(self, value: str) -> str:
        """Return the pseudonym of a group, or of a transaction, as far as it is known as one."""
        return self._name("transaction" if ("transaction", value) in self._pseudonyms else "group", value)

    def _topics(self, value: bytes) -> bytes:
        names, partitions = unpack_topics(value)
        named = {id_: self._name("topic", name) for id_, name in names.items()}
        return pack_topics(named | {self._name("topic", name): count for name, count in partitions.items()})

    def _name(self, kind: str, value: _Text) -> _Text:
        if not value:
            return value  # null and blank mean something
        known = self._pseudonyms.get((kind, value))
        if known is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._pseudonyms[kind, value] = self._anywhere[value] = _pseudonym(kind, number)
        return known

    def _member_id(self, value: str) -> str:
        """Return the member id with its client id or instance id replaced; what follows these is random."""
        found = _UUID.search(value)
        if found is not None:
            return f"{self._name('client', value[: found.start()])}{found[0]}"
        random = not value or _RANDOM_ID.fullmatch(value)
        return value if random else self._name("member", value)

    def _address(self, value: str) -> str:
        """Return a host, with its port if it has one; a node id stays. Brokers write ``/`` before a client's address."""
        if value.isdecimal():
            return value
        if value.startswith("/"):
            return f"/{self._address(value[1:])}"
        host, colon, port = value.rpartition(":")
        if not colon or not port.isdecimal() or (":" in host and not host.startswith("[")):
            host, colon, port = value, "", ""
        return f"{self._host(host)}{colon}{port}"

    def _host(self, value: str) -> str:
        try:
            ipaddress.ip_address(value.strip("[]"))
        except ValueError:
            return self._name("host", value)
        return self._name("address", value)

    def _words(self, value: str) -> str:
        return _TOKEN.sub(self._word, _TEXT_ENDS.split(value, maxsplit=1)[0])

    def _word(self, found: re.Match[str]) -> str:
        word = found[0]
        return self._anywhere.get(word) or (word if _PLAIN_WORD.fullmatch(word) else "…")

    # ------------------------------------------------------------------------------------------------ bytes

    def _bytes(self, field: str, value: bytes, group: str, protocol: str) -> bytes:
        if not value:
            return value
        protocol_type = self._protocol_types.get(group, "")
        if field in {"metadata", "member_metadata"}:
            return self._embedded(value, read_metadata(protocol_type, value), group, protocol)
        if field in {"assignment", "member_assignment"}:
            return self._embedded(value, read_member_assignment(protocol_type, value), group, protocol)
        if field == "allocation":
            return self._embedded(value, read_member_assignment(CONNECT, value), group, protocol)
        if field == "user_data":
            return self._user_data(value, protocol)
        return b"" if field in _SECRET else self._hidden(value)

    def _embedded(self, value: bytes, found: Readable | None, group: str, protocol: str) -> bytes:
        """Return a subscription or an assignment with pseudonyms, and with its version; other bytes of the same length for the rest."""
        if found is None:
            return self._hidden(value)
        name = type(found.body).__name__
        made = {field: self._value(name, field, getattr(found.body, field), group, protocol) for field in _FIELDS[name]}
        packed = encode_embedded(type(found.body)(**made), found.version)
        rest = value[len(encode_embedded(found.body, found.version)) :]
        return value[:2] + packed[2:] + self._noise(rest)

    def _user_data(self, value: bytes, protocol: str) -> bytes:
        if protocol == STREAMS_ASSIGNOR:
            try:
                info = decode_streams_subscription(value)
                return encode_streams_subscription(self._struct(info, ""))
            except (DecodeError, ValueError):
                pass
        return self._hidden(value)

    def _hidden(self, value: bytes) -> bytes:
        """Return other bytes of the same length, the same for the same bytes. A version before them stays."""
        kept = value[: _size_of_versions(value)]
        return kept + self._noise(value[len(kept) :])

    def _noise(self, value: bytes) -> bytes:
        return shake_256(self._secret + value).digest(len(value))


def _pseudonym(kind: str, number: int) -> str:
    return str(_FIRST_ADDRESS + number) if kind == "address" else f"{kind}-{number}"


def _size_of_versions(value: bytes) -> int:
    """Return the size of the two versions that user data of Streams begins with; else that of an embedded protocol's version."""
    of_streams = len(value) >= 8 and all(int.from_bytes(part, "big") < 256 for part in (value[:4], value[4:8]))
    return 8 if of_streams else 2
