"""Known defects of client libraries and brokers: what they do, in which releases, what shows it, where it is public, and what helps.

A finding about software with a defect that shows itself so quotes it. Each row has a public source: an issue, a change, release notes, or
the place in the library's own source. Software is known by what it announces (KIP-511), and otherwise by a name that its library alone
gives: its default client id, or the spelling of its assignor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from coordinator_model.finding import Blame

Release = tuple[int, ...]

BROKER: Final = "Apache Kafka"


class Software(NamedTuple):
    """A library or broker, and its release; () if that is not known."""

    library: str
    release: Release = ()


class Shown(NamedTuple):
    """What a finding shows of a member, beside the rule that it is of."""

    evidence: tuple[str, ...] = ()  #: descriptions of its frames
    last_frame: str = ""  #: of the member
    assignors: tuple[str, ...] = ()  #: that the member offers
    blame: Blame = Blame.CLIENT


class Defect(NamedTuple):
    """A defect of some releases of a library or broker."""

    library: str
    does: str  #: continues "it …"
    rules: tuple[str, ...]  #: whose findings show it
    source: str
    remedy: str = ""  #: sentences, beside an upgrade
    since: Release = ()  #: the first release with it; () if all before ``mended`` have it
    mended: Release = ()  #: the first release without it; () if there is none
    evidence: str = ""  #: how the description of one of the finding's frames begins
    last_frame: str = ""  #: how the description of the member's last frame begins
    assignor: str = ""  #: that the member offers
    blame: Blame | None = None  #: of the finding, if the rule blames others, too

    @property
    def releases(self) -> str:
        """Return ``1.6.0 to before 2.6.1``, ``before 4.2``, ``since 1.3.0`` or ``all releases``."""
        if not self.mended:
            return f"since {_dotted(self.since)}" if self.since else "all releases"
        return f"{_dotted(self.since)} to before {_dotted(self.mended)}" if self.since else f"before {_dotted(self.mended)}"

    @property
    def helps(self) -> str:
        """Return what to do about it; empty if nothing is known to help."""
        upgrade = f"Upgrade to {self.library} {_dotted(self.mended)} or newer." if self.mended else ""
        return " ".join(filter(None, (upgrade, self.remedy)))

    @property
    def signature(self) -> str:
        """Return what shows it: rules, and what else must be seen."""
        also = (
            f"a frame {self.evidence}" if self.evidence else "",
            f"last frame {self.last_frame}" if self.last_frame else "",
            f"assignor {self.assignor}" if self.assignor else "",
            f"blame of the {self.blame.value}" if self.blame else "",
        )
        return " with ".join((", ".join(self.rules), *filter(None, also)))

    def may_be_of(self, software: Software) -> bool:
        """Return True unless the release is known not to have it."""
        known = software.release
        if software.library != self.library:
            return False
        return not known or (self.since <= known and (not self.mended or known < self.mended))

    def shows_in(self, shown: Shown) -> bool:
        return (
            any(frame.startswith(self.evidence) for frame in (*shown.evidence, ""))
            and shown.last_frame.startswith(self.last_frame)
            and (not self.assignor or self.assignor in shown.assignors)
            and self.blame in {None, shown.blame}
        )

    def quote(self, software: Software) -> str:
        """Return the sentences with which a finding quotes it."""
        known = _dotted(software.release) if software.release and self.library != BROKER else self.releases
        return f"Known of {self.library}, {known}: it {self.does} ({self.source}). {self.helps}".rstrip()


KNOWN_DEFECTS: Final = (
    Defect(
        "librdkafka",
        "may do the KIP-394 handshake twice and use the second member id alone; the group waits for the first one",
        ("R-09",),
        "https://github.com/confluentinc/librdkafka/issues/5569",
        "Lower session.timeout.ms, or set group.protocol=consumer, which has no such handshake.",
        since=(1, 3, 0),
    ),
    Defect(
        "librdkafka",
        "may loop without end while it assigns by cooperative-sticky",
        ("R-02",),
        "https://github.com/confluentinc/librdkafka/issues/4783",
        since=(1, 6, 0),
        mended=(2, 6, 1),
        assignor="cooperative-sticky",
    ),
    Defect(
        "librdkafka",
        "sends no LeaveGroup at unsubscribe() with cooperative-sticky",
        ("T-04",),
        "https://github.com/confluentinc/librdkafka/releases/tag/v1.7.0",
        since=(1, 6, 0),
        mended=(1, 7, 0),
        assignor="cooperative-sticky",
    ),
    Defect(
        "librdkafka",
        "may send another JoinGroup before the answer to its JoinGroup or SyncGroup has come, when its subscription changes",
        ("R-10",),
        "https://github.com/confluentinc/librdkafka/releases/tag/v1.8.0",
        mended=(1, 8, 0),
    ),
    Defect(
        "librdkafka",
        "may commit offsets that were stored after the partition was given up, when it has that partition again",
        ("O-07",),
        "https://github.com/confluentinc/librdkafka/releases/tag/v1.9.0",
        mended=(1, 9, 0),
    ),
    Defect(
        "librdkafka",
        "may join again after max.poll.interval.ms by a heartbeat that is not full, and take the refusal for fatal",
        ("E-05",),
        "https://github.com/confluentinc/librdkafka/issues/5541",
        since=(2, 12, 0),
        mended=(2, 15, 0),
    ),
    Defect(
        "kafka-clients",
        "may claim partitions that another member has meanwhile, as the cooperative assignor tells no generation",
        ("A-10",),
        "https://github.com/apache/kafka/pull/10985",
        mended=(2, 8, 1),
    ),
    Defect(
        "kafka-clients",
        "throws its new membership away when a request of the generation before is refused",
        ("M-09", "R-07"),
        "https://github.com/apache/kafka/pull/8445",
        mended=(2, 6, 0),
    ),
    Defect(
        "kafka-python",
        "sends the last commit of unsubscribe() after it has forgotten its generation and member id",
        ("O-04",),
        "https://github.com/dpkp/kafka-python/blob/3.0.12/kafka/consumer/group.py",
        "Call commit() before unsubscribe(), or close().",
        since=(3, 0, 0),
    ),
    Defect(
        "kafka-python",
        "may leave a rebalance to itself that outlasts a poll, and never heartbeat after it",
        ("T-04",),
        "https://github.com/dpkp/kafka-python/blob/3.0.12/kafka/coordinator/base.py",
        "Poll for longer than a rebalance takes; watch assignment(), and restart the consumer.",
        since=(3, 0, 0),
        last_frame="SyncGroup",
    ),
    Defect(
        "kafka-python",
        "may send no heartbeat after a rebalance that outlasted a poll",
        ("T-04",),
        "https://github.com/dpkp/kafka-python/pull/2617",
        since=(1, 4, 5),
        mended=(2, 2, 6),
        last_frame="SyncGroup",
    ),
    Defect(
        "kafka-python",
        "forgets its member id at ILLEGAL_GENERATION, and joins as another member",
        ("M-09",),
        "https://github.com/dpkp/kafka-python/pull/3017",
        mended=(3, 0, 0),
    ),
    Defect(
        "kafka-python",
        "gives out the generation of a rebalance before its assignment: a transaction commits what another member has",
        ("O-05", "O-06"),
        "https://github.com/dpkp/kafka-python/blob/3.0.12/kafka/coordinator/base.py",
        "Take group_metadata() before assignment(), and drop the transaction if its generation has changed after it.",
        since=(3, 0, 0),
        evidence="TxnOffsetCommit",
    ),
    Defect(
        "aiokafka",
        "commits without generation and member id after it has lost its membership",
        ("O-04",),
        "https://github.com/aio-libs/aiokafka/blob/v0.14.0/aiokafka/consumer/group_coordinator.py",
        "Commit by hand (enable_auto_commit=False), and no longer once partitions are revoked; keep processing below max_poll_interval_ms.",
    ),
    Defect(
        "franz-go",
        "goes on as a member when a commit has told it that it is none, until a heartbeat does",
        ("M-01", "O-01"),
        "https://github.com/twmb/franz-go/releases/tag/v1.21.3",
        mended=(1, 21, 3),
    ),
    Defect(
        "franz-go",
        "names no instance id in the heartbeat by which a static member leaves for a while",
        ("E-19",),
        "https://github.com/twmb/franz-go/blob/v1.21.6/pkg/kgo/consumer_group_848.go",
        "Lower consumer.session.timeout.ms of the group.",
    ),
    Defect(
        "sarama",
        "leaves members that get no partitions out of SyncGroup when it leads",
        ("A-02",),
        "https://github.com/IBM/sarama/pull/2292",
        mended=(1, 36, 0),
    ),
    Defect(
        "kafka-go",
        "commits offsets of an earlier generation in the one that follows, whoever has the partitions",
        ("O-05", "O-06"),
        "https://github.com/segmentio/kafka-go/issues/1308",
        "Use ConsumerGroup and Generation.CommitOffsets instead of Reader.",
    ),
    Defect(
        "kafka-go",
        "forgets its member id when it cannot leave or join, and joins as another member, for whose old id the group waits",
        ("R-05",),
        "https://github.com/segmentio/kafka-go/issues/1215",
        "Use a short session timeout.",
        last_frame="JoinGroup",
    ),
    Defect(
        "kafkajs",
        "deals the topics that it subscribes to itself to all members when it leads",
        ("A-04",),
        "https://github.com/tulios/kafkajs/issues/1679",
        "Give all members one subscription, or use an assigner of your own.",
    ),
    Defect(
        "kafkajs",
        "does not join again after ILLEGAL_GENERATION",
        ("G-01", "O-01"),
        "https://github.com/tulios/kafkajs/pull/1474",
        mended=(2, 2, 4),
    ),
    Defect(
        "@platformatic/kafka",
        "names no instance id in the commits of a static member",
        ("S-07",),
        "https://github.com/platformatic/kafka/blob/v2.12.1/src/clients/consumer/consumer.ts",
    ),
    Defect(
        "@platformatic/kafka",
        "commits in a new generation what it had read in the one before, whoever has the partitions",
        ("O-05", "O-06"),
        "https://github.com/platformatic/kafka/blob/v2.12.1/src/clients/consumer/messages-stream.ts",
        "Commit by hand, and drop what was read before the event consumer:group:join.",
    ),
    Defect(
        "@platformatic/kafka",
        "does not read SkipAssignment (KIP-814)",
        ("P-11",),
        "https://github.com/platformatic/kafka/blob/v2.12.1/src/clients/consumer/consumer.ts",
        "It does no harm.",
    ),
    Defect(
        "@platformatic/kafka",
        "deals all partitions to all members when it leads, whatever they subscribe to",
        ("A-04",),
        "https://github.com/platformatic/kafka/blob/v2.12.1/src/clients/consumer/partitions-assigners.ts",
        "Give all members one subscription, or use an assigner of your own.",
    ),
    Defect(
        "@platformatic/kafka",
        "lets static members leave when they close",
        ("S-08",),
        "https://github.com/platformatic/kafka/blob/v2.12.1/src/clients/consumer/consumer.ts",
        "End the process without close().",
    ),
    Defect(
        "krafka",
        "throws its membership away when a heartbeat of the generation before is refused",
        ("M-09", "R-07"),
        "https://docs.rs/crate/krafka/0.28.1/source/src/consumer/group/classic.rs",
        "Use GroupProtocol::Consumer, or an eager assignor.",
    ),
    Defect(
        BROKER,
        "may wait without end for a member that joined by JoinGroup before v4 and went",
        ("R-01",),
        "https://github.com/apache/kafka/pull/8339",
        mended=(2, 5),
    ),
    Defect(
        BROKER,
        "gives a static member that comes back before the assignment an empty one",
        ("A-06",),
        "https://github.com/apache/kafka/pull/8439",
        mended=(2, 5),
    ),
    Defect(
        BROKER,
        "forgets which process took an instance id over when the coordinator moves",
        ("S-09",),
        "https://github.com/apache/kafka/pull/9270",
        mended=(2, 6, 1),
    ),
    Defect(
        BROKER,
        "never removes a member that heartbeats and does not send SyncGroup, so that the assignment never comes",
        ("R-02", "R-03"),
        "https://github.com/apache/kafka/pull/10863",
        "Restart that member.",
        mended=(2, 8, 1),
    ),
    Defect(
        BROKER,
        "cannot answer a leader's JoinGroup before v5 once a static member has joined",
        ("C-02",),
        "https://github.com/apache/kafka/pull/12909",
        "Upgrade all members before one becomes static.",
        mended=(3, 4),
    ),
    Defect(
        BROKER,
        "refuses a member that comes back under its own id with epoch 0, as it does after a lost answer",
        ("M-14",),
        "https://github.com/apache/kafka/pull/21305",
        mended=(4, 2),
        blame=Blame.BROKER,
    ),
    Defect(
        BROKER,
        "may raise the epoch of a share group with each heartbeat",
        ("R-16",),
        "https://github.com/apache/kafka/pull/21721",
        mended=(4, 3),
        blame=Blame.BROKER,
    ),
)

_LIBRARIES: Final = {
    "librdkafka": "librdkafka",
    "apache-kafka-java": "kafka-clients",
    "kafka-python": "kafka-python",
    "kgo": "franz-go",
    "sarama": "sarama",
    "platformatic-kafka": "@platformatic/kafka",
    "krafka": "krafka",
}
"""Announced name → library."""

_ANNOUNCED: Final = re.compile(r"(?P<name>\S+) v?(?P<release>\d+(?:\.\d+)*)")
_BINDING: Final = re.compile(r"rdkafka-(?P<release>\d+(?:\.\d+)*)")
"""Bindings of librdkafka announce ``confluent-kafka-python 2.16.1-rdkafka-2.16.0``."""

_DEFAULT_CLIENT_ID: Final = re.compile(r"(?P<name>aiokafka|kafka-python)-(?P<release>\d+(?:\.\d+)+)")
_KAFKA_GO: Final = "(github.com/segmentio/kafka-go)"
_KAFKAJS_ASSIGNOR: Final = "RoundRobinAssigner"

_BY_RULE: Final = {
    rule: tuple(defect for defect in KNOWN_DEFECTS if rule in defect.rules)
    for rule in sorted({rule for defect in KNOWN_DEFECTS for rule in defect.rules})
}


def software_of(announced: str, client_id: str | None, assignors: Iterable[str] = ()) -> Software | None:
    """Return what a client is by what it announces, or else by its client id or assignors; None if they do not show it."""
    binding, named = _BINDING.search(announced), _ANNOUNCED.match(announced)
    if binding:
        return Software("librdkafka", _release(binding))
    if named:
        return Software(_LIBRARIES.get(named["name"], named["name"]), _release(named))
    by_default = _DEFAULT_CLIENT_ID.match(client_id or "")
    if by_default:
        return Software(by_default["name"], _release(by_default))
    if _KAFKA_GO in (client_id or ""):
        return Software("kafka-go")
    return Software("kafkajs") if _KAFKAJS_ASSIGNOR in assignors else None


def known_of(software: Software) -> Iterator[Defect]:
    """Yield the defects that a release has, or may have if it is not known."""
    return (defect for defect in KNOWN_DEFECTS if defect.may_be_of(software))


def quotes(rule: str, software: Iterable[Software | None], shown: Shown) -> str:
    """Return what is known of the software that a finding is about, as sentences; empty if that is nothing.

    :param software: of the member, and of the broker.
    """
    return " ".join(
        defect.quote(one)
        for defect in _BY_RULE.get(rule, ())
        for one in software
        if one is not None and defect.may_be_of(one) and defect.shows_in(shown)
    )


def _release(match: re.Match[str]) -> Release:
    return tuple(int(part) for part in match["release"].split("."))


def _dotted(release: Release) -> str:
    return ".".join(map(str, release))
