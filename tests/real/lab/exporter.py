"""An exporter as operators run it: it describes all groups through the tap, again and again.

With kafka-python: librdkafka's admin client ends its process by an assertion of its own when a broker dies under it.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Self

from kafka.errors import KafkaError

if TYPE_CHECKING:
    from tests.real.lab.cluster import Site

EVERY_S = 3.0


class Exporter:
    """A thread that asks for as long as the context is open; what the cluster refuses meanwhile is tried again."""

    def __init__(self, site: Site) -> None:
        self.asked = 0  #: descriptions of all groups that came
        self._site = site
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="exporter", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(EVERY_S):
            # ValueError: kafka-python decodes the subscriptions that it lists, and one group has members that send garbage
            with contextlib.suppress(KafkaError, ValueError), self._site.admin(mirrored=True) as admin:
                groups = [group["group_id"] for group in admin.list_groups()]
                while not self._ends.wait(EVERY_S):
                    admin.describe_groups(groups)
                    self.asked += 1
                    groups = [group["group_id"] for group in admin.list_groups()]
