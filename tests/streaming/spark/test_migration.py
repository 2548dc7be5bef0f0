"""What is read out of Spark's state, in the layouts of all releases. That Spark goes on with it is in ``tests/real/test_upgrade.py``."""

from __future__ import annotations

import base64
import hashlib

import pytest

from coordinator_model.snapshots import SnapshotError
from streaming.spark import migration
from streaming.spark.worker import packed

BLOB = b"a model's snapshot"
DIGEST = hashlib.sha256(BLOB).hexdigest()[:32]
ROWS = {
    "format 1": {"stamp": b"s", "snapshot": bytearray(BLOB)},
    "format 2": {"stamp": "s", "snapshot": base64.b64encode(BLOB).decode()},
    "format 3": {"partition": 3, "sequence": 7, "digest": DIGEST},
    "format 4, rows since": {"partition": 3, "sequence": 9, "digest": "of a batch", "base": 7},
    "format 5": {"snapshot": bytearray(BLOB)},
    "format 6": {"snapshots": bytearray(packed({3: BLOB}))},
}


@pytest.fixture
def folder(tmp_path):
    files = tmp_path / "models" / "3"
    files.mkdir(parents=True)
    (files / f"7-{DIGEST}.snapshot").write_bytes(BLOB)
    (files / f"7-{'0' * 32}.snapshot").write_bytes(b"half of")
    (files / "9-0.batch").write_bytes(b"rows")
    return tmp_path


@pytest.mark.parametrize("layout", ROWS)
def test_a_snapshot_is_found_in_whatever_layout_the_state_was_written(folder, layout):
    assert list(migration._blobs(ROWS[layout], folder)) == [BLOB]


def test_a_snapshot_whose_file_is_gone_or_damaged_is_an_error_that_names_it(folder):
    (folder / "models" / "3" / f"7-{DIGEST}.snapshot").write_bytes(BLOB[:-1])
    with pytest.raises(SnapshotError, match=f"no whole snapshot 7 in {folder / 'models' / '3'}"):
        migration._blobs(ROWS["format 3"], folder)
