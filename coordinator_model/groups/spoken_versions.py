"""The API versions that members speak, as far as they speak them to a coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator_model.groups.records import AnyMember, Exchange
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import HEARTBEAT


def note_version(members: Mapping[str, AnyMember], exchange: Exchange, body: Any) -> bool:
    """Note the version of a request that was answered; return True if that is news.

    A request that names no member, such as OffsetFetch, is that of the member on its connection. Heartbeats are too frequent, and tell
    nothing that the JoinGroup of their member does not.
    """
    if exchange.api_key == HEARTBEAT:
        return False
    id_ = exchange.member_id or getattr(body, "member_id", "")
    connection = exchange.key[0]
    speaker = members.get(id_) if id_ else next((one for one in members.values() if one.actor.connection == connection), None)
    if speaker is None or speaker.versions.get(exchange.api_key) == exchange.api_version:
        return False
    speaker.versions[exchange.api_key] = exchange.api_version
    return True


def named_versions(versions: Mapping[int, int]) -> dict[str, int]:
    """Return API → version, as published."""
    return {API_NAMES[api_key]: version for api_key, version in sorted(versions.items())}
