"""What a capturer lost when it ended, for the next one to report.

A capturer that cannot deliver its last records cannot report them either. They are counted in a small file, and the next capturer writes
them as a gap at its start. While nothing can be delivered the file is kept up to date, so that a kill loses no count.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from coordinator_model.wire.record import Loss
from streaming.errors import why_not

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

log = logging.getLogger(__name__)


def added(one: Loss | None, other: Loss) -> Loss:
    """Both losses as one."""
    if one is None:
        return other
    return Loss(one.records + other.records, one.bytes + other.bytes, min(one.from_us, other.from_us), max(one.to_us, other.to_us))


def gather(into: Path, files: Sequence[Path], topic: str) -> None:
    """Move what several capturers lost into one file."""
    target = LossFile(into, topic)
    total = target.read()
    for file in files:
        one = LossFile(file, topic)
        loss = one.read()
        if loss is not None:
            total = added(total, loss)
            target.write(total)
            if not target.usable:
                return  # the count stays where it is
            one.write(None)


class LossFile:
    """A file that holds one loss, and is there only while there is one.

    :param topic: the mirror topic; the losses of another topic are not taken for this one's.
    """

    def __init__(self, path: Path, topic: str) -> None:
        self._path = path
        self._topic = topic
        self.usable = True  #: False once it was found that it cannot be read or written
        self._written: Loss | None = None

    def read(self) -> Loss | None:
        """What the capturer before lost; None when it lost nothing."""
        try:
            held = json.loads(self._path.read_text())
            topic, loss = held.pop("topic"), Loss(**{name: int(count) for name, count in held.items()})
        except FileNotFoundError:
            return None
        except OSError as error:
            self._give_up(f"cannot be read: {why_not(error)}")
        except (ValueError, TypeError, KeyError, AttributeError):
            self._give_up("does not hold what a capture lost")
        else:
            if topic == self._topic:
                self._written = loss
                return loss
            self._give_up(f"holds what was lost for topic {topic}")
        return None

    def write(self, loss: Loss | None) -> None:
        """Keep a loss; None takes the file away."""
        if not self.usable or loss == self._written:
            return
        try:
            if loss is None:
                self._path.unlink(missing_ok=True)
            else:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                beside = self._path.with_name(f"{self._path.name}.new")
                beside.write_text(json.dumps({"topic": self._topic, **loss._asdict()}) + "\n")
                beside.replace(self._path)
        except OSError as error:
            self._give_up(f"cannot be written: {why_not(error)}")
        self._written = loss

    def _give_up(self, why: str) -> None:
        self.usable = False
        log.error(
            "the loss file %s %s: what is lost at the end of this capture is not told by the next; move it away or name another one",
            self._path,
            why,
        )
