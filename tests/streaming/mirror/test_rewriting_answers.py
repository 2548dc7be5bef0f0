"""Rewritten answers: what Kafka's own classes read in them, and what hostile brokers can do with them."""

from __future__ import annotations

import base64
import contextlib
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.mirror.rewriting.answers import AnswerRewriter
from streaming.mirror.rewriting.walk import API_VERSIONS, KNOWN, LAYOUTS, UnrewritableError
from tests.needs import path_of
from tests.oracle.make_frames import ANSWER_KEYS, ANSWERS, OracleError, load_fixtures, read_responses, run_oracle
from tests.samples import sampled

HOST = "tap-{}.example"
KEYS = {layout.name: key for key, layout in LAYOUTS.items()}
METADATA = 3
HIDE = {"ProduceResponse", "FetchResponse", "ShareFetchResponse", "ShareAcknowledgeResponse"}


class Answer(NamedTuple):
    name: str
    version: int
    frame: bytes

    @property
    def api(self) -> tuple[int, int]:
        return KEYS[self.name], self.version


def translated(node_id: int, host: str, port: int) -> tuple[str, int]:
    return HOST.format(node_id % 1000), 9000 + node_id % 1000


def answers(lines: list[dict[str, Any]]) -> list[Answer]:
    return [
        Answer(line["name"], line["version"], base64.b64decode(line["frame"]))
        for line in lines
        if line["name"].endswith("Response")
    ]


@cache
def kept() -> list[Answer]:
    return answers(load_fixtures(ANSWERS))


def sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def rewriter(lowered: Callable[[int, int, int], None] = lambda *_: None) -> AnswerRewriter:
    return AnswerRewriter(translated, lowered)


def rewritten(answer: Answer, portions: Callable[[bytes], Iterator[bytes]] = lambda data: iter([data])) -> bytes:
    """The answer's frame as the client gets it; its size is checked."""
    one = rewriter()
    one.expect(*answer.api)
    out = b"".join(map(one.feed, portions(sized(answer.frame))))
    assert int.from_bytes(out[:4], "big") == len(out) - 4
    return out[4:]


def in_portions(seed: int) -> Callable[[bytes], Iterator[bytes]]:
    chance = random.Random(seed)

    def cut(data: bytes) -> Iterator[bytes]:
        while data:
            size = chance.choice((1, 1, 2, 3, 50, 5_000))
            yield data[:size]
            data = data[size:]

    return cut


def read(found: list[Answer]) -> list[dict[str, Any]]:
    """What Kafka reads in them: the current release, and the older one where that no longer knows the version."""
    asked = [(answer.name.removesuffix("Response"), answer.version, answer.frame) for answer in found]
    asked = [("".join(f"_{c}" if c.isupper() else c.upper() for c in name)[1:], version, frame) for name, version, frame in asked]
    current, legacy = (read_responses(release, asked) for release in ("current", "legacy"))
    return [new if "error" not in new else old for new, old in zip(current, legacy, strict=True)]


def meant(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """What a rewritten answer has to say, by what Kafka read in the broker's."""
    if name in HIDE:
        return {key: one for key, one in value.items() if key not in {"nodeEndpoints", "unknownTags"}}
    if name == "ApiVersionsResponse":
        return value | {"apiKeys": [offered for entry in value["apiKeys"] if (offered := offer(entry)) is not None]}
    for broker in (value, *value.get("brokers", ()), *value.get("coordinators", ())):
        node_id = broker.get("nodeId", broker.get("brokerId", -1))
        if broker.get("host") and node_id >= 0:
            broker["host"], broker["port"] = translated(node_id, "", 0)
    return value


def offer(entry: dict[str, Any]) -> dict[str, Any] | None:
    known = KNOWN.get(entry["apiKey"])
    if known is None or entry["maxVersion"] <= known.last:
        return entry
    return entry | {"maxVersion": known.last} if entry["minVersion"] <= known.last else None


@pytest.mark.parametrize("api_key", sampled(ANSWER_KEYS, [METADATA]))
def test_kafka_reads_what_is_meant_in_random_answers_of_all_versions(api_key: int) -> None:
    path_of("javac")
    seed = random.randrange(1 << 31)
    try:
        found = answers(run_oracle(seed, 1, [api_key]))
    except OracleError as error:
        pytest.skip(str(error))
    versions = range(KNOWN[api_key].last + 1) if api_key < 78 else ()
    assert {answer.api for answer in found} >= {(api_key, version) for version in versions}
    both = read([*found, *(one._replace(frame=rewritten(one, in_portions(seed))) for one in found)])
    for answer, before, after in zip(found, both[: len(found)], both[len(found) :], strict=True):
        assert "error" not in after, (seed, answer, after)
        if answer.name in HIDE:
            assert not after.pop("nodeEndpoints", None), (seed, answer)
            assert others(after.pop("unknownTags", {})) == others(before.get("unknownTags", {})), (seed, answer)
        assert after == meant(answer.name, before), (seed, answer)


def others(tags: dict[str, str]) -> dict[str, str]:
    """Unknown tags without those that hidden addresses get, which random ones may be, too."""
    return {tag: value for tag, value in tags.items() if tag not in {"127", "255"}}


@pytest.mark.parametrize("api", sorted({answer.api for answer in kept()}), ids=str)
def test_portions_make_no_difference(api: tuple[int, int]) -> None:
    for answer in kept():
        if answer.api == api:
            whole = rewritten(answer)
            assert [rewritten(answer, in_portions(seed)) for seed in range(5)] == [whole] * 5


def test_of_an_answer_that_ends_with_addresses_no_other_byte_changes() -> None:
    changed = 0
    for answer in kept():
        if answer.name in {"ProduceResponse", "FetchResponse"}:
            out = rewritten(answer)
            differ = [(old, new) for old, new in zip(answer.frame, out, strict=True) if old != new]
            assert differ in ([], [(0, 0x7F)])
            changed += len(differ)
        elif answer.name in HIDE:
            assert len(rewritten(answer)) == len(answer.frame)
    assert changed > 5


def test_answers_without_addresses_pass_as_they_are() -> None:
    one = rewriter()
    stream = b"".join(sized(bytes((0, 0, 0, 1)) + bytes(size)) for size in (0, 1, 70_000, 3))
    for api in ((-1, -1), (11, 9), (1, 15), (0, 9)):
        one.expect(*api)
    assert b"".join(map(one.feed, in_portions(1)(stream))) == stream


def test_ten_megabytes_of_records_are_not_held_back() -> None:
    records = b"x" * 10_000_000
    partition = bytes(4 + 2 + 8 + 8 + 8) + b"\x00" + bytes(4) + b"\x81\xad\xe2\x04" + records + b"\x00"
    frame = bytes(4) + b"\0" + bytes(4 + 2 + 4) + b"\x02" + bytes(16) + b"\x02" + partition + b"\x00" + b"\x00"
    one, held = rewriter(), 0
    one.expect(1, 17)
    stream, out = sized(frame), bytearray()
    for at in range(0, len(stream), 65_536):
        out += one.feed(stream[at : at + 65_536])
        held = max(held, at + 65_536 - len(out))
    assert bytes(out) == stream
    assert held < 65_536


def test_the_topics_of_a_metadata_answer_are_not_held_back() -> None:
    metadata = next(one for one in kept() if one.api == (3, 12) and len(one.frame) > 5_000)
    one = rewriter()
    one.expect(3, 12)
    topics = bytes(3_000_000)
    one.feed(sized(metadata.frame + topics)[: 4 + len(metadata.frame)])
    assert one.feed(topics) == topics


def test_an_address_of_nobody_stays() -> None:
    frame = bytes(4) + b"\0" + bytes(4) + b"\x00\x0f" + b"\x00" + b"\xff\xff\xff\xff" + b"\x01" + b"\xff\xff\xff\xff" + b"\x00"
    assert rewritten(Answer("FindCoordinatorResponse", 3, frame)) == frame


class TestApiVersions:
    @staticmethod
    def answer(version: int, error: int, *entries: tuple[int, int, int]) -> bytes:
        flexible = version >= 3
        count = bytes([len(entries) + 1]) if flexible else len(entries).to_bytes(4, "big")
        body = b"".join(b"".join(number.to_bytes(2, "big") for number in entry) + (b"\0" if flexible else b"") for entry in entries)
        return bytes(4) + error.to_bytes(2, "big") + count + body + (bytes(4) if version else b"") + (b"\0" if flexible else b"")

    @pytest.mark.parametrize("version", range(6))
    def test_versions_that_are_not_known_are_taken_out(self, version: int) -> None:
        told: list[tuple[int, int, int]] = []
        one = rewriter(lambda *lowered: told.append(lowered))
        one.expect(API_VERSIONS, version)
        broker = self.answer(version, 0, (1, 4, 99), (11, 0, 99), (3, 98, 99), (0, 3, 13), (2000, 0, 1))
        client = self.answer(version, 0, (1, 4, KNOWN[1].last), (11, 0, 99), (0, 3, 13), (2000, 0, 1))
        assert one.feed(sized(broker)) == sized(client)
        assert told == [(1, 99, KNOWN[1].last), (3, 99, -1)]

    @pytest.mark.parametrize("version", [3, 5])
    def test_a_version_the_broker_does_not_speak_is_answered_in_the_oldest(self, version: int) -> None:
        broker, client = self.answer(0, 35, (18, 0, 9)), self.answer(0, 35, (18, 0, KNOWN[18].last))
        one = rewriter()
        one.expect(API_VERSIONS, version)
        assert one.feed(sized(broker)) == sized(client)


class TestHostile:
    @staticmethod
    def fed(api: tuple[int, int], frame: bytes) -> bytes:
        one = rewriter()
        one.expect(*api)
        return one.feed(sized(frame))

    @pytest.mark.parametrize("key", KNOWN)
    def test_an_unknown_version_is_refused(self, key: int) -> None:
        with pytest.raises(UnrewritableError, match=rf"Response version {KNOWN[key].last + 1} is not known to this release"):
            self.fed((key, KNOWN[key].last + 1), bytes(100))

    def test_an_absurd_count_is_refused_before_its_elements_are_read(self) -> None:
        with pytest.raises(UnrewritableError, match="counts 2147483647 elements"):
            self.fed((3, 0), bytes(4) + b"\x7f\xff\xff\xff" + bytes(50))

    def test_a_length_beyond_the_answer_is_refused(self) -> None:
        with pytest.raises(UnrewritableError, match="runs past its end"):
            self.fed((3, 0), bytes(4) + bytes((0, 0, 0, 1)) + bytes(4) + b"\x7f\xff" + bytes(50))

    def test_an_answer_that_is_longer_than_its_fields_is_refused(self) -> None:
        answer = next(one for one in kept() if one.api == (1, 16))
        with pytest.raises(UnrewritableError, match="1 more than its fields"):
            self.fed(answer.api, answer.frame + b"\0")

    def test_more_brokers_than_can_be_are_not_collected(self) -> None:
        one = rewriter()
        one.expect(3, 0)
        broker = bytes((0, 0, 0, 1)) + (200).to_bytes(2, "big") + b"h" * 200 + bytes(4)
        one.feed((2**31 - 1).to_bytes(4, "big") + bytes(4) + (2**23).to_bytes(4, "big"))
        for _ in range(19):
            assert one.feed(broker * 1_000) == b""
        with pytest.raises(UnrewritableError, match="more brokers than any cluster has"):
            one.feed(broker * 1_000)

    @settings(max_examples=3 * settings().max_examples)
    @given(st.data())
    def test_changed_bytes_end_in_a_sentence_or_an_answer_of_its_size(self, data: st.DataObject) -> None:
        found = [one for one in KEPT if len(one.frame) > 10]
        answer = data.draw(st.sampled_from(found))
        frame = bytearray(answer.frame)
        for _ in range(data.draw(st.integers(1, 3))):
            frame[data.draw(st.integers(4, len(frame) - 1))] = data.draw(st.integers(0, 255))
        with contextlib.suppress(UnrewritableError):
            out = self.fed(answer.api, bytes(frame))
            assert int.from_bytes(out[:4], "big") == len(out) - 4


KEPT = kept()
