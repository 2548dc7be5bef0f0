"""Every metric that the endpoints serve: name, type, labels, meaning. A test compares this table with ``docs/metrics.md``.

Names follow the Prometheus conventions: one prefix, base units, ``_total`` for counters, ``_info`` for a constant 1 with labels. A state
is a set of series of which one is 1.

Each label multiplies the number of series. So members, clients, connections and offsets are never labels, and a group has few metrics.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Kind = Literal["gauge", "counter", "histogram", "summary"]


class Metric(NamedTuple):
    """One metric family."""

    name: str  #: as in a query; without the suffixes of histograms and summaries
    kind: Kind
    labels: tuple[str, ...]
    help: str


_GROUP: Final = ("cluster", "group")
_PARTITION: Final = ("partition",)

METRICS: Final[tuple[Metric, ...]] = (
    # --- each group, until it is deleted or dropped ------------------------------------------------------------------------
    Metric("rebalance_group_state", "gauge", (*_GROUP, "state"), "1 for the state that the group is in, 0 for each other state."),
    Metric(
        "rebalance_group_state_number",
        "gauge",
        _GROUP,
        "State of the group as a number: 0 Unknown, 1 PreparingRebalance, 2 CompletingRebalance, 3 Stable, 5 Empty, 7 Reconciling.",
    ),
    Metric("rebalance_group_state_since_timestamp_seconds", "gauge", _GROUP, "When the group entered its state, by capture time."),
    Metric(
        "rebalance_group_info",
        "gauge",
        (*_GROUP, "group_type", "protocol_type", "protocol", "coordinator"),
        "1, with the properties of the group that rarely change.",
    ),
    Metric("rebalance_group_learning", "gauge", _GROUP, "1 while the membership is not known yet; most rules do not fire then."),
    Metric("rebalance_group_members", "gauge", _GROUP, "Members, as far as known."),
    Metric(
        "rebalance_group_arriving_clients",
        "gauge",
        (*_GROUP, "stage"),
        "Clients that do not consume yet, by the stage at which they stand: looks (for the coordinator), reaches (the coordinator named), "
        "joins (asks to), holds (a member without partitions), begins (reads where to begin).",
    ),
    Metric("rebalance_group_generation", "gauge", _GROUP, "Newest generation or epoch; absent while it is not known."),
    Metric(
        "rebalance_group_reconciling_members",
        "gauge",
        (*_GROUP, "state"),
        "Members of a consumer, share or Streams group by how far they are: in_sync, not_told_of_the_newest_epoch, gives_partitions_up, "
        "left_for_a_while.",
    ),
    Metric(
        "rebalance_group_partitions_to_give_up",
        "gauge",
        _GROUP,
        "Partitions, or tasks, of such a group that members were told to give up and have not: nobody gets them before.",
    ),
    Metric(
        "rebalance_group_rebalances_total", "counter", (*_GROUP, "cause"), "Completed rebalances (generations handed out) by cause."
    ),
    Metric(
        "rebalance_group_cost_member_seconds_total",
        "counter",
        (*_GROUP, "cause"),
        "How long members consumed nothing because of rebalances, added up, by cause.",
    ),
    Metric(
        "rebalance_group_unheld_partition_seconds_total",
        "counter",
        (*_GROUP, "cause"),
        "How long nobody held partitions because of rebalances, added up, by cause.",
    ),
    Metric(
        "rebalance_group_join_duration_seconds",
        "summary",
        _GROUP,
        "Join phases: from the first frame that began one to the first JoinGroup answer of the new generation.",
    ),
    Metric(
        "rebalance_group_sync_duration_seconds",
        "summary",
        _GROUP,
        "Sync phases: from the first JoinGroup answer of a generation to its first assignment.",
    ),
    Metric(
        "rebalance_group_errors_total", "counter", (*_GROUP, "api", "error"), "Answers to the group's members that held an error."
    ),
    Metric(
        "rebalance_group_coordinator_changes_total",
        "counter",
        _GROUP,
        "Times that the group's coordinator moved, or loaded the group again.",
    ),
    Metric(
        "rebalance_group_open_findings",
        "gauge",
        (*_GROUP, "rule", "severity"),
        "Open findings about the group; absent where there is none.",
    ),
    # --- with [lag] ---------------------------------------------------------------------------------------------------------
    Metric("rebalance_group_lag_records", "gauge", _GROUP, "Records behind the committed offsets of all the group's partitions."),
    Metric(
        "rebalance_group_partition_lag_records",
        "gauge",
        (*_GROUP, "topic", "partition"),
        "Records behind the committed offset, for the first lag.max_partitions partitions of a group.",
    ),
    Metric(
        "rebalance_group_lag_partitions_left_out",
        "gauge",
        _GROUP,
        "Partitions without a series of their own, by lag.max_partitions.",
    ),
    Metric(
        "rebalance_monitor_lag_unknown_groups",
        "gauge",
        (),
        "Groups whose lag the watched brokers do not tell: no right to describe them or their topics, or no answer.",
    ),
    # --- each cluster ------------------------------------------------------------------------------------------------------
    Metric("rebalance_groups", "gauge", ("cluster", "state"), "Groups by state, those without series of their own included."),
    Metric(
        "rebalance_phase_duration_seconds",
        "histogram",
        ("cluster", "phase"),
        "How long the join and sync phases of rebalances took, all groups together.",
    ),
    Metric(
        "rebalance_finished_total",
        "counter",
        ("cluster", "cause"),
        "Rebalances that are over, those without a new generation included, by cause, all groups together.",
    ),
    Metric(
        "rebalance_cost_member_seconds_total",
        "counter",
        ("cluster", "cause"),
        "How long members consumed nothing because of rebalances, added up, by cause, all groups together.",
    ),
    Metric(
        "rebalance_unheld_partition_seconds_total",
        "counter",
        ("cluster", "cause"),
        "How long nobody held partitions because of rebalances, added up, by cause, all groups together.",
    ),
    Metric("rebalance_errors_total", "counter", ("cluster", "api", "error"), "Answers that held an error, all groups together."),
    Metric(
        "rebalance_member_evictions_total",
        "counter",
        ("cluster", "cause"),
        "Members removed from their group without having left, by cause, all groups together.",
    ),
    Metric(
        "rebalance_open_findings",
        "gauge",
        ("cluster", "rule", "severity"),
        "Open findings, those about the mirror as a whole included.",
    ),
    Metric(
        "rebalance_findings_total",
        "counter",
        ("cluster", "rule", "severity"),
        "Findings opened since the monitor started, by the severity at their opening.",
    ),
    # --- the monitor itself: status and lag ----------------------------------------------------------------------------------
    Metric("rebalance_monitor_build_info", "gauge", ("version",), "1, with the release of the monitor as label."),
    Metric(
        "rebalance_monitor_up", "gauge", (), "1 while the findings queries run and Kafka accepts the clients of the driver, else 0."
    ),
    Metric(
        "rebalance_monitor_client_accepted",
        "gauge",
        ("part",),
        "1 while Kafka accepts the credentials of a client of the driver, 0 while it refuses them: findings_writer, findings_reader, "
        "metrics_reader.",
    ),
    Metric(
        "rebalance_monitor_restarts_total",
        "counter",
        ("part",),
        "Restarts of a part of the monitor: its queries (findings, quality), the JVM, the reader for metrics.",
    ),
    Metric(
        "rebalance_monitor_last_progress_timestamp_seconds",
        "gauge",
        (),
        "When all findings queries had last reported; they report each second, with or without data.",
    ),
    Metric(
        "rebalance_monitor_batch_duration_seconds", "histogram", (), "Duration of micro-batches, sampled at most once a second."
    ),
    Metric("rebalance_monitor_lag_records", "gauge", _PARTITION, "Records of the mirror partition that are not read yet."),
    Metric(
        "rebalance_monitor_lag_seconds",
        "gauge",
        _PARTITION,
        "Age of the newest record that was read, if there are newer ones; 0 when all is read.",
    ),
    Metric(
        "rebalance_monitor_newest_record_timestamp_seconds", "gauge", _PARTITION, "Capture time of the newest record that was read."
    ),
    Metric(
        "rebalance_monitor_last_tick_timestamp_seconds",
        "gauge",
        _PARTITION,
        "Capture time of the newest tick that was read; the capture writes one to each partition each second.",
    ),
    Metric("rebalance_monitor_state_bytes", "gauge", _PARTITION, "Size of the model's snapshot."),
    Metric("rebalance_monitor_state_groups", "gauge", _PARTITION, "Groups that the model holds."),
    # --- the monitor itself: gaps in what it observes ------------------------------------------------------------------------
    Metric(
        "rebalance_monitor_frames_total",
        "counter",
        ("api", "version", "direction", "outcome"),
        "Mirrored frames by what became of them: replayed, unpaired (an answer whose request was not captured), not_modelled, "
        "truncated, undecodable.",
    ),
    Metric(
        "rebalance_monitor_records_total",
        "counter",
        ("kind",),
        "Records of the mirror that are no frames, cannot be read, or are repeated.",
    ),
    Metric(
        "rebalance_monitor_capture_gaps_total",
        "counter",
        ("where",),
        "Gaps: in the capture, in the mirror topic, or on a connection that cannot be followed.",
    ),
    Metric("rebalance_monitor_capture_gap_seconds_total", "counter", (), "Capture time over which the capture lost records."),
    Metric(
        "rebalance_monitor_lost_records_total",
        "counter",
        ("where",),
        "Records lost in the capture, or missing in the mirror topic.",
    ),
    Metric(
        "rebalance_monitor_model_failures_total",
        "counter",
        (),
        "Times that the model raised on a group, which is then learned again.",
    ),
    Metric("rebalance_monitor_findings_withdrawn_total", "counter", (), "Held findings that a late frame explained."),
    Metric(
        "rebalance_monitor_groups_left_out",
        "gauge",
        ("reason",),
        "Groups without series of their own: by max_groups, or by the patterns of allow_groups and deny_groups.",
    ),
    Metric(
        "rebalance_monitor_unreadable_results_total",
        "counter",
        (),
        "Records of the result topics that the endpoint could not read.",
    ),
)

TAP_METRICS: Final[tuple[Metric, ...]] = (
    Metric("rebalance_tap_build_info", "gauge", ("version",), "1, with the release of the tap as label."),
    Metric("rebalance_tap_open_connections", "gauge", (), "Connections of clients that are open."),
    Metric("rebalance_tap_connections_total", "counter", (), "Connections of clients since the start."),
    Metric(
        "rebalance_tap_unreachable_total", "counter", ("broker",), "Connections rejected because their broker could not be reached."
    ),
    Metric("rebalance_tap_refused_connections_total", "counter", (), "Connections of clients whose TLS handshake failed."),
    Metric(
        "rebalance_tap_unreadable_connections_total", "counter", (), "Connections passed on unread: TLS, or not Kafka's protocol."
    ),
    Metric(
        "rebalance_tap_ended_connections_total",
        "counter",
        (),
        "With --rewrite: connections that were ended, because they carried what cannot be rewritten.",
    ),
    Metric("rebalance_tap_frames_total", "counter", (), "Requests and responses of group coordination that were captured."),
    Metric("rebalance_tap_mirror_up", "gauge", (), "1 while the mirror topic takes records, 0 while they wait or are lost."),
    Metric("rebalance_tap_written_records_total", "counter", (), "Records that the mirror topic has confirmed, ticks included."),
    Metric("rebalance_tap_buffered_records", "gauge", (), "Records that wait for the mirror topic."),
    Metric("rebalance_tap_buffered_bytes", "gauge", (), "Size of the records that wait; --buffer-mib bounds it."),
    Metric("rebalance_tap_lost_records_total", "counter", (), "Records that were lost before they reached the mirror topic."),
)

NOTIFY_METRICS: Final[tuple[Metric, ...]] = (
    Metric("rebalance_notify_build_info", "gauge", ("version",), "1, with the release of the notifier as label."),
    Metric("rebalance_notify_kafka_up", "gauge", (), "1 while the topics can be read, else 0."),
    Metric("rebalance_notify_open_findings", "gauge", (), "Open findings, sent or not."),
    Metric("rebalance_notify_unreadable_records_total", "counter", (), "Records of the findings topic that are no findings."),
    Metric("rebalance_notify_sent_total", "counter", ("receiver",), "Notifications that the receiver accepted."),
    Metric("rebalance_notify_rejected_total", "counter", ("receiver",), "Notifications that the receiver rejected for good."),
    Metric(
        "rebalance_notify_failures",
        "gauge",
        ("receiver",),
        "Attempts that failed since the receiver last answered; 0 while it can be reached.",
    ),
)


def as_markdown(metrics: tuple[Metric, ...] = METRICS) -> str:
    """Return a table of ``docs/metrics.md``; ``python -m streaming.metrics.table`` prints both."""
    rows = [
        f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {text} |" for name, kind, labels, text in metrics
    ]
    return "\n".join(["| metric | type | labels | meaning |", "| --- | --- | --- | --- |", *rows])


if __name__ == "__main__":
    print(as_markdown(), as_markdown(TAP_METRICS), as_markdown(NOTIFY_METRICS), sep="\n\n")
