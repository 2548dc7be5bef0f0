"""Breaches of requests that a coordinator accepted unlawfully, from the verdict on its answer."""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.positions import GENERATION, MEMBER, PHASE, REPLACED, Verdict
from coordinator_model.groups.effects import Does
from coordinator_model.groups.evidence import exchange_evidence
from coordinator_model.rules.base import Breach, HeldFinding, sender_text
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import REBALANCE_IN_PROGRESS
from coordinator_model.wording import a_or_an

_RULE_OF: Final = {GENERATION: "G-02", REPLACED: "S-03", MEMBER: "M-02", PHASE: "G-12"}
"""What was wrong with an accepted request → the rule that reports it."""


def rules_of(verdict: Verdict) -> tuple[str, ...]:
    """Return the rules that report an accepted request. A replaced member is no member either, and is reported once."""
    about = verdict.about
    return tuple(id_ for what, id_ in _RULE_OF.items() if what in about and not (what == MEMBER and REPLACED in about))


def accepted(group: ClassicGroup, verdict: Verdict, rule: str, *, so: str = "") -> Breach | None:
    """Return the breach of a request that the coordinator accepted, None if this is not the rule that reports it.

    :param so: what follows from it, to end the summary with.
    """
    if rule not in rules_of(verdict):
        return None
    exchange, why = verdict.exchange, verdict.why(next(what for what, id_ in _RULE_OF.items() if id_ == rule))
    api = API_NAMES[exchange.api_key]
    at = f" at generation {exchange.generation}" if exchange.generation >= 0 else ""
    answer = f"answered {error_name(exchange.error)}" if exchange.error else "accepted"
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} accepted {a_or_an(api)}{at} from {sender_text(exchange)} in group {group.name}, although "
        f"{why}{so}.",
        f"{api}{at} {answer}; {verdict.text}",
        (*verdict.proof, *exchange_evidence(exchange)),
    )


def loads_after_all(group: ClassicGroup, held: HeldFinding) -> bool:
    """Return True if the coordinator was loading when it accepted the request, which it then does unchecked."""
    return group.loading_near(group.broker, held.opened_us)


def leaves_or_loads(group: ClassicGroup, held: HeldFinding) -> bool:
    """Return True if the coordinator was loading, or was about to leave: what it began last, such as an upgrade, is lost with it."""
    return loads_after_all(group, held) or group.incarnation != held.incarnation or group.unconnected_us >= held.opened_us


def upgrades_after_all(group: ClassicGroup, held: HeldFinding) -> bool:
    """Return True if an upgrade of the group, which ends what it holds, had been asked for when a held JoinGroup was answered so."""
    ends_hold = held.subject.endswith(error_name(REBALANCE_IN_PROGRESS))
    skew_us = group.clock_skew_us
    upgrades = (effect for effect in group.effects.since(held.opened_us - skew_us, ()) if effect.does is Does.CONVERTS)
    return ends_hold and any(upgrade.since_us <= held.opened_us + skew_us for upgrade in upgrades)


def joined_after_all(group: object, held: HeldFinding) -> bool:
    """Return True if the JoinGroup that made the sender a member of that generation was under way, and succeeded after the request."""
    if not isinstance(group, ClassicGroup):
        return False
    member = group.members.get(held.subject)
    if member is None or member.joined is None or member.removed is not None:
        return False
    return member.joined == group.generation == held.generation
