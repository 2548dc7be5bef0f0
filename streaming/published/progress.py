"""How fast a group commits, as terminal and page show it. What is not known is empty."""

from __future__ import annotations

from typing import Final

from coordinator_model.wording import counted
from streaming.published.records import Json, duration

_BARS: Final = "▁▂▃▄▅▆▇█"


def progress_facts(known: Json) -> list[tuple[str, str]]:
    """Return how fast a published group goes on, and its last commit, as titles and texts."""
    shown = known.get("progress")
    if shown is None:
        return []
    now, usually = rate(shown["records_per_s"]), rate(shown["usual_records_per_s"])
    pace = f"{now} records/s at {shown['until'][11:16]} UTC" + (f", usually {usually}" if usually else "")
    return [*([("progress", pace)] if now else []), ("last commit", f"{shown['last_commit_at'][:19].replace('T', ' ')} UTC")]


def hour_facts(known: Json) -> list[tuple[str, str]]:
    """Return the last hour of a published group as a line of bars, with title and scale."""
    shown = known.get("progress")
    if shown is None or not shown["records"]:
        return []
    return [("its last hour", f"{bars(shown['records'])} {scale(known)}")]


def rate(per_s: float | None) -> str:
    """Return records per second: with a decimal where it counts."""
    if per_s is None:
        return ""
    return f"{per_s:,.0f}" if per_s >= 10 or not per_s else f"{per_s:,.2g}"


def bars(records: list[int]) -> str:
    """Return numbers of records as a line of bars, one letter each."""
    most = max(records, default=0) or 1
    return "".join(_BARS[-(-one * (len(_BARS) - 1) // most)] for one in records)


def scale(known: Json) -> str:
    """Return what the highest bar of a group stands for."""
    shown = known["progress"]
    return f"at most {counted(max(shown['records']), 'record')} in {duration(shown['step_s'])}"
