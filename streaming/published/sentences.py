"""What a group waits for, in a sentence: who is waited for, how many that holds up, and how long it may take."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model import events
from coordinator_model.events import RECONCILING, GroupEvent, MemberEvent, RebalanceFinished, State
from coordinator_model.finding import Severity
from coordinator_model.groups import waits
from coordinator_model.groups.records import host_of
from coordinator_model.wording import counted, iso_utc, plural
from streaming.published.records import Json, RebalanceLag, duration, member_name, name_of, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator_model.advice import Advice

_NAMED: Final = 3

STATE_WORDS: Final = {
    State.UNKNOWN.value: "not known",
    State.EMPTY.value: "empty",
    State.PREPARING.value: "rebalances: join",
    State.COMPLETING.value: "rebalances: sync",
    RECONCILING: "partitions move",
    State.STABLE.value: "stable",
    State.DEAD.value: "deleted",
}
"""States, as a person says them; the name that Kafka gives them stands beside."""


class Sentence(NamedTuple):
    """A sentence that ends with a time that passes."""

    text: str
    since_s: float | None = None
    at_most: str = ""  #: ", of at most 5 min"


def waits_for(group: Json | None) -> Sentence:
    """Return what a group waits for; an empty sentence when it does not."""
    if group is None:
        return Sentence("")
    if group["learning"]:
        return Sentence(f"Not known yet: {group['learning']}")
    if not group["waits_for"]:
        return Sentence("")
    if keeps := group.get("waits"):
        more = f"; {len(keeps) - 1} more" if len(keeps) > 1 else ""
        return Sentence(f"Waits: {keeps[0]['text']}{more}")
    longest_ms = max((member.get("rebalance_timeout_ms") or 0 for member in group["members"]), default=0)
    return Sentence(
        waits.of_all(group["state"], awaited(group), len(group["members"]) - len(group["waits_for"])),
        seconds(group["state_since"]) if group["state_since"] else None,
        f" of at most {duration(longest_ms / 1000)}" if longest_ms > 0 else "",
    )


def awaited(group: Json) -> str:
    """Return the names of the members that a group waits for."""
    by_id = {member["member_id"]: member for member in group["members"]}
    return listed([member_name(by_id[id_]) if id_ in by_id else str(id_) for id_ in group["waits_for"]])


def held_up(event: RebalanceFinished) -> str:
    """Return who held a rebalance up, and for how long: "orders-2 did not rejoin for 25.0 s"; empty if no member did."""
    names, why, waited_ms = _longest_wait(event)
    return waits.held_up(names, why, milliseconds(waited_ms)) if names else ""


def held_up_by(event: RebalanceFinished) -> str:
    """Return the same for a narrow column: "orders-2, 25.0 s"."""
    names, _, waited_ms = _longest_wait(event)
    return f"{names}, {milliseconds(waited_ms)}" if names else ""


def _longest_wait(event: RebalanceFinished) -> tuple[str, str, int]:
    """Return the names of those for whom the others waited longest, or half as long, and why; no names if there are none."""
    if not event.waited_for:
        return "", "", 0
    first = event.waited_for[0]
    alike = [one for one in event.waited_for if one.why == first.why and one.waited_ms * 2 >= first.waited_ms]
    names = listed([str(name_of(one)) for one in alike])
    if first.why == events.NOT_REJOINED and all(has_new_id(event, one) for one in alike):
        names = f"the old member {plural(len(alike), 'id')} of {names}"
    return names, first.why, first.waited_ms


def has_new_id(event: RebalanceFinished, gone: events.NamedMember) -> bool:
    """Return True if the client of a member that is gone, or one of its name and host, joined in the rebalance as a new member."""
    client = gone.client_id, host_of(gone.client_address or "")
    return any(one.new and (one.client_id, host_of(one.client_address or "")) == client for one in event.members)


def lag_facts(lag: Json | None) -> list[tuple[str, str]]:
    """Return the lag of a group, title and text: all of it, and the partitions that are furthest behind."""
    if lag is None:
        return []
    behind = [
        (records, f"{topic}-{partition}")
        for topic, known in lag["partitions"].items()
        for partition, records in known.items()
        if records
    ]
    furthest = ", ".join(f"{records:,} of {name}" for records, name in sorted(behind, key=lambda one: (-one[0], one[1]))[:_NAMED])
    return [("lag", f"{counted(lag['lag'], 'record')}" + (f"; most: {furthest}" if furthest else ""))]


def count(number: int) -> str:
    """Return a number that may be large, in a column that is narrow: "12,000", "1.2 M"."""
    return f"{number:,}" if number < 1_000_000 else f"{number / 1e6:,g} M"


def built_up(lag: RebalanceLag | None) -> str:
    """Return what a rebalance did to the lag: "+1,200 records, gone after 45 s"; empty if that is not known."""
    if lag is None:
        return ""
    if not lag.built_up:
        return "none built up"
    return (
        f"+{counted(lag.built_up, 'record')}, "
        f"{'not gone yet' if lag.gone_after_s is None else f'gone after {duration(lag.gone_after_s)}'}"
    )


def seconds_of(cost: float | None) -> str:
    """Return seconds as text: with a decimal where it counts."""
    if cost is None:
        return "not known"
    return f"{cost:,.1f}" if cost < 100 else f"{cost:,.0f}"


def saved(piece: Advice) -> str:
    """Return what a piece of advice saves, of what: "15.2 (10.2 to 20) of 25.5 member-seconds, in 2 rebalances"."""
    facts = []
    units = ("member-seconds", "partition-seconds")
    for unit, expected, least, most, lost in zip(units, piece.saves, piece.saves_least, piece.saves_most, piece.lost, strict=True):
        if expected:
            span = f" ({seconds_of(least)} to {seconds_of(most)})" if seconds_of(least) != seconds_of(most) else ""
            facts.append(f"{seconds_of(expected)}{span} of {seconds_of(lost)} {unit}")
    return f"{' and '.join(facts)}, in {counted(len(piece.rebalances), 'rebalance')}"


def by_severity(findings: Iterable[Json]) -> str:
    """Return how many findings there are of each severity, the worst first: ``1 critical, 2 error``."""
    counts = Counter(one["severity"] for one in findings)
    return ", ".join(f"{counts[one.value]:,} {one.value}" for one in reversed(Severity) if counts[one.value])


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are; of members of one name how many."""
    counts = Counter(names)
    said = [f"{short(name)} ({count} members)" if count > 1 else short(name) for name, count in counts.items()]
    more = sum(list(counts.values())[_NAMED:])
    return ", ".join(said[:_NAMED]) + (f" and {more} more" if more else "")


def short(name: str, most: int = 48) -> str:
    """Return a name that fits on a line: its beginning and its end."""
    return name if len(name) <= most else f"{name[: most - 13]}…{name[-12:]}"


def event_text(event: GroupEvent, *, several: bool) -> str:
    """Return an event in words, behind the name of its member, or of several."""
    return _event_text(event, several=several) + repeated(event)


def repeated(event: GroupEvent) -> str:
    """Return how often a member did what an event says, if it stands for several times."""
    if not isinstance(event, MemberEvent) or not event.since_us:
        return ""
    return f", {event.count:,} times since {iso_utc(event.since_us)[11:19]}"


def _event_text(event: GroupEvent, *, several: bool) -> str:
    was = "were" if several else "was"
    match event:
        case events.RebalanceBegan():
            return f"began a rebalance: {event.cause}"
        case events.MemberJoined():
            return "ask to join, and wait for the others" if several else "asks to join, and waits for the others"
        case events.MemberSynced():
            return "ask for their assignments" if several else "asks for its assignment"
        case events.MemberServed():
            return "got their assignments" if several else f"got its assignment{_partitions(event.partitions)}"
        case events.MemberToldToRejoin():
            return f"{was} told to rejoin, by the answer to {event.api or 'a request'}"
        case events.MemberToldToGiveUp():
            return f"{was} told to give partitions up{'' if several else _partitions(event.partitions)}"
        case events.GaveUp():
            return "gave partitions up" if several else f"gave partitions up{_partitions(event.partitions)}"
        case events.MemberAway():
            return "left for a while: its place and its partitions stay its own until its session ends"
        case events.MemberLeft():
            return f"left{_because(event.reason)}"
        case events.MemberReplaced():
            if several:
                return "lost their places to new processes"
            return f"was replaced{f' by {event.replaced_by}' if event.replaced_by else ''}: another process took its name"
        case events.MemberFenced():
            return f"{was} refused: {event.error}{f' to {event.api}' if event.api else ''}"
        case events.SessionOver():
            return "had no heartbeat until the session was over"
        case events.MemberDropped():
            return f"{was} removed: no JoinGroup came in time"
        case events.ConnectionClosed():
            return "lost its connection without leaving"
        case events.PhaseEnded():
            return f"The {event.phase} phase ended after {milliseconds(event.took_ms)}"
        case events.GroupEmptied():
            return "No member is left"
        case events.SightLost():
            return f"The members are not known from here on{_because(event.reason)}"
        case events.SightRegained():
            return f"The group is known again{_because(event.reason)}"
        case events.RebalanceFinished():
            return f"The rebalance is over after {milliseconds(event.took_ms)}{_because(event.ended)}"
        case _:
            return event.kind.replace("_", " ")


def by_names(finding: Json) -> str:
    """Return the sentence of a finding with the client's own names; its member id and software stand once, in the details."""
    summary, id_, address = str(finding["summary"]), finding["client_id"], finding["client_address"]
    if not id_ or not address:
        return summary
    software = f", {finding['client_software']}" if finding["client_software"] else ""
    named, short = f"lient {id_} at {address}{software}", f"lient {id_} at {host_of(address)}"
    begun, known, rest = summary.partition(f"ember {finding['member_id']} (c{named}")
    principal, closed, rest = rest.partition(")")
    if known and closed and (not principal or principal.startswith(", ")):
        summary = f"{begun[:-1]}{'C' if begun.endswith('M') else 'c'}{short}{rest}"
    return summary.replace(named, short)


def milliseconds(took_ms: object) -> str:
    """Return a short duration as a person says it."""
    if not isinstance(took_ms, int | float):
        return "an unknown time"
    if took_ms < 1000:
        return f"{took_ms:.0f} ms"
    if took_ms < 60_000:
        return f"{took_ms / 1000:.1f} s"
    return f"{took_ms // 60_000:.0f} min {took_ms // 1000 % 60:.0f} s" if took_ms < 3_600_000 else duration(took_ms / 1000)


def _partitions(partitions: dict[str, list[int]] | None) -> str:
    return "" if partitions is None else f": {counted(sum(map(len, partitions.values())), 'partition')}"


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""
