"""Settings of the model: what the frames do not contain."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Broker configuration and the monitor's own thresholds."""

    group_initial_rebalance_delay_ms: int = 3_000  #: broker: group.initial.rebalance.delay.ms
    group_consumer_session_timeout_ms: int = 0  #: broker: group.consumer.session.timeout.ms; 0 if it is not known
    group_share_session_timeout_ms: int = 0  #: broker: group.share.session.timeout.ms; likewise
    group_streams_session_timeout_ms: int = 0  #: broker: group.streams.session.timeout.ms; likewise
    cluster_session_timeouts_ms: dict[str, int] = field(default_factory=dict)  #: the same by ``CLUSTER/TYPE``, where one differs
    write_timeout_ms: int = 5_000  #: broker: offsets.commit.timeout.ms, the longest a log append may take
    load_window_ms: int = 10_000  #: this close to a COORDINATOR_LOAD_IN_PROGRESS a Heartbeat success proves nothing
    clock_skew_ms: int = 0  #: largest difference between the clocks of several capturers
    reorder_window_ms: int = 500  #: how long a frame rule's finding that is not certain waits for a late frame to explain it
    zombie_span_ms: int = 10_000  #: refusals must span this long (and two heartbeat intervals) to make a zombie
    zombie_refusals: int = 3
    standstill_ms: int = 20_000  #: a group stands still when its members wait this long for partitions
    usual_ms: int = 60_000  #: a number of members that lasts for this long is a usual one
    missing_ms: int = 30_000  #: a member that died, or is not polled, is missing when nobody took its place for this long
    left_ms: int = 60_000  #: likewise one that left by itself
    crash_loop_returns: int = 3  #: a client that comes back this often without a LeaveGroup is in a crash loop
    crash_loop_ms: int = 600_000  #: within this
    quiet_ms: int = 60_000  #: a breach is over when it does not recur for this long
    unbounded_join_ms: int = 600_000  #: stands in for a rebalance timeout too large to mean anything
    metadata_max_age_ms: int = 300_000  #: clients: the largest metadata.max.age.ms; after twice that, leaders know new partitions
    broadcast_assignors: tuple[str, ...] = ()  #: protocols whose assignor gives one partition to several members on purpose
    silence_ms: int = 10_000  #: without any record for this long a partition's mirror is dead: a tick is due each second
    forget_group_ms: int = 86_400_000  #: a group without frames for this long is dropped

    def session_timeout_ms(self, cluster: str, kind: str) -> int:
        """Return the brokers' session timeout for groups of a type whose members have epochs, 0 if it is not known."""
        own: int = getattr(self, f"group_{kind}_session_timeout_ms")
        return self.cluster_session_timeouts_ms.get(f"{cluster}/{kind}", own)

    @property
    def metadata_age_us(self) -> int:
        """How old a leader's metadata is at most, in microseconds, with room for a refresh that fails."""
        return 2_000 * self.metadata_max_age_ms

    @property
    def clock_skew_us(self) -> int:
        """The largest difference between the clocks of several capturers, in microseconds."""
        return 1_000 * self.clock_skew_ms

    @property
    def late_us(self) -> int:
        """By how much a frame may come later than a newer one of another connection, in microseconds."""
        return 1_000 * (self.reorder_window_ms + self.clock_skew_ms)

    def bounded_ms(self, timeout_ms: int) -> int:
        """Return a rebalance timeout, or what stands in for one that is too large to mean anything."""
        return min(timeout_ms, self.unbounded_join_ms)

    @staticmethod
    def slack_us(timeout_ms: int) -> int:
        """Return by how much a timer may be late before that counts, in microseconds: 2 s and a tenth of the timeout."""
        return 2_000_000 + timeout_ms * 100
