"""What page and terminal get of a watch: a thread that fills their state, and the lines above the groups."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from coordinator_model.wording import counted
from streaming.background import Background
from streaming.published.taking import Taker, TopicNames
from streaming.terminal.live_view import Remark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streaming.engine.handover import LocalFeed
    from streaming.engine.results import Outputs
    from streaming.kafka.record import Record
    from streaming.published.page_state import PageState
    from streaming.watch.said import Said
    from streaming.watch.self_check import SelfCheck
    from streaming.watch.watch import Input

    Failed = Callable[[BaseException], None]

_WAIT_S: Final = 0.25


class FeedThread(Background):
    """Gives what a feed brings to somebody, in a thread; a context manager, whose end takes what is left.

    :param failed: called with the error that ends it before.
    """

    def __init__(self, feed: LocalFeed, take: Callable[[list[Record]], None], name: str, failed: Failed) -> None:
        super().__init__(name)
        self._feed = feed
        self._take = take
        self._failed = failed

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._take(self._feed.poll(_WAIT_S))
            self._take(self._feed.poll(0.0))
        except Exception as error:  # whatever it is, what is shown would stand still in silence
            self._failed(error)


def into_state(feed: LocalFeed, state: PageState, outputs: Outputs, failed: Failed) -> FeedThread:
    """Return what fills the state of page and terminal."""
    taker = Taker(state, TopicNames(outputs.groups, outputs.findings, outputs.status, outputs.events, lag=""))

    def take(records: list[Record]) -> None:
        for record in records:
            taker.take(record)
        if not state.complete:
            state.read_to_the_end()

    return FeedThread(feed, take, "shown", failed)


class WatchShown:
    """A watch, as the source of what the terminal shows."""

    title = "rebalance-monitor watch"

    def __init__(self, source: Input, check: SelfCheck, said: Said, *, web: str | None) -> None:
        self.place = source.title
        self._source = source
        self._check = check
        self._said = said
        self._web = web
        self._looked_s = 0.0

    def remarks(self, state: PageState, now_s: float) -> Iterator[Remark]:
        """What is read, how fast, and what the operator should know."""
        if time.monotonic() - self._looked_s >= 1.0:
            self._looked_s = time.monotonic()
            self._check.look()
        tally, rates = self._source.tally(), self._check.rates
        parts = [self._source.title]
        if tally.packets:
            parts.append(f"{rates.packets:,.0f} packets/s")
        parts += [f"{rates.frames:,.0f} frames/s", f"{rates.cores:.2f} cores"]
        if tally.late_s:
            parts.append(f"{tally.late_s:,.0f} s late")
        if tally.dropped:
            parts.append(f"{counted(tally.dropped, 'packet')} dropped")
        if self._web:
            parts.append(self._web)
        yield Remark(" · ".join(parts))
        learning = sum(past.content["learning"] is not None for past in state.groups.values() if past.content is not None)
        if learning:
            yield Remark(f"{counted(learning, 'group')} {'is' if learning == 1 else 'are'} learned at the next rebalance")
        if self._check.nothing:
            yield Remark(self._check.nothing, is_bad=True)
        for sentence in self._said.recent(now_s):
            if sentence != self._check.nothing:
                yield Remark(sentence)
