"""What is kept of a loss for the next capture."""

from __future__ import annotations

import pytest

from coordinator_model.wire.record import Loss
from streaming.mirror.losses import LossFile, added, gather

LOSS = Loss(records=3, bytes=60, from_us=1_000, to_us=2_000)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "tap.loss"


def test_a_loss_is_read_back_and_gone_once_it_is_told(path):
    LossFile(path, "mirror").write(LOSS)
    again = LossFile(path, "mirror")
    assert again.read() == LOSS
    again.write(None)
    assert not path.exists()
    assert LossFile(path, "mirror").read() is None


def test_losses_add_up(path):
    assert added(None, LOSS) == LOSS
    assert added(LOSS, Loss(1, 20, 500, 1_500)) == Loss(4, 80, 500, 2_000)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"topic": "mirror"}', '{"topic": "mirror", "records": "many"}', "\x00"])
def test_a_file_that_is_none_is_said_and_left_alone(path, caplog, content):
    path.parent.mkdir()
    path.write_text(content)
    file = LossFile(path, "mirror")
    assert file.read() is None
    file.write(LOSS)
    assert path.read_text() == content
    (said,) = caplog.messages
    assert said == (
        f"the loss file {path} does not hold what a capture lost: what is lost at the end of this capture is not told by the next; "
        "move it away or name another one"
    )


def test_what_was_lost_for_another_topic_is_not_taken_for_this_ones(path, caplog):
    LossFile(path, "other").write(LOSS)
    file = LossFile(path, "mirror")
    assert file.read() is None
    file.write(None)
    assert LossFile(path, "other").read() == LOSS
    assert "holds what was lost for topic other" in caplog.text


def test_a_place_that_cannot_be_written_is_said_and_stops_nothing(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    file = LossFile(tmp_path / "file" / "tap.loss", "mirror")
    file.write(LOSS)
    file.write(None)
    assert len(caplog.records) == 1
    assert "cannot be" in caplog.text


def test_losses_of_several_are_gathered_in_one_file(path, tmp_path):
    files = [tmp_path / f"worker-{number}" for number in (1, 2, 3)]
    LossFile(path, "mirror").write(LOSS)
    LossFile(files[0], "mirror").write(Loss(1, 20, 500, 1_500))
    LossFile(files[2], "mirror").write(Loss(1, 20, 600, 1_500))
    gather(path, files, "mirror")
    assert LossFile(path, "mirror").read() == Loss(5, 100, 500, 2_000)
    assert not any(file.exists() for file in files)


def test_a_loss_that_cannot_be_gathered_stays_where_it_is(path, tmp_path, caplog):
    worker = tmp_path / "worker-1"
    LossFile(path, "other").write(LOSS)
    LossFile(worker, "mirror").write(LOSS)
    gather(path, [worker], "mirror")
    assert LossFile(path, "other").read() == LOSS
    assert LossFile(worker, "mirror").read() == LOSS
    assert "holds what was lost for topic other" in caplog.text
