"""A report as Markdown, to paste into an incident or a ticket.

Names of groups and clients are chosen by clients. A character that means something in Markdown is escaped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from coordinator_model.wording import counted, plural, some
from streaming.published import finding_rows, sentences
from streaming.published.records import is_open
from streaming.report.contents import NAMED, clock_of, facts_of
from streaming.web.costs import by_cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streaming.published.records import Json
    from streaming.report.contents import GroupReport, Lost, Report
    from streaming.web.costs import CauseCosts

GROUPS_IN_DETAIL: Final = 50
"""The costliest, and those with findings before others; the tables list all."""

_STEPS: Final = 24
FINDINGS_SHOWN: Final = 20
_CLIENTS_SHOWN: Final = 100
_LISTED: Final = 200
_MEANS_SOMETHING: Final = re.compile(r"([\\`*_{}\[\]<>|#~&])")


def markdown_of(report: Report) -> str:
    """Return the report."""
    return "\n".join(_lines(report)) + "\n"


def detailed(report: Report) -> list[GroupReport]:
    """Return the groups that are reported in detail: those of which there is something to say."""
    in_detail = [group for group in report.groups if group.rebalances or group.findings or group.not_seen]
    return in_detail[:GROUPS_IN_DETAIL]


def _lines(report: Report) -> Iterator[str]:
    yield from ("# Rebalances", "")
    yield f"{clock_of(report.from_s)} to {clock_of(report.to_s)}, UTC"
    yield ""
    yield f"**{_text(report.summary)}**"
    yield ""
    if report.causes:
        yield from ("## Cost by cause", "")
        yield from _causes(report.causes, by_cause(report.rebalances, report.from_s, report.to_s, _STEPS))
        yield ""
    yield from ("## Groups by cost", "")
    yield from _table(
        ("group", "rebalances", "took", "member-seconds", "partition-seconds unheld", "most by", "findings"),
        (_group_row(group) for group in report.groups[:_LISTED]),
    )
    if len(report.groups) > _LISTED:
        yield (
            f"\n{counted(len(report.groups) - _LISTED, 'more group')} {plural(len(report.groups) - _LISTED, 'is', 'are')} in "
            "the report as JSON."
        )
    if report.findings:
        yield from ("", "## Findings that concern no single group", "")
        yield from _findings(report.findings)
    for group in detailed(report):
        yield from _group(group, (report.from_s, report.to_s))
    yield from _clients(report.clients)
    if report.known_defects:
        yield from ("", "Known defects of these releases, whether they have shown themselves or not:", "")
        yield from (f"- {_text(line)}" for line in report.known_defects)
    yield from ("", "## What was not seen", "")
    yield from (f"- {_text(line)}" for line in report.not_seen or ["Nothing is known to be missing."])
    if report.read:
        yield from ("", "## What was read", "")
        yield from (f"- {_text(line)}" for line in report.read)


def _group_row(group: GroupReport) -> tuple[str, ...]:
    lost = group.lost
    return (
        group.name,
        f"{lost.rebalances:,}",
        sentences.milliseconds(lost.took_ms),
        sentences.seconds_of(lost.member_seconds),
        sentences.seconds_of(lost.unheld_partition_seconds),
        group.most_by,
        str(len(group.findings) or ""),
    )


def _causes(causes: Mapping[str, Lost], over_time: Sequence[CauseCosts]) -> Iterator[str]:
    levels = {row.cause: row.levels for row in over_time}
    yield from _table(
        ("cause", "over the time", "rebalances", "took", "member-seconds", "partition-seconds unheld"),
        (
            (
                cause,
                levels[cause].replace(" ", "\N{FIGURE SPACE}"),
                f"{lost.rebalances:,}",
                sentences.milliseconds(lost.took_ms),
                sentences.seconds_of(lost.member_seconds),
                sentences.seconds_of(lost.unheld_partition_seconds),
            )
            for cause, lost in causes.items()
        ),
    )


def _group(group: GroupReport, times: tuple[float, float]) -> Iterator[str]:
    yield from ("", f"## {_text(group.name)}", "")
    facts = facts_of(group)
    if facts:
        yield ", ".join(f"{title}: {_text(str(value))}" for title, value in facts.items())
        yield ""
    for client in group.arrivals:
        name = client["instance_id"] or client["client_id"] or "a client without a client id"
        yield f"- **{_text(name)}** at {client['client_address']} {_text(client['text'])}"
    if group.arrivals:
        yield ""
    if group.causes:
        yield from _causes(group.causes, by_cause((one.event for one in group.rebalances), *times, _STEPS))
        yield ""
    if group.waited_for:
        yield from _table(
            ("waited for", "address", "why", "times", "in all"),
            (
                (one.name, one.client_address or "", one.why, f"{one.times:,}", sentences.milliseconds(one.waited_ms))
                for one in group.waited_for
            ),
        )
        yield ""
    yield from _findings(group.findings)
    yield from _advice(group)
    if group.rebalances:
        shown = group.shown
        if len(shown) < len(group.rebalances):
            yield f"{len(shown)} of {len(group.rebalances):,} rebalances, the costliest and those on which advice rests:"
            yield ""
        has_lag = any(one.lag for one in shown)
        yield from _table(
            ("began", "cause", "by", "held up by", "took", "member-seconds", *(("lag",) if has_lag else ())),
            (
                (
                    clock_of(one.event.began_s),
                    one.event.cause,
                    one.by or "not known",
                    one.held_up,
                    sentences.milliseconds(one.event.took_ms),
                    sentences.seconds_of(one.event.cost_s),
                    *((sentences.built_up(one.lag),) if has_lag else ()),
                )
                for one in shown
            ),
        )
    if group.not_seen:
        yield from ("", "Not seen:", "")
        yield from (f"- {_text(line)}" for line in group.not_seen)


def _advice(group: GroupReport) -> Iterator[str]:
    """Yield what would have saved the group something, with the beginnings of the rebalances that prove it."""
    began_at = {one.event.id: clock_of(one.event.began_s) for one in group.rebalances}
    for piece in group.advice:
        times = [began_at[id_] for id_ in piece.rebalances if id_ in began_at]
        yield f"- **{_text(piece.setting)}** would have saved {sentences.saved(piece)} ({piece.kind})."
        yield f"  {_text(piece.assumes)} {_text(piece.costs)}"
        yield f"  It rests on the rebalances of {some(times, NAMED)}."
    if group.advice:
        yield ""


def _findings(findings: Sequence[Json]) -> Iterator[str]:
    rows = finding_rows.rows(findings)
    for row in rows[:FINDINGS_SHOWN]:
        finding = row.finding
        until = "still open" if is_open(finding) else f"over at {str(finding['resolved_at'])[11:19]}"
        times = f", {row.often}" if row.often else ""
        since = str(finding["opened_at"])[:19].replace("T", " ")
        title = f"**{finding['severity']} {finding['rule']} {_text(finding['name'])}**"
        yield f"- {title}, since {since}{times}, {until}: {_text(finding['summary'])}"
        yield f"  To do: {_text(finding['action'])}"
    if len(rows) > FINDINGS_SHOWN:
        yield f"- and {len(rows) - FINDINGS_SHOWN:,} more"
    if findings:
        yield ""


def _clients(clients: Sequence[Json]) -> Iterator[str]:
    if not clients:
        return
    yield from ("", "## Clients", "")
    yield from _table(
        ("client", "software", "addresses", "groups", "before brokers of 4.0"),
        (
            (
                one["client_id"] or "",
                one["client_software"] or "not known",
                str(len(one["client_addresses"])),
                sentences.listed(one["groups"]),
                one["before_4_0"] or "",
            )
            for one in clients[:_CLIENTS_SHOWN]
        ),
    )


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{' --- |' * len(titles)}"
    yield from (f"| {' | '.join(map(_text, row))} |" for row in rows)


def _text(text: str) -> str:
    return _MEANS_SOMETHING.sub(r"\\\1", text)
