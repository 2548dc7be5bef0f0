"""What is mirrored of one connection, and what is said when it cannot be followed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.wire.record import MIRRORED_API_KEYS, Kind, Loss, unpack_loss
from streaming.mirror import conversation as conversation_module
from streaming.mirror.client_software import ClientSoftware
from tests.streaming.mirror.talk import METADATA, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE, Talk, heartbeat, other_request
from tests.streaming.mirror.wires import sized


def other_response(correlation_id: int, body: bytes = b"") -> bytes:
    return sized(correlation_id.to_bytes(4, "big", signed=True) + body)


def produce(correlation_id: int, acks: int, version: int = 8) -> bytes:
    transaction = b"\xff\xff" if version < 9 else b"\0\0"
    return other_request(PRODUCE, version, correlation_id, transaction + acks.to_bytes(2, "big", signed=True) + b"\0" * 50)


@pytest.fixture
def talk() -> Talk:
    return Talk()


class TestExchanges:
    def test_a_request_and_its_response_are_mirrored_as_they_were(self, talk):
        asked = talk.request(heartbeat(), 4, 77)
        assert talk.told()[-1] == ("g", "req", 0), "mirrored when seen, not when answered"
        answered = talk.response(wire.HeartbeatResponse(error_code=27), 4, 77)
        request, response = talk.records[-2:]
        assert (request.frame, response.frame) == (asked, answered)
        for record in request, response:
            assert (record.cluster, record.broker, record.connection, record.client_address) == ("c1", "b:9092", "x-1", "10.0.0.7")
            assert (record.api_key, record.api_version, record.correlation_id, record.client_id) == (12, 4, 77, "app-1")
            assert (record.partition, record.offset, record.cut_bytes) == (-1, -1, 0)
        assert (request.at_us, response.at_us) == (1001, 1002)

    def test_negative_correlation_ids_are_as_good(self, talk):
        talk.exchange(-5)
        assert talk.records[-1].correlation_id == -5

    def test_exchanges_are_numbered_without_holes(self, talk):
        talk.api_versions(1)
        for number in range(3):
            talk.client(other_request(METADATA, 12, 10 + 2 * number))
            talk.broker(other_response(10 + 2 * number, b"body"))
            talk.exchange(11 + 2 * number)
        assert [record.exchange for record in talk.records if record.kind is Kind.REQUEST] == [0, 1, 2, 3]

    def test_requests_ahead_are_counted_mirrored_or_not(self, talk):
        talk.client(other_request(METADATA, 12, 1))
        talk.request(heartbeat(), 4, 2)
        talk.request(heartbeat(), 4, 3)
        assert [record.queued_behind for record in talk.records if record.kind is Kind.REQUEST] == [1, 2]
        talk.broker(other_response(1))
        talk.response(wire.HeartbeatResponse(), 4, 2)
        talk.request(heartbeat(), 4, 4)
        assert talk.records[-1].queued_behind == 1

    def test_several_groups_in_one_frame_get_a_copy_each(self, talk):
        frame = talk.request(wire.DescribeGroupsRequest(groups=("a", "b", "a")), 5, 1)
        answer = talk.response(wire.DescribeGroupsResponse(), 5, 1)
        assert talk.told() == [
            ("a", "open", -1),
            ("b", "open", -1),
            ("a", "req", 0),
            ("b", "req", 0),
            ("a", "res", 0),
            ("b", "res", 0),
        ]
        assert {record.frame for record in talk.records} == {b"", frame, answer}

    def test_copies_for_very_many_groups_are_cut_and_say_so(self, talk, monkeypatch):
        monkeypatch.setattr(conversation_module, "FAN_OUT_CAP", 10_000)
        frame = talk.request(wire.DescribeGroupsRequest(groups=tuple(f"group-{n:05}" for n in range(100))), 5, 1)
        copies = [record for record in talk.records if record.kind is Kind.REQUEST]
        assert len(copies) == 100
        for record in copies:
            assert record.frame == frame[:100]
            assert record.cut_bytes == record.capped_bytes == len(frame) - 100

    def test_a_large_frame_is_cut_and_says_so(self):
        talk = Talk(frame_cap=100)
        talk.exchange(1)
        frame = talk.request(wire.SyncGroupRequest(group_id="g", member_id="m" * 500), 5, 2)
        record = talk.records[-1]
        assert (record.group, record.exchange) == ("g", 1), "its group is the connection's"
        assert (record.frame, record.cut_bytes, record.capped_bytes) == (frame[:100], len(frame) - 100, len(frame) - 100)
        answer = talk.response(wire.SyncGroupResponse(assignment=b"a" * 500), 5, 2)
        assert (talk.records[-1].frame, talk.records[-1].cut_bytes) == (answer[:100], len(answer) - 100)
        assert talk.records[-1].capped_bytes == len(answer) - 100

    def test_a_large_first_frame_names_its_group(self):
        talk = Talk(frame_cap=100)
        talk.request(wire.SyncGroupRequest(group_id="h", member_id="m" * 500), 5, 2)
        talk.response(wire.SyncGroupResponse(assignment=b"a" * 500), 5, 2)
        assert talk.told() == [("h", "open", -1), ("h", "req", 0), ("h", "res", 0)]

    def test_an_unknown_version_goes_to_the_groups_of_its_connection(self, talk):
        talk.exchange(1)
        talk.client(other_request(11, 99, 2, b"from the future"))
        talk.broker(other_response(2, b"likewise"))
        assert talk.told()[-2:] == [("g", "req", 1), ("g", "res", 1)]
        assert talk.records[-2].api_version == 99

    def test_an_unreadable_request_on_a_connection_without_group_is_not_lost(self, talk):
        talk.client(other_request(11, 99, 2, b"from the future"))
        talk.broker(other_response(2, b"likewise"))
        talk.close()
        assert talk.told() == [("", "open", -1), ("", "req", 0), ("", "res", 0), ("", "close", -1)]

    def test_an_acks_0_producer_on_the_same_connection_gets_no_answers(self, talk):
        for version in (2, 8, 9, 12):
            talk.client(other_request(PRODUCE, version, 500, b"\0\0" * 3) if version == 2 else produce(500, 0, version))
            talk.exchange(501)
            assert talk.records[-1].kind is Kind.RESPONSE
            assert talk.records[-2].queued_behind == 0
        talk.client(produce(502, -1))
        talk.request(heartbeat(), 4, 503)
        assert talk.records[-1].queued_behind == 1
        talk.broker(other_response(502))
        talk.response(wire.HeartbeatResponse(), 4, 503)
        assert talk.records[-1].kind is Kind.RESPONSE
        assert not talk.opaque

    def test_a_produce_request_whose_acks_cannot_be_read_is_skipped_when_it_has_no_answer(self, talk):
        talk.client(other_request(PRODUCE, 9, 1, b"\x7f" + b"\1\0" * 200))
        talk.exchange(2)
        assert talk.records[-1].kind is Kind.RESPONSE
        assert not talk.opaque


class TestRouting:
    def test_the_opening_and_api_versions_are_held_until_a_group_is_named(self, talk):
        talk.api_versions()
        assert talk.records == []
        talk.exchange(1, "a")
        talk.exchange(2, "b")
        assert talk.told() == [
            *(("a", "open", -1), ("a", "req", 0), ("a", "res", 0), ("a", "req", 1), ("a", "res", 1)),
            *(("b", "open", -1), ("b", "req", 0), ("b", "res", 0), ("b", "req", 2), ("b", "res", 2)),
        ]
        assert [record.at_us for record in talk.records if record.group == "b"] == [1000, 1001, 1002, 1005, 1006], (
            "with their own time"
        )

    def test_a_pipelined_api_versions_answer_reaches_the_group_too(self, talk):
        talk.request(wire.ApiVersionsRequest(client_software_name="lib", client_software_version="1.2"), 3, 0)
        talk.request(heartbeat("a"), 4, 1)
        talk.response(wire.ApiVersionsResponse(), 3, 0)
        talk.request(heartbeat("b"), 4, 2)
        assert [told for told in talk.told() if told[0] == "a"] == [
            ("a", "open", -1),
            ("a", "req", 0),
            ("a", "req", 1),
            ("a", "res", 0),
        ]
        assert [told for told in talk.told() if told[0] == "b"] == [
            ("b", "open", -1),
            ("b", "req", 0),
            ("b", "res", 0),
            ("b", "req", 2),
        ]

    def test_what_one_connection_announced_holds_for_the_others_of_its_client(self):
        """Many clients send ApiVersions on their first connection alone, and a capture may begin later."""
        known = ClientSoftware()
        first, second, other = Talk(software=known), Talk(software=known), Talk(software=known)
        first.request(wire.ApiVersionsRequest(client_software_name="lib", client_software_version="1.2"), 3, 0)
        for talk, client_id in ((second, "app-1"), (other, "app-2")):
            talk.request(wire.HeartbeatRequest(group_id="g"), 4, 1, client_id)
            talk.response(wire.HeartbeatResponse(), 4, 1)
        assert [record.client_software for record in second.records] == ["", "lib 1.2", "lib 1.2"]
        assert [record.client_software for record in other.records] == ["", "", ""]

    def test_nothing_is_said_of_a_client_id_that_two_processes_share(self):
        known = ClientSoftware()
        old, new, third, fourth = (Talk(software=known) for _ in range(4))
        old.request(wire.ApiVersionsRequest(client_software_name="lib", client_software_version="1.2"), 3, 0)
        new.request(wire.ApiVersionsRequest(client_software_name="lib", client_software_version="1.3"), 3, 0)
        third.request(wire.HeartbeatRequest(group_id="g"), 4, 1)
        assert third.records[-1].client_software == ""
        old.close()
        fourth.request(wire.HeartbeatRequest(group_id="g"), 4, 1)
        assert fourth.records[-1].client_software == "lib 1.3"
        new.close()
        third.request(wire.HeartbeatRequest(group_id="g"), 4, 2)
        assert third.records[-1].client_software == "lib 1.3", "it is the last that was announced"

    def test_software_is_told_from_api_versions_on(self, talk):
        talk.api_versions()
        talk.exchange(1)
        assert [record.client_software for record in talk.records] == ["", "", "lib 1.2", "lib 1.2", "lib 1.2"]

    def test_later_frames_without_group_go_to_all_groups_seen(self, talk):
        talk.request(wire.ListGroupsRequest(), 4, 1)
        talk.response(wire.ListGroupsResponse(), 4, 1)
        talk.request(wire.FindCoordinatorRequest(key="transaction", key_type=1), 3, 2)
        talk.response(wire.FindCoordinatorResponse(), 3, 2)
        assert talk.records == [], "nobody to tell"
        talk.exchange(3, "a")
        talk.exchange(4, "b")
        talk.records.clear()
        talk.request(wire.ListGroupsRequest(), 4, 5)
        talk.response(wire.ListGroupsResponse(), 4, 5)
        assert talk.told() == [("a", "req", 2), ("b", "req", 2), ("a", "res", 2), ("b", "res", 2)]

    def test_the_close_goes_to_all_groups_seen(self, talk):
        talk.exchange(1, "a")
        talk.exchange(2, "b")
        talk.close()
        assert talk.told()[-2:] == [("a", "close", -1), ("b", "close", -1)]
        assert talk.records[-1].at_us == talk.now_us

    def test_a_connection_that_spoke_for_no_group_leaves_no_trace(self, talk):
        talk.api_versions()
        talk.client(produce(1, -1))
        talk.broker(other_response(1))
        talk.close()
        assert talk.records == []

    def test_api_versions_again_and_again_is_held_only_so_often(self, talk):
        for number in range(50):
            talk.api_versions(number)
        talk.exchange(60)
        assert len(talk.records) < 15
        assert talk.told()[-1][1] == "res"


class TestOpaque:
    TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(190)

    def test_tls_is_told_to_every_partition_once_the_broker_understands_it(self, talk):
        talk.client(self.TLS_HELLO)
        assert len(talk.opaque) == 1
        assert "not Kafka, or encrypted" in talk.opaque[0]
        assert talk.records == []
        talk.broker(bytes(1000))
        talk.client(bytes(100))
        talk.close()
        began, ended = talk.records
        assert began.kind is ended.kind is Kind.GAP
        assert began.group is ended.group is None
        assert unpack_loss(began.frame) == Loss(records=0, bytes=len(self.TLS_HELLO) + 1000, from_us=1001, to_us=1002)
        assert unpack_loss(ended.frame) == Loss(records=0, bytes=len(self.TLS_HELLO) + 1100, from_us=1001, to_us=1004)

    def test_what_the_broker_does_not_answer_is_no_gap(self, talk):
        talk.client(b"GET / HTTP/1.1\r\n\r\n")
        talk.close()
        assert talk.records == []
        assert len(talk.opaque) == 1

    @pytest.mark.parametrize(
        ("by", "data"),
        [
            ("client", b"\xff\xff\xff\xff"),
            ("client", b"\0\0\0\3abc"),
            ("client", sized(b"\x7f\0\0\0\0\0\0\0")),
            ("client", sized(b"\0\x0c\x7f\0\0\0\0\0")),
            ("broker", b"\xff\xff\xff\xff"),
            ("broker", other_response(99)),
            ("broker", sized(b"\0\0")),
        ],
    )
    def test_once_groups_are_known_they_are_told_at_once(self, talk, by, data):
        talk.exchange(1, "a")
        talk.exchange(2, "b")
        talk.records.clear()
        getattr(talk, by)(data)
        assert talk.told() == [("a", "gap", -1), ("b", "gap", -1)]
        talk.exchange(3)
        assert len(talk.records) == 2, "nothing is guessed afterwards"
        talk.close()
        assert talk.told()[2:] == [("a", "gap", -1), ("b", "gap", -1), ("a", "close", -1), ("b", "close", -1)]

    def test_answers_out_of_order_are_not_paired_by_guess(self, talk):
        talk.request(heartbeat(), 4, 1)
        talk.request(heartbeat(), 4, 2)
        talk.response(wire.HeartbeatResponse(), 4, 2)
        assert "response 2 came where request 1 was to be answered" in talk.opaque[0]
        assert talk.records[-1].kind is Kind.GAP

    def test_a_fault_of_ours_does_not_reach_the_client(self, talk, monkeypatch):
        def fail(body):
            raise ZeroDivisionError

        talk.exchange(1)
        monkeypatch.setattr(conversation_module, "groups_named", fail)
        talk.request(heartbeat(), 4, 2)
        assert talk.opaque == ["internal error: ZeroDivisionError()"]
        assert talk.records[-1].kind is Kind.GAP


class TestSasl:
    PASSWORD = b"correct horse battery staple"

    def _mirrored(self, talk) -> bytes:
        return b"".join(record.frame for record in talk.records)

    def _handshake(self, talk, version: int, error_code: int = 0) -> None:
        talk.client(other_request(SASL_HANDSHAKE, version, 1, b"\0\5PLAIN"))
        talk.broker(other_response(1, error_code.to_bytes(2, "big") + b"\0\0\0\1\0\5PLAIN"))

    def test_sasl_authenticate_is_followed_and_not_mirrored(self, talk):
        talk.api_versions()
        self._handshake(talk, 1)
        talk.client(other_request(SASL_AUTHENTICATE, 2, 2, b"\0user\0" + self.PASSWORD))
        talk.broker(other_response(2, b"token"))
        talk.exchange(3)
        assert talk.told()[-1] == ("g", "res", 1)
        assert self.PASSWORD not in self._mirrored(talk)
        assert not talk.opaque

    @pytest.mark.parametrize(
        "tokens",
        [
            [(b"\0user\0" + PASSWORD, b"")],
            [(b"\0D\0\1\0\0\0\0", b"")],
            [(b"\0\0", b"")],
            [(b"\0A\0pass\0\0\0" + PASSWORD, b"")],
            [(b"\0A\0\1" + PASSWORD, b"")],
            [(b"n,,n=user,r=abc", b"r=abc,s=salt,i=4096"), (b"c=biws,r=abc,p=proof", b"v=signature")],
            [
                (bytes.fromhex("6082") + bytes(range(200)), bytes(100)),
                (b"", bytes(32)),
                (bytes.fromhex("050404ff") + PASSWORD, None),
            ],
        ],
        ids=[
            "plain",
            "plain with control characters",
            "empty names",
            "no version",
            "no client id",
            "scram",
            "gssapi, the last one not answered",
        ],
    )
    def test_bare_tokens_of_the_old_handshake_are_neither_kept_nor_taken_for_frames(self, talk, tokens):
        self._handshake(talk, 0)
        for sent, answer in tokens:
            talk.client(sized(sent))
            if answer is not None:
                talk.broker(sized(answer))
        talk.api_versions(5)
        talk.exchange(6)
        assert talk.told() == [("g", "open", -1), ("g", "req", 0), ("g", "res", 0), ("g", "req", 1), ("g", "res", 1)]
        assert talk.records[-2].queued_behind == 0
        assert self.PASSWORD not in self._mirrored(talk)
        assert not talk.opaque

    def test_a_refused_handshake_is_followed_by_frames(self, talk):
        self._handshake(talk, 0, error_code=33)
        talk.exchange(2)
        assert talk.told()[-1] == ("g", "res", 0)


def _script(talk: Talk) -> tuple[bytes, bytes]:
    """Both directions of a connection with a bit of everything; the requests all come before the responses."""
    requests, responses = [], []
    for number, group in enumerate(["a", "b", "a"]):
        at = 10 * number
        body = wire.JoinGroupRequest(group_id=group, protocol_type="consumer")
        requests += [
            sized(wire.encode_request(body, api_version=9, correlation_id=at, client_id="c")),
            produce(at + 1, 0),
            produce(at + 2, 1),
        ]
        answer = wire.encode_response(wire.JoinGroupResponse(generation_id=number), api_version=9, correlation_id=at)
        responses += [sized(answer), other_response(at + 2, b"x" * 30)]
    return b"".join(requests), b"".join(responses)


@given(data=st.data())
def test_any_split_of_both_directions_gives_the_same_records(data):
    whole = Talk()
    requests, responses = _script(whole)
    whole.client(requests)
    whole.broker(responses)
    cut = Talk()
    for send, stream in ((cut.client, requests), (cut.broker, responses)):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=15)))
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            send(stream[start:end])
    assert not cut.opaque
    assert len(whole.records) == 8
    assert [record._replace(at_us=0) for record in cut.records] == [record._replace(at_us=0) for record in whole.records]


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=60)), max_size=12))
def test_no_bytes_whatsoever_stop_it(portions):
    talk = Talk()
    for from_client, data in portions:
        (talk.client if from_client else talk.broker)(data)
    talk.close()
    assert len(talk.opaque) <= 1
    assert not any(reason.startswith("internal") for reason in talk.opaque)
    assert all(record.api_key in MIRRORED_API_KEYS for record in talk.records if record.kind in (Kind.REQUEST, Kind.RESPONSE))
