"""The table and the message classes agree."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from coordinator_model import wire
from coordinator_model.wire import layout_table, messages
from coordinator_model.wire.compiler import _Source, explain
from coordinator_model.wire.encoder import default_of
from coordinator_model.wire.layouts import LAYOUTS, NO_VERSIONS, REQUESTS, RESPONSES, Versions, parse_table

ROOT = Path(__file__).resolve().parents[3]
MONITORED = (8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 25, 26, 28, 42, 47, 68, 69, 76, 77, 88, 89)


def test_every_api_is_there_both_ways():
    assert tuple(REQUESTS) == tuple(RESPONSES) == MONITORED == tuple(wire.API_NAMES)
    for key in MONITORED:
        assert REQUESTS[key].versions == RESPONSES[key].versions
        assert REQUESTS[key].name == f"{wire.API_NAMES[key]}Request"


def test_versions_that_kafka_has_dropped_are_still_there():
    assert wire.supported_versions(8) == range(11)
    assert wire.supported_versions(9) == range(11)
    assert wire.supported_versions(76) == range(2)
    assert wire.supported_versions(0) == range(0)


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_the_classes_have_the_tables_fields_and_defaults(name):
    layout = LAYOUTS[name]
    for struct, fields in layout.structs.items():
        klass = getattr(messages, struct)
        given = {field.name for field in dataclasses.fields(klass)}
        tags = {"unknown_tags"} if layout.flexible != NO_VERSIONS else set()
        assert given == {field.name for field in fields} | tags
        made = klass()
        for field in fields:
            assert getattr(made, field.name) == default_of(field), f"{struct}.{field.name}"
        assert struct in messages.__all__


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_every_field_is_explained(name):
    """Each field's docstring says since when and what; none is left at a blank."""
    source = (ROOT / "coordinator_model" / "wire" / "messages.py").read_text()
    for struct, fields in LAYOUTS[name].structs.items():
        block = source.split(f"class {struct}(")[1].split("\n@dataclass")[0]
        assert block.count('"""') == 2 * (len(fields) + 1), struct


def test_no_text_of_kafka_is_carried_over():
    text = (ROOT / "coordinator_model" / "wire" / "layout_table.py").read_text()
    assert "Licensed" not in text
    assert "//" not in text


def test_version_ranges():
    layouts = parse_table(
        "message M key 5 versions 1-3 flexible none\n  a int32 2\n  b string 1+ nullable=2-3 default=null ignorable\n"
    )
    (a, b) = layouts["M"].structs["M"]
    assert a.versions == Versions(2, 2)
    assert (2 in b.nullable, 1 in b.nullable, "2" in b.nullable) == (True, False, False)
    assert b.ignorable
    assert not a.ignorable
    assert layouts["M"].flexible == NO_VERSIONS
    assert layout_table.TABLE.startswith("\nmessage OffsetCommitRequest key 8")


def test_a_struct_that_a_version_lacks_is_made_anew_each_time():
    layout = LAYOUTS["ConsumerGroupDescribeResponse"]
    (assignment,) = (field for field in layout.structs["ConsumerGroupDescribeResponseMember"] if field.name == "assignment")
    source = _Source(layout, 0, exact=True)
    expression = source.default(assignment)
    made = [eval(expression, source.names) for _ in range(2)]
    assert made == [wire.ConsumerGroupDescribeResponseAssignment()] * 2
    assert made[0] is not made[1]


def test_what_no_generated_code_raised_is_not_explained_away():
    with pytest.raises(ZeroDivisionError):
        explain(ZeroDivisionError(), b"")
