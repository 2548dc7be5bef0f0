"""Where what Python's libraries log goes, and their warnings.

Without a file that is the terminal. A log file belongs to one process: two that rotate it lose lines. Texts hold names from the wire, which
terminals obey: each message is one line, of characters that can be seen.
"""

from __future__ import annotations

import logging
import sys
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Any, Final

from streaming.published.wire_text import visible

if TYPE_CHECKING:
    from pathlib import Path

_BYTES: Final = 10_000_000


class _OneLine(logging.Formatter):
    """Makes visible whatever a terminal would obey; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return "\n".join(map(visible, super().formatException(ei).split("\n")))


def log_to_terminal(form: str | None = None) -> None:
    """Have warnings go to the terminal of this process, unless :func:`log_to` names a file.

    :param form: of a line, as logging has it; the message alone by default.
    """
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.WARNING)
    terminal.setFormatter(_OneLine(form))
    logging.lastResort = terminal


def log_to(file: Path) -> None:
    """Have this process log to a file, which is rotated."""
    handler = RotatingFileHandler(file, maxBytes=_BYTES, backupCount=3, delay=True)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
