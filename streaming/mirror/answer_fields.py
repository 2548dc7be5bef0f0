"""The fields of an answer that names brokers, one after the other, as far as it goes: its end may be missing."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from streaming.mirror.rewriting.walk import LAYOUTS, fixed_size

if TYPE_CHECKING:
    from collections.abc import Iterator

_CORRELATION_ID: Final = 4


class AnswerFields:
    """Steps through an answer with its header. Flexible versions have compact lengths and tagged fields.

    Iterating yields the name of each field of the message with its value: texts, raw bytes, and arrays of structs as lists of dicts.

    :param api_key: one of those in ``LAYOUTS``.
    :raises IndexError: when iterated, if the frame ends too soon.
    :raises UnicodeDecodeError: when iterated, if a text is none.
    """

    __slots__ = ("data", "flexible", "key", "position", "version")

    def __init__(self, data: bytes, api_key: int, api_version: int) -> None:
        layout = LAYOUTS[api_key]
        self.data = data
        self.key = api_key
        self.version = min(api_version, layout.versions.last)
        self.flexible = api_version in layout.flexible
        self.position = 0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        self._skip(_CORRELATION_ID)
        self._tags()
        yield from self._fields(LAYOUTS[self.key].name)

    def _fields(self, name: str) -> Iterator[tuple[str, Any]]:
        for field, type_, size, is_array in _fields_of(self.key, name, self.version):
            if size:
                yield field, self._take(size * self._length() if is_array else size)
            elif is_array:
                yield field, [dict(self._fields(type_)) for _ in range(self._length())]
            else:
                yield field, self._take(self._length(2)).decode()
        self._tags()

    def _skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise IndexError

    def _take(self, count: int) -> bytes:
        self._skip(count)
        return self.data[self.position - count : self.position]

    def _uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise IndexError

    def _length(self, width: int = 4) -> int:
        """Return the length of an array, or of a text, whose length has two bytes before flexible versions; 0 for null."""
        return max(self._uvarint() - 1 if self.flexible else int.from_bytes(self._take(width), "big", signed=True), 0)

    def _tags(self) -> None:
        for _ in range(self._uvarint() if self.flexible else 0):
            self._uvarint()
            self._skip(self._uvarint())


@cache
def _fields_of(api_key: int, name: str, version: int) -> list[tuple[str, str, int, bool]]:
    """Return the fields of a struct: name, type, fixed size or 0, and whether they are an array of these."""
    fields = LAYOUTS[api_key].fields(name, version)
    return [(field.name, field.item_type, fixed_size(field.item_type), field.is_array) for field in fields]
