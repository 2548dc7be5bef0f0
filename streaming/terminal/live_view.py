"""What the live view of ``top`` shows and what each key does to it: groups, one group, or the help. Without a terminal, without Kafka.

Groups change their order while somebody chooses one. So the choice is a group and not a place in the list; only as long as no key was
pressed it is the first group, whichever that is.
"""

from __future__ import annotations

from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from streaming.published.records import Json, trouble, worst_findings
from streaming.published.wire_text import shown_name
from streaming.terminal.tables import LastHour

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coordinator_model.events import RebalanceFinished
    from streaming.published.page_state import Key, PageState
    from streaming.terminal.tables import Worst

_HOUR_S: Final = 3600.0
_LONGEST_FILTER: Final = 60


class View(Enum):
    """What the live view shows."""

    GROUPS = "groups"
    GROUP = "group"
    HELP = "help"


class Remark(NamedTuple):
    """A line above the groups."""

    text: str
    is_bad: bool = False  #: what is shown may be untrue


class Shown(Protocol):
    """Where what is shown comes from."""

    @property
    def title(self) -> str: ...

    @property
    def place(self) -> str: ...

    def remarks(self, state: PageState, now_s: float) -> Iterator[Remark]:
        """What is to be said above the groups."""


class LiveView:
    """The choices of who looks, over a state that somebody else fills.

    :param source: of the state.
    :ivar rows: how many groups, or lines of a group, there is room for; set by the code that draws.
    :ivar lines: how many lines a group has in all; set by the code that draws.
    """

    def __init__(self, state: PageState, source: Shown) -> None:
        self.state = state
        self.source = source
        self.view = View.GROUPS
        self.chosen: Key | None = None  #: None: the first
        self.filter = ""
        self.is_typing = False
        self.scrolled = 0  #: lines of the group's view
        self.is_over = False
        self.rows = 1
        self.lines = 0
        self._before_help = View.GROUPS
        self._first = 0  # the group that the list begins with

    # --- what is shown: the caller holds the state's lock ------------------------------------------------------------

    def worst(self) -> Worst:
        """Return the worst open finding of each group that is known."""
        found = worst_findings(self.state.findings.values())
        return {key: worst for key, worst in found.items() if key in self.state.groups}

    def groups(self, worst: Worst) -> list[Json]:
        """Return the groups that pass the filter, those in trouble first."""
        groups = [past.content for past in self.state.groups.values() if past.content is not None]
        wanted = self.filter.casefold()
        return sorted((known for known in groups if _passes(known, wanted)), key=lambda known: trouble(known, worst))

    def window(self, groups: list[Json]) -> tuple[int, int]:
        """Return where the list begins, and the index of the chosen group, which is in it."""
        number = self._number(groups)
        self._first = max(0, min(self._first, len(groups) - self.rows, number), number - self.rows + 1)
        return self._first, number

    def group(self) -> Json | None:
        """Return the group that was entered; None once the monitor has dropped it."""
        past = self.state.groups.get(self.chosen) if self.chosen is not None else None
        return past.content if past is not None else None

    def rebalances(self, known: Json) -> Iterator[RebalanceFinished]:
        """Return the rebalances of a group that are over, the newest first."""
        return self.state.groups[known["cluster"], known["group"]].rebalances

    def last_hour(self, known: Json, now_s: float) -> LastHour:
        """Return the rebalances of a group in the last hour."""
        over = list(takewhile(lambda event: event.at_s > now_s - _HOUR_S, self.rebalances(known)))
        return LastHour(len(over), sum(event.cost_s or 0.0 for event in over))

    # --- what keys do ------------------------------------------------------------------------------------------------

    def press(self, key: str) -> None:
        """Do what a key does."""
        with self.state.lock:
            if self.is_typing:
                self._type(key)
            elif key == "q":
                self.is_over = True
            elif self.view is View.HELP:
                self.view = self._before_help
            elif key == "?":
                self._before_help, self.view = self.view, View.HELP
            elif self.view is View.GROUP:
                self._press_in_group(key)
            else:
                self._press_in_groups(key)

    def _press_in_groups(self, key: str) -> None:
        groups = self.groups(self.worst())
        if key == "/":
            self.is_typing = True
        elif key == "escape":
            self.filter, self.chosen = "", None
        elif groups and key == "enter":
            self._choose(groups, self._number(groups))
            self.view, self.scrolled = View.GROUP, 0
        elif groups and (to := self._moved(key, self._number(groups), len(groups))) is not None:
            self._choose(groups, to)

    def _press_in_group(self, key: str) -> None:
        if key in {"escape", "enter", "backspace"}:
            self.view = View.GROUPS
        elif (to := self._moved(key, self.scrolled, self.lines - self.rows + 1)) is not None:
            self.scrolled = to

    def _type(self, key: str) -> None:
        if key in {"enter", "up", "down"}:
            self.is_typing = False
        elif key == "escape":
            self.is_typing, self.filter = False, ""
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif key == "clear":
            self.filter = ""
        elif len(key) == 1 and len(self.filter) < _LONGEST_FILTER:
            self.filter += key

    def _moved(self, key: str, place: int, count: int) -> int | None:
        """Return the place to which a key leads, among so many; None for a key that leads nowhere."""
        steps = {
            "up": -1,
            "k": -1,
            "down": 1,
            "j": 1,
            "page up": -self.rows,
            "page down": self.rows,
            " ": self.rows,
            "home": -place,
            "end": count,
        }
        return max(0, min(place + steps[key], count - 1)) if key in steps else None

    def _choose(self, groups: list[Json], number: int) -> None:
        self.chosen = (groups[number]["cluster"], groups[number]["group"])

    def _number(self, groups: list[Json]) -> int:
        return next((number for number, known in enumerate(groups) if (known["cluster"], known["group"]) == self.chosen), 0)


def _passes(known: Json, wanted: str) -> bool:
    return any(wanted in text.casefold() for text in (shown_name(known["group"]), shown_name(known["cluster"]), known["state"]))
