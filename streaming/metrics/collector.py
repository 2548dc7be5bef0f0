"""Makes Prometheus samples of the metrics state at each scrape.

A missing series looks like a group without problems. So totals cover all groups, also those without series of their own, and a metric
counts the groups that were left out.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.counters import BUCKETS_S, EVICTIONS
from coordinator_model.events import CAUSES, RECONCILING, State
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.epochs.reconciliation import CAUSES as EPOCH_CAUSES
from coordinator_model.rules import CATALOGUE
from streaming.config.metrics import Lag
from streaming.config.patterns import selects
from streaming.metrics.families import families_of
from streaming.metrics.metrics_state import Histogram
from streaming.metrics.table import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.core import Metric as Family

    from streaming.config.metrics import Metrics
    from streaming.metrics.metrics_state import Group, MetricsState, View

STATE_NUMBERS: Final[dict[str, int]] = {
    State.UNKNOWN.value: 0,
    State.PREPARING.value: 1,
    State.COMPLETING.value: 2,
    State.STABLE.value: 3,
    State.EMPTY.value: 5,
    RECONCILING: 7,
}
"""The numbers that Kafka and other exporters of consumer groups use. 4 is Dead: a deleted group has no series."""

# Counter of the model → label.
_RECORD_KINDS: Final = {
    "tick": "tick",
    "open": "open",
    "close": "close",
    "unreadable records": "unreadable",
    "repeated records": "repeated",
}
_LOST: Final = {"records lost by the capture": "capture", "missing records": "mirror"}

_COSTS: Final = ("rebalance_finished_total", "rebalance_cost_member_seconds_total", "rebalance_unheld_partition_seconds_total")


class Collector:
    """Registered with prometheus_client, which calls :meth:`collect` in the thread of a scrape.

    :param max_partitions: of a group, whose lag has a series of its own.
    :param now_s: the wall clock.
    """

    def __init__(
        self,
        metrics_state: MetricsState,
        settings: Metrics,
        *,
        max_partitions: int = Lag().max_partitions,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._metrics_state = metrics_state
        self._max_partitions = max_partitions
        self._settings = settings
        self._now_s = now_s

    def describe(self) -> Iterable[Family]:
        return families_of(METRICS).values()

    def collect(self) -> Iterator[Family]:
        view = self._metrics_state.look()
        scrape = _Scrape(view, self._settings, self._max_partitions, self._now_s())
        scrape.monitor()
        if view.complete:
            scrape.partitions()
            scrape.clusters()
            scrape.groups()
        yield from scrape.families.values()


class Selected(NamedTuple):
    """Groups, from all to those that have series of their own."""

    living: list[Group]
    wanted: list[Group]  #: whom the patterns select
    shown: list[Group]


def selected(view: View, settings: Metrics) -> Selected:
    """The groups that the patterns select, up to ``max_groups``, first by name: a restart selects the same ones."""
    living = [group for group in view.living_groups() if group.state != State.DEAD]
    wanted = [group for group in living if selects(group.name, settings.allow_groups, settings.deny_groups)]
    shown = heapq.nsmallest(settings.max_groups, wanted, key=lambda group: (group.cluster, group.name))
    return Selected(living, wanted, shown)


class _Scrape:
    """Builds the metric families of one scrape."""

    def __init__(self, view: View, settings: Metrics, max_partitions: int, now_s: float) -> None:
        self.families = families_of(METRICS)
        self._max_partitions = max_partitions
        self._view = view
        self._settings = settings
        self._now_s = now_s

    def _add(self, name: str, value: float, *labels: str) -> None:
        self.families[name].add_metric(labels, value)

    def _add_histogram(self, name: str, histogram: Histogram, *labels: str) -> None:
        bounds = [*(repr(bound) for bound in BUCKETS_S), "+Inf"]
        buckets = list(zip(bounds, accumulate(histogram.counts), strict=True))
        self.families[name].add_metric(labels, buckets=buckets, sum_value=histogram.sum_s)

    # --- the monitor itself -----------------------------------------------------------------------------------------------

    def monitor(self) -> None:
        """Add what the driver itself observes, and the lag."""
        view = self._view
        self._add("rebalance_monitor_build_info", 1, version("rebalance-monitor"))
        self._add("rebalance_monitor_up", view.running)
        for client, accepted in sorted(view.accepted.items()):
            self._add("rebalance_monitor_client_accepted", accepted, client)
        for part in ("findings", "quality", "jvm"):
            self._add("rebalance_monitor_restarts_total", view.restarts[part], part)
        self._add("rebalance_monitor_restarts_total", view.failures, "metrics")
        if view.progress_at_s is not None:
            self._add("rebalance_monitor_last_progress_timestamp_seconds", view.progress_at_s)
        self._add_histogram("rebalance_monitor_batch_duration_seconds", view.batches)
        self._add("rebalance_monitor_unreadable_results_total", view.unreadable)
        for partition in sorted(view.ends):
            self._lag(partition)

    def _lag(self, partition: int) -> None:
        behind = self._view.behind(partition)
        if behind is None or not self._view.complete:
            return
        self._add("rebalance_monitor_lag_records", behind, str(partition))
        newest_ms = self._view.status.get(partition, {}).get("newest_record_ms")
        if behind == 0:
            self._add("rebalance_monitor_lag_seconds", 0, str(partition))
        elif newest_ms is not None:
            self._add("rebalance_monitor_lag_seconds", max(0.0, self._now_s - newest_ms / 1_000), str(partition))

    def partitions(self) -> None:
        """Add the models' counters: some by partition, most as a sum over all partitions."""
        counters: Counter[str] = Counter()
        gaps: Counter[str] = Counter()
        frames: Counter[tuple[str, str, str, str]] = Counter()
        gap_ms = 0
        for partition, status in sorted(self._view.status.items()):
            label = str(partition)
            self._add("rebalance_monitor_newest_record_timestamp_seconds", status["newest_record_ms"] / 1_000, label)
            if status.get("last_tick_ms") is not None:
                self._add("rebalance_monitor_last_tick_timestamp_seconds", status["last_tick_ms"] / 1_000, label)
            self._add("rebalance_monitor_state_bytes", status["snapshot_bytes"], label)
            self._add("rebalance_monitor_state_groups", status.get("groups", 0), label)
            counters.update(status["counters"])
            gaps.update(status.get("gaps", {}))
            gap_ms += status.get("gap_ms", 0)
            for api, number, direction, outcome, count in status.get("frames", ()):
                frames[api, "unknown" if number < 0 else str(number), direction, outcome] += count
        for labels, count in sorted(frames.items()):
            self._add("rebalance_monitor_frames_total", count, *labels)
        for counted, kind in _RECORD_KINDS.items():
            self._add("rebalance_monitor_records_total", counters[counted], kind)
        for where in ("capture", "mirror", "connection"):
            self._add("rebalance_monitor_capture_gaps_total", gaps[where], where)
        self._add("rebalance_monitor_capture_gap_seconds_total", gap_ms / 1_000)
        for counted, where in _LOST.items():
            self._add("rebalance_monitor_lost_records_total", counters[counted], where)
        self._add("rebalance_monitor_model_failures_total", counters["groups that the model stumbled over"])
        self._add("rebalance_monitor_findings_withdrawn_total", counters["findings withdrawn"])

    # --- clusters ---------------------------------------------------------------------------------------------------------

    def clusters(self) -> None:
        """Add the totals per cluster; they cover all groups."""
        view = self._view
        errors: Counter[tuple[str, str, str]] = Counter()
        evictions: Counter[tuple[str, str]] = Counter()
        costs: dict[tuple[str, str], list[float]] = {}
        phases: dict[tuple[str, str], Histogram] = {}
        for status in view.status.values():
            for cluster, cause, count in status.get("evictions", ()):
                evictions[cluster, cause] += count
            for *labels, count in status.get("errors", ()):
                cluster, api, error = labels
                errors[cluster, api, error] += count
            for cluster, cause, rebalances, member_ms, unheld_ms in status.get("costs", ()):
                known = costs.setdefault((cluster, cause), [0.0, 0.0, 0.0])
                costs[cluster, cause] = [known[0] + rebalances, known[1] + member_ms / 1_000, known[2] + unheld_ms / 1_000]
            for cluster, phase, total_ms, counts in status.get("phases", ()):
                phases.setdefault((cluster, phase), Histogram()).add(counts, total_ms / 1_000)
        for answer, count in sorted(errors.items()):
            self._add("rebalance_errors_total", count, *answer)
        for where, histogram in sorted(phases.items()):
            self._add_histogram("rebalance_phase_duration_seconds", histogram, *where)
        states = Counter((group.cluster, group.state) for group in view.living_groups())
        clusters = {cluster for cluster, _ in [*states, *phases, *evictions, *costs]}
        with_epochs = {group.cluster for group in view.living_groups() if group.kind != CLASSIC}
        for cluster in sorted(clusters):
            for state in (*(state.value for state in State), RECONCILING):
                self._add("rebalance_groups", states[cluster, state], cluster, state)
            for cause in EVICTIONS:
                self._add("rebalance_member_evictions_total", evictions[cluster, cause], cluster, cause)
            usual = {*CAUSES, *(EPOCH_CAUSES if cluster in with_epochs else ())}
            for cause in sorted(usual | {cause for where, cause in costs if where == cluster}):
                for name, value in zip(_COSTS, costs.get((cluster, cause), (0, 0, 0)), strict=True):
                    self._add(name, value, cluster, _label(cause))
        self._findings(clusters)

    def _findings(self, clusters: set[str]) -> None:
        """Add each rule of the catalogue, also with 0: ``increase()`` does not see a counter whose first sample is 1."""
        open_ = Counter((finding.cluster, finding.rule, finding.severity) for finding in self._view.open.values())
        usual = {(cluster, rule.id, rule.severity.value) for cluster in clusters for rule in CATALOGUE.values()}
        for where in sorted(usual | set(open_)):
            self._add("rebalance_open_findings", open_[where], *where)
        for where in sorted(usual | set(self._view.opened)):
            self._add("rebalance_findings_total", self._view.opened[where], *where)

    # --- groups -----------------------------------------------------------------------------------------------------------

    def groups(self) -> None:
        """Add the groups that are shown."""
        living, wanted, shown = selected(self._view, self._settings)
        self._add("rebalance_monitor_groups_left_out", len(wanted) - len(shown), "max_groups")
        self._add("rebalance_monitor_groups_left_out", len(living) - len(wanted), "pattern")
        for group in shown:
            self._group(group)
            self._lags(group)
        if self._view.without_lag is not None:
            self._add("rebalance_monitor_lag_unknown_groups", self._view.without_lag)
        names = {(group.cluster, group.name) for group in shown}
        open_ = Counter(self._view.open.values())
        for finding, count in sorted(open_.items()):
            if (finding.cluster, finding.group) in names:
                self._add("rebalance_group_open_findings", count, *finding)

    def _state(self, group: Group) -> None:
        where = (group.cluster, group.name)
        for state, number in STATE_NUMBERS.items():
            self._add("rebalance_group_state", group.state == state, *where, state)
            if group.state == state:
                self._add("rebalance_group_state_number", number, *where)
        if group.state_since_us is not None:
            self._add("rebalance_group_state_since_timestamp_seconds", group.state_since_us / 1_000_000, *where)
        self._add("rebalance_group_members", group.members, *where)

    def _lags(self, group: Group) -> None:
        where = (group.cluster, group.name)
        lags = self._view.lags.get(where)
        if lags is None:
            return
        self._add("rebalance_group_lag_records", sum(lags.values()), *where)
        shown = heapq.nsmallest(self._max_partitions, lags.items())
        for (topic, partition), behind in shown:
            self._add("rebalance_group_partition_lag_records", behind, *where, topic, str(partition))
        self._add("rebalance_group_lag_partitions_left_out", len(lags) - len(shown), *where)

    def _group(self, group: Group) -> None:
        where = (group.cluster, group.name)
        self._state(group)
        self._add("rebalance_group_info", 1, *where, group.kind, group.protocol_type, group.protocol, group.coordinator)
        self._add("rebalance_group_learning", group.learning, *where)
        if group.generation is not None:
            self._add("rebalance_group_generation", group.generation, *where)
        for state, members in group.member_states:
            self._add("rebalance_group_reconciling_members", members, *where, _label(state))
        if group.member_states:
            self._add("rebalance_group_partitions_to_give_up", group.to_give_up, *where)
        for stage, clients in group.arrivals:
            self._add("rebalance_group_arriving_clients", clients, *where, stage)
        for cause, count in group.causes:
            self._add("rebalance_group_rebalances_total", count, *where, _label(cause))
        for cause, member_s, unheld_s in group.costs:
            self._add("rebalance_group_cost_member_seconds_total", member_s, *where, _label(cause))
            self._add("rebalance_group_unheld_partition_seconds_total", unheld_s, *where, _label(cause))
        for name, (count, sum_s) in (("join", group.joins), ("sync", group.syncs)):
            self.families[f"rebalance_group_{name}_duration_seconds"].add_metric(where, count_value=count, sum_value=sum_s)
        for api, error, count in group.errors:
            self._add("rebalance_group_errors_total", count, *where, api, error)
        self._add("rebalance_group_coordinator_changes_total", group.incarnation - 1, *where)


def _label(cause: str) -> str:
    """Return a cause, or the state of a member, as the value of a label."""
    return cause.replace(" ", "_")
