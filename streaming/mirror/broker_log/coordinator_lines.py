"""What a group coordinator says in the broker's log at INFO: one table of its sentences, each with the releases that write it.

Brokers up to 3.9 have the coordinator in Scala, 4.0 and newer in Java; most sentences changed little. A sentence that is not in the table
is no news of a group.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from streaming.mirror.broker_log.times import LogTime

MARK: Final = b"[Group"
"""What each of these lines has before its sentence: ``[GroupCoordinator 1]:``, ``[GroupCoordinator id=1 topic=… partition=3]``."""


class Sentence(NamedTuple):
    """One sentence of the coordinator."""

    since: str  #: release that writes it first, as far as known
    until: str  #: the last one; empty if the newest does
    kind: str
    pattern: re.Pattern[str]


class CoordinatorLine(NamedTuple):
    """What a line says of a group."""

    at_us: int
    kind: str
    group: str
    facts: dict[str, str]

    @property
    def ends_session(self) -> bool:
        """True if it says that the session of a member is over."""
        return self.kind == "failed" or (self.kind == "epoch fenced" and "session" in self.facts["reason"])


_BY_IDS: Final = r"Member\[group\.instance\.id (?P<instance>.+?), member\.id (?P<member>.+?)\]"

_MEMBER: Final = r"(?:\[MemberId .+?\])? (?:Static m|Streams m|M)ember (?P<member>\S+)(?: with instance id (?P<instance>\S+))?"
"""What MEMBER stands for."""

SENTENCES: Final = tuple(
    Sentence(since, until, kind, re.compile(pattern.replace("MEMBER", _MEMBER)))
    for since, until, kind, pattern in (
        (
            *("2.0", "", "began"),
            (
                r"Preparing to rebalance group (?P<group>.+) in state \w+ with old generation (?P<generation>\d+) (?:\(\S+\) )?"
                r"\(reason: (?P<reason>.+?)(?:; client reason: (?P<client_reason>.*))?\)\.?$"
            ),
        ),
        (
            "2.0",
            "",
            "stabilized",
            r"Stabilized group (?P<group>.+) generation (?P<generation>\d+)(?: \(\S+\))?(?: with (?P<members>\d+) memb|$)",
        ),
        (
            *("2.0", "", "assigned"),
            r"Assignment received from leader (?:(?P<member>.+) )?for group (?P<group>.+) for generation (?P<generation>\d+)",
        ),
        ("2.4", "2.8", "failed", _BY_IDS + r" in group (?P<group>.+) has failed, removing it from the group"),
        ("2.0", "", "failed", r"Member (?P<member>.+) in group (?P<group>.+) has failed, removing it from the group"),
        ("2.4", "2.8", "left", _BY_IDS + r" in group (?P<group>.+) has left, removing it from the group"),
        (
            *("3.2", "3.9", "left"),
            (
                r"Member MemberMetadata\(memberId=(?P<member>.+?), groupInstanceId=(?P<instance>.+?), clientId=(?P<client_id>.*?), "
                r"clientHost=/?(?P<host>.*?), .*\) has left group (?P<group>.+) through explicit `LeaveGroup`; client reason: "
                r"(?P<client_reason>.*)"
            ),
        ),
        (
            *("4.0", "", "left"),
            (
                r"\[Group (?P<group>.+)\] (?:Static m|M)ember (?P<member>\S+) (?:with instance id (?P<instance>\S+) )?has left group "
                r"through explicit `LeaveGroup` request; client reason: (?P<client_reason>.*)"
            ),
        ),
        (
            "4.0",
            "",
            "joined",
            r"Pending dynamic member with id (?P<member>.+) joins group (?P<group>.+) in \w+ state\. Adding to the group",
        ),
        (
            *("2.4", "", "joined"),
            (
                r"Static [Mm]ember with (?:groupInstanceId=(?P<instance>.+) and )?unknown member id joins group (?P<group>.+) in \w+ state"
                r"\. Created a new member id (?P<member>.+) for this member and add"
            ),
        ),
        (
            *("2.4", "", "replaced"),
            (
                r"Static member with groupInstanceId=(?P<instance>.+) and unknown member id joins group (?P<group>.+) in \w+ state\. "
                r"Replacing previously mapped member (?P<member>.+) with this groupInstanceId"
            ),
        ),
        (
            *("2.7", "2.7", "replaced"),
            (
                r"Static member (?:Some\()?(?P<instance>.+?)\)? of group (?P<group>.+) with unknown member id rejoins, "
                r"assigning new member id (?P<new_member>\S+), while old member id (?P<member>\S+) will be removed"
            ),
        ),
        ("2.0", "", "empty", r"Group (?P<group>.+) with generation (?P<generation>\d+)(?: \(\S+\))? is now empty"),
        (
            "4.0",
            "",
            "unloaded",
            r"\[GroupId=(?P<group>.+)\] Unload(?:ing|ed) group metadata for (?:generation|group epoch) (?P<generation>\d+)",
        ),
        (
            *("4.0", "", "epoch joined"),
            (
                r"\[GroupId (?P<group>.+?)\]MEMBER "
                r"(?:re-)?joins the (?P<type>\w+) group"
            ),
        ),
        (
            *("4.1", "", "epoch joined"),
            r"\[GroupId (?P<group>.+?)\]\[MemberId (?P<member>.+?)\] Member joins the (?P<type>streams) group",
        ),
        (
            *("4.0", "", "epoch left"),
            (
                r"\[GroupId (?P<group>.+?)\]MEMBER "
                r"(?:temporarily )?left the (?P<type>\w+) group"
            ),
        ),
        (
            *("4.0", "", "epoch fenced"),
            (
                r"\[GroupId (?P<group>.+?)\]MEMBER.* fenced from the group because "
                r"(?P<reason>.+)"
            ),
        ),
        (
            "4.0",
            "",
            "bumped",
            r"\[GroupId (?P<group>.+?)\](?:\[MemberId .+?\])? Bumped (?:streams )?group epoch to (?P<generation>\d+)",
        ),
        (
            "4.0",
            "",
            "targeted",
            r"\[GroupId (?P<group>.+?)\](?:\[MemberId .+?\])? Computed a new target assignment for epoch (?P<generation>\d+)",
        ),
    )
)

_LOGGER: Final = re.compile(
    r"\s*\((?:(?:kafka|org\.apache\.kafka)[\w.$]*|Group(?:Coordinator|MetadataManager)[\w$]*)\)(?:\s*\[[^\]]*\])?\s*$"
)


def coordinator_line(text: str, time: LogTime) -> CoordinatorLine | None:
    """Return what the message of a line says of a group; None for one that says nothing."""
    message = _LOGGER.sub("", text)
    for sentence in SENTENCES:
        found = sentence.pattern.search(message)
        if found is not None:
            facts = {name: said for name, said in found.groupdict().items() if said is not None}
            return CoordinatorLine(time.at_us, sentence.kind, facts.pop("group"), facts)
    return None
