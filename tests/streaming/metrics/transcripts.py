"""A golden transcript through the model and onto a metrics_state, as the result topics would bring it: no broker, no Spark."""

from __future__ import annotations

import json
import subprocess

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from coordinator_model.coordinator import Coordinator
from streaming.config.metrics import Metrics
from streaming.metrics.collector import Collector
from streaming.metrics.metrics_state import FINDINGS, GROUPS, STATUS, MetricsState
from tests.golden import transcript

TOPIC = "mirror"


def encoded(value):
    return None if value is None else json.dumps(value).encode()


class Watched:
    """A model that is fed a transcript, and the state that hears of it."""

    def __init__(self, name, *, partition=0, metrics_state=None):
        self.model = Coordinator(topic=TOPIC, partition=partition, settings=transcript.SETTINGS)
        self.metrics_state = metrics_state or MetricsState(TOPIC)
        self.records = transcript.read(name)

    def read(self, records=None):
        for record in self.records if records is None else records:
            for finding in self.model.receive(record):
                self.metrics_state.apply(FINDINGS, {finding.id: encoded(finding.as_json())})
        return self

    def told(self, *, complete=True, **status):
        for group in self.model.changed_groups():
            self.metrics_state.apply(GROUPS, {group.key: encoded(group.as_json())})
        self.metrics_state.apply(
            STATUS,
            {
                f"{TOPIC}/{self.model.partition}": encoded(
                    {
                        "topic": TOPIC,
                        "partition": self.model.partition,
                        "next_offset": self.model.next_offset,
                        "newest_record_ms": self.model.now_us // 1000,
                        "snapshot_bytes": len(self.model.snapshot()),
                        **self.model.figures(),
                        **status,
                    }
                )
            },
        )
        if complete:
            self.metrics_state.read_to_the_end()
        return self


def text(metrics_state, now_s=2e9, *, max_partitions=100, **settings):
    registry = CollectorRegistry()
    registry.register(Collector(metrics_state, Metrics(**settings), max_partitions=max_partitions, now_s=lambda: now_s))
    return generate_latest(registry).decode()


def samples(metrics_state, now_s=2e9, **settings):
    """Sample name and labels → value."""
    families = text_string_to_metric_families(text(metrics_state, now_s, **settings))
    return {(sample.name, frozenset(sample.labels.items())): sample.value for family in families for sample in family.samples}


def value(found, name, **labels):
    return found.get((name, frozenset(labels.items())))


def select(found, name):
    """Labels → value of one metric."""
    return {labels: value for (sample, labels), value in found.items() if sample == name}


def complaints(exposition):
    """What ``promtool check metrics`` has to say."""
    ended = subprocess.run(["promtool", "check", "metrics"], input=exposition, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr
