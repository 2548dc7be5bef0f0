"""What coordinators say in the log is told as frames would tell it.

Brokers of 2.8 to 4.4 wrote the lines in ``request_logs/coordinators`` while they wrote the request logs beside it.
"""

from __future__ import annotations

import io
import json
import lzma
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator_model.events import GroupEvent, RebalanceFinished
from coordinator_model.settings import Settings
from streaming.cli import app
from streaming.engine.engine import Engine
from streaming.mirror.broker_log.coordinator_lines import SENTENCES
from streaming.mirror.broker_log.history import CoordinatorHistory
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.pcap.files import opened
from streaming.mirror.record_file import records
from tests.streaming.mirror.request_log_lines import BY_BROKERS, RELEASES, heartbeat

SAID = BY_BROKERS / "coordinators"
PREFIX = {
    "scala": "[2023-11-14 22:13:20,{ms:03}] INFO [GroupCoordinator 1]: {said} (kafka.coordinator.group.GroupCoordinator)\n",
    "java": "[2023-11-14 22:13:20,{ms:03}] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3] {said} "
    "(org.apache.kafka.coordinator.group.GroupMetadataManager)\n",
}


def story(log: bytes) -> list[dict[str, Any]]:
    found: list[GroupEvent] = []
    history = CoordinatorHistory(found.append, "c")
    reader = RequestLogReader(lambda _: None, story=history)
    reader.read([reader.entries_in(opened(io.BytesIO(log)), pytest.fail)])
    history.finish()
    assert len({event.id for event in found}) == len(found)
    return [event.as_json() for event in found]


def said(*sentences: str, by: str = "java") -> list[dict[str, Any]]:
    return story("".join(PREFIX[by].format(ms=10 * number, said=one) for number, one in enumerate(sentences)).encode())


def replayed(path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["replay", "--format", "json", "--events", str(path)], catch_exceptions=False)
    return [json.loads(line) for line in result.stdout.splitlines()]


def finished(events: list[dict[str, Any]]) -> dict[tuple, dict[str, Any]]:
    found = [event for event in events if event.get("kind") == "rebalance_finished" and event["group_type"] == "classic"]
    return {(event["group"], event["to_generation"]): event for event in found if event["ended"] == "every member was served"}


@pytest.mark.parametrize("release", RELEASES)
class TestBrokers:
    def test_each_rebalance_has_the_cause_and_the_members_that_frames_tell(self, release):
        frames = finished(replayed(BY_BROKERS / f"{release}.log.xz"))
        lines = finished(replayed(SAID / f"{release}.log.xz"))
        assert len(frames) >= 4
        told = {key: (event["cause"], len(event["members"]), event["from_generation"]) for key, event in frames.items()}
        for key, event in lines.items():
            cause, members, before = told[key]
            assert (event["cause"], len(event["members"])) == (cause, members)
            assert event["from_generation"] == (before if before is not None else key[1] - 1)
        assert lines.keys() == told.keys()

    def test_each_rebalance_takes_as_long_as_frames_tell(self, release):
        """Two are left out. A broker's first takes long to come to its coordinator, and a session's end is no frame."""
        frames = finished(replayed(BY_BROKERS / f"{release}.log.xz"))
        lines = finished(replayed(SAID / f"{release}.log.xz"))
        compared = {key: event for key, event in lines.items() if key[1] > 1 and event["cause"] != "session expired"}
        assert len(compared) >= 3
        assert {key: abs(event["took_ms"] - frames[key]["took_ms"]) < 50 for key, event in compared.items()} == dict.fromkeys(
            compared, True
        )

    def test_who_came_and_went_is_told(self, release):
        events = story((SAID / f"{release}.log.xz").read_bytes())
        kinds = Counter(event["kind"] for event in events if event["group"] == "billing")
        assert kinds["member_left"] >= 2
        assert kinds["member_joined"] >= 3
        assert kinds["session_over"] >= (0 if release == "2.8" else 1)
        assert {event["source"] for event in events} == {"broker log"}
        assert any(event["kind"] == "rebalance_began" and event["instance_id"] == "pod-1" for event in events)

    def test_groups_with_epochs_are_told(self, release):
        if release < "4":
            pytest.skip("it has none")
        events = [event for event in story((SAID / f"{release}.log.xz").read_bytes()) if event["group"] == "epochs"]
        assert {event["group_type"] for event in events} == {"consumer"}
        began = [(event["cause"], event["generation"]) for event in events if event["kind"] == "rebalance_began"]
        first = began[0][1]
        assert began[:3] == [("joined", first), ("joined", first + 1), ("left", first + 2)]


class TestDemo:
    """A broker of 4.3 wrote both while the demo's troubles were made on it."""

    LOG = BY_BROKERS / "demo-4.3.log.xz"

    def test_each_rebalance_has_the_cause_the_members_and_the_duration_that_frames_tell(self):
        frames, lines = finished(replayed(self.LOG)), finished(story(self.LOG.read_bytes()))
        assert lines.keys() == frames.keys()
        assert len(lines) == 15
        for key, event in lines.items():
            same = frames[key]
            cause = "no SyncGroup in time" if same["cause"] == "not seen" else same["cause"]  # that timer is no frame
            assert (event["cause"], len(event["members"])) == (cause, len(same["members"]))
            assert abs(event["took_ms"] - same["took_ms"]) < 50

    def test_the_troubles_that_the_broker_sees_are_found_in_its_log(self):
        found = {(event["rule"], event["group"], event["client_id"]) for event in replayed(self.LOG) if "rule" in event}
        assert {one for one in found if one[0] not in {"P-10", "V-04"}} == {
            ("T-04", "payments", "payments-worker-2"),
            ("G-01", "shipping", "shipping-worker-1"),
            ("S-01", "inventory", None),
            ("R-08", "billing", "billing-worker-1"),
            ("R-02", "search", "search-worker-1"),
            ("R-14", "returns", "returns-worker-1"),
        }


@pytest.mark.parametrize("release", ["2.4", "2.7"])
class TestBrokersBeforeRequestsWereLogged:
    """Their request log holds no JSON, so no frames tell the same. What was done to them is known."""

    def test_each_rebalance_has_its_cause_and_its_members(self, release):
        rebalances = finished(story((SAID / f"{release}.log.xz").read_bytes()))
        assert [(event["to_generation"], event["cause"], len(event["members"])) for event in rebalances.values()] == [
            (1, "new member", 1),
            (2, "new member", 2),
            (3, "new member", 3),
            (4, "member left", 2),
            (5, "session expired", 1),
            (6, "new member", 2),
        ]

    def test_a_static_member_that_came_back_is_the_one_that_fell_silent(self, release):
        events = story((SAID / f"{release}.log.xz").read_bytes())
        returned, silent = ([event for event in events if event["kind"] == kind] for kind in ("member_replaced", "session_over"))
        assert [event["instance_id"] for event in returned] == ["pod-1"]  # 2.4 names no group
        assert [event["instance_id"] for event in silent] == [None, "pod-1"]
        assert [event["member_id"] for event in silent][1:] == [event["replaced_by"] for event in returned]


class TestOldestBrokers:
    """Those of 2.0 to 2.3: three members, one left, a fourth failed; then the broker was started anew."""

    @pytest.mark.parametrize("release", ["2.1", "2.2", "2.3"])
    def test_each_rebalance_has_its_cause_and_its_members(self, release):
        events = story((SAID / f"{release}.log.xz").read_bytes())
        told = [(event["to_generation"], event["cause"], len(event["members"])) for event in finished(events).values()]
        assert told[:6] == [
            (1, "new member", 1),
            (2, "new member", 2),
            (3, "new member", 3),
            (4, "member left", 2),
            (5, "new member", 3),
            (6, "session expired", 2),
        ]
        lost = [len(event["never_came_back"]) for event in finished(events).values()]
        assert lost[:6] == [0, 0, 0, 0, 0, 1]
        assert [event["reason"] for event in events if event["kind"].startswith("sight")] == ["a coordinator loaded the group"]

    def test_2_0_gives_no_cause_but_the_end_of_a_session(self):
        events = story((SAID / "2.0.log.xz").read_bytes())
        told = [(event["to_generation"], event["cause"], len(event["never_came_back"])) for event in finished(events).values()]
        assert told == [*((generation, "not seen", 0) for generation in range(1, 6)), (6, "session expired", 1)]

    def test_a_static_member_of_2_3_that_came_back_is_told_in_its_group(self):
        events = story((SAID / "2.3.log.xz").read_bytes())
        back = [(event["group"], event["instance_id"]) for event in events if event["kind"] == "member_replaced"]
        assert back == [("g", "pod-2"), ("g", "pod-1")]


class TestSentences:
    @pytest.mark.parametrize(
        ("by", "sentence", "kind", "facts"),
        [
            (
                "scala",
                (
                    "Preparing to rebalance group a b (x) in state PreparingRebalance with old generation 7 (__consumer_offsets-3) (reason: "
                    "Adding new member m-1 with group instance id Some(pod-1); client reason: rebalance enforced (by user))"
                ),
                "rebalance_began",
                {"cause": "new member", "reason": "rebalance enforced (by user)", "member_id": "m-1", "instance_id": "pod-1"},
            ),
            (
                "java",
                (
                    "Preparing to rebalance group g in state PreparingRebalance with old generation 2 (reason: explicit `LeaveGroup` request "
                    "for (m-1) members.)."
                ),
                "rebalance_began",
                {"cause": "member left", "member_id": "m-1", "from_generation": 2},
            ),
            (
                "java",
                (
                    "Preparing to rebalance group g in state PreparingRebalance with old generation 2 (reason: Something new; client reason: "
                    "not provided)."
                ),
                "rebalance_began",
                {"cause": "Something new", "reason": None, "member_id": None},
            ),
            ("scala", "Member m-1 in group g has failed, removing it from the group", "session_over", {"member_id": "m-1"}),
            (
                "scala",
                (
                    "Member MemberMetadata(memberId=m-1, groupInstanceId=Some(pod), clientId=app, clientHost=/10.0.0.7, sessionTimeoutMs=1) "
                    "has left group g through explicit `LeaveGroup`; client reason: the consumer is being closed"
                ),
                "member_left",
                {"member_id": "m-1", "client_id": "app", "client_address": "10.0.0.7", "reason": "the consumer is being closed"},
            ),
            (
                "java",
                "[GroupId g] Member m-1 fenced from the group because it failed to transition from epoch 3 within 60000ms.",
                "member_fenced",
                {"member_id": "m-1", "group_type": "consumer"},
            ),
            (
                "java",
                "[GroupId g][MemberId m-1] Member m-1 fenced from the group because its session expired.",
                "session_over",
                {"member_id": "m-1"},
            ),
            (
                "java",
                "[GroupId g][MemberId m-1] Member joins the streams group.",
                "member_joined",
                {"member_id": "m-1", "group_type": "streams"},
            ),
            (
                "java",
                "[GroupId g][MemberId m-1] Bumped streams group epoch to 3 with metadata hash 17 and validated topic epoch 0.",
                "rebalance_began",
                {"generation": 3},
            ),
            (
                "java",
                "[GroupId g] Streams member m-1 fenced from the group because the member session expired..",
                "session_over",
                {"member_id": "m-1"},
            ),
            ("java", "[GroupId=g] Unloading group metadata for generation 3.", "sight_lost", {}),
            ("scala", "Unloading group metadata for g with generation 3", "sight_lost", {"group": "g"}),
            (
                "scala",
                "Preparing to rebalance group a b with old generation 3 (__consumer_offsets-7)",
                "rebalance_began",
                {"group": "a b", "cause": "not seen", "from_generation": 3, "member_id": None},
            ),
            *(
                (
                    "scala",
                    (
                        "Preparing to rebalance group g in state PreparingRebalance with old generation 3 (__consumer_offsets-7) "
                        f"(reason: {reason})"
                    ),
                    "rebalance_began",
                    {"cause": cause, "member_id": "m-1", "instance_id": instance},
                )
                for reason, cause, instance in (
                    ("Adding new member m-1", "new member", None),
                    ("Adding new member m-1 with group instanceid None", "new member", None),
                    ("Adding new member m-1 with group instanceid Some(pod-1)", "new member", "pod-1"),
                    ("Updating metadata for member m-1", "member updated its metadata", None),
                    ("Updating metadata for member m-1 during Stable", "member updated its metadata", None),
                    ("Updating metadata for static member m-1 with instance id Some(pod-1)", "static member returned", "pod-1"),
                    (
                        (
                            "Group's selectedProtocol will change because static member m-1 with instance id pod-1 joined with change of "
                            "protocol; client reason: none"
                        ),
                        "static member returned",
                        "pod-1",
                    ),
                    ("Removing Set(m-1, m-2) on pending sync request expiration", "no SyncGroup in time", None),
                    ("Removing HashSet(m-1) on pending sync request expiration", "no SyncGroup in time", None),
                    ("Removing [m-1, m-2] on pending sync request expiration", "no SyncGroup in time", None),
                )
            ),
            ("scala", "Member m-1 in group g has left, removing it from the group", "member_left", {"member_id": "m-1"}),
            (
                "scala",
                "Member[group.instance.id Some(pod-1), member.id m-1] in group g has left, removing it from the group",
                "member_left",
                {"member_id": "m-1"},
            ),
            (
                "scala",
                (
                    "Member MemberMetadata(memberId=m-1, groupInstanceId=None, clientId=app, clientHost=/10.0.0.7, sessionTimeoutMs=1) "
                    "has left group g through explicit `LeaveGroup` request"
                ),
                "member_left",
                {"member_id": "m-1", "client_id": "app", "client_address": "10.0.0.7", "reason": None},
            ),
            *(
                ("java", f"{of} has left group through explicit `LeaveGroup` request; client reason: bye", "member_left", facts)
                for of, facts in (
                    ("[Group g] Member m-1", {"member_id": "m-1", "reason": "bye"}),
                    ("[GroupId g] Dynamic member an app-1", {"member_id": "an app-1"}),
                    ("[GroupId g] Static member m-1 with instance id pod-1", {"member_id": "m-1", "instance_id": "pod-1"}),
                )
            ),
            (
                "scala",
                (
                    "Dynamic Member with unknown member id joins group g in Empty state. Created a new member id m-1 for this member and add "
                    "to the group."
                ),
                "member_joined",
                {"member_id": "m-1", "instance_id": None},
            ),
            (
                "java",
                (
                    "Dynamic member with unknown member id joins group g in state Empty. Created a new member id m-1 and added the member to "
                    "the group."
                ),
                "member_joined",
                {"member_id": "m-1"},
            ),
            (
                "scala",
                "Adding new static member Some(pod-1) to group g with member id m-1.",
                "member_joined",
                {"member_id": "m-1", "instance_id": "pod-1"},
            ),
            (
                "scala",
                (
                    "Static member Some(pod-1) of group g with unknown member id rejoins, assigning new member id m-2, while old member id m-1 "
                    "will be removed."
                ),
                "member_replaced",
                {"member_id": "m-1", "instance_id": "pod-1", "replaced_by": "m-2"},
            ),
            (
                "java",
                (
                    "Static member with groupInstanceId=pod-1 and unknown member id joins group g in STABLE state. Replacing previously mapped "
                    "member m-1 with this groupInstanceId."
                ),
                "member_replaced",
                {"member_id": "m-1", "instance_id": "pod-1", "replaced_by": None},
            ),
            (
                "java",
                (
                    "[GroupId g] Static member with instance id pod-1 re-joins the consumer group using the consumer protocol. Created a new "
                    "member m-2 to replace the existing member m-1."
                ),
                "member_replaced",
                {"member_id": "m-1", "instance_id": "pod-1", "replaced_by": "m-2", "group_type": "consumer"},
            ),
            (
                "java",
                (
                    "[GroupId g][MemberId m-2] Static member with instance id pod-1 re-joins the streams group using the streams protocol. "
                    "Created a new member m-2 to replace the existing member m-1."
                ),
                "member_replaced",
                {"member_id": "m-1", "replaced_by": "m-2", "group_type": "streams"},
            ),
            (
                "java",
                "[GroupId g] Static member m-1 with instance id pod-1 temporarily left the consumer group.",
                "member_away",
                {"member_id": "m-1", "instance_id": "pod-1", "group_type": "consumer"},
            ),
            (
                "java",
                "[GroupId g] Static member m-2 with instance id pod-1 is fenced by existing member m-1.",
                "member_fenced",
                {"member_id": "m-2", "instance_id": "pod-1", "error": "FENCED_INSTANCE_ID", "api": None},
            ),
            ("scala", "Group g remove dynamic members who haven't joined: Set(m-1)", "member_dropped", {"member_id": "m-1"}),
            ("scala", "Group g removed dynamic members who haven't joined: Set(m-1, m-2)", "member_dropped", {"member_id": "m-1"}),
            ("java", "Group g removed dynamic members who haven't joined: [m-1]", "member_dropped", {"member_id": "m-1"}),
        ],
    )
    def test_a_sentence_is_an_event(self, by, sentence, kind, facts):
        event = next(event for event in said(sentence, by=by) if event["kind"] == kind)
        assert {name: event[name] for name in facts} == facts

    @pytest.mark.parametrize(
        ("by", "fenced"),
        [
            ("scala", "is fenced by current memberId=m-2 during operation offset-commit"),
            ("java", "is fenced by existing memberId=m-2 during operation offset-commit"),
        ],
    )
    def test_who_goes_on_with_the_old_id_of_a_static_member_is_told_once_in_its_group(self, by, fenced):
        came = "Static member with groupInstanceId=pod-1 and unknown member id joins group g in Empty state. Created a new member id m-2 for this "
        refused = f"Request memberId=m-1 for static member with groupInstanceId=pod-1 {fenced}"
        elsewhere = refused.replace("m-2", "m-3")
        events = said(f"{came}member and add to the group.", refused, refused, elsewhere, by=by)
        told = [
            (event["group"], event["member_id"], event["error"], event["api"])
            for event in events
            if event["kind"] == "member_fenced"
        ]
        assert told == [("g", "m-1", "FENCED_INSTANCE_ID", "OffsetCommit")]

    def test_members_that_others_waited_for_in_vain_never_came_back(self):
        events = said(
            "Preparing to rebalance group g in state PreparingRebalance with old generation 1 (reason: Adding new member m-3 with group "
            "instance id null; client reason: not provided).",
            "Group g removed dynamic members who haven't joined: [m-1, m-2]",
            "Stabilized group g generation 2 with 1 members.",
            "Assignment received from leader m-3 for group g for generation 2. The group has 1 members, 0 of which are static.",
        )
        [over] = [event for event in events if event["kind"] == "rebalance_finished"]
        assert [one["member_id"] for one in over["never_came_back"]] == ["m-1", "m-2"]
        assert [one["member_id"] for one in over["members"]] == ["m-3"]

    @pytest.mark.parametrize(
        ("by", "gone", "back"),
        [
            (
                "scala",
                "Unloading group metadata for g with generation 4",
                "Loading group metadata for g with generation 4",
            ),
            ("java", "[GroupId=g] Unloading group metadata for generation 4.", "Loaded classic group g with 3 members."),
            ("java", "[GroupId=g] Unloaded group metadata for group epoch 4.", "Loaded consumer group g with 3 members."),
        ],
    )
    def test_a_group_that_moves_is_told_where_it_goes_and_where_it_comes(self, by, gone, back):
        events = said("Stabilized group g generation 4 with 3 members.", gone, back, back.replace(" g ", " h "), by=by)
        assert [(event["kind"], event["group"], event["reason"]) for event in events] == [
            ("sight_lost", "g", "the coordinator gave the group away, or stopped"),
            ("sight_regained", "g", "a coordinator loaded the group"),
        ]

    def test_a_group_that_is_converted_has_its_new_type(self):
        events = said("[GroupId g] Converted the classic group to a consumer group.", "[GroupId g] Bumped group epoch to 5.")
        assert [event["group_type"] for event in events] == ["consumer", "consumer"]

    def test_each_sentence_of_the_table_has_a_release(self):
        assert all(sentence.since[0].isdigit() and sentence.until <= "3.9" for sentence in SENTENCES)

    def test_a_rebalance_during_another_ends_it(self):
        began = "Preparing to rebalance group g in state PreparingRebalance with old generation {} (reason: removing member m on heartbeat "
        events = said(began.format(1) + "expiration.).", began.format(1) + "expiration.).")
        assert [(event["kind"], event.get("ended")) for event in events] == [
            ("rebalance_began", None),
            ("rebalance_finished", "the next rebalance began"),
            ("rebalance_began", None),
            ("rebalance_finished", "the log ends before"),
        ]

    def test_other_lines_are_no_news(self):
        assert said("Startup complete.", "Elected as the group coordinator for partition 3 in epoch 0") == []


LINE = (
    "[2023-11-14 22:13:20,123] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3] Member m-1 in group g has failed, removing "
    "it from the group. (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)


class TestWrapped:
    """What those who carry a log away put around a line."""

    @pytest.mark.parametrize(
        "line",
        [
            LINE,
            f"2023-11-14T22:13:20.123000+00:00 AmazonMSK_cluster_Broker_1 {LINE}",
            f"2023-11-14T22:13:20.123Z {LINE}",
            f"2023-11-14T22:13:20.123456789Z stdout F {LINE}",
            json.dumps({"timestamp": 1700000000123, "message": LINE, "logStream": "Broker-1"}),
            json.dumps({"log": f"{LINE}\n", "stream": "stdout", "time": "2023-11-14T22:13:20.123456789Z"}),
            json.dumps({"level": "INFO", "ts": "2023-11-14T22:13:20.123Z", "msg": LINE.partition("INFO ")[2]}),
            f"Nov 14 22:13:20 kafka-1 kafka-server-start.sh[812]: {LINE}",
            f"kafka-1  | {LINE}",
            f"\x1b[32m{LINE}\x1b[0m",
        ],
        ids=[
            "bare",
            "CloudWatch",
            "exported",
            "Kubernetes",
            "CloudWatch JSON",
            "Docker",
            "JSON layout",
            "journal",
            "compose",
            "colours",
        ],
    )
    def test_the_sentence_is_read(self, line):
        [event] = story(f"{line}\n".encode())
        assert (event["kind"], event["group"], event["member_id"]) == ("session_over", "g", "m-1")
        assert event["at"][13:23] == ":13:20.123"


class TestCommand:
    def test_replay_shows_the_history_and_that_no_rule_was_applied(self):
        result = CliRunner().invoke(app, ["replay", str(SAID / "demo-4.3.log.xz")])
        assert result.exit_code == 0
        assert "Rebalance began: no SyncGroup in time, search-worker-1" in result.stdout
        assert "no rule was applied, so no findings; coordinators' lines show not who rejoined" in result.stdout
        assert "no request line: this is what coordinators wrote into the log, and no rule applies to it" in result.stderr

    def test_where_no_line_names_members_no_number_is_told(self):
        told = CliRunner().invoke(app, ["replay", str(SAID / "2.0.log.xz")]).stdout
        assert "Generation 1, members that no line names, after 36 ms" in told
        assert "Members that no line names, after an unknown time; the log ends before" in told
        assert "0 members" not in told

    def test_request_lines_beside_them_are_told_instead(self, tmp_path):
        both = tmp_path / "server.log"
        both.write_bytes(lzma.decompress((SAID / "4.3.log.xz").read_bytes()) + heartbeat(0))
        assert all("source" not in event for event in replayed(both))

    def test_the_end_of_a_session_has_the_time_of_its_line(self, tmp_path):
        """Frames show it at the end of the time that the session may last."""
        both = tmp_path / "server.log"
        logs = [lzma.decompress((folder / "4.3.log.xz").read_bytes()) for folder in (BY_BROKERS, SAID)]
        both.write_bytes(b"".join(logs))
        lines, joined = (
            [event for event in found if event.get("kind") == "session_over" and event["group_type"] == "classic"]
            for found in (story(logs[1]), replayed(both))
        )
        assert [(event["member_id"], event["at"]) for event in joined] == [(event["member_id"], event["at"]) for event in lines]
        assert len(joined) >= 1

    @pytest.mark.parametrize(
        "part",
        [
            "Member ",
            " in group ",
            " ",
            "(kafka.",
            "[GroupId ",
            "static member with instance id ",
            "Preparing to rebalance group g in state S with old generation 1 (reason: ; client reason: ",
        ],
    )
    def test_a_line_of_megabytes_costs_no_more_than_one_of_a_sentence(self, part):
        """Patterns that try each place of it would need hours."""
        assert said(part * (4_000_000 // len(part))) == []

    def test_lines_cut_anywhere_never_raise(self):
        log = lzma.decompress((SAID / "demo-4.3.log.xz").read_bytes())
        for at in range(0, len(log), 977):
            story(log[at : at + 3_000])


class TestOrder:
    """Of the same lines in another order, or given twice, the same events come."""

    def told(self, *logs: list[bytes]) -> list[GroupEvent]:
        found: list[GroupEvent] = []
        story = CoordinatorHistory(found.append, "c")
        reader = RequestLogReader(lambda _: None, story=story)
        reader.read([reader.entries_in(opened(io.BytesIO(b"".join(log))), pytest.fail) for log in logs])
        story.finish()
        return found

    @pytest.mark.parametrize("path", sorted(SAID.glob("*.log.xz")), ids=lambda path: path.name.removesuffix(".log.xz"))
    def test_the_newest_first_put_together_the_wrong_way_round_or_twice(self, path):
        log = lzma.decompress(path.read_bytes()).splitlines(keepends=True)
        half = next(
            at for at in range(len(log) // 2, len(log)) if log[at][:24] != log[at - 1][:24]
        )  # a file ends between two times
        in_order = self.told(log)
        assert len(in_order) > 5
        for others in ([log[::-1]], [log[half:] + log[:half]], [log + log], [log, log], [log[half:], log[: half + 5]]):
            assert self.told(*others) == in_order


class TestCutLines:
    """A line that is cut says nothing of a group, and is counted: the others of the log end with the name of their logger."""

    BEGAN = (
        "Preparing to rebalance group billing in state PreparingRebalance with old generation 3 (reason: Adding new member m-1)."
    )
    JOINED = "[GroupId billing] Member m-1 joins the consumer group using the consumer protocol."
    OTHER = "Scheduling loading of metadata from __consumer_offsets-0 with epoch 0"

    def told(self, *lines: str) -> list[str]:
        reader = RequestLogReader(lambda _: None, story=CoordinatorHistory(lambda _: None, "c"))
        reader.read([reader.entries_in(opened(io.BytesIO("".join(lines).encode())), pytest.fail)])
        return [sentence for sentence in reader.notes() if "cut" in sentence]

    def line(self, said: str) -> str:
        return PREFIX["java"].format(ms=1, said=said)

    def test_lines_cut_at_a_length_are_counted(self):
        log = [self.line(self.OTHER), self.line(self.BEGAN)[:180] + "\n", self.line(self.BEGAN)[:170] + "\n"]
        assert self.told(*log) == ["2 lines of coordinators cut short: what they say of groups is missing"]

    @pytest.mark.parametrize("at", [60, 95, 110, 135])
    def test_where_all_are_cut_those_that_only_begin_are_counted(self, at):
        """No line shows whether loggers are named, as by a pattern without them."""
        log = [self.line(said)[:at] + "\n" for said in (self.BEGAN, self.JOINED, self.BEGAN)]
        assert self.told(*log) == ["3 lines of coordinators cut short: what they say of groups is missing"]

    def test_a_log_in_which_all_are_cut_is_refused_with_that_reason(self, tmp_path):
        (tmp_path / "server.log").write_text("".join(self.line(said)[:140] + "\n" for said in (self.BEGAN, self.JOINED)))
        result = CliRunner().invoke(app, ["replay", str(tmp_path / "server.log")])
        assert result.exit_code == 2
        assert "has lines of coordinators, but all are cut short before they say anything of a group" in " ".join(
            result.stderr.split()
        )

    def test_replay_prints_how_many_are_cut(self, tmp_path):
        whole = lzma.decompress((SAID / "4.3.log.xz").read_bytes()).splitlines(keepends=True)
        (tmp_path / "server.log").write_bytes(
            b"".join(line if number % 2 else line[:90] + b"\n" for number, line in enumerate(whole))
        )
        cut = sum(not number % 2 and b"[Group" in line for number, line in enumerate(whole))
        result = CliRunner().invoke(app, ["replay", str(tmp_path / "server.log")])
        assert f"{cut} lines of coordinators cut short: what they say of groups is missing" in " ".join(result.stderr.split())

    def test_those_that_are_cut_within_json_are_not_counted_as_request_lines(self):
        said = [f"[GroupCoordinator id=1] {one}" for one in (self.BEGAN, self.JOINED)]
        whole = [json.dumps({"timeMillis": 1700000000000, "message": one}) + "\n" for one in said]
        assert self.told(*whole, *(line[:120] + "\n" for line in whole)) == [
            "2 lines of coordinators cut short: what they say of groups is missing"
        ]

    def test_lines_that_are_whole_are_not(self):
        assert self.told(self.line(self.OTHER), self.line(self.BEGAN)) == []

    @pytest.mark.parametrize("path", sorted(SAID.glob("*.log.xz")), ids=lambda path: path.name.removesuffix(".log.xz"))
    def test_lines_of_brokers_whose_pattern_names_no_loggers_are_whole(self, path):
        log = re.sub(rb" \([\w.$]*\)$", b"", lzma.decompress(path.read_bytes()), flags=re.MULTILINE)
        assert self.told(log.decode()) == []

    def test_a_pattern_without_loggers_cuts_nothing(self):
        assert self.told("[2023-11-14 22:13:20,001] INFO [GroupCoordinator id=1] Startup complete.\n") == []


Rebalanced = tuple[str, int | None]
"""Group and generation or epoch that was reached."""


def costs(feed: Callable[[Engine], None]) -> tuple[dict[str, float], dict[Rebalanced, float]]:
    """Of each group the member-seconds, and of each rebalance the partition-seconds that it cost, where these are known."""
    events: list[GroupEvent] = []
    engine = Engine(topic="t", settings=Settings(), found=lambda _: None, happened=events.append)
    feed(engine)
    engine.finish()
    members_s: dict[str, float] = {}
    unheld_s: dict[Rebalanced, float] = {}
    for event in events:
        if isinstance(event, RebalanceFinished):
            members_s[event.group] = members_s.get(event.group, 0.0) + (event.cost_s or 0.0)
            if event.unheld is not None:
                unheld_s[event.group, event.to_generation] = sum(one.us for one in event.unheld) / 1e6
    return members_s, unheld_s


@pytest.mark.parametrize("release", RELEASES)
def test_costs_by_log_by_log_and_lines_and_by_tap_agree_or_are_null(release):
    logs = [lzma.decompress((folder / f"{release}.log.xz").read_bytes()) for folder in (BY_BROKERS, SAID)]

    def of_logs(count: int) -> Callable[[Engine], None]:
        def feed(engine: Engine) -> None:
            reader = RequestLogReader(engine.recorded)
            reader.read([reader.entries_in(opened(io.BytesIO(log)), pytest.fail) for log in logs[:count]])
            reader.finish()

        return feed

    def of_tap(engine: Engine) -> None:
        for record in records(opened(io.BytesIO((BY_BROKERS / f"{release}.records.xz").read_bytes())), pytest.fail):
            engine.recorded(record)

    waited_s, unheld_s = costs(of_tap)
    assert waited_s
    for count in (1, 2):
        logged_waited_s, logged_unheld_s = costs(of_logs(count))
        assert logged_waited_s == pytest.approx(waited_s, abs=1.0)
        assert logged_unheld_s == {key: pytest.approx(unheld_s[key], abs=1.0) for key in logged_unheld_s}
