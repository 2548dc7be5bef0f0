"""Base classes of messages, and the header and frame that hold them.

Messages are compared by class and content, built by keyword, and changed with :func:`dataclasses.replace`. Arrays are tuples. A field
that a version lacks holds the schema's default, so one class serves all versions of a message. The version alone determines which
fields were on the wire.

A default is not evidence: ``generation_id_or_member_epoch == -1`` may be the client's value, or a version 0 without the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

UnknownTags: TypeAlias = tuple[tuple[int, bytes], ...]
"""Tagged fields that no known version defines: (tag, bytes) by ascending tag (KIP-482)."""

ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's text form of the id that means "none"."""


class Struct:
    """A message, or a struct inside one.

    Equality and representation are defined here once. Generated per class, as by dataclasses, they take a third of the time to define
    all classes.
    """

    __slots__: ClassVar[tuple[str, ...]] = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__qualname__}({values})"


class Message(Struct):
    """A request or response body. Its class knows its API, not its version."""

    __slots__ = ()

    API_KEY: ClassVar[int]


class Request(Message):
    """A request body."""

    __slots__ = ()


class Response(Message):
    """A response body."""

    __slots__ = ()


class Header(NamedTuple):
    """Request header v1 or v2, or response header v0 or v1. (No group API uses request header v0, which has no client id.)

    A response contains neither its API nor its version: both are the caller's values, except that the version of an ApiVersions response
    with error 35 is 0.
    """

    api_key: int
    api_version: int
    correlation_id: int  #: repeated by the response; chosen per connection, may be negative
    client_id: str | None = None  #: the client's ``client.id``; None in responses. A 2-byte length even in header v2
    unknown_tags: UnknownTags = ()


class Frame:
    """A decoded frame: ``frame.header`` and ``frame.body``; unpacks as ``header, body = frame``.

    The header is built on access, because most callers already have its content from the capture.
    """

    __slots__ = ("_client_id", "_header_tags", "api_key", "api_version", "body", "correlation_id")

    body: Message
    api_key: int
    api_version: int
    correlation_id: int
    _client_id: str | None
    _header_tags: UnknownTags

    @property
    def header(self) -> Header:
        """The frame's header, newly built."""
        return Header(self.api_key, self.api_version, self.correlation_id, self._client_id, self._header_tags)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.header, self.body))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return (self.header, self.body)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and self.header == other.header and self.body == other.body

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Frame(header={self.header!r}, body={self.body!r})"
