"""The first release of Apache Kafka that had a version of an API, and the oldest release that a coordinator can be.

A client uses the highest version that both sides know. A version on the wire therefore proves that the broker is not older than the
first release that had it. It proves nothing upwards: an old client uses old versions with a new broker. Behaviour that is lawful for some
release is therefore lawful until a version was captured that this release does not have.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.wire.constants import (
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)

Release = tuple[int, int]

PRODUCE, FETCH, DESCRIBE_LOG_DIRS, LIST_TRANSACTIONS = 0, 1, 35, 66
"""APIs whose versions are advertised, and that are not mirrored."""

#: API → (version, first release that had it), ascending. Versions between two entries came with the lower one.
FIRST_RELEASES: Final[dict[int, tuple[tuple[int, Release], ...]]] = {
    OFFSET_COMMIT: ((3, (0, 11)), (4, (2, 0)), (5, (2, 1)), (7, (2, 3)), (8, (2, 4)), (9, (3, 6)), (10, (4, 2))),
    OFFSET_FETCH: ((10, (4, 2)),),
    JOIN_GROUP: (
        (1, (0, 10)), (2, (0, 11)), (3, (2, 0)), (4, (2, 2)), (5, (2, 3)), (6, (2, 4)), (7, (2, 5)), (8, (3, 2)),
    ),
    HEARTBEAT: ((1, (0, 11)), (2, (2, 0)), (3, (2, 3)), (4, (2, 4))),
    LEAVE_GROUP: ((1, (0, 11)), (2, (2, 0)), (3, (2, 4)), (5, (3, 2))),
    SYNC_GROUP: ((1, (0, 11)), (2, (2, 0)), (3, (2, 3)), (4, (2, 4)), (5, (2, 5))),
    API_VERSIONS: ((5, (4, 4)),),
    DELETE_GROUPS: ((3, (4, 4)),),
    TXN_OFFSET_COMMIT: ((6, (4, 4)),),
    CONSUMER_GROUP_HEARTBEAT: ((1, (4, 0)),),
    PRODUCE: ((13, (4, 1)),),
    FETCH: ((18, (4, 1)),),
    DESCRIBE_LOG_DIRS: ((5, (4, 3)),),
    LIST_TRANSACTIONS: ((2, (4, 1)),),
}  # fmt: skip


def first_release(api_key: int, api_version: int) -> Release:
    """Return the first release with this version; 0.9, the first with group membership, for versions of all releases."""
    known: Release = (0, 9)
    for version, release in FIRST_RELEASES.get(api_key, ()):
        if version <= api_version:
            known = release
    return known


def new_in(release: Release) -> dict[int, int]:
    """Return API → the highest version that came with a release."""
    return {api_key: version for api_key, versions in FIRST_RELEASES.items() for version, first in versions if first == release}


class BrokerVersion(NamedTuple):
    """The oldest release that the coordinator can be, and what follows from it."""

    release: Release = (0, 9)

    def answered(self, api_key: int, api_version: int) -> BrokerVersion:
        """Return what is known after the broker answered this version."""
        release = first_release(api_key, api_version)
        return BrokerVersion(release) if release > self.release else self

    @property
    def marks_failed_joins(self) -> bool:
        """True if a refused JoinGroup has generation -1; brokers up to 2.1 return 0."""
        return self.release >= (2, 2)

    @property
    def writes_replacements(self) -> bool:
        """True if a static member's replacement within a generation is written to the log; before 2.6.1 it is not (KAFKA-10284)."""
        return self.release >= (2, 7)
