"""A mirror sink whose cluster may be away when the capturer starts.

The tap stands in the clients' way: they must get through whether anybody can read along or not. So a cluster that does not answer at the
start is waited for in the background; what is seen until then is counted, and told as lost in every partition as soon as it is there.

The trap: a wrong address looks like a cluster that is away. So it is said, again and again, that nobody is watching.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from coordinator_model.wire.record import Kind, Loss
from streaming.mirror.producer import MirrorAwayError, MirrorError, added

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator_model.wire.record import MirrorRecord
    from streaming.mirror.producer import KafkaSink

TRY_EVERY_S: Final = 5.0
SAY_EVERY_S: Final = 60.0

log = logging.getLogger(__name__)


class PatientSink:
    """A :class:`streaming.mirror.producer.MirrorSink` in front of a :class:`KafkaSink` that may come later.

    :param connect: makes the sink, or raises.
    :raises MirrorError: when the cluster answers, or need not be asked, and the mirror cannot be used.
    """

    def __init__(self, connect: Callable[[], KafkaSink], *, every_s: float = TRY_EVERY_S) -> None:
        self._connect = connect
        self._every_s = every_s
        self._lock = threading.Lock()
        self._sink: KafkaSink | None = None
        self._loss: Loss | None = None
        self._stop = threading.Event()
        try:
            self._sink = connect()
        except MirrorAwayError as error:
            self._say_blind(error)
            self._thread = threading.Thread(target=self._try_again, name="mirror-waits", daemon=True)
            self._thread.start()

    @property
    def partitions(self) -> int | None:
        """Of the mirror topic; None as long as its cluster has not answered."""
        return None if self._sink is None else self._sink.partitions

    @property
    def written(self) -> int:
        """Records that the topic has."""
        return 0 if self._sink is None else self._sink.written

    @property
    def lost(self) -> int:
        """Records that the topic will never have."""
        with self._lock:
            unseen = 0 if self._loss is None else self._loss.records
        return unseen if self._sink is None else self._sink.lost

    @property
    def buffered(self) -> int:
        """Records that are on their way."""
        return 0 if self._sink is None else self._sink.buffered

    def write(self, record: MirrorRecord) -> None:
        """Pass the record on, or count it as lost."""
        sink = self._sink
        if sink is None:
            with self._lock:
                sink = self._sink  # it may have come meanwhile
                if sink is None:
                    if record.kind is not Kind.TICK:
                        self._loss = added(self._loss, Loss(1, len(record.frame), record.at_us, record.at_us))
                    return
        sink.write(record)

    def close(self, timeout_s: float = 10.0) -> int:
        """As :meth:`KafkaSink.close`."""
        self._stop.set()
        return 0 if self._sink is None else self._sink.close(timeout_s)

    def _try_again(self) -> None:
        waited_s = 0.0
        while not self._stop.wait(self._every_s):
            try:
                sink = self._connect()
            except MirrorError as error:
                waited_s += self._every_s
                if waited_s >= SAY_EVERY_S or not isinstance(error, MirrorAwayError):
                    waited_s = 0.0
                    self._say_blind(error)
                continue
            with self._lock:
                unseen = 0 if self._loss is None else self._loss.records
                if self._loss is not None:
                    sink.inherit(self._loss)
                self._sink = sink
            log.warning(
                "the mirror's cluster answers: mirroring from now on; %d frames before that are lost, and said to be", unseen
            )
            return

    @staticmethod
    def _say_blind(error: MirrorError) -> None:
        log.error("clients pass, but nobody watches: %s", error)
