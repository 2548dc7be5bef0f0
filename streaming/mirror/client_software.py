"""The software of clients, by address and client id, as far as they have announced it on any connection.

Many clients send ApiVersions on their first connection alone, and a capture may begin after it. What one connection has announced holds
for the others of the same address and client id.

Two processes on one host may have the same client id and different software. While connections that announced either of them are open,
nothing is said of the others.
"""

from __future__ import annotations

from typing import Final

_KNOWN_AT_MOST: Final = 10_000

Client = tuple[str, str | None]
"""Address and client id."""


class ClientSoftware:
    """What the clients of one cluster have announced."""

    def __init__(self) -> None:
        self._known: dict[Client, dict[str, int]] = {}  # software → open connections that announced it

    def announced(self, client: Client, software: str) -> None:
        """Take note that a connection of the client has named its software."""
        before = self._known.pop(client, {})
        known = {name: connections for name, connections in before.items() if connections or name == software}
        known[software] = known.get(software, 0) + 1
        self._known[client] = known
        if len(self._known) > _KNOWN_AT_MOST:
            del self._known[next(iter(self._known))]

    def closed(self, client: Client, software: str) -> None:
        """Take note that such a connection has ended."""
        known = self._known.get(client, {})
        if known.get(software, 0) > 0:
            known[software] -= 1
            if not known[software] and len(known) > 1:
                del known[software]

    def of(self, client: Client) -> str:
        """Return the client's software, empty if it is not known or may be another."""
        known = self._known.get(client, {})
        return next(iter(known)) if len(known) == 1 else ""
