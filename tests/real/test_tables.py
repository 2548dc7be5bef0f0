"""The recipe in ``docs/tables.md``: run as it stands there, against a broker, and its queries."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from streaming.spark import jvm
from streaming.spark.session import connector_jars
from tests.streaming.web import history

pytestmark = [pytest.mark.real, pytest.mark.long]

DOCUMENT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
RECIPE, VIEW = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
QUERIES = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)
PRINTED = "answers: "
TOPIC = "events-for-the-table"  # the broker is shared with jobs, which write to the topic of the document


def produce(broker, events):
    producer = Producer({"bootstrap.servers": broker.internal})
    for event in events:
        producer.produce(TOPIC, json.dumps(event).encode())
    producer.flush()


def run(broker, folder):
    """Run the recipe and its queries; give the number of rows of the table, and the rows of each query."""
    ask = f"print({PRINTED!r} + json.dumps([spark.sql(one).toPandas().astype(str).values.tolist() for one in {QUERIES!r}]))"
    count = "print('rows: ' + str(spark.read.parquet('/data/rebalance-events').count()))"
    script = f"import json\n{RECIPE}\n{VIEW}\n{count}\n{ask}\n"
    for told, here in (
        ("kafka:9092", broker.internal),
        ('"subscribe": "rebalance-events"', f'"subscribe": "{TOPIC}"'),
        ("/data/", f"{folder}/"),
    ):
        assert told in script
        script = script.replace(told, here)
    (folder / "recipe.py").write_text(script)
    jars = jvm.listed(connector_jars(), os.pathsep)
    arguments = f"--driver-class-path {jars} --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 pyspark-shell"
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--master local[2] {arguments}", "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, str(folder / "recipe.py")], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    said = dict(re.findall(r"^(rows|answers): (.*)$", done.stdout, re.MULTILINE))
    return int(said["rows"]), json.loads(said["answers"])


def test_the_recipe_adds_what_is_new_and_its_queries_answer(broker, tmp_path):
    broker.create_topic(TOPIC, 2)
    events = [record for record in history.orders() if "kind" in record]
    end = 1 + next(number for number, event in enumerate(events) if event["kind"] == "rebalance_finished")
    produce(broker, [*events[:end], events[end - 1]])  # one is written twice
    rows, _ = run(broker, tmp_path)
    assert rows == end + 1
    produce(broker, events[end:])
    rows, (costs, waits, longest, lost, hours) = run(broker, tmp_path)
    assert rows == len(events) + 1, "each run adds what is new"
    assert {(cause, count) for _, _, cause, count, _ in costs} == {("member joined", "1"), ("session ended", "1")}
    assert waits[0][:4] == ["orders", "orders-2", "not rejoined", "2"]
    assert len(longest) == 2
    assert float(longest[0][4]) > float(longest[1][4])
    assert {(member, kind, error) for _, member, _, kind, error, _ in lost} == {
        ("orders-1", "connection_closed", "None"),
        ("orders-1", "member_fenced", "UNKNOWN_MEMBER_ID"),
    }
    assert sum(int(count) for _, count, _ in hours) == 2
