"""Text from the wire, before a template sees it."""

from __future__ import annotations

import pytest

from streaming.published.wire_text import LONGEST, harmless, readable, without_addresses


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("größe 日本 عربى", "größe 日本 عربى"),
        ("abc\u202egpj.exe", "abc\\u202egpj.exe"),
        ("a\u200bb\u2066c\x00\x1b[31m\n", "a\\u200bb\\u2066c\\u0000\\u001b[31m\\u000a"),
        ("\ud800", "\\ud800"),
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
