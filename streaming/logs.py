"""Where what Python's libraries log goes, and their warnings.

Without a file that is the terminal. A log file belongs to one process: two that rotate it lose lines.
"""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_BYTES: Final = 10_000_000


def log_to(file: Path) -> None:
    """Have this process log to a file, which is rotated."""
    handler = RotatingFileHandler(file, maxBytes=_BYTES, backupCount=3, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
