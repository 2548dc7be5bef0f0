"""The configuration sections ``[metrics]`` and ``[lag]``."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from streaming.config.address import parse_address
from streaming.config.base import Section
from streaming.config.patterns import Pattern

DEFAULT_LISTEN: Final = "127.0.0.1:19930"
"""A port outside the ranges that Prometheus' registry of exporter ports assigns (9100 to 9999, and later ones)."""


def _address(text: str) -> str:
    parse_address(text)
    return text


class Metrics(Section):
    """The Prometheus endpoint."""

    enabled: bool = False
    listen: Annotated[str, AfterValidator(_address)] = DEFAULT_LISTEN
    allow_groups: tuple[Pattern, ...] = ("*",)
    deny_groups: tuple[Pattern, ...] = ()
    max_groups: int = Field(default=1_000, ge=0, le=1_000_000)


class Lag(Section):
    """How far groups are behind, among the metrics. The watched cluster is asked, with the security of ``[kafka]``."""

    enabled: bool = False
    bootstrap_servers: str = ""  #: the watched brokers; empty: those of ``[kafka]``
    every_s: float = Field(default=15.0, ge=1, le=3_600)
    max_partitions: int = Field(default=100, ge=0, le=100_000)  #: of a group that have a series of their own
