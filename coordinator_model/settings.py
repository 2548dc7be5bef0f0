"""What the model has to be told, because it never crosses the wire."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Broker configuration and the monitor's own patience. All times carry their unit."""

    group_initial_rebalance_delay_ms: int = 3_000  #: broker: group.initial.rebalance.delay.ms
    write_timeout_ms: int = 5_000  #: broker: offsets.commit.timeout.ms, the longest a log append may take
    load_window_ms: int = 10_000  #: around a COORDINATOR_LOAD_IN_PROGRESS a heartbeat's success proves nothing
    clock_skew_ms: int = 0  #: how far the clocks of several capturers may differ
    reorder_window_ms: int = 500  #: how long a finding that rests on facts from other frames waits for a late frame to explain it
    zombie_span_ms: int = 10_000  #: refusals must span this long (and two heartbeat intervals) before they make a zombie
    zombie_refusals: int = 3
    standstill_ms: int = 20_000  #: a group whose members wait for partitions for this long stands still
    crash_loop_returns: int = 3  #: times that a client comes back without having left, and is in a crash loop
    crash_loop_ms: int = 600_000  #: within this
    quiet_ms: int = 60_000  #: a breach that does not recur for this long is over
    unbounded_join_ms: int = 600_000  #: stands in for a rebalance timeout too large to mean anything
    broadcast_assignors: tuple[str, ...] = ()  #: protocol names whose assignor gives one partition to several members on purpose
    silence_ms: int = 10_000  #: a partition without a single record for this long is a dead mirror: it should tick each second
    forget_group_ms: int = 86_400_000  #: a group without frames and without open findings leaves the state

    @staticmethod
    def slack_us(timeout_ms: int) -> int:
        """What a timer may be late by before its lateness means something: 2 s and a tenth of it, in microseconds."""
        return 2_000_000 + timeout_ms * 100
