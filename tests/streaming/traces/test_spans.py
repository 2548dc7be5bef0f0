"""A rebalance as a trace: what its spans say, and that the same rebalance is always the same trace."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from coordinator_model.events import event_of
from streaming.traces.spans import encoded, spans_of
from tests.golden import transcript
from tests.streaming.web import history


def finished(name):
    """The rebalances of a transcript, as published."""
    events = [event.as_json() for event in transcript.replayed(name).events]
    return [event for event in events if event["kind"] == "rebalance_finished"]


def sent(event):
    """The spans of an event as a receiver reads them, by name."""
    (resource,) = ExportTraceServiceRequest.FromString(encoded(spans_of(event_of(event)))).resource_spans
    assert {one.key: one.value.string_value for one in resource.resource.attributes}["service.name"] == "rebalance-monitor"
    (scope,) = resource.scope_spans
    return list(scope.spans)


def values(span):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_rebalance_is_the_root_its_phases_and_members_are_below_it():
    (event,) = [line for line in history.orders() if line.get("kind") == "rebalance_finished" and line["cause"] == "member joined"]
    root, join, sync, *members = sent(event)
    began_ns = round((history.NOW_S - 600) * 1e9)
    assert (root.name, root.start_time_unix_nano, root.end_time_unix_nano) == ("rebalance", began_ns, began_ns + 28_000_000_000)
    assert root.parent_span_id == b""
    assert {span.trace_id for span in (join, sync, *members)} == {root.trace_id}
    assert {span.parent_span_id for span in (join, sync, *members)} == {root.span_id}
    assert (join.name, join.start_time_unix_nano, join.end_time_unix_nano) == ("join phase", began_ns, began_ns + 26_000_000_000)
    assert (sync.name, sync.start_time_unix_nano, sync.end_time_unix_nano) == (
        "sync phase",
        began_ns + 26_000_000_000,
        began_ns + 28_000_000_000,
    )
    said = values(root)
    assert said["messaging.consumer.group.name"] == "orders"
    assert said["rebalance.cause"] == "member joined"
    assert said["rebalance.cost.member_seconds"] == event["cost_member_seconds"]
    assert said["rebalance.unheld.partition_seconds"] == pytest.approx(sum(event["unheld"]["orders"].values()), abs=1e-6)
    assert (said["rebalance.from_generation"], said["rebalance.to_generation"]) == (4, 5)
    assert [span.name for span in members] == ["member orders-0", "member orders-1", "member orders-2"]
    assert [values(span)["rebalance.member.joined_last"] for span in members] == [False, False, True]
    assert {"told to rejoin", "sent its JoinGroup", "got its assignment"} <= {event.name for event in members[2].events}
    assert all(began_ns <= event.time_unix_nano <= root.end_time_unix_nano for span in members for event in span.events)


@pytest.mark.parametrize("name", ["lawful-eager-4.3.1", "violation-never-rejoins-4.3.1", "lawful-cooperative-3.9.2"])
def test_a_repeat_is_the_same_trace_and_another_rebalance_another(name):
    events = finished(name)
    assert len(events) > 1
    assert [encoded(spans_of(event_of(event))) for event in events] == [
        encoded(spans_of(event_of(event))) for event in finished(name)
    ]
    ids = [(span.trace_id, span.span_id) for event in events for span in sent(event)]
    assert len(set(ids)) == len(ids)
    assert len({trace for trace, _ in ids}) == len(events)
    for event in events:
        root, *below = sent(event)
        for span in below:
            assert root.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano
            assert span.start_time_unix_nano <= span.end_time_unix_nano


def test_the_ids_are_made_of_cluster_group_incarnation_and_generation():
    event = finished("lawful-eager-4.3.1")[0]
    traces = {
        sent(event | other)[0].trace_id
        for other in ({}, {"cluster": "x"}, {"group": "x"}, {"incarnation": 99}, {"generation": 99}, {"id": "rebalance_finished-x"})
    }
    assert len(traces) == 6


def test_a_member_that_was_not_served_is_an_error():
    event = finished("lawful-eager-4.3.1")[0]
    event["members"][0]["served_at"] = None
    member = sent(event)[3]
    assert member.status.code == member.status.STATUS_CODE_ERROR
    assert member.end_time_unix_nano == sent(event)[0].end_time_unix_nano


def test_hostile_names_are_attributes_without_what_is_no_character():
    event = next(line for line in history.hostile() if line.get("kind") == "rebalance_finished")
    event["members"][0]["client_id"] = "a\ud800b" + "c" * 10_000
    root, *below = sent(event)
    assert values(root)["messaging.consumer.group.name"] == history.HOSTILE
    clients = [values(span)["messaging.client.id"] for span in below if "messaging.client.id" in values(span)]
    assert clients[0].startswith("a\N{REPLACEMENT CHARACTER}b")
    assert max(map(len, clients)) == 1_000
    assert "\u202e" not in "".join(clients)


@pytest.mark.parametrize("broken", [{"members": None}, {"at": 7}, {"unheld": 5}, {"members": [1]}, {"join_ms": "x"}])
def test_what_is_no_such_event_is_refused_when_it_is_read(broken):
    event = finished("lawful-eager-4.3.1")[0] | broken
    with pytest.raises(ValueError, match="not an event"):
        event_of(event)
