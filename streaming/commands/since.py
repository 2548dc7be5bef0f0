"""The option ``--since``: a duration before now, or a moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from streaming.config.settings import ConfigError

_UNITS_S: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


def moment_of(text: str, now_s: float) -> float:
    """Return a time in seconds since the epoch.

    :raises ConfigError: when the text is neither a duration nor a time.
    """
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip()):
        return now_s - float(found[1]) * _UNITS_S[found[2]]
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--since: {text} is neither a duration such as 8h nor a time such as 2026-01-31T03:00") from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
