"""The style sheet, the script and the icon, under addresses that change with their content: a browser may keep them for ever."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

_TYPES: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class StaticFile(NamedTuple):
    content: bytes
    media_type: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return the files by address."""
    folder = files("streaming.web") / "static"
    found = {}
    for name, media_type in _TYPES.items():
        content = (folder / name).read_bytes()
        stem, _, ending = name.partition(".")
        digest = hashlib.blake2s(content, digest_size=6).hexdigest()
        found[f"/static/{stem}-{digest}.{ending}"] = StaticFile(content, media_type)
    return found


def address_of(name: str) -> str:
    """Return where a browser finds a file."""
    stem, _, ending = name.partition(".")
    return next(address for address in static_files() if address.startswith(f"/static/{stem}-") and address.endswith(ending))
