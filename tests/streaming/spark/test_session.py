"""What is read out of Spark's state, in the layouts of all releases."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path

import pytest

from streaming.spark import model_store
from streaming.spark import session as spark


@pytest.mark.parametrize("layout", ["bytes", "text", "file", "file of format 3"])
def test_a_snapshot_is_found_in_whatever_layout_the_state_was_written(tmp_path, layout):
    blob = b"a model's snapshot"
    place = model_store.write_snapshot(tmp_path, model_store.nowhere(3), blob)
    row = {
        "bytes": {"stamp": b"s", "snapshot": bytearray(blob)},
        "text": {"stamp": "s", "snapshot": base64.b64encode(blob).decode()},
        "file": model_store.write_batch(tmp_path, place, [], 4)._asdict(),
        "file of format 3": {name: value for name, value in place._asdict().items() if name != "base"},
    }[layout]
    assert spark._blob(row, tmp_path) == blob


def test_folders_with_blanks_and_quotes_in_their_names_are_whole_options():
    options = spark._jvm_options("-Xss2m -XX:+UseSerialGC", Path("/home/alice's work/log"), Path("/my checkpoint/scratch"))
    assert shlex.split(options) == [
        f"-Dlog4j2.configurationFile={spark.LOG_SETTINGS.as_uri()}",
        "-Drebalance.log=/home/alice's work/log",
        "-Djava.io.tmpdir=/my checkpoint/scratch",
        "-Xss2m",
        "-XX:+UseSerialGC",
    ]
