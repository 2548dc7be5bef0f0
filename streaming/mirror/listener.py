"""Where a tap listens, and which broker stands behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self


class TapError(Exception):
    """The tap cannot start; the message is one sentence that names the address and the remedy."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Where clients connect, and the broker that stands behind."""

    host: str
    port: int  #: 0 lets the system choose
    broker_host: str
    broker_port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``HOST:PORT=BROKER_HOST:PORT``; IPv6 addresses stand in brackets.

        :raises TapError: when it is written otherwise.
        """
        here, _, broker = text.partition("=")
        try:
            return cls(*_address(here, least_port=0), *_address(broker, least_port=1))
        except ValueError:
            raise TapError(
                f"{text!r} is not a listener: write HOST:PORT=BROKER_HOST:PORT, as in 0.0.0.0:9092=broker1:9092"
            ) from None

    @property
    def broker(self) -> str:
        """The broker's ``host:port``."""
        return written(self.broker_host, self.broker_port)


def _address(text: str, *, least_port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^\[\]:=]+)):(\d{1,5})", text.strip())
    if not found or not least_port <= int(found[3]) <= 65535:
        raise ValueError(text)
    return found[1] or found[2], int(found[3])


def written(host: str, port: int) -> str:
    """Return ``host:port``, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
