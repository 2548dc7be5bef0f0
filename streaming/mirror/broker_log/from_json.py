"""Messages out of the JSON of Kafka's request log: the broker writes every field of the message's version under the schema's own name.

The values are checked by the encoder, which the message is made for.
"""

from __future__ import annotations

import base64
import binascii
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.wire import messages
from coordinator_model.wire.encoder import default_of
from coordinator_model.wire.layouts import LAYOUTS, Field, Layout

if TYPE_CHECKING:
    from collections import Counter

_NONE: Final = object()

_FORMER_NAMES: Final = {
    ("OffsetCommitRequest", "generationIdOrMemberEpoch"): "generationId",  # up to Kafka 3.5
    ("TxnOffsetCommitRequest", "generationIdOrMemberEpoch"): "generationId",  # up to Kafka 4.3
    ("StreamsGroupHeartbeatResponse", "acceptableRecoveryLagLegacy"): "acceptableRecoveryLag",  # up to Kafka 4.3
}
"""Struct and name of a field → the name that earlier releases write: the version of a message alone does not show which."""


def message_of(layout: Layout, written: Any, version: int, unknown: Counter[str]) -> Any:
    """Return the message in a request line.

    :param unknown: counts fields that the layout does not know: those of a newer Kafka.
    :raises ValueError: when what is written cannot be this message.
    """
    return _struct(layout, layout.name, written, version, unknown)


def _struct(layout: Layout, name: str, written: Any, version: int, unknown: Counter[str]) -> Any:
    if not isinstance(written, dict):
        raise ValueError(f"{name} is no object")  # noqa: TRY004 - as all that is wrong with a line
    fields = _fields(layout.name, name, version)
    values = {}
    met = 0
    for json_name, former, field in fields:
        value = written.get(json_name, _NONE)
        if value is _NONE:
            value = written.get(former, _NONE)
        if value is _NONE:
            continue
        met += 1
        values[field.name] = _value(layout, field, value, version, unknown)
    if met < len(written):
        known = {known for json_name, former, _ in fields for known in (json_name, former)}
        unknown.update(f"{name}.{other}" for other in written if other not in known)
    missing = [field.name for _, _, field in fields if field.tag is None and field.name not in values and _is_required(field)]
    if missing:
        raise ValueError(f"{name} has no {missing[0]}")
    return getattr(messages, name)(**values)


def _value(layout: Layout, field: Field, value: Any, version: int, unknown: Counter[str]) -> Any:
    if value is None:
        return None
    item = field.item_type
    if field.is_array:
        if not isinstance(value, list):
            raise ValueError(f"{field.name} is no array")
        if item in layout.structs:
            return tuple(_struct(layout, item, one, version, unknown) for one in value)
        return tuple(_bytes(one) for one in value) if item == "bytes" else tuple(value)
    if item in layout.structs:
        return _struct(layout, item, value, version, unknown)
    return _bytes(value) if item == "bytes" else value


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("bytes that are no base64") from None


def _is_required(field: Field) -> bool:
    """Whether a field without a default in the schema: a broker writes all of a version's fields, one that is missing is damage."""
    return field.default is None and not field.ignorable and default_of(field) in ("", b"")


@cache
def _fields(message: str, struct: str, version: int) -> tuple[tuple[str, str, Field], ...]:
    """Return the fields of a version, each with its name in JSON and the name that earlier releases write, mostly the same."""
    fields = ((_camel(field.name), field) for field in LAYOUTS[message].structs[struct] if version in field.versions)
    return tuple((name, _FORMER_NAMES.get((struct, name), name), field) for name, field in fields)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
