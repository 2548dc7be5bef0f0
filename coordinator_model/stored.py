"""What snapshots hold: the types of the state declare its bytes, so nothing lists fields a second time."""

from __future__ import annotations

from msgspec import Struct


class Stored(Struct, array_like=True, forbid_unknown_fields=True):
    """State that a snapshot holds, as an array of its fields.

    A snapshot outlives the code that wrote it. Fields may therefore only be appended, each new one with a default; any other change
    needs a new format. Encoding checks no types, and decoding does: a wrong annotation makes a snapshot unreadable.
    """
