"""Times as JSON has them, and times, numbers and names as sentences for people have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def iso_utc(at_us: int) -> str:
    """Return microseconds since the epoch as ``2026-01-31T12:00:00.000001Z``."""
    return (_EPOCH + timedelta(microseconds=at_us)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def us_of(text: str) -> int:
    """Return the microseconds since the epoch of a published time.

    :raises ValueError: if it is no time.
    :raises TypeError: if it lacks its offset from UTC.
    """
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


def clock(at_us: int) -> str:
    """Return the time of day in UTC: ``07:16:18``. The day stands in the fields beside the sentence."""
    return iso_utc(at_us)[11:19]


def seconds(us: int) -> str:
    """Return microseconds as ``12.3 s``, and what would round to nothing as ``30 ms``."""
    if abs(us) < 50_000:
        return f"{us // 1_000} ms"
    return f"{us / 1_000_000:.1f} s"


def since(at_us: int, now_us: int) -> str:
    """Return ``since 07:16:18, 25.0 s``."""
    return f"since {clock(at_us)}, {seconds(max(0, now_us - at_us))}"


def begin(words: str) -> str:
    """Return the words with a capital first letter, unless they begin with a name, which stays as it is."""
    first = words.partition(" ")[0].rstrip(".,:;")
    return words[:1].upper() + words[1:] if first.isalpha() else words


def afterwards(words: str) -> str:
    """Return the text about members that wait, once none does any more."""
    return _WAITS.sub(r"\1 waited", words)


_WAITS: Final = re.compile(r"\b((?:no|\d+) (?:other )?members?|\d+ others?) (?:waits?|ha(?:s|ve) waited)\b")


def a_or_an(name: str) -> str:
    """Return the name with its article: ``an OffsetCommit``."""
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def plural(count: int, word: str, several: str = "") -> str:
    """Return the word, with an s unless there is one of it.

    :param several: its plural, if that is another one.
    """
    return word if count == 1 else several or f"{word}s"


def counted(count: int, word: str, several: str = "") -> str:
    """Return ``1 member`` or ``2,000 members``."""
    return f"{count:,} {plural(count, word, several)}"


def some(names: Sequence[str], at_most: int, between: str = ", ", last: str = " and ") -> str:
    """Return ``a, b, c and 4 more``: the first names, and how many are left."""
    left = len(names) - at_most
    return between.join(names[:at_most]) + (f"{last}{left} more" if left > 0 else "")


def cost_so_far(member_us: int, partitions: int = 0) -> str:
    """Return `` Cost so far: 3 partitions that nobody reads, 60.0 member-seconds.``, to stand behind a sentence.

    :param member_us: for how long members did not consume, together.
    :param partitions: that nobody reads; 0 if there are none, or if they are not known.
    """
    unread = f"{counted(partitions, 'partition')} that nobody reads, " if partitions else ""
    return f" Cost so far: {unread}{max(0, member_us) / 1_000_000:.1f} member-seconds."
