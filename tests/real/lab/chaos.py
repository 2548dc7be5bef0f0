"""Lawful chaos: everything that happens to healthy clients and brokers in production, in an order that a seed decides.

Each act is undone by itself after a while or by :meth:`Chaos.calm`. Nothing here breaks the protocol, so the monitor may tell of it
but has nobody to accuse.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kafka.admin import MemberToRemove
from kafka.errors import KafkaError

from coordinator_model.finding import Blame, Finding
from streaming.demo.broker import Broker
from tests.real.brokers import frozen
from tests.real.lab.cluster import Site
from tests.real.lab.fleet import Fleet, Make, Membership

MOST_MORE = 1  # members than at the start: two cores carry no more processes beside the brokers
MOST_PARTITIONS = 8
SESSION_S = 6.0  # of the fleet's clients
OUTAGE_S = 1.5 * SESSION_S
SLOW_S = 8.0  # longer than a coordinator waits for its replicas (5 s), shorter than the controller waits for a broker (9 s)
LONGEST_WITHOUT_RIGHT_S = 31.0  # the first time; then 5 to 15
SETTLED_S = 15.0  # who has lived for so long is a member, and nothing is left of an earlier process of the same name
BETWEEN_MIGRATIONS_S = 4.0  # the group is mixed meanwhile
AFTERMATH_S = 2 * SESSION_S  # so long after an outage it may still be held against somebody


class Outage(NamedTuple):
    """A time in which groups had no coordinator or the tap could not write, until all is settled again, and who lived through it; wall clock, microseconds."""

    from_us: int
    to_us: int
    client_ids: frozenset[str]

    def acquits(self, finding: Finding) -> bool:
        """Whether it wrongly blames somebody who lived through this for what happened meanwhile.

        O-07 is no wrong blame: librdkafka sends a commit that timed out in the outage again, behind newer ones (its pull request 3416).
        """
        return (
            finding.blame is Blame.CLIENT
            and finding.rule != "O-07"
            and finding.client_id in self.client_ids
            and self.from_us <= finding.opened_at_us <= self.to_us
        )


class NoSuchActError(ValueError):
    """There is no act of this name with so many brokers."""


class Chaos:
    """Acts on a site and its fleet.

    :param say: told what is done, in one line each.
    """

    def __init__(self, site: Site, fleet: Fleet, seed: int, partitions: dict[str, int], say: Callable[[str], None]) -> None:
        self.rng = random.Random(seed)
        self.acts: Counter[str] = Counter()
        self.outages: list[Outage] = []
        self._site = site
        self._fleet = fleet
        self._partitions = dict(partitions)
        self._say = say
        self._most_members = len(fleet.members) + MOST_MORE
        self._undo: list[tuple[float, Callable[[], None]]] = []
        self._table: list[tuple[int, Callable[[], bool]]] = [
            (4, self._add),
            (3, self._stop),
            (3, self._kill),
            (4, self._suspend),
            (3, self._cut),
            (3, self._delay),
            (3, self._switch_topics),
            (1, self._more_partitions),
            (2, self._rolling_restart),
            (2, self._delete_group),
            (1, self._remove_static),
            (2, self._migrate),
            (2, self._restart_broker),
            (1, self._lose_coordinator),
            (1, self._freeze_coordinator),
            (1, self._take_right_to_write),
            (1, self._renew_certificate),
            *([(3, self._move_coordinators), (1, self._slow_replication)] if len(site.brokers) > 1 else []),
        ]

    def act(self) -> None:
        """One act, and the end of those whose time is up."""
        self._undo_due(time.monotonic())
        weights, acts = zip(*self._table, strict=True)
        for _ in range(20):
            if self._try(*self.rng.choices(acts, weights)):
                return

    def perform(self, name: str) -> None:
        """The act of this name, as :attr:`acts` counts it, upon whom the seed decides.

        :raises NoSuchActError: when there is none with so many brokers.
        """
        self._undo_due(time.monotonic())
        acts = {_named(act): act for _, act in self._table}
        if name not in acts:
            raise NoSuchActError(f"no act {name!r} with {len(self._site.brokers)} broker(s), only {', '.join(sorted(acts))}")
        self._try(acts[name])

    def _try(self, act: Callable[[], bool]) -> bool:
        """Whether it was done, or attempted in vain."""
        try:
            done = act()
        except KafkaError as error:  # the brokers are busy with what was done to them before
            self._say(f"nothing came of it: {error}")
            return True
        if done:
            self.acts[_named(act)] += 1
        return done

    def calm(self) -> None:
        """Undo what is to be undone."""
        self._undo_due(float("inf"))
        for ended in self._fleet.revive():
            self._say(ended)

    def _undo_due(self, now: float) -> None:
        due = [undo for undo in self._undo if undo[0] <= now]
        self._undo = [undo for undo in self._undo if undo[0] > now]
        for _, undo in due:
            undo()

    def _later(self, seconds: float, undo: Callable[[], None]) -> None:
        self._undo.append((time.monotonic() + seconds, undo))

    def _awake(self) -> list[Membership]:
        return [member for member in self._fleet.members if not member.suspended and member.child.status is None]

    # --- acts: True when there was something to do -------------------------------------------------------------------

    def _add(self) -> bool:
        if len(self._fleet.members) >= self._most_members:
            return False
        member = self._fleet.add(self.rng.choice(self._fleet.makes))
        self._say(f"add {member.client.client_id} ({member.client.kind})")
        return True

    def _stop(self) -> bool:
        member = self.rng.choice(self._awake())
        self._say(f"stop {member.client.client_id}")
        self._fleet.remove(member)
        self._bring_back(member)
        return True

    def _kill(self) -> bool:
        member = self.rng.choice(self._awake())
        self._say(f"kill {member.client.client_id}")
        self._fleet.kill(member)
        self._bring_back(member)
        return True

    def _bring_back(self, member: Membership) -> None:
        """A member that was restarted comes back soon, one that is replaced or scaled down does not."""
        if member.client.instance_id is not None or len(self._fleet.members) < 5 or self.rng.random() < 0.6:
            self._later(self.rng.uniform(0.5, 8), lambda: self._start_again(member))

    def _start_again(self, member: Membership) -> None:
        if all(other.client.client_id != member.client.client_id for other in self._fleet.members):
            self._say(f"start {member.client.client_id} again")
            self._fleet.again(member)

    def _suspend(self) -> bool:
        member = self.rng.choice(self._awake())
        seconds = self.rng.choice((1.0, 4.0, 9.0, 16.0))
        self._say(f"suspend {member.client.client_id} for {seconds:.0f} s")
        self._fleet.suspend(member)
        self._later(seconds, lambda: self._fleet.resume(member))
        return True

    def _cut(self) -> bool:
        share, behind = self.rng.choice((0.2, 0.5, 1.0)), self.rng.random() < 0.5
        network = self._site.network_behind if behind else self._site.network
        self._say(f"cut {network.cut(share, self.rng)} connections {'behind' if behind else 'before'} the tap")
        return True

    def _delay(self) -> bool:
        seconds = self.rng.choice((0.02, 0.1, 0.4))
        network = self._site.network_behind if self.rng.random() < 0.5 else self._site.network
        self._say(f"delay all bytes by {seconds * 1000:.0f} ms")
        network.delay(seconds)
        self._later(self.rng.uniform(2, 8), lambda: network.delay(0))
        return True

    def _switch_topics(self) -> bool:
        able = [member for member in self._awake() if member.client.other_topics != member.client.topics]
        if not able:
            return False
        member = self.rng.choice(able)
        self._say(f"{member.client.client_id} changes its subscription")
        self._fleet.switch_topics(member)
        return True

    def _more_partitions(self) -> bool:
        topic = self.rng.choice(sorted(self._partitions))
        if self._partitions[topic] >= MOST_PARTITIONS:
            return False
        self._partitions[topic] += 1
        self._say(f"{topic} grows to {self._partitions[topic]} partitions")
        with self._site.admin() as admin:
            admin.create_partitions({topic: self._partitions[topic]})
        return True

    def _rolling_restart(self) -> bool:
        make = self.rng.choice(self._fleet.makes)
        members = [member for member in self._fleet.group(make) if not member.suspended]
        if not members:
            return False
        self._say(f"rolling restart of {make.name}")
        for member in members:
            self._fleet.remove(member)
            self._fleet.again(member)
            time.sleep(1)
        return True

    def _migrate(self) -> bool:
        """A rolling upgrade to the consumer protocol, or back; who is suspended stays behind."""
        makes = [make for make in self._fleet.makes if make.migrates]
        if not makes:
            return False
        make = self.rng.choice(makes)
        self._say(f"{make.name} migrates to the {self._fleet.migrate(make)} protocol, member by member")
        for member in [member for member in self._fleet.group(make) if not member.suspended]:
            self._fleet.remove(member)
            self._fleet.again(member)
            time.sleep(BETWEEN_MIGRATIONS_S)
        return True

    def _delete_group(self) -> bool:
        make = self.rng.choice([make for make in self._fleet.makes if not make.static])
        self._say(f"stop all of {make.name}, delete the group, start all again")
        stopped = [member for member in self._fleet.group(make) if not member.suspended]
        for member in stopped:
            self._fleet.remove(member)
        with contextlib.suppress(KafkaError), self._site.admin(mirrored=True) as admin:
            admin.delete_groups([make.name])
        for member in stopped:
            self._fleet.again(member)
        return True

    def _remove_static(self) -> bool:
        """What an operator does with a static member that will not come back soon."""
        member = next((member for member in self._awake() if member.client.instance_id is not None), None)
        if member is None:
            return False
        self._say(f"kill {member.client.client_id} and take {member.client.instance_id} out of its group")
        self._fleet.kill(member)
        gone = MemberToRemove(group_instance_id=member.client.instance_id, reason="replaced by hand")
        with contextlib.suppress(KafkaError), self._site.admin(mirrored=True) as admin:
            admin.remove_group_members(member.client.group, [gone])
        self._bring_back(member)
        return True

    def _restart_broker(self) -> bool:
        make: Make = self.rng.choice(self._fleet.makes)
        broker = self._site.brokers[self._site.coordinator_of(make.name)]
        if self.rng.random() < 0.5:
            self._say(f"restart broker {broker.node_id}, which coordinates {make.name}")
            broker.stop()
        else:
            self._say(f"kill broker {broker.node_id}, which coordinates {make.name}, and start it again")
            broker.kill()
        broker.start()
        return True

    def _lose_coordinator(self) -> bool:
        """A broker is down for longer than a session; in a cluster the controller takes longer too to miss one that was killed."""
        return self._without_coordinator("kill", _killed)

    def _freeze_coordinator(self) -> bool:
        """A broker stands still, as on a machine that is moved: another takes over, and the frozen one comes back without knowing."""
        return self._without_coordinator("freeze", frozen)

    def _without_coordinator(self, verb: str, away: Callable[[Broker], contextlib.AbstractContextManager[None]]) -> bool:
        lived = self._settled()
        make: Make = self.rng.choice(self._fleet.makes)
        broker = self._site.brokers[self._site.coordinator_of(make.name)]
        self._say(f"{verb} broker {broker.node_id}, which coordinates {make.name}, for {OUTAGE_S:.0f} s")
        from_us = time.time_ns() // 1_000
        with away(broker):
            time.sleep(OUTAGE_S)
        self._note_outage(from_us, lived)
        return True

    def _slow_replication(self) -> bool:
        """A follower stands still while a member is restarted: what the coordinator writes counts, but is answered as if it failed."""
        lived = self._settled()
        make: Make = self.rng.choice(self._fleet.makes)
        restarted = self.rng.choice(self._fleet.group(make))
        follower = self._site.brokers[(self._site.coordinator_of(make.name) + 1) % len(self._site.brokers)]
        self._say(f"freeze broker {follower.node_id}, a follower, for {SLOW_S:.0f} s, and restart {restarted.client.client_id}")
        from_us = time.time_ns() // 1_000
        with frozen(follower):
            until_s = time.monotonic() + SLOW_S
            self._fleet.remove(restarted)
            self._fleet.again(restarted)
            time.sleep(max(0.0, until_s - time.monotonic()))
        self._note_outage(from_us, [member for member in lived if member is not restarted])
        return True

    def _take_right_to_write(self) -> bool:
        """An administrator takes away the tap's right to write to the mirror, and gives it back."""
        lived = self._settled()
        seconds = self.rng.uniform(5, 15) if self.acts["take right to write"] else LONGEST_WITHOUT_RIGHT_S
        self._say(f"the tap may not write to the mirror for {seconds:.0f} s")
        from_us = time.time_ns() // 1_000
        self._site.mirror.take_right()
        time.sleep(seconds)
        self._site.mirror.give_right()
        self._site.mirror.wait_until_read()
        self._note_outage(from_us, lived)
        return True

    def _renew_certificate(self) -> bool:
        """The tap's certificate expires, its connection is cut, and only then the file gets the new one."""
        lived = self._settled()
        self._say("the tap's certificate expires and is renewed")
        from_us = time.time_ns() // 1_000
        self._site.mirror.expire(self.rng)
        time.sleep(OUTAGE_S)
        self._site.mirror.wait_until_read()
        self._note_outage(from_us, lived)
        return True

    def _settled(self) -> list[Membership]:
        """Undo what is to be undone, since who is suspended would not live through an outage; gives who does."""
        self._undo_due(float("inf"))
        lived = self._awake()
        time.sleep(max(0.0, max(member.since for member in lived) + SETTLED_S - time.monotonic()))
        return lived

    def _note_outage(self, from_us: int, lived: list[Membership]) -> None:
        time.sleep(AFTERMATH_S)
        self.outages.append(Outage(from_us, time.time_ns() // 1_000, frozenset(member.client.client_id for member in lived)))

    def _move_coordinators(self) -> bool:
        first = self.rng.randrange(len(self._site.brokers))
        self._say("move the partitions of the offsets topic to other brokers")
        with contextlib.suppress(KafkaError):
            self._site.move_coordinators(first)
        return True


@contextlib.contextmanager
def _killed(broker: Broker) -> Iterator[None]:
    broker.kill()
    yield
    broker.start()


def _named(act: Callable[[], bool]) -> str:
    return act.__name__.strip("_").replace("_", " ")
