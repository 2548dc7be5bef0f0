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
    group: str  #: empty if the sentence names members alone
    facts: dict[str, str]

    @property
    def ends_session(self) -> bool:
        """True if it says that the session of a member is over."""
        return self.kind == "failed" or (self.kind == "epoch fenced" and "session" in self.facts["reason"])


_BEGIN: Final = r"(?:\[Group(?:Coordinator|MetadataManager)[^\]]{0,200}\]:? )?"
_ID: Final = ".{1,512}?"
"""What ID stands for: a name, in which there may be anything. That it is bounded bounds what a line that somebody made up costs."""

_BY_IDS: Final = r"Member\[group\.instance\.id (?P<instance>ID), member\.id (?P<member>ID)\]"

_SHORT: Final = {
    "[GROUP]": r"\[GroupId (?P<group>ID)\]",
    "MEMBER": r"[ANY] (?:Static m|Streams m|Dynamic m|M)ember (?P<member>ID)(?: with instance id (?P<instance>ID))?",
    "[ANY]": r"(?:\[MemberId ID\])?",
    "GENERATION": r"(?P<generation>\d{1,10})",
    "ID": _ID,
}
"""What words in capitals stand for, in the order in which they are replaced."""


def _whole(pattern: str) -> re.Pattern[str]:
    for short, meant in _SHORT.items():
        pattern = pattern.replace(short, meant)
    return re.compile(_BEGIN + pattern)


SENTENCES: Final = tuple(
    Sentence(since, until, kind, _whole(pattern))
    for since, until, kind, pattern in (
        ("2.0", "2.0", "began", r"Preparing to rebalance group (?P<group>ID) with old generation GENERATION \(\S+\)$"),
        (
            *("2.1", "", "began"),
            (
                r"Preparing to rebalance group (?P<group>ID) in state \w+ with old generation GENERATION (?:\(\S+\) )?"
                r"\(reason: (?P<reason>.+?)(?:; client reason: (?P<client_reason>.*))?\)\.?$"
            ),
        ),
        (
            *("2.0", "", "stabilized"),
            r"Stabilized group (?P<group>ID) generation GENERATION(?: \(\S+\))?(?: with (?P<members>\d{1,10}) memb|$)",
        ),
        (
            *("2.0", "", "assigned"),
            r"Assignment received from leader (?:(?P<member>ID) )?for group (?P<group>ID) for generation GENERATION",
        ),
        ("2.0", "", "failed", r"Member (?P<member>ID) in group (?P<group>ID) has failed, removing it from the group"),
        (
            *("2.7", "", "dropped"),
            r"Group (?P<group>ID) removed? dynamic members who haven't joined: (?:\w*Set\(|\[)(?P<members>.+)[)\]]",
        ),
        ("2.2", "2.3", "left", r"Member (?P<member>ID) in group (?P<group>ID) has left, removing it from the group"),
        ("2.4", "2.8", "left", _BY_IDS + r" in group (?P<group>ID) has left, removing it from the group"),
        (
            *("3.0", "3.9", "left"),
            (
                r"Member MemberMetadata\(memberId=(?P<member>ID), groupInstanceId=(?P<instance>ID), clientId=(?P<client_id>.*?), "
                r"clientHost=/?(?P<host>.*?), .*\) has left group (?P<group>ID) through explicit `LeaveGroup`(?: request$|; client reason: "
                r"(?P<client_reason>.*))"
            ),
        ),
        (
            *("4.0", "", "left"),
            (
                r"\[Group(?:Id)? (?P<group>ID)\]MEMBER has left group "
                r"through explicit `LeaveGroup` request; client reason: (?P<client_reason>.*)"
            ),
        ),
        (
            *("4.0", "", "joined"),
            r"Pending dynamic member with id (?P<member>ID) joins group (?P<group>ID) in \w+ state\. Adding to the group",
        ),
        (
            *("2.5", "", "joined"),
            (
                r"(?:Static|Dynamic) [Mm]ember with (?:groupInstanceId=(?P<instance>ID) and )?unknown member id joins group (?P<group>ID) "
                r"in (?:\w+ state|state \w+)\. Created a new member id (?P<member>ID) (?:for this member )?and add"
            ),
        ),
        (
            *("2.5", "2.8", "joined"),
            r"Adding new static member (?:Some\()?(?P<instance>ID)\)? to group (?P<group>ID) with member id (?P<member>ID)\.$",
        ),
        (
            *("3.0", "", "replaced"),
            (
                r"Static member with groupInstanceId=(?P<instance>ID) and unknown member id joins group (?P<group>ID) in \w+ state\. "
                r"Replacing previously mapped member (?P<member>ID) with this groupInstanceId"
            ),
        ),
        (
            *("2.3", "2.8", "replaced"),  # up to 2.4 without its group
            (
                r"Static member (?:Some\()?(?P<instance>ID)\)?(?: of group (?P<group>ID))? with unknown member id rejoins, "
                r"assigning new member id (?P<new_member>ID), while old member (?:id )?(?P<member>ID) will be removed"
            ),
        ),
        (
            *("3.0", "", "fenced"),
            (
                r"Request memberId=(?P<refused>ID) for static member with groupInstanceId=(?P<instance>ID) is fenced by "
                r"(?:current|existing) memberId=(?P<member>ID) during operation (?P<operation>[\w-]+)"
            ),
        ),
        ("2.0", "", "empty", r"Group (?P<group>ID) with generation GENERATION(?: \(\S+\))? is now empty"),
        ("2.0", "3.9", "unloaded", r"Unloading group metadata for (?P<group>ID) with generation GENERATION"),
        ("2.0", "3.9", "loaded", r"Loading group metadata for (?P<group>ID) with generation GENERATION"),
        ("4.0", "", "loaded", r"Loaded (?P<type>\w+) group (?P<group>ID) with \d+ members\.?$"),
        ("4.0", "", "converted", r"[GROUP] Converted the (?:empty )?\w+ group to a (?P<type>\w+) group"),
        (
            *("4.0", "", "unloaded"),
            r"\[GroupId=(?P<group>ID)\] Unload(?:ing|ed) group metadata for (?:generation|group epoch) GENERATION",
        ),
        ("4.0", "", "epoch joined", r"[GROUP]MEMBER joins the (?P<type>\w+) group"),
        ("4.1", "", "epoch joined", r"[GROUP]\[MemberId (?P<member>ID)\] Member joins the (?P<type>streams) group"),
        (
            *("4.0", "", "epoch replaced"),
            (
                r"[GROUP][ANY] Static member with instance id (?P<instance>ID) re-joins the (?P<type>\w+) group using the \w+ protocol\. "
                r"Created a new member (?P<new_member>ID) to replace the existing member (?P<member>ID)\."
            ),
        ),
        ("4.0", "", "epoch away", r"[GROUP]MEMBER temporarily left the (?P<type>\w+) group"),
        ("4.0", "", "epoch left", r"[GROUP]MEMBER left the (?P<type>\w+) group"),
        (
            *("4.0", "", "fenced"),
            (
                r"[GROUP][ANY] Static member (?P<refused>ID) with instance id (?P<instance>ID) is fenced "
                r"by existing member (?P<member>ID)\.?$"
            ),
        ),
        ("4.0", "", "epoch fenced", r"[GROUP]MEMBER fenced from the group because (?P<reason>.+)"),
        ("4.0", "", "bumped", r"[GROUP][ANY] Bumped (?:streams )?group epoch to GENERATION"),
        ("4.0", "", "targeted", r"[GROUP][ANY] Computed a new target assignment for epoch GENERATION"),
    )
)

_LOGGER: Final = re.compile(
    r"\((?:(?:kafka|org\.apache\.kafka)[\w.$]*|Group(?:Coordinator|MetadataManager)[\w$]*)\)(?:\s*\[[^\]]*\])?(?:\x1b\[[\d;]*m)?\s*$"
)

_OPENING: Final = re.compile(r"\[Group(?:Coordinator|MetadataManager)[^\]]*(?:\]:? ?)?|")
_LITERAL: Final = re.compile(r"[\w ]*=?")
_FIRST_WORDS: Final = frozenset(
    words for one in SENTENCES if (words := _LITERAL.findall(one.pattern.pattern.removeprefix(_BEGIN))[0]).count(" ") > 2
)
"""How sentences begin, where that is long enough to begin nothing else."""

_UNFINISHED: Final = re.compile(r"\[[^\]]*|\[Group(?:Id)?[ =].*[^.]")
"""Since 4.0 what is said of a group begins with its name in brackets, and ends with a full stop."""

_LOGGER_AT_MOST: Final = 200

_SENTENCE_AT_MOST: Final = 4096
"""Characters. What comes behind them is further members; a longer text that somebody made up would keep the patterns busy."""


def names_its_logger(text: str) -> bool:
    """Return True if a line ends as Kafka's own pattern ends it, by the name of its logger: one that is cut does not."""
    return _LOGGER.search(text[-_LOGGER_AT_MOST:]) is not None


def is_begun(text: str) -> bool:
    """Return True if a line that says nothing of a group is the beginning of one that would."""
    opening = _OPENING.match(text)
    assert opening is not None
    message = text[opening.end() : _SENTENCE_AT_MOST]
    return _UNFINISHED.fullmatch(message) is not None or any(
        words.startswith(message) or message.startswith(words) for words in _FIRST_WORDS
    )


def coordinator_line(text: str, time: LogTime) -> CoordinatorLine | None:
    """Return what the message of a line says of a group; None for one that says nothing."""
    message = _LOGGER.sub("", text[:_SENTENCE_AT_MOST]).rstrip()
    for sentence in SENTENCES:
        found = sentence.pattern.match(message)
        if found is not None:
            facts = {name: fact for name, fact in found.groupdict().items() if fact is not None}
            return CoordinatorLine(time.at_us, sentence.kind, facts.pop("group", ""), facts)
    return None
