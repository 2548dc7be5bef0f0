"""What was made of findings by looking at them: the library breaks the protocol, or does something odd that is lawful.

``source`` says where the library's own source shows it, or that nobody has looked. A finding that no scenario causes on purpose and that is not here has not
been judged, and the command fails.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    BREACH = "breach"  #: the library breaks the protocol
    NOISE = "noise"  #: the monitor says more than it should: a rule to be mended
    ODDITY = "oddity"  #: lawful, but whoever writes a monitor or reads a log must know it


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One thing that libraries do.

    :param key: its name in the table.
    :param rules: of the findings that tell of it; ``stuck`` is a group that did not become stable.
    :param scenarios: where it is expected; everywhere when empty.
    :param protocol: what the protocol asks for, with the row of ``rebalance-monitor protocol`` or the KIP.
    :param source: where the library's own source shows it.
    """

    key: str
    verdict: Verdict
    libraries: Collection[str]
    rules: Collection[str]
    scenarios: Collection[str] = ()
    title: str
    protocol: str
    source: str
    costs: str
    avoid: str
    known: str = "no thread found"

    def covers(self, library: str, rule: str, scenario: str) -> bool:
        return library in self.libraries and rule in self.rules and (not self.scenarios or scenario in self.scenarios)


JUDGEMENTS: tuple[Judgement, ...] = (
    Judgement(
        key="B1",
        verdict=Verdict.BREACH,
        libraries=("aiokafka",),
        rules=("O-04",),
        title="aiokafka commits as nobody after it has lost its membership",
        protocol="A member commits with its generation and member id. Only a client that assigns its partitions itself sends neither, and "
        "it is served only in an empty group (row C9); beside members it gets UNKNOWN_MEMBER_ID (row C14). Kafka's own consumer sends no "
        "commit without a generation: it raises CommitFailedException.",
        source="`reset_generation` (`aiokafka/consumer/group_coordinator.py`) sets generation -1 and an empty member id when a heartbeat "
        "is refused or the group is left; `_do_commit_offsets` sends both as they are, without asking whether there is a membership.",
        costs="Beside other members the commit is refused and the records are read twice. In a group that has become empty meanwhile the "
        "broker accepts it: a client that lost its partitions sets the offsets that the next member begins from.",
        avoid="Commit by hand (`enable_auto_commit=False`), and in a rebalance listener stop committing what was revoked; keep processing "
        "below `max_poll_interval_ms` and the event loop free for heartbeats.",
        known="not under this name; [aiokafka#727](https://github.com/aio-libs/aiokafka/issues/727) shows a group in which commits fail "
        "with UNKNOWN_MEMBER_ID and members go on with generation -1.",
    ),
    Judgement(
        key="B2",
        verdict=Verdict.BREACH,
        libraries=("kafka-python",),
        rules=("O-04",),
        scenarios=("leave",),
        title="kafka-python's last commit at unsubscribe() goes out as nobody",
        protocol="As in B1: rows C9 and C14. The commit that precedes LeaveGroup has to carry the generation that it belongs to.",
        source="`KafkaConsumer.unsubscribe` calls `maybe_auto_commit_offsets_now`, which only queues the commit, and then clears the "
        "subscription. The request is built afterwards, in the I/O thread: `partitions_auto_assigned()` is false by then, so "
        "`_send_offset_commit_request` takes `Generation.NO_GENERATION`.",
        costs="What was consumed since the last automatic commit is read again by whoever gets the partitions.",
        avoid="Call `commit()` before `unsubscribe()`; or `close()`, which is not concerned.",
    ),
    Judgement(
        key="B3",
        verdict=Verdict.BREACH,
        libraries=("kafka-python",),
        rules=("M-10", "T-04", "stuck"),
        scenarios=("partitions", "topic-anew"),
        title="kafka-python 3 takes part in a rebalance, and then never heartbeats",
        protocol="A member that SyncGroup has served heartbeats (rows of Heartbeat, phase S), or its session ends.",
        source="`join_group_async` (`kafka/coordinator/base.py` of 3.0.12) turns heartbeats off, begins the join as a task, and leaves the task "
        "alone when the poll's time is over. The next poll takes its result only if `need_rejoin()` (`kafka/coordinator/consumer.py`) is still "
        "true. When the rejoin came from new metadata or a new subscription, the task itself makes it false: the leader sets "
        "`_assignment_snapshot`, and the request sets `_joined_subscription`. Nobody takes the assignment then, nor turns heartbeats on. Seen "
        "without a tap too (`kafka_python_consumer` in `tests/real/harness.py`).",
        costs="The member owns partitions that nobody reads, until its session ends; it does not come back by itself. The refused LeaveGroup "
        "at its end is the only frame that it sends after SyncGroup.",
        avoid="Longer poll timeouts than a rebalance takes; watch `assignment()` and restart the consumer.",
    ),
    Judgement(
        key="B4",
        verdict=Verdict.BREACH,
        libraries=("@platformatic/kafka",),
        rules=("S-07",),
        title="@platformatic/kafka commits without the instance id of its static member",
        protocol="A static member names its group.instance.id in every request (KIP-345), so that the broker can fence a process that was "
        "replaced: row C13 answers FENCED_INSTANCE_ID only to a commit that has one.",
        source="`dist/clients/consumer/consumer.js`, line 713 of 2.12.1: the OffsetCommit is called with `null` in its place; JoinGroup, "
        "SyncGroup and Heartbeat pass `this.groupInstanceId`.",
        costs="A commit of a replaced process is refused with UNKNOWN_MEMBER_ID instead of FENCED_INSTANCE_ID, so it does not learn that "
        "another process has its name.",
        avoid="Not by configuration.",
    ),
    Judgement(
        key="B5",
        verdict=Verdict.BREACH,
        libraries=("@platformatic/kafka",),
        rules=("O-06", "O-05"),
        title="@platformatic/kafka commits partitions that its new generation gave to another member",
        protocol="A member commits the partitions that its generation assigned to it. The broker does not check that, only generation and "
        "member id (row C17).",
        source="`#onConsumerGroupJoin` (`dist/clients/consumer/messages-stream.js`, from line 136 of 2.12.1) forgets which offsets were committed, "
        "but not `#offsetsToCommit`, and sends all of them at once, whoever has the partitions now; `#commit` (`consumer.js`, line 713) puts the "
        "new generation on them. The timer of `kAutocommit` sends what is queued alike.",
        costs="The offsets of a partition are set by two members: records are read twice, or skipped when the later commit is the higher one.",
        avoid="Commit by hand, and drop what was read before the event `consumer:group:join`.",
    ),
    Judgement(
        key="B6",
        verdict=Verdict.BREACH,
        libraries=("@platformatic/kafka",),
        rules=("P-11",),
        title="@platformatic/kafka submits an assignment that it was told to skip",
        protocol="JoinGroup v9 tells a returning static leader SkipAssignment; it then submits nothing (KIP-814, row J9).",
        source="`skipAssignment` is not read in `dist/clients/consumer/consumer.js` of 2.12.1.",
        costs="Nothing, as the broker ignores the assignment of a stable group; the leader has assigned in vain.",
        avoid="No need.",
    ),
    Judgement(
        key="B7",
        verdict=Verdict.BREACH,
        libraries=("kafka-go",),
        rules=("O-06", "O-05"),
        title="kafka-go commits records of an earlier generation in the current one",
        protocol="As in B5: a member commits the partitions that its generation assigned to it; the broker checks generation and member id "
        "alone (row C17).",
        source="`Reader.CommitMessages` (`reader.go`) puts offsets into the channel `commits` without a generation. Whichever generation runs "
        "`commitLoopImmediate` or `commitLoopInterval` next takes them out and sends them with `gen.CommitOffsets`, whoever has the partitions "
        "now.",
        costs="The offsets of a partition are set by two members: records are read twice, or skipped when the later commit is the higher one.",
        avoid="Use `ConsumerGroup` and `Generation.CommitOffsets`, which is bound to its generation; `Reader` does not tell of a rebalance.",
        known="[kafka-go#1308](https://github.com/segmentio/kafka-go/issues/1308) describes it, "
        "[#1330](https://github.com/segmentio/kafka-go/pull/1330) is a mend that is not merged.",
    ),
    Judgement(
        key="B8",
        verdict=Verdict.BREACH,
        libraries=("kafka-python",),
        rules=("O-06", "O-05"),
        scenarios=("transactions",),
        title="kafka-python 3 gives out a generation and an assignment that do not belong together",
        protocol="As in B5. A transaction carries generation and member id (KIP-447) so that the coordinator can refuse offsets of partitions "
        "that the member has lost; that needs both of one generation.",
        source="The join runs in the I/O thread: `_process_join_group_response` (`kafka/coordinator/base.py` of 3.0.12, line 596) sets "
        "`_generation` at once, and `group_metadata()` (line 887) gives it out. What `assignment()` says changes with the next poll.",
        costs="Offsets of a partition that another member has now are accepted: its records are read twice or skipped, with exactly-once "
        "semantics.",
        avoid="Take `group_metadata()` before `assignment()`, and drop the transaction when its generation has changed after it.",
    ),
    Judgement(
        key="B9",
        verdict=Verdict.BREACH,
        libraries=("krafka",),
        rules=("stuck", "R-06", "R-07", "T-04"),
        scenarios=("cooperative", "one-by-one", "scale", "partitions"),
        title="krafka throws its membership away when a heartbeat of the generation before is refused",
        protocol="A Heartbeat that was sent before the new generation was complete is rightly refused with ILLEGAL_GENERATION (rows of "
        "Heartbeat); it says nothing about the membership that JoinGroup has just confirmed. Kafka's own consumer compares the generation "
        "that it sent ([KAFKA-9823](https://github.com/apache/kafka/pull/8445)).",
        source="The heartbeat task goes on while a cooperative member joins in the background, so its Heartbeat waits behind the JoinGroup on "
        "the same connection. `UnknownMemberId | IllegalGeneration` (`src/consumer/group/classic.rs` of 0.28.1, line 590) calls "
        "`signal_member_invalidated` without asking which generation was sent.",
        costs="The member sends a Heartbeat with generation -1 and no id, joins as a new one, and leaves its old id behind. The join phase "
        "waits for that until the session ends; meanwhile the next heartbeats go stale. Groups of four did not become stable in 90 s.",
        avoid="The protocol of KIP-848 (`GroupProtocol::Consumer`), or an eager assignor.",
    ),
    Judgement(
        key="B10",
        verdict=Verdict.BREACH,
        libraries=("@platformatic/kafka",),
        rules=("A-04", "A-11"),
        title="@platformatic/kafka assigns topics to members that did not subscribe to them",
        protocol="The leader divides the partitions of a topic among the members whose subscription has it (ConsumerPartitionAssignor).",
        source="`roundRobinAssigner` (`dist/clients/consumer/partitions-assigners.js` of 2.12.1) deals all partitions to all members and does "
        "not read their topics; the topics are those of the leader alone. Seen when a member closed: it joins once more without topics, and "
        "is given a share, or gives nobody anything if it leads.",
        costs="Nobody reads those partitions until the next rebalance; with members of different subscriptions, for good.",
        avoid="One subscription for all members, or an assigner of one's own.",
        known="no thread found; [kafkajs#1679](https://github.com/tulios/kafkajs/issues/1679) describes the same of kafkajs.",
    ),
    Judgement(
        key="O6",
        verdict=Verdict.ODDITY,
        libraries=("@platformatic/kafka",),
        rules=("S-08",),
        title="@platformatic/kafka lets a static member leave when it closes",
        protocol="A static member is away for its session without a rebalance if it sends no LeaveGroup (KIP-345).",
        source="`#performLeaveGroup` (`dist/clients/consumer/consumer.js`, line 1595 of 2.12.1), which `close()` calls, sends LeaveGroup with the "
        "member id alone, whatever `groupInstanceId` is.",
        costs="A rolling restart rebalances although the members are static.",
        avoid="End the process without close().",
        known="[platformatic/kafka#148](https://github.com/platformatic/kafka/issues/148) asked for static members; nobody mentions this.",
    ),
    Judgement(
        key="O1",
        verdict=Verdict.ODDITY,
        libraries=("kafka-streams",),
        rules=("C-14", "T-04", "T-09"),
        title="Kafka Streams closes without LeaveGroup",
        protocol="LeaveGroup is optional; without it the broker removes a member when its session ends.",
        source="`KafkaStreams.close()` keeps the membership unless CloseOptions ask to leave.",
        costs="After a scale-down the partitions of the closed instance rest for a session timeout (45 s by default).",
        avoid="Close with CloseOptions that leave the group, or use static members with a short session timeout.",
        known="[apache/kafka#16316](https://github.com/apache/kafka/pull/16316) documents it, "
        "[KAFKA-13217](https://github.com/apache/kafka/pull/12035) made it an option.",
    ),
    Judgement(
        key="O2",
        verdict=Verdict.ODDITY,
        libraries=("kafka-go",),
        rules=("T-04",),
        title="kafka-go forgets its member id when JoinGroup fails",
        protocol="A member whose connection ends may send JoinGroup again with its id (row J21). A new id is lawful, but the old one stays "
        "a member until its session ends.",
        source="`ConsumerGroup.joinGroup` returns an empty member id with every error, so `run` has nothing to hand to `leaveGroup`, which "
        "it calls for this case (`consumergroup.go`).",
        costs="The group waits a session timeout for a member that does not exist any more; if it was the leader, SyncGroup of all others "
        "is held so long and then answered REBALANCE_IN_PROGRESS.",
        avoid="A short session timeout.",
        known="[kafka-go#1215](https://github.com/segmentio/kafka-go/issues/1215) describes the same loss of the id on another path.",
    ),
    Judgement(
        key="O3",
        verdict=Verdict.ODDITY,
        libraries=("kafkajs",),
        rules=("T-04",),
        scenarios=("slow-poll",),
        title="kafkajs does not heartbeat while a record is processed",
        protocol="A member heartbeats within its session timeout, however long it processes (KIP-62 separated the two limits).",
        source="The runner calls `heartbeat()` between records and batches; there is no timer (`src/consumer/runner.js`).",
        costs="Processing of one record for longer than `sessionTimeout` costs the membership; T-04 tells it, where other libraries are T-05.",
        avoid="Call the `heartbeat` that `eachMessage` and `eachBatch` are handed, or raise `sessionTimeout`.",
        known="It is documented.",
    ),
    Judgement(
        key="O4",
        verdict=Verdict.ODDITY,
        libraries=("confluent-kafka", "rdkafka"),
        rules=("M-10", "T-04"),
        scenarios=("leave",),
        title="librdkafka leaves with the next poll, not with unsubscribe()",
        protocol="A member that wants to go sends LeaveGroup; until then it heartbeats (rows of LeaveGroup and Heartbeat).",
        source="`unsubscribe()` sets RD_KAFKA_CGRP_F_LEAVE_ON_UNASSIGN_DONE (`src/rdkafka_cgrp.h`) and queues a revocation, which the "
        "application takes with its next poll; LeaveGroup is sent when that is done. The scenario does not poll between, and then the member is "
        "silent until its session ends; a later LeaveGroup is refused.",
        costs="The partitions rest for a session timeout, if the application does something else first.",
        avoid="Poll once after `unsubscribe()`.",
        known="[confluent-kafka-dotnet#374](https://github.com/confluentinc/confluent-kafka-dotnet/issues/374) describes it.",
    ),
    Judgement(
        key="O5",
        verdict=Verdict.ODDITY,
        libraries=("kafka-streams",),
        rules=("A-11",),
        scenarios=("topic-anew",),
        title="Kafka Streams assigns nothing while a source topic is missing",
        protocol="The leader divides the partitions of the topics that members subscribe to.",
        source="The leader's assignor answers a missing source topic with INCOMPLETE_SOURCE_TOPIC_METADATA for all members, and "
        "`StreamsRebalanceListener.onPartitionsAssigned` throws MissingSourceTopicException on that code.",
        costs="The application rests until its threads are replaced after the topic is there again.",
        avoid="Do not delete the source topics of a running application.",
    ),
    Judgement(
        key="O8",
        verdict=Verdict.ODDITY,
        libraries=("faust-streaming",),
        rules=("A-11", "stuck"),
        scenarios=("topic-anew", "slow-poll"),
        title="faust does not come back to a group that it has left for want of polls",
        protocol="A member polls as long as it is one, also without partitions; LeaveGroup ends its membership.",
        source="`Consumer._wait_next_records` (`faust/transport/consumer.py` of 0.15.3) fetches only if there are active partitions. The topic "
        "was gone when the leader assigned; aiokafka beneath takes the silence for an application that does not poll, and sends LeaveGroup "
        "after `max_poll_interval_ms`. It leaves in the same way while a record takes too long; why it does not poll after that either was not "
        "found.",
        costs="After a slow record, or when a topic is deleted and created again, the application has to be restarted.",
        avoid="A larger `broker_max_poll_interval`; do not delete the topics of a running application.",
        known="[faust#138](https://github.com/faust-streaming/faust/issues/138) describes it.",
    ),
    Judgement(
        key="O9",
        verdict=Verdict.ODDITY,
        libraries=("sarama",),
        rules=("R-08",),
        title="sarama heartbeats until its session is cleaned up, and joins again after that",
        protocol="A member that a Heartbeat tells REBALANCE_IN_PROGRESS joins again within the rebalance timeout; until then it may heartbeat.",
        source="`sendHeartbeat` (`consumer_group_session.go` of 1.61.1, line 385) tells the session of the rebalance, and the loop goes on; "
        "`release` (line 346) stops it when all claims have ended and `Cleanup` has returned.",
        costs="The others wait for as long as `ConsumeClaim` and the fetches under way take.",
        avoid="Return from `ConsumeClaim` as soon as the session's context is done.",
        known="[sarama#2110](https://github.com/IBM/sarama/pull/2110) made it so, for a member that stopped at once lost its session.",
    ),
    Judgement(
        key="O10",
        verdict=Verdict.ODDITY,
        libraries=("kafka-clients-consumer", "kafka-clients-share", "confluent-kafka-consumer", "krafka-consumer"),
        rules=("stuck",),
        scenarios=("group-deleted",),
        title="Consumers of the newer protocols give up when their group is deleted",
        protocol="A heartbeat to a group that does not exist is answered GROUP_ID_NOT_FOUND. A classic member is told UNKNOWN_MEMBER_ID, joins "
        "again and so creates the group anew.",
        source="Java: `onErrorResponse` (`AbstractHeartbeatRequestManager`) has no case for it and takes it for fatal. librdkafka: "
        "`rd_kafka_cgrp_handle_ConsumerGroupHeartbeat` (`src/rdkafka_cgrp.c`) rejoins on UNKNOWN_MEMBER_ID and FENCED_MEMBER_EPOCH alone. "
        "krafka: `src/consumer/group/kip848.rs` of 0.28.1 backs off, and goes on with the member that is not there any more.",
        costs="The process has to be restarted.",
        avoid="Do not delete groups whose members are away for a moment.",
    ),
    Judgement(
        key="O11",
        verdict=Verdict.ODDITY,
        libraries=("quixstreams",),
        rules=("stuck",),
        title="quixstreams ends the application when a commit is refused",
        protocol="A commit that is refused tells a member that it has lost its partitions; it may join again.",
        source="`Checkpoint.commit` (`quixstreams/checkpointing/checkpoint.py` of 3.28.1, line 408) raises CheckpointConsumerCommitError, which "
        "`Application.run` does not catch; a subscribed topic that is gone ends it alike.",
        costs="After a pause longer than its session, a slow record or a deleted topic the process has to be restarted.",
        avoid="Let a supervisor restart the process.",
    ),
    Judgement(
        key="O12",
        verdict=Verdict.ODDITY,
        libraries=("kafka-go",),
        rules=("R-07",),
        scenarios=("topic-anew",),
        title="kafka-go joins again for everything that its partition watcher sees",
        protocol="A member joins again when the partitions of its topics change; each time all others take part.",
        source="`Generation.partitionWatcher` (`consumergroup.go`, line 512) ends a generation at its start when the topic cannot be read, and "
        "later when the number of its partitions has changed.",
        costs="Several rebalances within a second while a topic is deleted and created again.",
        avoid="`WatchPartitionChanges: false`, or a long `PartitionWatchInterval`.",
    ),
    Judgement(
        key="O13",
        verdict=Verdict.ODDITY,
        libraries=(
            "kafka-clients-consumer",
            "kafka-streams-streams",
            "confluent-kafka-consumer",
            "krafka-consumer",
            "krafka",
            "kafkajs",
        ),
        rules=("R-01", "R-08", "R-14"),
        title="Members of a busy machine give partitions up late",
        protocol="Half of the rebalance timeout is the monitor's patience with a member that others wait for; here that is 4 s.",
        source="Not the library: brokers took up to 2 s to answer a heartbeat then, in all groups at once.",
        costs="Others wait.",
        avoid="No need.",
        known="It is this machine.",
    ),
    Judgement(
        key="O14",
        verdict=Verdict.ODDITY,
        libraries=("confluent-kafka", "rdkafka", "quixstreams"),
        rules=("O-07",),
        scenarios=("restarts", "crashes", "coordinator-moved"),
        title="librdkafka repeats commits that found no coordinator, older ones after newer ones",
        protocol="The coordinator takes the offsets of a commit as they are; a lower one puts the position back.",
        source="Seen in the frames here and in the laboratory (laboratory.md); the line was not looked up.",
        costs="If the partition moves before the next commit, its records are read again.",
        avoid="Synchronous commits.",
    ),
    Judgement(
        key="N1",
        verdict=Verdict.NOISE,
        libraries=("krafka",),
        rules=("C-14",),
        scenarios=("kills",),
        title="C-14 notes, at info, that a broker may be gone when a killed member's connection ends together with those of other groups",
        protocol="A broker that goes ends the connections of all groups at once.",
        source="The stage, not the library: several groups play at a time, and their members happened to end within a second.",
        costs="A note at info, of no certainty, for the time of one session.",
        avoid="No need.",
        known="here",
    ),
    Judgement(
        key="O7",
        verdict=Verdict.ODDITY,
        libraries=("sarama",),
        rules=("T-04",),
        scenarios=("leave",),
        title="sarama stays a member when its session ends, until Close",
        protocol="LeaveGroup is optional; without it the broker removes a member when its session ends.",
        source="`consumerGroupSession.release` ends the heartbeats when the context of `Consume` does; only `consumerGroup.Close` calls "
        "`leave()` (`consumer_group_session.go`, line 366, and `consumer_group.go`, line 198, of 1.61.1).",
        costs="The partitions rest for a session timeout.",
        avoid="Call `Close` when a member is not needed for a while.",
    ),
)


def judged(library: str, rule: str, scenario: str) -> Judgement | None:
    """The judgement of a finding; None when nobody has looked at it yet."""
    return next((one for one in JUDGEMENTS if one.covers(library, rule, scenario)), None)
