"""Rewrites the answers of one connection: the stream from the broker goes in, the stream to the client comes out.

What an answer is has to be known by then: whoever follows the connection tells it for each, in order, as soon as its first bytes have
been seen.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from streaming.mirror.frames import SIZE_PREFIX
from streaming.mirror.rewriting.walk import UnrewritableError, Walk, plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.mirror.rewriting.walk import Edit, Translate

_RESPONSE_AT_LEAST: Final = 4


class AnswerRewriter:
    """Follows the answers of one connection.

    :param translate: node id, host and port of a broker → the host and port to put in place of it.
    :param lowered: told API key, the broker's last version and the one that is offered instead, -1 for none.
    """

    def __init__(self, translate: Translate, lowered: Callable[[int, int, int], None]) -> None:
        self._translate = translate
        self._lowered = lowered
        self._coming: deque[tuple[int, int]] = deque()  # API key and version of answers that begin in what was not yet fed
        self._unknown = b""  # bytes of an answer of which that is not told yet
        self._left = 0  # bytes of an answer that pass as they are
        self._walk: Walk | None = None
        self._size = 0
        self._pending = b""  # bytes of an answer that are held back, from `_pending_from` of its bytes on
        self._pending_from = 0

    def expect(self, api_key: int, api_version: int) -> None:
        """An answer begins in the bytes that are fed next, of this API and version; -1 where it is of none."""
        self._coming.append((api_key, api_version))

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes from the broker; return those for the client.

        :raises UnrewritableError: when an answer cannot be understood. Nothing may be fed or sent afterwards.
        """
        if self._left >= len(data):
            self._left -= len(data)
            return data
        out: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                out.append(data[at : at + step])
                self._left -= step
                at += step
            elif self._walk is not None:
                at += self._go_through(self._walk, data[at:] if at else data, out)
            else:
                self._unknown += data[at:]
                at = len(data)
                if self._coming and len(self._unknown) >= SIZE_PREFIX:
                    data, at, self._unknown = self._unknown, SIZE_PREFIX, b""
                    self._begin(data[:SIZE_PREFIX], *self._coming.popleft(), out)
        return b"".join(out)

    def _begin(self, prefix: bytes, api_key: int, api_version: int, out: list[bytes]) -> None:
        self._size = int.from_bytes(prefix, "big")
        plan = plan_of(api_key, api_version)
        if plan is None or self._size < _RESPONSE_AT_LEAST:
            out.append(prefix)
            self._left = self._size
            return
        self._walk = Walk(plan, (api_key, api_version), self._size, self._translate, self._lowered)
        self._pending, self._pending_from = b"", 0
        if not plan.holds_beginning:
            out.append(prefix)

    def _go_through(self, walk: Walk, data: bytes, out: list[bytes]) -> int:
        used = walk.feed(data)
        self._pending += data[:used] if used < len(data) else data
        if walk.is_done:
            self._finish(walk, out)
        elif walk.held_from is None or walk.held_from > self._pending_from:
            upto = walk.position if walk.held_from is None else walk.held_from
            part, self._pending = self._pending[: upto - self._pending_from], self._pending[upto - self._pending_from :]
            out.append(_edited(part, self._pending_from, walk.edits))
            walk.edits.clear()
            self._pending_from = upto
        return used

    def _finish(self, walk: Walk, out: list[bytes]) -> None:
        self._walk = None
        self._left = self._size - walk.position
        edited = _edited(self._pending, self._pending_from, walk.edits)
        if walk.held_from == 0:
            out.append((len(edited) + self._left).to_bytes(SIZE_PREFIX, "big"))
        elif self._left:
            raise UnrewritableError(f"an answer of {self._size} bytes has {self._left} more than its fields")
        out.append(edited)
        self._pending = b""


def _edited(data: bytes, begin: int, edits: list[Edit]) -> bytes:
    """Apply edits, in order, to bytes of a frame that begin there in it."""
    if not edits:
        return data
    parts, at = [], begin
    for edit in edits:
        parts += [data[at - begin : edit.begin - begin], edit.new]
        at = edit.end
    return b"".join((*parts, data[at - begin :]))
