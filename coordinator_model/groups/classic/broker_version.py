"""Which release a coordinator is at least, told by what was said to it.

A client speaks the highest version that both sides know. A version on the wire therefore proves that the broker is not older than the
first release that had it. It proves nothing upwards: an old client talks to a new broker in old versions.

The trap follows from that: "this broker is too old to do that" can never be concluded. Whatever some release does lawfully is lawful
until a version was seen that this release did not have.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, SYNC_GROUP

Release = tuple[int, int]

#: API → (version, first release that had it), ascending. Versions between two entries came with the lower one.
FIRST_RELEASES: Final[dict[int, tuple[tuple[int, Release], ...]]] = {
    OFFSET_COMMIT: ((3, (0, 11)), (4, (2, 0)), (5, (2, 1)), (7, (2, 3)), (8, (2, 4)), (9, (3, 6)), (10, (4, 1))),
    JOIN_GROUP: (
        (1, (0, 10)), (2, (0, 11)), (3, (2, 0)), (4, (2, 2)), (5, (2, 3)), (6, (2, 4)), (7, (2, 5)), (8, (3, 2)),
    ),
    HEARTBEAT: ((1, (0, 11)), (2, (2, 0)), (3, (2, 3)), (4, (2, 4))),
    LEAVE_GROUP: ((1, (0, 11)), (2, (2, 0)), (3, (2, 4)), (5, (3, 2))),
    SYNC_GROUP: ((1, (0, 11)), (2, (2, 0)), (3, (2, 3)), (4, (2, 4)), (5, (2, 5))),
}  # fmt: skip


def first_release(api_key: int, api_version: int) -> Release:
    """The first release that knew this version; 0.9, where group membership began, if that says nothing."""
    known: Release = (0, 9)
    for version, release in FIRST_RELEASES.get(api_key, ()):
        if version <= api_version:
            known = release
    return known


class BrokerVersion(NamedTuple):
    """What is known of the coordinator's release, and what follows from it."""

    release: Release = (0, 9)

    def heard(self, api_key: int, api_version: int) -> BrokerVersion:
        """What is known after it answered this version."""
        release = first_release(api_key, api_version)
        return BrokerVersion(release) if release > tuple(self.release) else self

    @property
    def marks_failed_joins(self) -> bool:
        """Whether a refused JoinGroup bears generation -1; brokers up to 2.1 say 0."""
        return tuple(self.release) >= (2, 2)

    @property
    def tells_unloaded_groups(self) -> bool:
        """Whether a group that is being unloaded answers COORDINATOR_NOT_AVAILABLE; brokers up to 2.2 say UNKNOWN_MEMBER_ID."""
        return tuple(self.release) >= (2, 3)

    @property
    def writes_replacements(self) -> bool:
        """Whether a static member's replacement within a generation is written; brokers before 2.6.1 do not do so (KAFKA-10284)."""
        return tuple(self.release) >= (2, 7)

    @property
    def checks_unknown_instances(self) -> bool:
        """Whether a group.instance.id that nobody holds is refused on every API; brokers from 2.3 to 2.8 ignore it."""
        return tuple(self.release) >= (3, 0)
