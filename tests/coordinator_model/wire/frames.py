"""The oracle's frames as the wire tests use them."""

from __future__ import annotations

import base64
import functools
import re
from typing import Any, NamedTuple

from coordinator_model import wire
from coordinator_model.wire.embedded import decode_assignment, decode_subscription, encode_assignment, encode_subscription
from coordinator_model.wire.layouts import LAYOUTS, Layout
from tests.oracle.make_frames import load_fixtures

EMBEDDED = {
    "ConsumerProtocolSubscription": (decode_subscription, encode_subscription),
    "ConsumerProtocolAssignment": (decode_assignment, encode_assignment),
}


class OracleFrame(NamedTuple):
    """One frame that Kafka's own classes wrote, and what they read in it."""

    name: str
    version: int
    style: str
    raw: bytes
    header: dict[str, Any]
    value: dict[str, Any]

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.name]

    @property
    def is_request(self) -> bool:
        return self.name.endswith("Request")

    def decode(self, raw: bytes | None = None) -> Any:
        """The body, of this frame or of other bytes taken for it."""
        raw = self.raw if raw is None else raw
        if self.layout.api_key is None:
            return EMBEDDED[self.name][0](raw)
        return wire.decode(raw, request=self.is_request, api_key=self.layout.api_key, api_version=self.version).body


def read(lines: list[dict[str, Any]]) -> list[OracleFrame]:
    return [
        OracleFrame(
            name=line["name"],
            version=line["version"],
            style=line["style"],
            raw=base64.b64decode(line["frame"]),
            header=line["header"],
            value=line["value"],
        )
        for line in lines
    ]


@functools.cache
def fixtures() -> list[OracleFrame]:
    return read(load_fixtures())


COVERED = [layout for layout in LAYOUTS.values() if layout.api_key is not None or layout.name in EMBEDDED]
"""What kafka-clients has generated classes for; the protocols of Connect and Streams have a test of their own."""


def pairs() -> list[tuple[str, int]]:
    """Every (message, version) of these."""
    return [(layout.name, version) for layout in COVERED for version in range(layout.versions.first, layout.versions.last + 1)]


def names() -> list[str]:
    return [layout.name for layout in COVERED]


def snake(camel: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", camel).lower()
