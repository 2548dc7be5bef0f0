"""Kafka's message layouts, read from the table: the fields of a message in each version, in wire order.

``deploy/make_layouts.py`` generates the table (``layout_table.py``) from Kafka's own message definitions. This module treats all
messages alike.

"Flexible" is a property of the *message* version, and the client id in the request header does not follow it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.wire.layout_table import TABLE

INTEGERS: Final = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q"}
"""Types of fixed size, with their :mod:`struct` format characters."""


class Versions(NamedTuple):
    """An inclusive range of versions; empty when ``last < first``."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


NO_VERSIONS: Final = Versions(0, -1)
_OPEN_END: Final = 32767  # "3+": versions are int16


class Field(NamedTuple):
    """One field of a message or of a struct in it."""

    name: str
    type: str  #: an integer type, ``string``, ``bytes``, ``uuid``, the name of a struct, or ``[]`` and one of these
    versions: Versions
    nullable: Versions
    default: str | None  #: as in the table; None if the table has none
    ignorable: bool  #: a version without this field may drop a value that is not the default
    tag: int | None  #: number of a tagged field, which is in the tag section of every version that has it

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def item_type(self) -> str:
        """The type itself, or that of an array's elements."""
        return self.type.removeprefix("[]")


class Layout(NamedTuple):
    """All versions of one message."""

    name: str
    api_key: int | None  #: None for a message embedded in another's bytes
    versions: Versions
    flexible: Versions
    structs: dict[str, tuple[Field, ...]]  #: in wire order; the key of the message's own fields is its own name

    @property
    def is_request(self) -> bool:
        return self.name.endswith("Request")

    def fields(self, struct: str, version: int) -> tuple[Field, ...]:
        """Return the fields outside the tag section, in wire order."""
        return tuple(field for field in self.structs[struct] if version in field.versions and field.tag is None)

    def tagged(self, struct: str, version: int) -> tuple[Field, ...]:
        """Return the fields that the tag section may hold, by ascending tag."""
        found = [field for field in self.structs[struct] if version in field.versions and field.tag is not None]
        return tuple(sorted(found, key=lambda field: field.tag or 0))


def parse_table(table: str) -> dict[str, Layout]:
    """Parse the table; return layouts by message name, in its order."""
    layouts: dict[str, Layout] = {}
    fields: list[Field] = []
    for line in filter(None, table.splitlines()):
        match line.split():
            case ["message", name, "key", key, "versions", versions, "flexible", flexible]:
                api_key = None if key == "none" else int(key)
                layouts[name] = Layout(name, api_key, _versions(versions), _versions(flexible), {name: ()})
                struct, fields = name, []
            case ["struct", struct]:
                fields = []
            case words:
                fields.append(_field(*words))
                layouts[name].structs[struct] = tuple(fields)
    return layouts


def _field(name: str, type_: str, versions: str, *options: str) -> Field:
    given = dict(option.partition("=")[::2] for option in options)
    return Field(
        name=name,
        type=type_,
        versions=_versions(versions),
        nullable=_versions(given.get("nullable", "none")),
        default=given.get("default"),
        ignorable="ignorable" in given,
        tag=int(given["tag"]) if "tag" in given else None,
    )


def _versions(text: str) -> Versions:
    if text == "none":
        return NO_VERSIONS
    first, dash, last = text.removesuffix("+").partition("-")
    if text.endswith("+"):
        return Versions(int(first), _OPEN_END)
    return Versions(int(first), int(last if dash else first))


LAYOUTS: Final = parse_table(TABLE)
REQUESTS: Final = {layout.api_key: layout for layout in LAYOUTS.values() if layout.api_key is not None and layout.is_request}
RESPONSES: Final = {layout.api_key: layout for layout in LAYOUTS.values() if layout.api_key is not None and not layout.is_request}
