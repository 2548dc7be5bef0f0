"""What the documents tell brokers about listeners is what a broker takes: it ends where one has no security protocol."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = [
    (name, dict(re.findall(r"(?m)^([a-z.]+)=(.*)$", textwrap.dedent(block))))
    for name in ("tap.md", "deploying.md")
    for block in re.findall(r"(?m)(?:^ *[a-z.]+=.*\n)+", (DOCS / name).read_text(encoding="utf-8"))
    if re.search(r"(?m)^ *listeners=", block)
]


@pytest.mark.parametrize(("name", "properties"), SHOWN)
def test_each_listener_has_a_security_protocol_and_clients_are_sent_to_the_tap(name: str, properties: dict[str, str]) -> None:
    listeners = dict(re.findall(r"(\w+)://([^,]+)", properties["listeners"]))
    advertised = dict(re.findall(r"(\w+)://([^,]+)", properties["advertised.listeners"]))
    protocols = dict(re.findall(r"(\w+):(\w+)", properties["listener.security.protocol.map"]))
    assert listeners.keys() == protocols.keys()
    assert listeners.keys() - advertised.keys() == {"CONTROLLER"}
    assert properties["inter.broker.listener.name"] == "DIRECT"
    assert listeners["CLIENTS"].rpartition(":")[2] != advertised["CLIENTS"].rpartition(":")[2]
    assert listeners["DIRECT"].rpartition(":")[2] == advertised["DIRECT"].rpartition(":")[2]


def test_all_of_them_are_looked_at() -> None:
    assert len(SHOWN) == 3
