"""``rebalance-monitor notify`` sends rebalances as traces: from a real topic to a real receiver of OTLP, which may be away."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from coordinator_model.events import RebalanceFinished
from streaming.demo.broker import HOST, free_port
from streaming.traces.spans import spans_of
from tests.golden import transcript
from tests.real.harness import wait_for

pytestmark = pytest.mark.real


class Receiver:
    """Takes OTLP over HTTP, and keeps the traces."""

    def __init__(self, port=0):
        self.requests = 0
        self.traces = []  #: trace ids, one for each root that came
        self.spans = {}
        self.headers = {}
        self.answer = (200, ExportTraceServiceResponse().SerializeToString())
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests += 1
                receiver.headers = dict(self.headers)
                status, answer = receiver.answer if self.path == "/otlp/v1/traces" else (404, b"not here")
                if status == 200:
                    receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer((HOST, port), Handler)
        self.port = self._server.server_port
        self.url = f"http://{HOST}:{self.port}/otlp"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, request):
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans[span.trace_id, span.span_id] = span
                    if not span.parent_span_id:
                        self.traces.append(span.trace_id.hex())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Notify:
    """A running notifier."""

    def __init__(self, config, *options):
        command = [sys.executable, "-m", "streaming.cli", "notify", "--config", str(config), *options]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.said = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stderr:
            self.said.append(line.strip())

    def says(self, words):
        wait_for(lambda: any(words in line for line in self.said) or self._process.poll() is not None, f"it says {words}")
        assert any(words in line for line in self.said), self.said

    def stop(self, number=signal.SIGTERM):
        self._process.send_signal(number)
        status = self._process.wait(60)
        self._reader.join()
        return status

    def end(self):
        self._process.kill()
        self._process.wait()

    def ends(self):
        status = self._process.wait(240)
        self._reader.join()
        return status


@pytest.fixture
def start():
    """Starts notifiers, and ends those that are left."""
    started = []

    def notify(config, *options):
        started.append(Notify(config, *options))
        return started[-1]

    yield notify
    for one in started:
        one.end()


@pytest.fixture
def topics(broker, request):
    """Names of the topics, which are this test's own."""
    names = {
        name: f"{request.node.name[:60]}-{name}".replace("[", "-") for name in ("findings", "status", "notifications", "events")
    }
    broker.create_topic(names["events"], 2, config={})
    return names


@pytest.fixture
def publish(broker, topics):
    producer = Producer({"bootstrap.servers": broker.internal})

    def send(name):
        """Publish the events of a transcript; gives the ids of the traces of its rebalances."""
        ids = []
        for event in transcript.replayed(name).events:
            producer.produce(topics["events"], json.dumps(event.as_json()), key=event.key, partition=len(name) % 2)
            if isinstance(event, RebalanceFinished):
                ids.append(f"{spans_of(event)[0].context.trace_id:032x}")
        assert producer.flush(10) == 0
        assert len(ids) > 1
        return ids

    send.raw = lambda value: (producer.produce(topics["events"], value, partition=0), producer.flush(10))
    return send


def config(broker, topics, folder, url, more=""):
    names = "\n".join(f'{key} = "{topic}"' for key, topic in topics.items())
    file = folder / "monitor.toml"
    file.write_text(
        f'[kafka]\nbootstrap_servers = "{broker.internal}"\n[topics]\n{names}\n'
        f'[notify]\nretry_wait_s = 0.05\nretry_wait_max_s = 0.2\n[traces]\nendpoint = "{url}"\n{more}'
    )
    return file


def test_each_rebalance_is_sent_once_and_a_start_goes_on_where_the_last_one_stopped(broker, topics, publish, start, tmp_path):
    with Receiver() as receiver:
        file = config(broker, topics, tmp_path, receiver.url, '[traces.headers]\n"X-Scope-OrgID" = "kafka"\n')
        first = publish("lawful-eager-4.3.1")
        notify = start(file)
        wait_for(lambda: len(receiver.traces) == len(first), "what is there is sent")
        assert receiver.traces == first
        assert receiver.headers["X-Scope-OrgID"] == "kafka"
        assert receiver.headers["Content-Type"] == "application/x-protobuf"
        roots = [span for span in receiver.spans.values() if not span.parent_span_id]
        below = {(span.trace_id, span.parent_span_id) for span in receiver.spans.values() if span.parent_span_id}
        assert below
        assert below <= {(root.trace_id, root.span_id) for root in roots}
        second = publish("lawful-cooperative-4.3.1")
        wait_for(lambda: len(receiver.traces) == len(first + second), "what comes is sent")
        assert notify.stop() == 0
        assert f"stopped; sent to traces {len(first + second)}" in notify.said[-1]
        third = publish("lawful-static-4.3.1")
        again = start(file)
        wait_for(lambda: len(receiver.traces) >= len(first + second + third), "what came meanwhile is sent")
        assert again.stop() == 0
        assert receiver.traces == [*first, *second, *third]


def test_while_the_receiver_is_away_everything_waits_in_the_topic_and_that_is_said_once(broker, topics, publish, start, tmp_path):
    port = free_port()
    file = config(broker, topics, tmp_path, f"http://{HOST}:{port}/otlp")
    first = publish("lawful-eager-4.3.1")
    notify = start(file)
    notify.says("traces: delivery failed")
    assert notify.stop(signal.SIGKILL) == -9
    notify = start(file)
    notify.says(
        f"traces: delivery failed: {HOST}:{port}: connection refused; {len(first)} rebalances and what follows wait in the topic"
    )
    second = publish("lawful-cooperative-4.3.1")
    with Receiver(port) as receiver:
        notify.says("traces: reachable again after")
        wait_for(lambda: len(receiver.traces) == len(first + second), "everything is sent")
        receiver.answer = (503, b"overloaded")
        third = publish("lawful-static-4.3.1")
        notify.says("answered 503: overloaded")
        receiver.answer = (200, b"")
        wait_for(lambda: len(receiver.traces) == len(first + second + third), "everything is sent")
        assert receiver.traces == [*first, *second, *third]
        assert notify.stop() == 0
    assert len([line for line in notify.said if "delivery failed" in line]) == 2


def test_what_the_receiver_rejects_and_what_is_no_event_is_left_out_and_said(broker, topics, publish, start, tmp_path):
    with Receiver() as receiver:
        file = config(broker, topics, tmp_path, receiver.url)
        publish.raw(b"of another program")
        rejected = publish("lawful-eager-4.3.1")
        receiver.answer = (400, b"no such tenant")
        notify = start(file)
        notify.says("is no event; it is left out")
        notify.says(f"traces: rejected 1 rebalance (no retry): {HOST}:{receiver.port} answered 400: no such tenant")
        wait_for(lambda: receiver.requests == 1 + len(rejected), "each is sent alone")
        assert receiver.traces == []
        partial = ExportTraceServiceResponse()
        partial.partial_success.rejected_spans = 3
        partial.partial_success.error_message = "too old"
        receiver.answer = (200, partial.SerializeToString())
        ids = publish("lawful-cooperative-4.3.1")
        notify.says("did not take 3 spans: too old")
        wait_for(lambda: receiver.traces == ids, "the others are sent")
        assert notify.stop() == 0


def test_once_sends_what_is_there_and_tells_by_its_status_whether_all_was_accepted(broker, topics, publish, start, tmp_path):
    with Receiver() as receiver:
        file = config(broker, topics, tmp_path, receiver.url)
        ids = publish("lawful-eager-4.3.1")
        receiver.answer = (503, b"")
        assert start(file, "--once").ends() == 1
        receiver.answer = (200, b"")
        assert start(file, "--once", "--dry-run").ends() == 0
        assert receiver.traces == []
        assert start(file, "--once").ends() == 0
        assert receiver.traces == ids


def test_what_retention_deleted_before_it_was_sent_is_counted_and_said(broker, topics, publish, start, tmp_path):
    with Receiver() as receiver:
        file = config(broker, topics, tmp_path, receiver.url)
        first = publish("lawful-eager-4.3.1")
        assert start(file, "--once").ends() == 0
        publish("lawful-eager-3.9.2")
        admin = AdminClient({"bootstrap.servers": broker.internal})
        place = TopicPartition(topics["events"], len("lawful-eager-4.3.1") % 2, -1)
        deleted = admin.delete_records([place])[place].result(20).low_watermark
        assert deleted > 0
        notify = start(file)
        notify.says("deleted unsent")
        third = publish("lawful-eager-4.1.2")
        wait_for(lambda: len(receiver.traces) == len(first + third), "it goes on")
        assert receiver.traces == [*first, *third]
        assert notify.stop() == 0
