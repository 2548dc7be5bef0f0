"""A group of one library on a site: its members can be started, closed, killed and waited for."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import KafkaError

from coordinator_model.wire.record import Kind, MirrorRecord
from tests.conformance.described import described
from tests.conformance.driver import Driver
from tests.conformance.libraries import Library
from tests.real.lab.cluster import Site
from tests.real.lab.monitor import Monitor

SESSION_MS = 6_000
HEARTBEAT_MS = 1_000
REBALANCE_MS = 8_000
SETTLES_S = 90.0
RESTS_S = 1.5


PARTITIONS = 6


def group_of(library: Library, scenario: str) -> str:
    return f"{library.name}.{scenario}"  # without blanks, which some libraries refuse


def topic_of(library: Library, scenario: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", group_of(library, scenario)).strip("-")


class Watch:
    """A mirror sink that passes everything on to the monitor, and tells who waits for a frame."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._lock = threading.Lock()
        self._waiting: list[tuple[Callable[[MirrorRecord], bool], threading.Event]] = []

    def write(self, record: MirrorRecord) -> None:
        self._monitor.write(record)
        with self._lock:
            for wanted, seen in self._waiting:
                if wanted(record):
                    seen.set()

    def expect(self, wanted: Callable[[MirrorRecord], bool]) -> threading.Event:
        """Set when such a frame passes from now on."""
        seen = threading.Event()
        with self._lock:
            self._waiting.append((wanted, seen))
        return seen


class Stage:
    """What a scenario plays on.

    :param troubles: what did not come as it should, beside findings: a group that does not settle, a process that ends.
    """

    def __init__(
        self, *, site: Site, watch: Watch, monitor: Monitor, library: Library, command: list[str], name: str, seed: int, logs: Path
    ) -> None:
        self.site = site
        self.library = library
        self.rng = random.Random(f"{library.name} {name} {seed}")
        self.group = group_of(library, name)
        self.topic = topic_of(library, name)
        self.members: list[Driver] = []
        self.troubles: list[str] = []
        self.errors: list[str] = []
        self._watch = watch
        self._monitor = monitor
        self._command = command
        self._logs = logs
        self._numbers = 0
        self.assignor = library.assignors[0]
        self.commits = "auto"

    # --- members -----------------------------------------------------------------------------------------------------

    def start(self, count: int = 1, *, static: bool = False) -> None:
        """Start so many members; wait for none of them."""
        for _ in range(count):
            self._numbers += 1
            name = f"{self.topic}-{self._numbers}"
            order = {
                "bootstrap": self.site.bootstrap,
                "group": self.group,
                "client_id": name,
                "topics": [self.topic],
                "protocol": self.library.protocol,
                "assignor": self.assignor,
                "commits": self.commits,
                "instance_id": f"{name}-instance" if static else None,
                "session_timeout_ms": SESSION_MS,
                "heartbeat_interval_ms": HEARTBEAT_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
            }
            self.members.append(Driver(self._command, order, self._logs / f"{name}.log"))

    def close(self, member: Driver) -> None:
        """Let it leave in good order."""
        self.members.remove(member)
        if not member.close():
            self.troubles.append(
                "did not end within 15 s of being closed" if not member.errors else "ended with an error when closed"
            )
        self._note(member)

    def kill(self, member: Driver) -> None:
        self.members.remove(member)
        member.kill()
        self._note(member)

    def again(self, member: Driver) -> None:
        """Start what has ended once more, as the same client."""
        self.members.append(Driver(self._command, member.order, self._logs / f"{member.client_id}.log"))

    def any(self) -> Driver:
        return self.rng.choice(self.members)

    def cut(self, member: Driver) -> None:
        """Cut all its connections."""
        self.site.network.cut_from(member.ports())

    def end(self) -> None:
        """Close who is left."""
        for member in tuple(self.members):
            self.close(member)

    def kill_all(self) -> None:
        for member in tuple(self.members):
            self.kill(member)

    def _note(self, member: Driver) -> None:
        self.errors += member.errors

    # --- time --------------------------------------------------------------------------------------------------------

    def work(self, seconds: float) -> None:
        """Let the group work for so long, more or less as the seed has it."""
        time.sleep(seconds * self.rng.uniform(0.8, 1.2))

    def settle(self, count: int | None = None) -> None:
        """Wait until the group has so many members (all that run by default) and rests for a moment, or note that it does not."""
        wanted = len(self.members) if count is None else count
        deadline = time.monotonic() + SETTLES_S
        rested = time.monotonic()
        while time.monotonic() < deadline:
            state, members = self._now()
            if members != wanted or state != ("Stable" if wanted else "Empty") or not self._all_assigned():
                rested = time.monotonic()
            elif time.monotonic() - rested > RESTS_S:
                return
            time.sleep(0.2)
        state, members = self._now()
        self.troubles.append(f"not stable with {wanted} members after {SETTLES_S:.0f} s, but {state} with {members}")

    def _all_assigned(self) -> bool:
        """Whether every member has had its partitions, where the library says so; a static member is one before it is back."""
        return not self.library.tells or all(member.count("assigned") for member in self.members)

    def _now(self) -> tuple[str, int]:
        if self.library.protocol != "classic":
            addresses = [broker.internal for broker in self.site.brokers]
            return described(addresses, self.group, self.library.protocol) or ("Empty", 0)
        content = self._monitor.described().get(self.group, {"state": "Empty", "members": []})
        return content["state"], len(content.get("members", []))

    def when(self, api_keys: Collection[int], member: Driver | None = None) -> threading.Event:
        """Set when a request of these APIs passes the tap, from this member or from anybody in the group."""
        return self._watch.expect(
            lambda record: (
                record.kind is Kind.REQUEST
                and record.group == self.group
                and record.api_key in api_keys
                and (member is None or record.client_id == member.client_id)
            )
        )

    # --- administration ----------------------------------------------------------------------------------------------

    def add_partitions(self, count: int) -> None:
        with self.site.admin() as admin:
            admin.create_partitions({self.topic: count})

    def recreate_topic(self) -> None:
        with self.site.admin() as admin:
            admin.delete_topics([self.topic])
            deadline = time.monotonic() + 20
            while self.topic in admin.list_topics() and time.monotonic() < deadline:
                time.sleep(0.2)
        self.work(1)
        self.site.create_topic(self.topic, PARTITIONS)

    def delete_group(self) -> None:
        with self.site.admin(mirrored=True) as admin:
            try:
                admin.delete_groups([self.group])
            except KafkaError as error:
                self.troubles.append(f"the group cannot be deleted: {error}")

    def forbid(self) -> None:
        """Take the right to the group away from everybody."""
        with self.site.admin() as admin:
            admin.create_acls([self._forbidden(ACL)])

    def permit(self) -> None:
        """Give it back."""
        with self.site.admin() as admin:
            admin.delete_acls([self._forbidden(ACLFilter)])

    def _forbidden(self, kind: type[ACLFilter]) -> ACLFilter:
        return kind("User:*", "*", ACLOperation.READ, ACLPermissionType.DENY, ResourcePattern(ResourceType.GROUP, self.group))
