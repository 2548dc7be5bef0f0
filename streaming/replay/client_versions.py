"""The clients of a replay: what their requests say of their software and of the API versions that they use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator_model.groups.records import host_of
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.record import Kind

if TYPE_CHECKING:
    from coordinator_model.wire.record import MirrorRecord
    from streaming.published.records import Json


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
