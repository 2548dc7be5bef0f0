"""Makes text from the wire harmless to look at.

Names of groups, clients and members are chosen by clients. Templates escape HTML. What remains are characters that turn the
direction of a line, that no font draws, or that no screen holds: those are shown as what they are, and their number is bounded.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from typing import Any, Final

from msgspec import Struct, structs

LONGEST: Final = 1_000
"""Characters of one text that are kept; a hash stands for the rest, so that two texts stay two."""

_KEPT_KEYS: Final = frozenset({"cluster", "group", "coordinator"})
_NUMBERS: Final = frozenset({int, float, bool})
_MAYBE_ADDRESS: Final = re.compile(
    r"(?<![\w.:])(?:\[([0-9A-Fa-f:.]+)(?:%\w+)?\](?::\d+)?"
    r"|(\d+(?:\.\d+){3})(?::\d+)?(?!\w|\.\w)"
    r"|([0-9A-Fa-f]*(?::[0-9A-Fa-f]*){2,}(?<!:))(?!\w|\.\w))"
)

_BLANK: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""What Python calls printable and no font draws: of Unicode's Default_Ignorable_Code_Point, and the Braille cell without a dot."""


def is_seen(text: str) -> bool:
    """Return True if each character of the text can be seen, and no terminal obeys one."""
    return text.isprintable() and (text.isascii() or _BLANK.search(text) is None)


def readable(text: str) -> str:
    """Return the text without characters that cannot be seen, and not longer than :data:`LONGEST` and a hash."""
    if is_seen(text) and len(text) <= LONGEST:
        return text
    if len(text) > LONGEST:
        digest = hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()
        text = f"{text[:LONGEST]}… ({len(text):,} characters, {digest})"
    return visible(text)


def shown_name(name: str) -> str:
    """Return a name made readable, in quotes if it begins or ends with a blank, which nobody sees otherwise."""
    text = readable(name)
    return text if text == text.strip() else f'"{text}"'


def visible(text: str) -> str:
    """Return the whole text with an escape in place of each character that cannot be seen, or that a terminal obeys."""
    return text if is_seen(text) else "".join(each if is_seen(each) else f"\\u{ord(each):04x}" for each in text)


def json_line(value: Any) -> str:
    """Return plain JSON as one line; what cannot be seen is escaped, which JSON reads as the same."""
    return one_line(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def one_line(text: str) -> str:
    """Return JSON with an escape for what cannot be seen, which JSON reads as the same."""
    return text if is_seen(text) else "".join(each if is_seen(each) else json.dumps(each)[1:-1] for each in text)


def without_addresses(text: str) -> str:
    """Return the text with "(hidden)" in place of each IP address."""
    return _MAYBE_ADDRESS.sub(_hidden, text)


def _hidden(found: re.Match[str]) -> str:
    try:
        ipaddress.ip_address(found[1] or found[2] or found[3])
    except ValueError:
        return found[0]
    return "(hidden)"


def harmless(value: Any, *, hide_addresses: bool) -> Any:
    """Return plain JSON, or an event, with each text made readable; addresses of members are hidden on request.

    Names of cluster and group are left as they are, because they are keys; who shows them calls :func:`readable`.

    :returns: the value itself if nothing has to change.
    """
    if not hide_addresses and _is_harmless(value):
        return value
    return _made_harmless(value, hide_addresses=hide_addresses)


def _is_harmless(value: Any) -> bool:
    """Return True if nothing in plain JSON has to change, as in nearly all records; without a copy, for records are many."""
    below = [value]
    for one in below:  # which grows meanwhile
        kind = type(one)
        if kind is dict:
            for key, inner in one.items():
                if not is_seen(key) or len(key) > LONGEST:
                    return False
                if type(inner) is str:
                    if not is_seen(inner) or len(inner) > LONGEST:
                        return False
                elif inner is not None:
                    below.append(inner)
        elif kind is list or kind is tuple:
            below += one
        elif issubclass(kind, Struct):
            below += structs.astuple(one)
        elif kind is str:
            if not is_seen(one) or len(one) > LONGEST:
                return False
        elif one is not None and kind not in _NUMBERS:
            return False
    return True


def _made_harmless(value: Any, *, hide_addresses: bool) -> Any:
    if isinstance(value, int | float) or value is None:
        return value
    if isinstance(value, str):
        text = readable(value)
        return without_addresses(text) if hide_addresses else text
    if isinstance(value, dict):
        return {
            readable(key): inner
            if key in _KEPT_KEYS and isinstance(inner, str)
            else _made_harmless(inner, hide_addresses=hide_addresses)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_made_harmless(inner, hide_addresses=hide_addresses) for inner in value]
    if isinstance(value, tuple):
        inside = [_made_harmless(inner, hide_addresses=hide_addresses) for inner in value]
        return type(value)(*inside) if hasattr(value, "_fields") else tuple(inside)
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if name not in _KEPT_KEYS}
        return structs.replace(value, **_made_harmless(fields, hide_addresses=hide_addresses))
    return value
