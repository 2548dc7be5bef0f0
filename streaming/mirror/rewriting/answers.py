"""Rewrites the answers of one connection: the stream from the broker goes in, the stream to the client comes out.

What an answer is has to be known by then: the code that follows the connection passes it for each, in order, as soon as its first bytes
have been seen.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from streaming.mirror.frames import SIZE_PREFIX
from streaming.mirror.rewriting.walk import Edit, UnrewritableError, Walk, plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.mirror.rewriting.walk import Translate

_RESPONSE_AT_LEAST: Final = 4


class AnswerRewriter:
    """Follows the answers of one connection.

    :param translate: node id, host and port of a broker → the host and port to put in place of it.
    :param lowered: called with API key, the broker's last version and the one that is offered instead, -1 for none.
    """

    def __init__(self, translate: Translate, lowered: Callable[[int, int, int], None]) -> None:
        self._translate = translate
        self._lowered = lowered
        self._coming: deque[tuple[int, int]] = deque()  # API key and version of answers that begin in what was not yet fed
        self._walk: Walk | None = None
        self._left = 0  # bytes of an answer that pass as they are
        self._size = 0
        self._held = b""  # bytes that are held back
        self._looked_at = 0  # how many of them were looked at

    def expect(self, api_key: int, api_version: int) -> None:
        """An answer begins in the bytes that are fed next, of this API and version; -1 where it is of none."""
        self._coming.append((api_key, api_version))

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes from the broker; return those for the client, the same object if nothing in it changes.

        :raises UnrewritableError: when an answer cannot be understood. Nothing may be fed or sent afterwards.
        """
        if self._left >= len(data):
            self._left -= len(data)
            return data
        at = passed = 0
        if self._held:
            data, at = self._held + data, self._looked_at
        out: list[bytes] = []
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
            elif self._walk is not None:
                at, passed = self._go_through(self._walk, data, at, passed, out)
            elif self._coming and len(data) - at >= SIZE_PREFIX:
                self._begin(data[at : at + SIZE_PREFIX], *self._coming.popleft())
                at += SIZE_PREFIX
            else:
                break
        upto = self._passes_upto(at)
        self._held, self._looked_at = data[upto:], at - upto
        rest = data[passed:upto]
        return b"".join((*out, rest)) if out else rest

    def _begin(self, prefix: bytes, api_key: int, api_version: int) -> None:
        self._size = int.from_bytes(prefix, "big")
        plan = plan_of(api_key, api_version)
        if plan is None or self._size < _RESPONSE_AT_LEAST:
            self._left = self._size
        else:
            self._walk = Walk(plan, (api_key, api_version), self._size, self._translate, self._lowered)

    def _go_through(self, walk: Walk, data: bytes, at: int, passed: int, out: list[bytes]) -> tuple[int, int]:
        """Walk on from an index; return the one that the walk came to, and that up to which ``out`` says what passes."""
        at = walk.feed(data, at)
        if walk.is_done:
            self._finish(walk)
        if walk.is_done or walk.held_from is None:
            begin = at - walk.position
            for edit in walk.edits:
                out += (data[passed : begin + edit.begin], edit.new)
                passed = begin + edit.end
            walk.edits.clear()
        return at, passed

    def _finish(self, walk: Walk) -> None:
        self._walk = None
        self._left = self._size - walk.position
        if walk.held_from == 0:
            size = self._size + sum(len(edit.new) - (edit.end - edit.begin) for edit in walk.edits)
            walk.edits.insert(0, Edit(-SIZE_PREFIX, 0, size.to_bytes(SIZE_PREFIX, "big")))
        elif self._left:
            raise UnrewritableError(f"an answer of {self._size} bytes has {self._left} more than its fields")

    def _passes_upto(self, at: int) -> int:
        """Return up to which index bytes pass, where the walk came to ``at``."""
        if self._walk is None or self._walk.held_from is None:
            return at
        return at - self._walk.position + (self._walk.held_from or -SIZE_PREFIX)
