"""Family G: illegal generations.

An ILLEGAL_GENERATION on the wire is normal: each rebalance leaves members behind for a moment, and the coordinator refuses them. It is
never normal that a member ignores the refusal, or that the coordinator accepts an old generation.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_model.finding import (
    BROKER,
    CAPTURE,
    CERTAIN,
    CLIENT,
    CONFIRMED,
    CRITICAL,
    ERROR,
    HEURISTIC,
    INFO,
    OPERATOR,
    WARNING,
)
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.positions import PHASE, Verdict
from coordinator_model.groups.events import Collided, Contradicted, Malformed, OtherGeneration, Regressed, TwoRosters
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.records import Ahead
from coordinator_model.rules.base import Breach, Due, admission, rule, sender_text, the_client, timer_rule, who, whom
from coordinator_model.rules.unlawful import accepted, loads_after_all, rules_of
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import ILLEGAL_GENERATION
from coordinator_model.wording import a_or_an, seconds


@rule("stale generation accepted", CRITICAL, CONFIRMED, BROKER, suppressed_by=("C-05",), explained=loads_after_all)
def G_02(group: ClassicGroup, verdict: Verdict) -> Breach | None:
    """Fencing is broken: a member of an old generation is let through and may overwrite offsets of the rightful owner.

    Condition: A Heartbeat, SyncGroup, OffsetCommit or TxnOffsetCommit (v3+) at generation g succeeded (or a Heartbeat was answered
        REBALANCE_IN_PROGRESS), and a JoinGroup success at a higher generation was captured before that request can have been
        processed.
    Expected: ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID.
    Action: Stop the named client, keep the broker's logs, and look for two brokers that both act as coordinator or for a proxy that
        rewrites answers.
    False alarms: A coordinator that is still loading answers every Heartbeat with success: ignored while that broker says it loads.
        Groups with members of the new protocol have an epoch per member: not judged. A generation that nobody has synced proves
        nothing once all connections have ended: a coordinator that restarts does not know it.
    """
    return accepted(group, verdict, "G-02", so=": it, or a proxy before it, does not fence stale members")


@rule("valid generation refused", ERROR, CONFIRMED, BROKER, suppressed_by=("C-05",))
def G_03(group: ClassicGroup, contradicted: Contradicted) -> Breach | None:
    """A healthy member is thrown out of its generation and rejoins: a needless rebalance for everybody.

    Condition: A request at generation g was refused with ILLEGAL_GENERATION, after a JoinGroup success at g was captured and before
        a request that then succeeded at g.
    Expected: While g is the group's generation, no request at g is illegal.
    Action: Report it with the frames; look at the broker's log for a coordinator that loaded the group again in place.
    False alarms: None known: a generation that was not written is believed only while a connection lasts.
    """
    refusal = contradicted.refusal
    if refusal.error != ILLEGAL_GENERATION:
        return None
    exchange = contradicted.exchange
    return Breach.of_sender(
        refusal,
        f"The coordinator {exchange.broker} refused generation {refusal.generation} to {sender_text(refusal)} of group "
        f"{group.name} as illegal, while it was the group's generation before and after.",
        f"ILLEGAL_GENERATION at generation {refusal.generation}, between two successes at that generation; {refusal.text}",
        (*refusal.frames, response_evidence(exchange, 0)),
    )


@rule("generation went back", ERROR, CONFIRMED, BROKER, suppressed_by=("C-05",))
def G_04(group: ClassicGroup, regressed: Regressed) -> Breach | None:
    """The coordinator lost state: offsets committed in the lost generations may be gone as well.

    Condition: A JoinGroup succeeded at a lower generation than one issued before it was asked, on the same coordinator, the group
        was neither deleted nor can it have been empty in between, and the coordinator cannot have restarted before that generation
        was written.
    Expected: Within one life of a group the generation only grows.
    Action: Look at leadership changes of the group's __consumer_offsets partition, for unclean elections and for truncation.
    False alarms: Deletion, expiry of an empty group and failover restart the count: reported as G-05, or not at all.
    """
    if regressed.explanation is not None:
        return None
    exchange, before = regressed.exchange, regressed.before
    return Breach(
        "",
        f"The coordinator {exchange.broker} put group {group.name} back from generation {before.generation} to "
        f"{regressed.generation}, and nothing that was seen explains it.",
        f"a JoinGroup asked {seconds(exchange.effective_us - before.proven_us)} after generation {before.generation} was issued "
        f"succeeded at generation {regressed.generation}" + ("" if regressed.verdict is None else f"; {regressed.verdict.text}"),
        (before.proof, request_evidence(exchange), response_evidence(exchange, 0, regressed.generation)),
        actor=exchange.actor,
        member_id=exchange.member_id or None,
        generation=regressed.generation,
    )


def _step(before: int, after: int) -> str:
    return f"began again at generation {after}" if before == after else f"went from generation {before} to {after}"


@rule("generation restarted", INFO, CONFIRMED, OPERATOR)
def G_05(group: ClassicGroup, regressed: Regressed) -> Breach | None:
    """The group began a new life; kept so that the jump in its generation is documented.

    Condition: As G-04, but the group was deleted, may have been empty in between, or its coordinator may have restarted before the
        later generation was written.
    Expected: A group that was deleted, or expired while empty, starts again; a coordinator that loads a group starts from what is
        written.
    Action: None.
    False alarms: None known.
    """
    if regressed.explanation is None:
        return None
    exchange, before = regressed.exchange, regressed.before
    return Breach(
        "",
        f"Group {group.name} {_step(before.generation, regressed.generation)}: {regressed.explanation}.",
        f"generation {regressed.generation} after generation {before.generation}",
        (before.proof, response_evidence(exchange, 0, regressed.generation)),
        actor=exchange.actor,
        generation=regressed.generation,
    )


@rule("one generation, two rosters", CRITICAL, CONFIRMED, BROKER, suppressed_by=("C-05",))
def G_06(group: ClassicGroup, two: TwoRosters) -> Breach | None:
    """Two leaders may hand out two conflicting assignments of one generation: partitions are consumed twice, or by nobody.

    Condition: Two leader answers at one generation differ in members (by instance id where there is one), leader or protocol, and
        either the second was already asked when the first was answered, or the generation was written before it was asked.
    Expected: A generation has one leader, one protocol and one list of members.
    Action: Treat it as a split brain: find out which brokers act as coordinator, and whether a proxy rewrites answers.
    False alarms: A failover issues a generation again that was not written: not compared. A replaced static member counts by its
        instance id; a list of a JoinGroup before version 5, which names none, is not compared where there are static members.
    """
    exchange, known = two.exchange, two.newest_generation
    assert known.roster is not None
    generation = known.generation
    more, fewer = sorted(set(two.roster) - set(known.roster))[:3], sorted(set(known.roster) - set(two.roster))[:3]
    unlike = [
        *([f"leader {two.leader} instead of {known.leader}"] if two.leader != known.leader else ()),
        *([f"protocol {two.protocol} instead of {known.protocol}"] if two.protocol != known.protocol else ()),
        *([f"{', '.join(more)} beyond the other's members"] if more else ()),
        *([f"{', '.join(fewer)} missing from them"] if fewer else ()),
    ]
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} told two leaders of group {group.name} two different versions of generation {generation}: "
        f"the second, {the_client(exchange.actor)}, was told {'; '.join(unlike) or 'other instance ids'}.",
        f"two leader answers at generation {generation} with different members, leaders or protocols",
        (known.proof, request_evidence(exchange), response_evidence(exchange, 0, generation)),
        subject="",
        generation=generation,
    )


@timer_rule("future generation", ERROR, CERTAIN, CLIENT)
def G_07(group: ClassicGroup) -> Iterator[Due]:
    """A client's state is corrupt, or it talks to the wrong group or cluster.

    Condition: A known member was refused at a generation above the highest that was issued, and no late frame explained it. An
        error if the group was seen since its generation 1 without a failover, else a heuristic warning.
    Expected: A member uses the generation of its last JoinGroup success.
    Action: Check that client's bootstrap servers and group.id, and any proxy's routing.
    False alarms: A generation issued before the capture began and lost in a failover since: hence only a warning.
    """
    born = group.member_identity.born_us is not None
    severity = ERROR if born else WARNING
    for member_id, ahead in group.member_identity.ahead.items():
        if ahead.generation <= group.member_identity.highest:
            continue  # a late frame has explained it

        def describe(member_id: str = member_id, ahead: Ahead = ahead) -> Breach:
            return Breach(
                member_id,
                f"Member {member_id} {whom(ahead.actor)} uses generation {ahead.generation} in group {group.name}, which was never "
                f"issued: the highest was {ahead.highest}.",
                f"a request at generation {ahead.generation} while the highest generation issued was {ahead.highest}"
                + ("" if born else ", as far as was seen"),
                ahead.frames,
                actor=ahead.actor,
                member_id=member_id,
                generation=ahead.generation,
                certainty=None if born else HEURISTIC,
            )

        at_us = max(ahead.at_us + group.settings.reorder_window_ms * 1_000, ahead.last_us)
        yield Due(at_us, member_id, severity, describe)


@timer_rule("unexplained step", INFO, HEURISTIC, CAPTURE)
def G_08(group: ClassicGroup) -> Iterator[Due]:
    """Rebalances happened that were not captured, or whose answers were all lost.

    Condition: A generation was issued that is more than one above the last, and a member of the last cannot have been gone
        meanwhile.
    Expected: Each join phase raises the generation by one; a passage through Empty raises it once more.
    Action: Check that the capture sees every client and every broker of the group.
    False alarms: A generation whose members all disconnected before they were answered.
    """
    skip = group.member_identity.skip
    if skip is None:
        return

    def describe() -> Breach:
        return Breach(
            "",
            f"Group {group.name} went from generation {skip.before} to {skip.generation}, and nobody was seen to be handed what lies "
            f"between.",
            f"generation {skip.generation} after generation {skip.before}",
            skip.frames,
            actor=skip.actor,
            generation=skip.generation,
        )

    yield Due(skip.at_us + group.settings.reorder_window_ms * 1_000, "", INFO, describe)


@rule("malformed answer", ERROR, CERTAIN, BROKER)
def G_09(group: ClassicGroup, malformed: Malformed) -> Breach | None:
    """A broken broker, or a proxy that rewrites answers; a client that believes it is in the group, or out of it, by mistake.

    Condition: A JoinGroup success without a positive generation or without a member id, or a refusal with a generation.
    Expected: A success has a generation above 0 and a member id; a refusal has generation -1.
    Action: Look for a proxy on the path; else report it with the frames.
    False alarms: Brokers up to 2.1 refuse with generation 0; a static replacement that could not be written is refused with the
        real one.
    """
    exchange = malformed.exchange
    outcome = error_name(exchange.error) if exchange.error else "success"
    named = repr(malformed.member_id)
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} answered a JoinGroup of {sender_text(exchange)} in group {group.name} with a contradiction: "
        f"{outcome}, at generation {malformed.generation}, to member id {named}.",
        f"JoinGroup v{exchange.api_version} answered {outcome} with generation {malformed.generation} and member id {named}",
        (request_evidence(exchange), response_evidence(exchange, exchange.error, malformed.generation)),
        subject=exchange.actor.connection,
        generation=malformed.generation,
    )


@rule("client uses a generation not its own", WARNING, CERTAIN, CLIENT, suppressed_by=("G-01", "M-07"))
def G_10(group: ClassicGroup, other: OtherGeneration) -> Breach | None:
    """The client library mixes up its sessions; what it does at the wrong generation is refused or lost.

    Condition: A Heartbeat, SyncGroup or OffsetCommit at a generation that is neither of the member's last JoinGroup success nor of
        the one before, on the connection that brought it that success.
    Expected: The generation of the member's last JoinGroup success.
    Action: Upgrade or replace that client library.
    False alarms: Requests on other connections, and commits without a generation, are not judged.
    """
    exchange, member = other.exchange, other.member
    return Breach.of_member(
        member,
        f"{who(member)} uses generation {exchange.generation} in group {group.name}, although it received {member.joined} last, "
        f"and {member.joined_before} before that, on this very connection.",
        f"{API_NAMES[exchange.api_key]} at generation {exchange.generation} after a JoinGroup success at {member.joined}",
        (*admission(member), request_evidence(exchange)),
        generation=exchange.generation,
    )


@rule("number collision after failover", WARNING, CONFIRMED, BROKER)
def G_11(group: ClassicGroup, collided: Collided) -> Breach | None:
    """The coordinator cannot tell this member's generation from the one that it issued again: it accepts offsets of a member that
    does not know the new assignment.

    Condition: A member that received generation g, which nobody wrote before the coordinator moved, was accepted at the g issued
        since without having sent a JoinGroup.
    Expected: The member rejoins first. The protocol has no means to make it.
    Action: Watch that member for duplicates; restart it if it does not rejoin.
    False alarms: None known: whether g was written is judged by its leader's SyncGroup.
    """
    exchange, member, known = collided.exchange, collided.member, collided.newest_generation
    return Breach.of_member(
        member,
        f"{who(member)} received generation {known.generation} of group {group.name} before the coordinator moved, and was accepted at "
        f"the same number, which has been issued again since, without having rejoined: the coordinator cannot tell the two apart.",
        f"{API_NAMES[exchange.api_key]} at generation {known.generation} accepted; the generation was not written before the failover",
        (*admission(member), known.proof, response_evidence(exchange, 0)),
        generation=known.generation,
    )


def _all_asked(group: ClassicGroup, _subject: str) -> bool:
    """Return True if all members got REBALANCE_IN_PROGRESS, or the join phase has ended."""
    newest = group.newest_generation
    if newest is None or not any(join.member_id in newest.rejoin_asked for join in group.waiting_joins()):
        return True
    return all(member.id in newest.rejoin_asked for member in group.present_members())


@rule("ended generation served", ERROR, CONFIRMED, BROKER, suppressed_by=("C-05",), over=_all_asked, explained=loads_after_all)
def G_12(group: ClassicGroup, verdict: Verdict) -> Breach | None:
    """A member is not told of the join phase that the others wait in: the group stands still until it is dropped.

    Condition: At least two members were answered REBALANCE_IN_PROGRESS to a Heartbeat at the newest generation and wait for the
        answer to their JoinGroups, and a Heartbeat or SyncGroup at that generation, asked later by more than frames may be late,
        succeeds.
    Expected: REBALANCE_IN_PROGRESS to every member until the join phase ends.
    Action: Look for a proxy that rewrites or delays answers; keep the broker's log. Restarting the member named ends the wait.
    False alarms: None known. A coordinator that loads the group again would bring the generation back, but ends the connections of
        those who wait.
    """
    if "G-12" not in rules_of(verdict):
        return None
    exchange, api = verdict.exchange, API_NAMES[verdict.exchange.api_key]
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} accepted {a_or_an(api)} of {sender_text(exchange)} in group {group.name}, although generation "
        f"{exchange.generation} has ended: {verdict.why(PHASE)}. It, or a proxy before it, withholds REBALANCE_IN_PROGRESS: the group "
        "stands still until the member rejoins or is dropped.",
        f"{api} at generation {exchange.generation} accepted; {verdict.text}",
        (*verdict.proof, request_evidence(exchange), response_evidence(exchange, 0)),
        subject="",
    )
