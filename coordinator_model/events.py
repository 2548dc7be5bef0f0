"""Events of a group: one type for each kind of thing that happens, whose encoding is what is published.

The published form is a contract (``docs/events.md``): an attribute has the name of its field, but for times and costs. Those are
microseconds here, and ISO 8601 or seconds there. Ids depend on protocol facts and capture times alone. The same records therefore give
the same ids whatever the batches and restarts, and an event written twice is recognised.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from sys import intern
from typing import Annotated, Any, Final, NamedTuple, Self, TypeAlias, get_args

from msgspec import Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import fields

from coordinator_model.wording import iso_utc, us_of


class State(StrEnum):
    """The states of a classic group, as in DescribeGroups, and one for "not known yet"."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


RECONCILING: Final = "Reconciling"
"""The state of a group with epochs whose members are on their way to the newest one."""

NEW_MEMBER: Final = "new member"
LEADER_REJOINED: Final = "leader rejoined"
SUBSCRIPTION_CHANGED: Final = "subscription changed"
SAME_TOPICS: Final = "rejoined with the same topics"  #: as in the second half of a cooperative rebalance
PARTITIONS_ADDED: Final = "partitions were added"  #: its leader rejoined for them, as its next assignment shows
TOPIC_DELETED: Final = "a topic was deleted"
TOPIC_MADE_ANEW: Final = "a topic was deleted and made anew"
TOPIC_MATCHES: Final = "a pattern matches another topic"  #: as the coordinator resolves it
TOPICS_CHANGED: Final = (PARTITIONS_ADDED, TOPIC_DELETED, TOPIC_MADE_ANEW, TOPIC_MATCHES)
"""What the assignments of a rebalance show of its cause, which was not known when it began."""

WORKER_REJOINED: Final = "worker rejoined"  #: a member of a Connect group: it revoked something, or the configuration changed
MEMBER_LEFT: Final = "member left"
REMOVED: Final = "member removed by somebody else"
SESSION_EXPIRED: Final = "session expired"
STATIC_RETURNED: Final = "static member returned"
NOT_SEEN: Final = "not seen"
CAUSES: Final = (
    NEW_MEMBER,
    LEADER_REJOINED,
    SUBSCRIPTION_CHANGED,
    SAME_TOPICS,
    PARTITIONS_ADDED,
    TOPIC_DELETED,
    WORKER_REJOINED,
    MEMBER_LEFT,
    REMOVED,
    SESSION_EXPIRED,
    STATIC_RETURNED,
    NOT_SEEN,
)
"""Why a rebalance of a classic group begins."""

SERVED: Final = "every member was served"
NO_MEMBERS: Final = "no member is left"
NEXT_REBALANCE: Final = "the next rebalance began"
NOT_BEGUN: Final = "members are served as before"
DELETED: Final = "the group was deleted"
MEMBERS_UNKNOWN: Final = "frames are missing, or the coordinator moved"
NEXT_EPOCH: Final = "the epoch rose again"
EPOCHS_UNKNOWN: Final = "frames are missing, or the group was converted"
"""How a rebalance ended; the last two are of groups with epochs."""

NOT_REJOINED: Final = "not rejoined"
ID_NOT_USED: Final = "id not used"
NO_ASSIGNMENT: Final = "no assignment"
"""Of a leader, which computes it."""

NOT_GIVEN_UP: Final = "not given up"
NOT_TOLD: Final = "not told"
"""It sent no heartbeat, whose response would have asked it."""

GONE: Final = "gone"


class Form(NamedTuple):
    """How values are published that the model keeps otherwise."""

    publish: Callable[[Any], Any]
    read: Callable[[Any], Any]


Time: TypeAlias = Annotated[int, Form(lambda at_us: iso_utc(at_us) if at_us else None, lambda text: us_of(text) if text else 0)]
"""Microseconds since the epoch, 0 for none; published as ISO 8601, UTC, or null."""

Seconds: TypeAlias = Annotated[
    int | None,
    Form(
        lambda us: None if us is None else round(us / 1_000_000, 6),
        lambda seconds: None if seconds is None else _microseconds(seconds),
    ),
]
"""Microseconds; published as seconds."""


class Unheld(NamedTuple):
    """A partition, and for how long no member held it."""

    topic: str
    partition: int
    us: int


def _publish_unheld(unheld: list[tuple[str, int, int]] | None) -> dict[str, dict[str, float]] | None:
    if unheld is None:
        return None
    topics: dict[str, dict[str, float]] = {}
    for topic, partition, us in unheld:
        topics.setdefault(topic, {})[str(partition)] = round(us / 1_000_000, 6)
    return topics


def _read_unheld(topics: Mapping[str, Mapping[str, float]] | None) -> list[Unheld] | None:
    if topics is None:
        return None
    return [Unheld(topic, int(number), _microseconds(held)) for topic, owned in topics.items() for number, held in owned.items()]


def _microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)


class FramePlace(Struct, frozen=True):
    """Where a frame is in the mirror topic."""

    partition: int
    offset: int


def _kind(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class GroupEvent(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=_kind):
    """One thing that happened in a group. What has a default is published only where it differs from that."""

    id: str
    at_us: Time = field(name="at")
    cluster: str
    group: str
    group_type: str
    incarnation: int
    generation: int | None
    frame: FramePlace | None  #: the frame that showed it; None if none did, as at the end of a session
    source: str = ""  #: if no frames show it

    @classmethod
    def of(
        cls, subject: tuple[str | int, ...], *, cluster: str, group: str, incarnation: int, generation: int | None, **more: Any
    ) -> Self:
        """Return an event with its id: the kind and 16 hex digits, the same for the same facts, on every machine and in every run.

        :param subject: distinguishes the event from others of its kind in the same generation.
        :param more: the other fields.
        """
        kind = cls.__struct_config__.tag
        facts = (cluster, group, incarnation, generation, kind, *subject)
        digest = hashlib.blake2s("\x00".join(map(str, facts)).encode(errors="surrogatepass"), digest_size=8)
        id_ = f"{kind}-{digest.hexdigest()}"
        return cls(id=id_, cluster=cluster, group=group, incarnation=incarnation, generation=generation, **more)

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def at_s(self) -> float:
        """Return its time in seconds since the epoch."""
        return self.at_us / 1_000_000

    @property
    def key(self) -> str:
        """Return the key of the record in the topic: events of one group stay in order."""
        return f"{self.cluster}/{self.group}"

    def as_json(self) -> dict[str, Any]:
        """Return the published object: plain types, times in ISO 8601 UTC with microseconds."""
        found = _published(type(self), to_builtins(self))
        first = {name: found.pop(name) for name in _FIRST}
        last = {name: found.pop(name) for name in _LAST if name in found}
        return first | found | last


_FIRST: Final[tuple[str, ...]] = ("id", "at", "cluster", "group", "group_type", "incarnation", "generation", "kind", "frame")
_LAST: Final[tuple[str, ...]] = ("count", "since", "source")


class MemberEvent(GroupEvent, frozen=True, kw_only=True):
    """Something that happened to a member, or that it did. Several are folded into the last of them if they come too fast."""

    member_id: str | None
    instance_id: str | None
    client_id: str | None
    client_address: str | None
    count: int = 1  #: how many it stands for
    since_us: Time = field(name="since", default=0)  #: time of the first of them; 0 if it stands for itself


class MemberToldToRejoin(MemberEvent, frozen=True, kw_only=True, tag="told_to_rejoin"):
    """The first REBALANCE_IN_PROGRESS that a member gets in a join phase."""

    api: str


class MemberJoined(MemberEvent, frozen=True, kw_only=True):
    """A member sent its JoinGroup; in a group with epochs, its join was answered."""

    new: bool  #: False if it was a member before, or returns as a static one


class MemberSynced(MemberEvent, frozen=True, kw_only=True):
    """A member sent its SyncGroup."""


class MemberServed(MemberEvent, frozen=True, kw_only=True):
    """A member got its assignment; in a group with epochs, it got partitions."""

    partitions: dict[str, list[int]] | None  #: by topic; None if the assignment cannot be read
    #: What nobody held while a static member was away that returned without a rebalance; None for any other.
    unheld: Annotated[tuple[Unheld, ...] | None, Form(_publish_unheld, _read_unheld)] = None


class MemberToldToGiveUp(MemberEvent, frozen=True, kw_only=True, tag="told_to_give_up"):
    """A member with an epoch got a smaller assignment."""

    partitions: dict[str, list[int]]
    keeps: int


class GaveUp(MemberEvent, frozen=True, kw_only=True):
    """A member with an epoch no longer lists partitions that it held."""

    partitions: dict[str, list[int]]
    keeps: int


class MemberLeft(MemberEvent, frozen=True, kw_only=True):
    """A LeaveGroup was granted."""

    reason: str | None


class MemberAway(MemberEvent, frozen=True, kw_only=True):
    """A static member with an epoch left for a while, and keeps its place."""


class MemberReplaced(MemberEvent, frozen=True, kw_only=True):
    """Another process took over the place of a static member."""

    replaced_by: str | None  #: its member id; None where a broker's log does not contain it


class MemberDropped(MemberEvent, frozen=True, kw_only=True):
    """A join phase ended without a member."""


class MemberFenced(MemberEvent, frozen=True, kw_only=True):
    """The first refusal of a member that is none, or not of this generation."""

    error: str
    api: str | None


class SessionOver(MemberEvent, frozen=True, kw_only=True):
    """A member's session ended."""

    silent_since_us: Time = field(name="silent_since")  #: 0 for one that asked to join all the time and was refused


class ConnectionClosed(MemberEvent, frozen=True, kw_only=True):
    """A member's connection closed without a LeaveGroup before."""


class PhaseEnded(GroupEvent, frozen=True, kw_only=True):
    """The join or sync phase ended."""

    phase: str
    took_ms: int | None


class GroupEmptied(GroupEvent, frozen=True, kw_only=True):
    """The last member has gone while no rebalance was open; otherwise the record of that shows it."""


class SightLost(GroupEvent, frozen=True, kw_only=True):
    """Frames are missing or the coordinator moved, so the membership is not known."""

    reason: str


class SightRegained(GroupEvent, frozen=True, kw_only=True):
    """The membership is known again."""

    reason: str


class RebalanceBegan(GroupEvent, frozen=True, kw_only=True):
    """A rebalance began. Its member is who began it."""

    cause: str
    member_id: str | None
    instance_id: str | None
    client_id: str | None
    client_address: str | None
    reason: str | None
    from_generation: int | None


class NamedMember(Struct, frozen=True, kw_only=True):
    """A member in a record."""

    member_id: str | None
    instance_id: str | None
    client_id: str | None
    client_address: str | None


class LostMember(NamedMember, frozen=True, kw_only=True):
    """What a member went through in a rebalance."""

    told_us: Time = field(name="told_at")
    joined_us: Time = field(name="joined_at")
    served_us: Time = field(name="served_at")
    stopped_us: Time = field(name="stopped_at")  #: since when it consumed nothing
    new: bool


class TookPart(LostMember, frozen=True, kw_only=True, omit_defaults=True):
    """A member that took part in a rebalance, and the configuration that its requests contained."""

    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    assignors: tuple[str, ...]  #: that it offers, its favourite first
    client_software: str | None
    acknowledged_us: Time | None = field(name="acknowledged_at", default=None)  #: None in groups without epochs


class WaitedFor(NamedMember, frozen=True, kw_only=True):
    """A member for whom others waited."""

    why: str
    waited_ms: int
    came: bool


class RebalanceFinished(GroupEvent, frozen=True, kw_only=True):
    """The record of a rebalance that is over. Its member is who began it."""

    cause: str
    member_id: str | None
    instance_id: str | None
    client_id: str | None
    client_address: str | None
    from_generation: int | None
    to_generation: int | None
    began_us: Time = field(name="began_at")
    join_ms: int | None
    sync_ms: int | None
    took_ms: int | None
    members: tuple[TookPart, ...]
    last_member: str | None
    cost_us: Seconds = field(name="cost_member_seconds")  #: how long members consumed nothing, added up
    ended: str
    partitions_moved: int | None
    partitions_stayed: int | None
    unheld: Annotated[tuple[Unheld, ...] | None, Form(_publish_unheld, _read_unheld)]
    never_came_back: tuple[LostMember, ...]
    waited_for: tuple[WaitedFor, ...]
    assignor: str | None

    @property
    def began_s(self) -> float:
        """Return when it began, in seconds since the epoch."""
        return (self.began_us or self.at_us) / 1_000_000

    @property
    def cost_s(self) -> float | None:
        """Return what it cost in member-seconds; None if that is not known."""
        return None if self.cost_us is None else self.cost_us / 1_000_000


AnyMemberEvent: TypeAlias = (
    MemberToldToRejoin
    | MemberJoined
    | MemberSynced
    | MemberServed
    | MemberToldToGiveUp
    | GaveUp
    | MemberLeft
    | MemberAway
    | MemberReplaced
    | MemberDropped
    | MemberFenced
    | SessionOver
    | ConnectionClosed
)

KINDS: Final = {
    str(one.__struct_config__.tag): one
    for one in (*GroupEvent.__subclasses__(), *MemberEvent.__subclasses__())
    if one is not MemberEvent
}
"""The type of each kind."""


def event_of(published: Mapping[str, Any]) -> GroupEvent:
    """Return the event of an object that :meth:`GroupEvent.as_json` made. Fields that it does not know are left out.

    :raises ValueError: if it is no event, or one of a kind that this release does not know.
    """
    try:
        kind = KINDS[published["kind"]]
        return convert(_read(kind, published), kind)
    except (LookupError, TypeError, AttributeError, OverflowError, ValidationError) as error:
        raise ValueError(f"not an event: {error!r}") from None


@cache
def _forms(kind: type[Struct]) -> dict[str, Form]:
    """Return published name → form of those fields that have one."""
    found = {one.encode_name: _form_of(one.type) for one in fields(kind)}
    return {name: form for name, form in found.items() if form is not None}


def _form_of(type_: Any) -> Form | None:
    if isinstance(type_, Form):
        return type_
    if isinstance(type_, type) and issubclass(type_, Struct) and _forms(type_):
        return Form(
            lambda records: [_published(type_, one) for one in records], lambda records: [_read(type_, one) for one in records]
        )
    return next((form for each in get_args(type_) if (form := _form_of(each)) is not None), None)


def _published(kind: type[Struct], plain: dict[str, Any]) -> dict[str, Any]:
    forms = _forms(kind)
    for name, value in plain.items():
        if name in forms:
            plain[name] = forms[name].publish(value)
        elif isinstance(value, tuple):
            plain[name] = list(value)
    return plain


def _read(kind: type[Struct], published: Mapping[str, Any]) -> dict[str, Any]:
    """Return what :func:`msgspec.convert` takes. Names are shared: a page keeps a hundred thousand events of a few hundred groups."""
    forms = _forms(kind)
    return {
        name: forms[name].read(value) if name in forms else intern(value) if type(value) is str and name != "id" else value
        for name, value in published.items()
    }
