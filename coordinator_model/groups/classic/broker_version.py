"""The oldest release that a coordinator can be, derived from the API versions that it answers.

A client uses the highest version that both sides know. A version on the wire therefore proves that the broker is not older than the
first release that had it. It proves nothing upwards: an old client uses old versions with a new broker.

"This broker is too old to do that" can therefore never be concluded. Behaviour that is lawful for some release is lawful until a version
was captured that this release does not have.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator_model.releases import Release, first_release


class BrokerVersion(NamedTuple):
    """The oldest release that the coordinator can be, and what follows from it."""

    release: Release = (0, 9)

    def heard(self, api_key: int, api_version: int) -> BrokerVersion:
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
