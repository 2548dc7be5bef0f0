"""Which API versions clients use, oldest first: who has to be upgraded before the brokers are.

Only requests to coordinators are mirrored. What a client fetches and produces with is not known, so that a client with nothing newer
than Kafka 0.10 is to be looked at, and is not said to be refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from coordinator_model.groups.records import host_of
from coordinator_model.known_defects import known_of, software_of
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP, OFFSET_COMMIT, OFFSET_FETCH, SYNC_GROUP
from coordinator_model.wire.layouts import REQUESTS
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.published.records import Json

REFUSED_SINCE_4_0: Final = {API_NAMES[OFFSET_COMMIT]: 2, API_NAMES[OFFSET_FETCH]: 1}
"""API → the oldest version that brokers since 4.0 answer, where they dropped some (KIP-896)."""

_OF_0_10: Final = {API_NAMES[key]: last for key, last in {JOIN_GROUP: 1, HEARTBEAT: 0, SYNC_GROUP: 0, OFFSET_FETCH: 2}.items()}
"""API → the newest version of Kafka 0.10."""

Versions = tuple[tuple[str, int], ...]
"""API and its version, by name."""

_NEWEST: Final = {layout.name.removesuffix("Request"): layout.versions.last for layout in REQUESTS.values()}


@dataclass(slots=True)
class ClientVersions:
    """A kind of client: what has the same id, software and versions."""

    client_id: str
    software: str
    versions: Versions
    addresses: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)

    @property
    def verdict(self) -> str:
        """Return what is to be done before brokers of 4.0 or later; empty if nothing is known to be."""
        refused = [f"{api} v{version}" for api, version in self.versions if version < REFUSED_SINCE_4_0.get(api, 0)]
        if refused:
            return f"Upgrade: 4.0 refuses {' and '.join(refused)}"
        if self.versions and all(version <= _OF_0_10.get(api, -1) for api, version in self.versions if api in _OF_0_10):
            known = any(api in _OF_0_10 for api, _ in self.versions)
            return "Check: nothing newer than Kafka 0.10; 4.0 refuses Fetch below v4 and Produce below v3" if known else ""
        return ""

    @property
    def known_defects(self) -> list[str]:
        """Return what is known of its release, whether a finding shows it or not; a sentence or two each."""
        software = software_of(self.software, self.client_id)
        return [] if software is None else [defect.quote(software) for defect in known_of(software)]

    @property
    def versions_text(self) -> str:
        """Return the versions as text: ``JoinGroup v5, Heartbeat v3``."""
        return ", ".join(f"{api} v{version}" for api, version in self.versions)

    def as_json(self) -> Json:
        return {
            "client_id": self.client_id or None,
            "client_software": self.software or None,
            "versions": dict(self.versions),
            "client_addresses": sorted(self.addresses),
            "groups": sorted(self.groups),
            "before_4_0": self.verdict or None,
            "known_defects": self.known_defects,
        }


def oldest_first(groups: Iterable[Json]) -> list[ClientVersions]:
    """Return the clients of published groups, those whose versions are oldest first.

    A record of an earlier release has no versions; its members are left out. A member that was seen to use fewer APIs counts with one
    that used these and others.
    """
    found: dict[tuple[str, str, Versions], ClientVersions] = {}
    for group in groups:
        for member in group["members"]:
            versions = tuple(sorted((member.get("versions") or {}).items()))
            if not versions:
                continue
            key = (member["client_id"] or "", member["client_software"] or "", versions)
            known = found.setdefault(key, ClientVersions(*key))
            known.groups.add(group["group"])
            if member["client_address"]:
                known.addresses.add(member["client_address"])
    return sorted(_fullest(found.values()), key=_age)


def _fullest(found: Iterable[ClientVersions]) -> Iterator[ClientVersions]:
    by_name: dict[tuple[str, str], list[ClientVersions]] = {}
    for one in sorted(found, key=lambda one: -len(one.versions)):
        alike = by_name.setdefault((one.client_id, one.software), [])
        fuller = next((other for other in alike if set(one.versions) <= set(other.versions)), None)
        if fuller is None:
            alike.append(one)
            yield one
        else:
            fuller.addresses |= one.addresses
            fuller.groups |= one.groups


def _age(one: ClientVersions) -> tuple[int, float, str, str]:
    must = 0 if one.verdict.startswith("Upgrade") else 1 if one.verdict else 2
    return must, min(version / (_NEWEST.get(api) or 1) for api, version in one.versions), one.client_id, one.software


class ClientsSeen:
    """Takes the records of a replay, and keeps who sent requests of groups, those that have left too."""

    def __init__(self) -> None:
        self._members: dict[tuple[str, str | None, str], Json] = {}

    def take(self, record: MirrorRecord) -> None:
        if record.kind is not Kind.REQUEST or not record.group:
            return
        host = host_of(record.client_address)
        member = self._members.setdefault(
            (record.group, record.client_id, host),
            {"client_id": record.client_id, "client_address": host, "client_software": "", "versions": {}},
        )
        member["client_software"] = record.client_software or member["client_software"]
        member["versions"][API_NAMES[record.api_key]] = record.api_version

    def groups(self) -> list[Json]:
        """Return each client as the member of a published group."""
        return [{"group": group, "members": [member]} for (group, _, _), member in self._members.items()]
