"""Published groups, members, findings and rebalances as tables: printed once by ``groups`` and its like, and live by ``top``.

Names come from the wire, and a terminal obeys control characters. So records are made harmless first
(:func:`streaming.published.wire_text.harmless`), and the names that this keeps, of group and cluster, are made readable here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Final, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from coordinator_model.events import RebalanceFinished, State
from coordinator_model.finding import Severity
from coordinator_model.groups.classic.data import CLASSIC
from streaming.published.progress import bars, hour_facts, progress_facts, rate
from streaming.published.records import Json, RebalanceLag, arrivals_of, duration, is_open, member_name, name_of, seconds
from streaming.published.sentences import awaited, held_up, held_up_by, milliseconds, seconds_of
from streaming.published.wire_text import shown_name, visible
from streaming.replay.report import STATE_COLOURS
from streaming.replay.timeline import COLOURS, number_name

WIDEST: Final = 140
"""Columns from which the rebalances of the last hour have room as well."""

WIDE: Final = 110
"""Columns from which a table of one line per group has room for everything."""

_ROOM_FOR_HELD_UP: Final = 96  #: columns in which rebalances of many groups have room for who held them up
_WIDE_WITH_LAG: Final = 180  #: columns in which rebalances have room for their lag and for everything else
_LESS_THAN_LAG: Final = frozenset({"join", "sync", "ended"})
_GAP: Final = 2  #: spaces between columns
_MOST_WAITS: Final = 60  #: columns in which three names have room
_LEAST_NAMES: Final = 28  #: columns in which names can be distinguished
_LEFT_OUT: Final = ("gen", "members", "waits for", "for")  #: columns of the overview that a narrow terminal lacks, in this order
_RIGHT: Final = frozenset(
    {
        "for",
        "generation",
        "gen",
        "members",
        "times",
        "took",
        "join",
        "sync",
        "moved",
        "member-s",
        "last hour",
        "its cost",
        "lag",
        "gone after",
        "records/s",
        "usually",
    }
)
_LEAST_WAITS: Final = 12
_BETWEEN: Final = 3  #: columns between two of a table
_LEFT_OUT_OF_GROUPS: Final = ("its last hour", "last commit", "generation", "usually", "records/s", "members", "for", "cluster")
_OF_PROGRESS: Final = ("records/s", "usually", "last commit", "its last hour")
_NEVER_WRAPPED: Final = frozenset(
    {"state", "severity", "rule", "for", "began", "took", "join", "sync", "member-s", "lag", "gone after"}
)

Worst = Mapping[tuple[str, str], tuple[Severity, int]]
"""The worst severity and the number of open findings by (cluster, group)."""


class LastHour(NamedTuple):
    """The rebalances of a group that ended in the last hour."""

    rebalances: int
    cost_member_seconds: float


def groups_table(shown: list[Json], worst: Worst, lags: Mapping[tuple[str, str], int], now_s: float, width: int) -> Table:
    """Return the groups, with everything that is known of each for which there is room beside their whole names.

    There are columns of progress if any of them commits.

    :param lags: of groups by cluster and name, in records; without any there is no such column.
    :param width: in columns, into which the table is to fit.
    """
    several = len({known["cluster"] for known in shown}) > 1
    columns = ["group", *(("cluster",) if several else ()), "state", "for", "generation", "members"]
    columns += [*(("lag",) if lags else ()), *(_OF_PROGRESS if any(known.get("progress") for known in shown) else ())]
    columns += ["waits for", "findings"]
    rows = [_group_cells(known, worst, now_s) for known in shown]
    for row, known in zip(rows, shown, strict=True):
        lag = lags.get((known["cluster"], known["group"]))
        row["lag"] = Text("" if lag is None else f"{lag:,}")
    for left_out in _LEFT_OUT_OF_GROUPS:
        if _least_width(columns, rows) > width:
            columns = [column for column in columns if column != left_out]
    if _least_width(columns, rows) > width:
        for row in rows:
            row["state"].plain = row["state"].plain.removesuffix("Rebalance")
    table = _table(*columns)
    fits = _least_width(columns, rows) <= width
    for column in table.columns:
        column.no_wrap = column.header != "waits for" and (fits or column.header != "group")
    for row in rows:
        _add_row(table, row)
    return table


def _least_width(columns: list[str], rows: list[dict[str, Text]]) -> int:
    """Return the width of a table that cuts nothing but the names of those waited for."""
    widest = {column: max([cell_len(column), *(row[column].cell_len for row in rows)]) for column in columns}
    widest["waits for"] = min(widest["waits for"], _LEAST_WAITS)
    return sum(widest.values()) + _BETWEEN * (len(columns) - 1)


def overview_table(
    shown: list[Json], worst: Worst, hours: list[LastHour], now_s: float, *, widths: Mapping[str, int], chosen: int | None
) -> Table:
    """Return the groups in one line each; one of them is marked.

    :param hours: of each group that is shown, its rebalances in the last hour.
    :param widths: of the columns, as :func:`overview_widths` gives them.
    :param chosen: index of the marked group.
    """
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column, width in widths.items():
        table.add_column(
            "  group" if column == "group" else column,
            justify="right" if column in _RIGHT else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=max(1, width),
        )
    for number, (known, hour) in enumerate(zip(shown, hours, strict=True)):
        cells = _group_cells(known, worst, now_s)
        cells["last hour"] = Text(str(hour.rebalances) if hour.rebalances else "")
        cells["its cost"] = Text(member_seconds(hour.cost_member_seconds) if hour.rebalances else "")
        cells["group"] = Text.assemble("▸ " if number == chosen else "  ", cells["group"])
        cells["gen"] = cells["generation"]
        if "generation" not in widths:
            cells["state"].plain = cells["state"].plain.removesuffix("Rebalance")
            cells["for"].plain = " ".join(cells["for"].plain.split()[:2])
        _add_row(table, cells, "reverse" if number == chosen else "")
    return table


def overview_widths(groups: list[Json], worst: Worst, width: int) -> dict[str, int]:
    """Return the columns of a table of some width, and how wide each is for all groups, whichever of them are shown."""
    is_wide = width >= WIDE
    widths = {
        "group": 2 + max((cell_len(shown_name(known["group"])) for known in groups), default=0),
        "state": len(State.COMPLETING) if is_wide else len(State.COMPLETING.removesuffix("Rebalance")),
        "for": len("23 h 59 min") if is_wide else len("59 min"),
        ("generation" if is_wide else "gen"): max((len(str(known["generation"])) for known in groups), default=0),
        "members": max((len(str(len(known["members"]))) for known in groups), default=0),
        "waits for": 0,
        "findings": max((len(f"{count} {severity.value}") for severity, count in worst.values()), default=0),
    }
    if width >= WIDEST:
        widths |= {"last hour": 0, "its cost": len("99,999 member-s")}
    widths |= {column: max(least, len(column)) for column, least in widths.items()}
    for column in _LEFT_OUT:
        if _left_for_names(widths, width) < _LEAST_NAMES:
            widths.pop(column, None)
    left = _left_for_names(widths, width)
    if "waits for" not in widths:
        widths["group"] = min(widths["group"], left)
    else:
        widths["group"] = min(widths["group"], left * 2 // 3 if is_wide else left // 2)
        widths["waits for"] = min(left - widths["group"], _MOST_WAITS)
    return widths


def _left_for_names(widths: Mapping[str, int], width: int) -> int:
    """Return what the other columns leave for the group's name and those of members."""
    others = sum(least for column, least in widths.items() if column not in {"group", "waits for"})
    return width - others - _GAP * (len(widths) - 1)


def group_line(known: Json, now_s: float) -> Text:
    """Return the group's state and how long it has been in it, as a sentence."""
    since = f" for {duration(now_s - seconds(known['state_since']))}" if known["state_since"] else ""
    has_been = " has been " if since else " is "
    return Text.assemble(
        (shown_name(known["group"]), "bold"), has_been, (known["state"], STATE_COLOURS.get(known["state"], "")), since
    )


def group_facts(known: Json) -> list[tuple[str, str]]:
    """Return what is known of a group as a whole: title and text of each fact."""
    facts = (
        ("not known", known["learning"]),
        ("cluster", shown_name(known["cluster"])),
        ("coordinator", known["coordinator"]),
        (number_name(known.get("group_type", CLASSIC)), known["generation"]),
        ("leader", known["leader"]),
        ("protocol", known["protocol"]),
        ("rebalances", ", ".join(f"{count} by {cause}" for cause, count in known["rebalances"].items())),
        ("the last took", _last_phases(known)),
        *progress_facts(known),
        *hour_facts(known),
        ("waits for", _waits_for(known).plain if known["waits_for"] else ""),
        (
            "errors",
            ", ".join(f"{count} {error} to {api}" for api, counts in known["errors"].items() for error, count in counts.items()),
        ),
        (
            "published",
            f"{known['updated_at'][11:19]} UTC; heartbeats alone do not publish it again" if known.get("updated_at") else "",
        ),
    )
    return [(title, str(value)) for title, value in facts if value not in (None, "")]


def members_table(known: Json, width: int = WIDE) -> Table:
    """Return the members and what each is doing; the width decides whether their ids and their software have room.

    The last frames are those that were known when the group was published: heartbeats alone do not publish it again.
    """
    columns = ("member", "client", "address", "software", "state", "last frame")
    table = _table(*(columns if width >= WIDE else ("client", "address", "state", "last frame")))
    for member in known["members"]:
        waited_for = member["member_id"] in known["waits_for"]
        last_at = member.get("last_frame_at")
        cells = {
            "member": Text(member["member_id"], overflow="fold"),
            "client": Text(member_name(member), "bold", overflow="fold"),
            "address": Text(member["client_address"] or ""),
            "software": Text(member["client_software"] or "", overflow="fold"),
            "state": Text(member["state"], "yellow" if waited_for else ""),
            "last frame": Text(f"{member.get('last_frame') or 'a frame'} at {clock(seconds(last_at))}" if last_at else ""),
        }
        _add_row(table, cells)
    return table


def arrivals_table(known: Json) -> Table:
    """Return the clients that have not arrived, each with where it stands on its way to consuming."""
    table = _table("not consuming", "address", "stands at")
    for client in arrivals_of(known):
        cells = {
            "not consuming": Text(member_name(client), "bold", overflow="fold"),
            "address": Text(client["client_address"] or ""),
            "stands at": Text(client["text"], "yellow" if client["refused"] else "", overflow="fold"),
        }
        _add_row(table, cells)
    return table


def findings_table(shown: list[Json], now_s: float) -> Table:
    """Return the findings, each with its sentence."""
    table = _table("severity", "rule", "group", "for", "times", "finding")
    for finding in shown:
        open_ = is_open(finding)
        cells = {
            "severity": Text(finding["severity"], COLOURS[finding["severity"]] if open_ else "dim"),
            "rule": Text(finding["rule"]),
            "group": Text(shown_name(finding["group"] or ""), overflow="fold"),
            "for": Text(duration(now_s - seconds(finding["opened_at"])) if open_ else "resolved"),
            "times": Text(str(finding["count"])),
            "finding": Text(visible(finding["summary"]), "" if open_ else "dim", overflow="fold"),
        }
        _add_row(table, cells)
    return table


def clients_table(shown: list[Json]) -> Table:
    """Return clients with the API versions that they use, as :mod:`streaming.sinks.clients` finds them."""
    table = _table("client", "software", "addresses", "groups", "versions", "before brokers of 4.0")
    for one in shown:
        cells = {
            "client": Text(one["client_id"] or "", "bold", overflow="fold"),
            "software": Text(one["client_software"] or "not known", overflow="fold"),
            "addresses": Text(str(len(one["client_addresses"]))),
            "groups": Text(", ".join(map(shown_name, one["groups"])), overflow="fold"),
            "versions": Text(one["told"], overflow="fold"),
            "before brokers of 4.0": Text(one["before_4_0"] or "", "yellow", overflow="fold"),
        }
        _add_row(table, cells)
    return table


def clock(at_s: float) -> str:
    """Return the time of day in UTC, like every published time."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%S")


def rebalances_table(
    shown: Sequence[RebalanceFinished], width: int = WIDE, lags: Sequence[RebalanceLag | None] = (), *, of_one_group: bool = False
) -> Table:
    """Return rebalances that are over, as their records in the topic of events describe them.

    Their cost is in member-seconds: the time in which members did not consume, added up.

    :param lags: what each did to the lag, as far as it is known; without any there are no such columns.
    :param of_one_group: whether they are the newest of one group, so that its name and the date go without saying.
    """
    is_wide = width >= (WIDEST if any(lags) else WIDE)
    has_room = of_one_group or width >= _ROOM_FOR_HELD_UP
    columns: tuple[str, ...] = ("began", "cause", "by", *(("held up by",) if has_room else ()), "took", "member-s")
    if is_wide:
        columns = ("began", "generation", "cause", "by", "held up by", "took", "join", "sync", "moved", "member-s", "ended")
    moment = "%H:%M:%S" if of_one_group else "%Y-%m-%d %H:%M:%S" if is_wide else "%m-%d %H:%M:%S"
    if any(lags):
        kept = columns if width >= _WIDE_WITH_LAG else tuple(name for name in columns if name not in _LESS_THAN_LAG)
        columns = (*kept, "lag", "gone after")
    table = _table(columns[0], *(() if of_one_group else ("group",)), *columns[1:])
    for event, lag in zip_longest(shown, lags):
        cells = {
            "began": Text(datetime.fromtimestamp(event.began_s, UTC).strftime(moment)),
            "group": Text(shown_name(event.group), "bold", overflow="fold"),
            "generation": Text("" if event.to_generation is None else str(event.to_generation)),
            "cause": Text(event.cause),
            "by": Text(name_of(event) or "not known", overflow="fold"),
            "took": Text(milliseconds(event.took_ms)),
            "join": Text(_phase(event.join_ms)),
            "sync": Text(_phase(event.sync_ms)),
            "held up by": Text(held_up(event) if is_wide else held_up_by(event), overflow="fold"),
            "moved": Text("" if event.partitions_moved is None else str(event.partitions_moved)),
            "member-s": Text("" if event.cost_s is None else seconds_of(event.cost_s)),
            "ended": Text(event.ended),
            "lag": Text("" if lag is None else f"+{lag.built_up:,}"),
            "gone after": Text("" if lag is None or not lag.built_up else _gone(lag)),
        }
        _add_row(table, cells)
    return table


def _gone(lag: RebalanceLag) -> str:
    return "not yet" if lag.gone_after_s is None else duration(lag.gone_after_s)


def member_seconds(cost: float) -> str:
    """Return a cost as text."""
    return f"{seconds_of(cost)} member-s"


def _phase(took_ms: float | None) -> str:
    return "" if took_ms is None else milliseconds(took_ms)


def _group_cells(known: Json, worst: Worst, now_s: float) -> dict[str, Text]:
    severity = worst.get((known["cluster"], known["group"]))
    progress = known.get("progress") or {}
    return {
        "group": Text(shown_name(known["group"]), "bold", overflow="fold"),
        "cluster": Text(shown_name(known["cluster"])),
        "state": Text(known["state"], STATE_COLOURS.get(known["state"], "")),
        "for": Text(duration(now_s - seconds(known["state_since"])) if known["state_since"] else ""),
        "generation": Text("" if known["generation"] is None else str(known["generation"])),
        "members": Text("" if known["learning"] and not known["members"] else str(len(known["members"]))),
        "records/s": Text(rate(progress.get("records_per_s"))),
        "usually": Text(rate(progress.get("usual_records_per_s"))),
        "last commit": Text(f"{duration(now_s - seconds(progress['last_commit_at']))} ago" if progress else ""),
        "its last hour": Text(bars(progress.get("records", []))),
        "waits for": _waits_for(known),
        "findings": Text(f"{severity[1]} {severity[0].value}", COLOURS[severity[0].value]) if severity else Text(),
    }


def _waits_for(known: Json) -> Text:
    if known["learning"]:
        return Text(f"not known yet: {known['learning']}", "dim")
    return Text(awaited(known), overflow="fold")


def _last_phases(known: Json) -> str:
    phases = (("to join", known["last_join_ms"]), ("to sync", known["last_sync_ms"]))
    return ", ".join(f"{took_ms / 1000:.1f} s {what}" for what, took_ms in phases if took_ms is not None)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in _RIGHT else "left", no_wrap=column in _NEVER_WRAPPED)
    return table


def _add_row(table: Table, cells: Mapping[str, Text], style: str = "") -> None:
    table.add_row(*(cells[str(column.header).strip()] for column in table.columns), style=style)
