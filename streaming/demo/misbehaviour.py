"""A child process of the demo: one group member on the raw client that breaks the protocol in one way.

Run as ``python -m streaming.demo.misbehaviour JSON`` with the fields of :class:`Misbehaviour`. It first joins like anybody else, and
misbehaves at the next rebalance, which somebody else brings about. What it did and was told goes to its parent as JSON lines.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, Literal

from streaming.demo.consumer import tell
from streaming.demo.raw_client import (
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    Connection,
    RawClientError,
    RawMember,
    find_coordinator,
    share,
)

Manner = Literal["zombie", "never-rejoins", "never-syncs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaviour:
    """What a misbehaving member is told; times in milliseconds."""

    manner: Manner
    bootstrap: str
    topic: str
    partitions: int
    group: str
    client_id: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int

    def command(self) -> list[str]:
        """The command line of its process."""
        return [sys.executable, "-m", "streaming.demo.misbehaviour", json.dumps(asdict(self))]


class _Run:
    """One life: joins, waits for a rebalance, misbehaves until told to stop."""

    def __init__(self, options: Misbehaviour, connection: Connection, stop: threading.Event) -> None:
        self.options = options
        self.member = RawMember(
            connection=connection,
            group=options.group,
            topic=options.topic,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
        )
        self._stop = stop

    def join(self, *, sync: bool = True) -> None:
        """A join phase as it should be, whether this member leads or follows; ``sync=False`` leaves its second half out."""
        joined = self.member.enter()
        if sync:
            self.member.sync(share(self.options.topic, self.options.partitions, joined.members) if joined.members else None)
        leads = joined.leader == self.member.member_id
        tell("joined", member_id=self.member.member_id, generation=joined.generation, leads=leads, local_port=self._port())

    def until_told_to_rejoin(self) -> None:
        while not self.pause():
            error = self.member.heartbeat()
            if error == REBALANCE_IN_PROGRESS:
                tell("told-to-rejoin")
                return
            if error != NONE:
                raise RawClientError(f"heartbeat refused with error {error} before there was a rebalance")

    def pause(self) -> bool:
        """Wait for the next heartbeat's turn; True when it is time to end."""
        return self._stop.wait(self.options.heartbeat_interval_ms / 1000)

    def _port(self) -> int:
        return self.member.connection.local_port


def _zombie(run: _Run) -> None:
    """Rejoins, and yet goes on heartbeating and committing with its old generation whatever it is told."""
    run.join()
    run.until_told_to_rejoin()
    old = run.member.generation
    run.join()
    zombie, offset = run.member.as_of(old), 0
    while not run.pause():
        offset += 1
        told = {"heartbeat": zombie.heartbeat(), "commit": zombie.commit(0, offset)}
        event = "refused" if set(told.values()) == {ILLEGAL_GENERATION} else "accepted" if NONE in told.values() else "answered"
        tell(event, generation=old, **told)
    run.member.leave()


def _never_rejoins(run: _Run) -> None:
    """Heartbeats on although told to rejoin, as a client does whose poll loop hangs, until the coordinator drops it."""
    run.join()
    run.until_told_to_rejoin()
    while not run.pause():
        error = run.member.heartbeat()
        if error != REBALANCE_IN_PROGRESS:
            tell("dropped", error=error)
            return


def _never_syncs(run: _Run) -> None:
    """Leads the new generation, heartbeats, and never hands out the assignment, until the coordinator drops it."""
    run.join()
    run.until_told_to_rejoin()
    run.join(sync=False)
    while not run.pause():
        error = run.member.heartbeat()
        if error != NONE:
            tell("dropped", error=error)
            return


MANNERS: Final[Mapping[Manner, Callable[[_Run], None]]] = {
    "zombie": _zombie,
    "never-rejoins": _never_rejoins,
    "never-syncs": _never_syncs,
}


def main() -> None:
    options = Misbehaviour(**json.loads(sys.argv[1]))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    tell("started")
    try:
        coordinator = find_coordinator(options.bootstrap, options.group, client_id=options.client_id)
        with Connection(coordinator, client_id=options.client_id) as connection:
            connection.introduce()
            MANNERS[options.manner](_Run(options, connection, stop))
    except RawClientError as error:
        if not stop.is_set():
            raise SystemExit(str(error)) from None
    tell("stopped")


if __name__ == "__main__":
    main()
