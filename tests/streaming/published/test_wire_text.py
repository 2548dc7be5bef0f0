"""Text from the wire, before a template sees it."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.published.wire_text import LONGEST, harmless, readable, without_addresses


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("größe 日本 عربى", "größe 日本 عربى"),
        ("abc\u202egpj.exe", "abc\\u202egpj.exe"),
        ("a\u200bb\u2066c\x00\x1b[31m\n", "a\\u200bb\\u2066c\\u0000\\u001b[31m\\u000a"),
        ("\ud800", "\\ud800"),
        ("a\u3164b\u034fc\u2800\ufe0f", "a\\u3164b\\u034fc\\u2800\\ufe0f"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(text, shown):
    assert readable(text) == shown


def test_long_text_is_cut_and_stays_different_from_other_long_text():
    one, other = readable("c" * 10_000), readable("c" * 9_999 + "d")
    assert one.startswith("c" * LONGEST + "… (10,000 characters, ")
    assert one != other
    assert max(len(one), len(other)) < LONGEST + 50


@pytest.mark.parametrize("address", ["10.1.2.3", "10.1.2.3:51234", "[fe80::1%eth0]:9092", "2001:db8::17", "::1"])
def test_an_address_is_hidden(address):
    assert without_addresses(f"from {address}, to {address}.") == "from (hidden), to (hidden)."


@pytest.mark.parametrize("text", ["apache-kafka-java 3.9.1", "kafka-2:9092", "1.2.3.4.5", "12:30:01", "999.1.1.1", "::", "a:b"])
def test_what_is_no_address_stays(text):
    assert without_addresses(text) == text


def test_names_that_are_keys_are_left_alone():
    group = {"cluster": "\u202e", "group": "10.0.0.1", "members": [{"client_id": "\u202e", "client_address": "10.0.0.1"}]}
    assert harmless(group, hide_addresses=True) == {
        "cluster": "\u202e",
        "group": "10.0.0.1",
        "members": [{"client_id": "\\u202e", "client_address": "(hidden)"}],
    }


TEXTS = st.text(st.characters(), max_size=6) | st.sampled_from(["x" * LONGEST, "x" * (LONGEST + 1), "10.0.0.1:9092"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS | st.sampled_from(["group", "cluster"]), below, max_size=4),
    max_leaves=12,
)


def spelt(value):
    """Each text of it made readable, but names that are keys."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, list):
        return [spelt(inner) for inner in value]
    if isinstance(value, dict):
        names = {"group", "cluster", "coordinator"}
        return {readable(key): inner if key in names and isinstance(inner, str) else spelt(inner) for key, inner in value.items()}
    return value


@settings(max_examples=5 * settings().max_examples)
@given(VALUES)
def test_each_text_is_made_readable_and_what_need_not_change_is_passed_on_itself(value):
    before = copy.deepcopy(value)
    shown = harmless(value, hide_addresses=False)
    assert value == before
    assert shown == spelt(value)


def test_a_record_that_need_not_change_is_not_copied():
    record = {
        "group": "orders",
        "at": "2026-01-31T12:00:00Z",
        "members": [{"client_id": "a", "took_ms": 3, "new": True, "why": None}],
    }
    assert harmless(record, hide_addresses=False) is record
    assert harmless(record, hide_addresses=True) is not record
    assert harmless({"group": "a\u202eb"}, hide_addresses=False) == {"group": "a\u202eb"}
