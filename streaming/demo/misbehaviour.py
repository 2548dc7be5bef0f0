"""A child process of the demo: one group member on the raw client that breaks the protocol in one way.

Run as ``python -m streaming.demo.misbehaviour JSON`` with the fields of :class:`Misbehaviour`. The member joins correctly, and misbehaves
at the next rebalance, which another member triggers. It reports events to its parent as JSON lines on standard output.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, Literal

from coordinator_model.wire import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from coordinator_model.wire.constants import ILLEGAL_GENERATION, NONE, REBALANCE_IN_PROGRESS
from streaming.demo.consumer import stop_on_sigterm, tell
from streaming.demo.raw_client import Connection, RawClientError, RawMember, find_coordinator, share

Manner = Literal["zombie", "never-rejoins", "never-syncs", "never-gives-up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaviour:
    """The options of a misbehaving member's process."""

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
        """Return the command line of the process."""
        return [sys.executable, "-m", "streaming.demo.misbehaviour", json.dumps(asdict(self))]


class _Run:
    """One member and the steps that the manners share."""

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
        """Join correctly, as leader or as follower; ``sync=False`` omits the SyncGroup."""
        joined = self.member.enter()
        if sync:
            self.member.sync(share(self.options.topic, self.options.partitions, joined.members) if joined.members else None)
        leads = joined.leader == self.member.member_id
        tell("joined", member_id=self.member.member_id, generation=joined.generation, leads=leads, local_port=self.local_port)

    def until_rebalance(self) -> None:
        """Heartbeat until the coordinator answers REBALANCE_IN_PROGRESS, or until the process must stop.

        :raises RawClientError: when the coordinator answers with another error.
        """
        while not self.pause():
            error = self.member.heartbeat()
            if error == REBALANCE_IN_PROGRESS:
                tell("told-to-rejoin")
                return
            if error != NONE:
                raise RawClientError(f"heartbeat refused with error {error} before the first rebalance")

    def until_dropped(self, answer: int) -> None:
        """Heartbeat until the coordinator answers with another error than this one, or until the process must stop."""
        while not self.pause():
            error = self.member.heartbeat()
            if error != answer:
                tell("dropped", error=error)
                return

    def pause(self) -> bool:
        """Wait for one heartbeat interval; return True if the process must stop."""
        return self._stop.wait(self.options.heartbeat_interval_ms / 1000)

    @property
    def local_port(self) -> int:
        return self.member.connection.local_port


def _zombie(run: _Run) -> None:
    """Rejoin, but continue to heartbeat and commit with the old generation, whatever the answers are."""
    run.join()
    run.until_rebalance()
    old = run.member.generation
    run.join()
    zombie, offset = run.member.as_of(old), 0
    while not run.pause():
        offset += 1
        codes = {"heartbeat": zombie.heartbeat(), "commit": zombie.commit(0, offset)}
        event = "refused" if set(codes.values()) == {ILLEGAL_GENERATION} else "accepted" if NONE in codes.values() else "answered"
        tell(event, generation=old, **codes)
    run.member.leave()


def _never_rejoins(run: _Run) -> None:
    """Heartbeat instead of rejoining, like a client whose poll loop hangs, until the coordinator removes the member."""
    run.join()
    run.until_rebalance()
    run.until_dropped(REBALANCE_IN_PROGRESS)


def _never_syncs(run: _Run) -> None:
    """Become leader, heartbeat, and never send the assignment, until the coordinator removes the member."""
    run.join()
    run.until_rebalance()
    run.join(sync=False)
    run.until_dropped(NONE)


def _never_gives_up(run: _Run) -> None:
    """Join by the newer protocol, and keep partitions that are to be given up, until the coordinator removes the member."""
    options, member_id = run.options, base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    answer = _beat(run, member_id, 0, rebalance_timeout_ms=options.rebalance_timeout_ms, topic=options.topic)
    if answer.error_code != NONE:
        raise RawClientError(f"join refused with error {answer.error_code}")
    tell("joined", member_id=member_id, generation=answer.member_epoch, leads=False, local_port=run.local_port)
    held, is_asked = _partitions(answer) or 0, False
    while not run.pause():
        answer = _beat(run, member_id, answer.member_epoch)
        if answer.error_code != NONE:
            tell("dropped", error=answer.error_code)
            return
        assigned = _partitions(answer)
        if assigned is not None and assigned < held and not is_asked:
            is_asked = True
            tell("told-to-give-up", partitions=held - assigned)
        held = max(held, assigned or 0)


def _beat(
    run: _Run, member_id: str, epoch: int, *, rebalance_timeout_ms: int = -1, topic: str | None = None
) -> ConsumerGroupHeartbeatResponse:
    """Send a heartbeat of the newer protocol. Without a topic it says that nothing has changed, so it never acknowledges."""
    body = ConsumerGroupHeartbeatRequest(
        group_id=run.options.group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=rebalance_timeout_ms,
        subscribed_topic_names=None if topic is None else (topic,),
        topic_partitions=None if topic is None else (),
    )
    return run.member.connection.ask(body, ConsumerGroupHeartbeatResponse, api_version=1)


def _partitions(answer: ConsumerGroupHeartbeatResponse) -> int | None:
    """Return how many partitions an answer assigns, None if it leaves the assignment as it is."""
    if answer.assignment is None:
        return None
    return sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)


MANNERS: Final[Mapping[Manner, Callable[[_Run], None]]] = {
    "zombie": _zombie,
    "never-rejoins": _never_rejoins,
    "never-syncs": _never_syncs,
    "never-gives-up": _never_gives_up,
}


def main() -> None:
    options = Misbehaviour(**json.loads(sys.argv[1]))
    stop = stop_on_sigterm()
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
