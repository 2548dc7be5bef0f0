"""Findings as they are published: JSON, read without a Kafka client, which reading captures does not need."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from coordinator_model.finding import Blame, Certainty, Evidence, Finding, Severity, Status


def from_json(published: dict[str, Any]) -> Finding:
    """Return the finding of an object that :meth:`Finding.as_json` made.

    :raises KeyError: when a field is missing.
    :raises ValueError: when a field has an invalid value.
    """
    times = {name: published[name] for name in ("opened_at", "updated_at", "resolved_at")}
    plain = {name: value for name, value in published.items() if name not in times and name != "evidence"}
    return Finding(
        **plain
        | {
            "severity": Severity(published["severity"]),
            "certainty": Certainty(published["certainty"]),
            "blame": Blame(published["blame"]),
            "status": Status(published["status"]),
            "evidence": tuple(
                Evidence(
                    partition=frame["partition"],
                    offset=frame["offset"],
                    connection=frame["connection"],
                    exchange=frame["exchange"],
                    at_us=microseconds(frame["at"]),
                    frame=frame["frame"],
                )
                for frame in published["evidence"]
            ),
            **{f"{name}_us": None if at is None else microseconds(at) for name, at in times.items()},
        }
    )


@lru_cache(maxsize=1_024)  # a record's time is asked for several times
def microseconds(moment: str) -> int:
    """Return the microseconds since the epoch of an ISO 8601 time; exact, where a float rounds the last digit."""
    parsed = datetime.fromisoformat(moment)
    return int(parsed.replace(microsecond=0).timestamp()) * 1_000_000 + parsed.microsecond
