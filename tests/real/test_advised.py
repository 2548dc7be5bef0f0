"""When a prediction of the laboratory holds, and where the table goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator_model.advice import Advice, Saving
from tests.real.lab import advised


def row(least_s: float, saves_s: float, most_s: float, measured_s: float) -> advised.Row:
    savings = Saving(saves_s), Saving(least_s), Saving(most_s), Saving(99.0)
    said = Advice("c", "g", "kind", "setting", *savings, ("id",), "assumes", "costs")
    return advised.Row("life", "kind", Saving(99.0), said, Saving(measured_s))


@pytest.mark.parametrize(
    ("least_s", "saves_s", "most_s", "measured_s", "holds"),
    [
        (10.0, 10.0, 10.0, 8.1, True),
        (10.0, 10.0, 10.0, 7.9, False),  # more than a quarter less, and no range
        (10.0, 10.0, 10.0, 14.0, False),
        (4.0, 10.0, 10.0, 5.0, True),
        (4.0, 10.0, 10.0, 3.0, False),
        (4.0, 10.0, 10.0, -1.0, False),
        (4.0, 10.0, 10.0, 14.0, False),
        (4.0, 10.0, 20.0, 16.0, True),
    ],
)
def test_a_prediction_holds_within_a_quarter_or_in_its_range(
    least_s: float, saves_s: float, most_s: float, measured_s: float, *, holds: bool
) -> None:
    assert row(least_s, saves_s, most_s, measured_s).holds is holds


def test_the_table_replaces_what_is_between_the_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "laboratory.md"
    page.write_text(f"before\n{advised.BEGIN}\nold\n{advised.END}\nafter\n")
    monkeypatch.setattr(advised, "PAGE", page)
    advised.save(advised.table([row(4.0, 10.0, 20.0, 5.0)]))
    text = page.read_text()
    assert text.startswith(f"before\n{advised.BEGIN}\n| life |")
    assert text.endswith(f"\n{advised.END}\nafter\n")
    assert "old" not in text
    assert "| life | kind | 99.0 | 10.0 (4.0 to 20.0) | 5.0 | +100% |" in text
