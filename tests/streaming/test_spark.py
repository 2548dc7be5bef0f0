"""What is read out of Spark's state, in the layouts of all releases."""

from __future__ import annotations

import base64

import pytest

from streaming import model_files, spark


@pytest.mark.parametrize("layout", ["bytes", "text", "file"])
def test_a_snapshot_is_found_in_whatever_layout_the_state_was_written(tmp_path, layout):
    blob = b"a model's snapshot"
    row = {
        "bytes": {"stamp": b"s", "snapshot": bytearray(blob)},
        "text": {"stamp": "s", "snapshot": base64.b64encode(blob).decode()},
        "file": model_files.write(tmp_path, 3, 17, blob)._asdict(),
    }[layout]
    assert spark._blob(row, tmp_path) == blob
