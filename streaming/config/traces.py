"""The configuration section ``[traces]``."""

from __future__ import annotations

from pydantic import Field

from streaming.config.notify import Web, WebAddress


class Traces(Web):
    """Where rebalances are sent as traces: a receiver of OTLP over HTTP."""

    endpoint: WebAddress | None = None
    headers: dict[str, str] = Field(default_factory=dict)
