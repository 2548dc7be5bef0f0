"""The framer: any split of the byte stream gives the same frames, and it keeps no more than it was asked to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.mirror.frames import FrameReader, UnreadableError, bytes_up_to_acks, client_id

frames_and_wants = st.lists(st.tuples(st.binary(max_size=40), st.lists(st.integers(0, 60), min_size=1, max_size=3)), max_size=12)


def _read(portions: list[bytes], wants: list[list[int]]) -> list[tuple[int, bytes]]:
    """Feed the portions; for each frame ask for its list of wants, one after the other."""
    read: list[tuple[int, bytes]] = []
    asked = 0

    def wanted(size: int, head: bytes) -> int:
        nonlocal asked
        ladder = [min(want, size) for want in wants[len(read)]]
        while asked < len(ladder) and ladder[asked] <= len(head):
            asked += 1
        return ladder[asked] if asked < len(ladder) else 0

    def finished(size: int, head: bytes) -> None:
        nonlocal asked
        read.append((size, head))
        asked = 0

    reader = FrameReader(wanted, finished)
    for portion in portions:
        reader.feed(portion)
    return read


@given(frames=frames_and_wants, data=st.data())
def test_any_split_of_the_stream_gives_the_same_frames(frames, data):
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame, _ in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    portions = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    wants = [wanted for _, wanted in frames]

    read = _read(portions, wants)

    assert read == [(len(frame), frame[: min(max(wanted), len(frame))]) for frame, wanted in frames]
    assert read == _read([stream[i : i + 1] for i in range(len(stream))], wants)


def test_a_large_frame_is_counted_not_kept():
    kept: list[bytes] = []
    reader = FrameReader(lambda size, head: 4, lambda size, head: kept.append(head))
    reader.feed((3_000_000).to_bytes(4, "big"))
    for _ in range(3):
        reader.feed(b"x" * 1_000_000)
        assert len(reader._head) <= 4
    assert kept == [b"xxxx"]


def test_what_wanted_raises_reaches_the_caller():
    def refuse(size: int, head: bytes) -> int:
        raise UnreadableError(str(size))

    with pytest.raises(UnreadableError, match="4294967295"):
        FrameReader(refuse, lambda size, head: None).feed(b"\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"\0\x0c\0\4\0\0\0\1\0\3app", "app"),
        (b"\0\x0c\0\4\0\0\0\1\xff\xff", None),
        (b"\0\x0c\0\4\0\0\0\1\0\0", ""),
        (b"\0\x0c\0\4\0\0\0\1\0\x09app", None),
        (b"\0\x0c\0\4\0\0\0\1", None),
    ],
)
def test_client_id(head, expected):
    assert client_id(head) == expected


def _produce(version: int, *, client: str | None, transaction: str | None, acks: int, tags: bytes = b"\0") -> bytes:
    head = b"\0\0" + version.to_bytes(2, "big") + b"\0\0\0\7"
    head += b"\xff\xff" if client is None else len(client).to_bytes(2, "big") + client.encode()
    if version >= 9:
        size = 0 if transaction is None else len(transaction) + 1
        compact = bytes([size & 0x7F | 0x80, size >> 7]) if size > 127 else bytes([size])
        head += tags + compact + (transaction or "").encode()
    elif version >= 3:
        head += b"\xff\xff" if transaction is None else len(transaction).to_bytes(2, "big") + transaction.encode()
    return head + acks.to_bytes(2, "big", signed=True)


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("client", [None, "", "producer-1", "x" * 300])
@pytest.mark.parametrize("transaction", [None, "", "t" * 200])
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_acks_are_found_in_every_version_of_produce(version, client, transaction, acks):
    expected = _produce(version, client=client, transaction=transaction, acks=acks)
    request = expected + b"\0\0\x75\x30" + b"rest" * 100
    head = request[:8]
    for _ in range(20):
        wanted = bytes_up_to_acks(version, head)
        if wanted == len(head):
            break
        assert wanted > len(head)
        head = request[:wanted]
    assert head == expected


def test_tagged_fields_before_the_acks_are_stepped_over():
    request = _produce(9, client="c", transaction=None, acks=0, tags=b"\2\0\3abc\1\0")
    assert bytes_up_to_acks(9, request) == len(request)


@pytest.mark.parametrize("tags", [b"\x09", b"\xff\xff\xff\xff\xff\x01"])
def test_a_header_full_of_tagged_fields_is_not_followed(tags):
    with pytest.raises(UnreadableError):
        bytes_up_to_acks(9, _produce(9, client="c", transaction=None, acks=0, tags=tags))
