#!/usr/bin/env python3
"""Write the wire layouts of the group protocol from Kafka's own message definitions.

    python deploy/make_layouts.py            rewrite coordinator_model/wire/layout_table.py and messages.py, and the tap's own table
    python deploy/make_layouts.py --check    change nothing; exit 1 and name the file when one of them would change

For a new Kafka release: change the revision in ``deploy/ivy-layouts.xml``, run this, then the tests.

The definitions (``common/message/*.json``) are read out of the kafka-clients jars, which the Ivy that pyspark ships fetches by their
coordinates. Facts alone are taken over: names, types, versions, nullability, defaults and tags. The older of the two releases gives
the versions that the newer one dropped. Where both know a version they must agree on it, and the script stops when they do not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import layout_notes

HERE = Path(__file__).resolve().parent
WIRE = HERE.parent / "coordinator_model" / "wire"
ADDRESS_TABLE = HERE.parent / "streaming" / "mirror" / "rewriting" / "layout_table.py"
IVY_FILE = HERE / "ivy-layouts.xml"
RELEASES = ("current", "legacy")  # configurations of the Ivy file, newest first
STREAMS = "streams"
LOGGING = (
    "kafka28",
    "kafka35",
    "legacy",
    "kafka43",
    "current",
)  # releases whose request logs name fields differently, oldest first

API_KEYS = (8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 25, 26, 28, 42, 47, 68, 69, 76, 77, 88, 89)
ADDRESS_KEYS = (0, 1, 3, 10, 18, 60, 78, 79)  # of answers that hold addresses of brokers, and ApiVersions
EMBEDDED = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
STREAMS_SUBSCRIPTION = ("SubscriptionInfoData", "StreamsSubscriptionInfo")  # Kafka's name, ours

# Protocols that Kafka defines in code and not in message files: the workers of Connect (KIP-415, KIP-507), and of what the Streams leader
# assigns the beginning, up to where its format begins to differ between versions.
WRITTEN_BY_HAND = """
message ConnectWorkerState key none versions 0-2 flexible none
    url                        string                          0+
    config_offset              int64                           0+
    allocation                 bytes                           1+   nullable=1+ default=null

message ConnectAssignment key none versions 0-2 flexible none
    error                      int16                           0+
    leader                     string                          0+
    leader_url                 string                          0+
    config_offset              int64                           0+
    assignment                 []ConnectAssignmentConnector    0+   nullable=1+
    revoked                    []ConnectAssignmentConnector    1+   nullable=1+ default=null
    delay                      int32                           1+
  struct ConnectAssignmentConnector
    connector                  string                          0+
    tasks                      []int32                         0+

message StreamsAssignmentInfo key none versions 1-11 flexible none
    version                    int32                           1+
    commonly_supported_version int32                           3+   default=-1
"""
WIRE_TYPES = {"bool", "int8", "int16", "uint16", "int32", "int64", "string", "bytes", "uuid"}


class LayoutError(Exception):
    """The definitions cannot be turned into the table; the message says which one and why."""


# --------------------------------------------------------------------------------------------------------------------------------
# Fetching


def cache_folder() -> Path:
    """Where the jars are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rebalance-monitor" / "layouts"


def fetch_jars(folder: Path | None = None) -> dict[str, list[Path]]:
    """Jars of each release by configuration name, fetched with Ivy unless the cache has them.

    :raises LayoutError: when there is no Java, or the jars cannot be fetched.
    """
    folder = folder or cache_folder()
    stamp = folder / "ivy-layouts.xml"
    if not stamp.exists() or stamp.read_bytes() != IVY_FILE.read_bytes():
        _run_ivy(folder)
        stamp.write_bytes(IVY_FILE.read_bytes())
    return {release: _jars(folder / release) for release in {*RELEASES, STREAMS, *LOGGING}}


def _revision(release: str) -> str:
    found = re.search(rf'name="kafka-\w+" rev="([^"]+)" conf="{release}->', IVY_FILE.read_text())
    if found is None:
        raise LayoutError(f"{IVY_FILE.name} names no Kafka release for {release!r}")
    return found[1]


def _jars(folder: Path) -> list[Path]:
    """What Ivy put there for the revision of now; jars of an earlier one may lie beside it."""
    revision = _revision(folder.name)
    return [
        jar for jar in sorted(folder.glob("*.jar")) if not jar.name.startswith("kafka-") or jar.name.endswith(f"-{revision}.jar")
    ]


def _run_ivy(folder: Path) -> None:
    import pyspark  # noqa: PLC0415 - only to find its jars, and only when something must be fetched

    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        "java",
        "-jar",
        str(ivy),
        "-ivy",
        str(IVY_FILE),
        "-confs",
        *sorted({*RELEASES, STREAMS, *LOGGING}),
        "-types",
        "jar",
        "bundle",
    ]
    command += ["-cache", str(folder / "ivy"), "-retrieve", f"{folder}/[conf]/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LayoutError("java is not installed: Ivy needs it to fetch the kafka-clients jars") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if "not found" in line or "Exception" in line]
        raise LayoutError("the kafka-clients jars could not be fetched: " + "; ".join(lines[:3] or [done.stderr.strip()[-300:]]))


def kafka_jar(jars: list[Path]) -> Path:
    """Kafka's own jar among the jars of one release."""
    return next(jar for jar in jars if jar.name.startswith("kafka-"))


# --------------------------------------------------------------------------------------------------------------------------------
# Reading one release


@dataclass(frozen=True)
class Range:
    """Versions ``first`` to ``last``; ``last`` None means "and all later ones"."""

    first: int
    last: int | None

    def __contains__(self, version: int) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first}+"
        return f"{self.first}-{self.last}" if self.last != self.first else str(self.first)


def read_range(text: str | None) -> Range | None:
    """``0+``, ``2-4``, ``3``; None for none."""
    if text is None or text == "none":
        return None
    if text.endswith("+"):
        return Range(int(text[:-1]), None)
    first, _, last = text.partition("-")
    return Range(int(first), int(last or first))


@dataclass(frozen=True)
class Column:
    """One field."""

    name: str
    type: str
    versions: Range
    nullable: Range | None
    default: str | None
    ignorable: bool
    tag: int | None


@dataclass
class Message:
    """One message with its structs by name; its own fields stand under its own name."""

    name: str
    key: int | None
    versions: Range
    flexible: Range | None
    structs: dict[str, list[Column]] = field(default_factory=dict)
    settled: bool = True  #: False where the release itself calls the latest version unstable

    def valid(self) -> range:
        """The versions that the release speaks."""
        assert self.versions.last is not None
        return range(self.versions.first, self.versions.last + 1)

    def wire(self, struct: str, version: int) -> list[tuple[Any, ...]]:
        """What decides the bytes of one version, for comparison."""
        return [
            (column.type, column.nullable is not None and version in column.nullable, column.tag)
            for column in self.structs[struct]
            if version in column.versions
        ]


def read_release(jar: Path) -> dict[str, Message]:
    """The messages of :data:`API_KEYS` and the embedded ones, by name."""
    return {
        definition["name"]: _read_message(definition)
        for definition in _definitions(jar)
        if definition.get("apiKey") in API_KEYS or definition["name"] in (*EMBEDDED, STREAMS_SUBSCRIPTION[1])
    }


def read_answers(jar: Path) -> dict[str, Message]:
    """The responses of :data:`ADDRESS_KEYS`, by name."""
    return {
        definition["name"]: _read_message(definition)
        for definition in _definitions(jar)
        if definition.get("apiKey") in ADDRESS_KEYS and definition["type"] == "response"
    }


def _definitions(jar: Path) -> list[dict[str, Any]]:
    found = []
    with zipfile.ZipFile(jar) as archive:
        for member in sorted(archive.namelist()):
            if re.fullmatch(r"common/message/\w+\.json", member):
                definition = json.loads(_without_comments(archive.read(member).decode()))
                if definition["name"] == STREAMS_SUBSCRIPTION[0]:
                    definition["name"] = STREAMS_SUBSCRIPTION[1]
                found.append(definition)
    return found


def _without_comments(text: str) -> str:
    strings_or_comments = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
    return strings_or_comments.sub(lambda found: "" if found[0].startswith("/") else found[0], text)


def _read_message(definition: dict[str, Any]) -> Message:
    name = definition["name"]
    versions = read_range(definition["validVersions"])
    if versions is None:
        raise LayoutError(f"{name} has no valid version")
    message = Message(name, definition.get("apiKey"), versions, read_range(definition["flexibleVersions"]))
    message.settled = not definition.get("latestVersionUnstable", False)
    message.structs[name] = []
    for common in definition.get("commonStructs", []):
        _read_struct(message, common["name"], common["fields"])
    _read_struct(message, name, definition["fields"])
    return message


def _read_struct(message: Message, struct: str, fields: list[dict[str, Any]]) -> None:
    columns = [_read_field(message, definition) for definition in fields]
    message.structs[_struct_name(message, struct)] = columns
    for definition in fields:
        if "fields" in definition:
            _read_struct(message, definition["type"].removeprefix("[]"), definition["fields"])


def _struct_name(message: Message, struct: str) -> str:
    """Struct names are unique within a message only, so the message's name goes in front."""
    return struct if struct.startswith(message.name) else message.name + struct


def _read_field(message: Message, definition: dict[str, Any]) -> Column:
    array, item = ("[]", definition["type"][2:]) if definition["type"].startswith("[]") else ("", definition["type"])
    item = "bytes" if item == "records" else item
    if item[0].islower() and item not in WIRE_TYPES:
        raise LayoutError(f"{message.name}.{definition['name']} is of type {item}, which the compiler does not know")
    versions = read_range(definition["versions"])
    if versions is None:
        raise LayoutError(f"{message.name}.{definition['name']} is in no version")
    if "tag" in definition and definition["taggedVersions"] != definition["versions"]:
        raise LayoutError(f"{message.name}.{definition['name']} is tagged in some of its versions only")
    return Column(
        name=re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", definition["name"]).lower(),
        type=array + (item if item in WIRE_TYPES else _struct_name(message, item)),
        versions=versions,
        nullable=read_range(definition.get("nullableVersions")),
        default=_default(definition.get("default")),
        ignorable=definition.get("ignorable") in (True, "true"),
        tag=definition.get("tag"),
    )


def _default(value: Any) -> str | None:
    text = str(value).lower() if isinstance(value, bool) else value
    return None if text in (None, "", "0", "false") else str(text)  # those are what the type has anyway


# --------------------------------------------------------------------------------------------------------------------------------
# Joining two releases


def join(newer: Message, older: Message | None) -> Message:
    """``newer`` with the versions that only ``older`` speaks."""
    if older is None:
        return newer
    dropped = [version for version in older.valid() if version < newer.versions.first]
    joined = replace(newer, versions=Range(min(newer.versions.first, older.versions.first), newer.versions.last))
    joined.structs = {
        struct: _join_columns(columns, older.structs.get(struct, []), dropped) for struct, columns in newer.structs.items()
    }
    _must_agree(joined, newer, newer.valid())
    _must_agree(joined, older, [v for v in older.valid() if v in dropped or older.settled or v < older.valid()[-1]])
    return joined


def _join_columns(newer: list[Column], older: list[Column], dropped: list[int]) -> list[Column]:
    columns, at = list(newer), 0
    names = [column.name for column in newer]
    for column in older:
        if column.name in names:
            at = [known.name for known in columns].index(column.name) + 1
        elif any(version in column.versions for version in dropped):
            columns.insert(at, column)
            at += 1
    return columns


def _must_agree(joined: Message, release: Message, versions: Any) -> None:
    for struct in release.structs:
        for version in versions:
            if joined.wire(struct, version) != release.wire(struct, version):
                raise LayoutError(f"the releases differ on {struct} version {version}: {joined.wire(struct, version)}")


def read_all(jars: dict[str, list[Path]]) -> list[Message]:
    """Every message of both releases, joined; requests before responses, by key."""
    newer, older = (read_release(kafka_jar(jars[release])) for release in RELEASES)
    messages = [join(message, older.get(message.name)) for message in newer.values()]
    messages += [*read_release(kafka_jar(jars[STREAMS])).values(), *_read_hand_written()]
    return sorted(
        messages, key=lambda message: (message.key is None, message.key or 0, message.name.endswith("Response"), message.name)
    )


def read_all_answers(jars: dict[str, list[Path]]) -> list[Message]:
    """The messages of the tap's own table, joined, by key. What the older release calls unstable was never spoken."""
    newer, older = (read_answers(kafka_jar(jars[release])) for release in RELEASES)
    known = {name: message for name, message in older.items() if message.settled}
    return sorted((join(message, known.get(message.name)) for message in newer.values()), key=lambda message: message.key or 0)


def _read_hand_written() -> list[Message]:
    messages: list[Message] = []
    columns: list[Column] = []
    for line in WRITTEN_BY_HAND.splitlines():
        match line.split():
            case ["message", name, "key", _, "versions", versions, "flexible", _]:
                columns = []
                messages.append(Message(name, None, read_range(versions) or Range(0, 0), None, {name: columns}))
            case ["struct", name]:
                columns = messages[-1].structs[name] = []
            case [name, type_, versions, *options]:
                given = dict(option.split("=") for option in options)
                nullable = read_range(given.get("nullable"))
                columns.append(
                    Column(name, type_, read_range(versions) or Range(0, 0), nullable, given.get("default"), False, None)
                )
    return messages


# --------------------------------------------------------------------------------------------------------------------------------
# Writing

TABLE_HEAD = '''"""Kafka's group protocol on the wire, all versions. Written by ``deploy/make_layouts.py``: do not edit.

Kafka {current}, and {legacy} for the versions dropped since; what Streams embeds from {streams}. One line a field, in wire order:

    name   type   versions   [nullable=versions] [default=value] [tag=number] [ignorable]

``0+`` is "from version 0 on". A field without a default has the one of its type: 0, false, "", no bytes, no elements.
``ignorable``: where a version lacks the field, a value may be dropped without an error.
"""

from typing import Final

TABLE: Final = """
'''


ADDRESS_TABLE_HEAD = '''"""Answers that hold addresses of brokers, and ApiVersions. Written by ``deploy/make_layouts.py``: do not edit.

Kafka {current}, and {legacy} for the versions dropped since. Lines as in ``coordinator_model/wire/layout_table.py``.
"""

from typing import Final

TABLE: Final = """
'''


def write_table(messages: list[Message], head: str = TABLE_HEAD) -> str:
    """The text of a ``layout_table.py``."""
    lines = []
    for message in messages:
        key = "none" if message.key is None else message.key
        lines.append(f"message {message.name} key {key} versions {message.versions} flexible {message.flexible or 'none'}")
        for struct in [message.name, *(name for name in message.structs if name != message.name)]:
            if struct != message.name:
                lines.append(f"  struct {struct}")
            lines += [_table_line(column) for column in message.structs[struct]]
        lines.append("")
    head = head.format(current=_revision("current"), legacy=_revision("legacy"), streams=_revision(STREAMS))
    return head + "\n".join(lines) + '"""\n'


def _table_line(column: Column) -> str:
    options = [
        f"nullable={column.nullable}" if column.nullable else "",
        f"default={column.default}" if column.default else "",
        f"tag={column.tag}" if column.tag is not None else "",
        "ignorable" if column.ignorable else "",
    ]
    return f"    {column.name:<29} {column.type:<21} {column.versions!s:<4} {' '.join(filter(None, options))}".rstrip()


MESSAGES_HEAD = """\"\"\"The messages of Kafka's group protocol, one class each for all versions.

Written by ``deploy/make_layouts.py`` from what is on the wire (``layout_table.py``) and what it means (``deploy/layout_notes.py``): do not
edit. A field that a version lacks holds its default.
\"\"\"

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from coordinator_model.wire.message import ZERO_UUID, Request, Response, Struct, UnknownTags
"""
PYTHON_TYPES = {"bool": "bool", "string": "str", "bytes": "bytes", "uuid": "str"}
LINE_LENGTH = 132
PYTHON_ZEROS = {"bool": "False", "string": '""', "bytes": 'b""', "uuid": "ZERO_UUID"}


def write_messages(messages: list[Message]) -> str:
    """The text of ``messages.py``."""
    names = sorted(struct for message in messages for struct in message.structs)
    exported = "\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n"
    return MESSAGES_HEAD + exported + "".join(_class(message, struct) for message in messages for struct in _inside_out(message))


def _inside_out(message: Message) -> list[str]:
    """A struct before those that hold it."""
    order: list[str] = []

    def visit(struct: str) -> None:
        for column in message.structs[struct]:
            inner = column.type.removeprefix("[]")
            if inner in message.structs and inner not in order:
                visit(inner)
        order.append(struct)

    visit(message.name)
    return order


def _class(message: Message, struct: str) -> str:
    base = "Struct" if struct != message.name or message.key is None else "Request" if struct.endswith("Request") else "Response"
    lines = ["", "", "@dataclass(slots=True, kw_only=True, eq=False, repr=False)", f"class {struct}({base}):"]
    lines += [
        f'    """{line}' if at == 0 else f"    {line}".rstrip()
        for at, line in enumerate(layout_notes.class_note(message.name, struct))
    ]
    lines[-1] += '"""' if lines[-1].lstrip().startswith('"""') else ""
    if not lines[-1].endswith('"""'):
        lines.append('    """')
    if struct == message.name and message.key is not None:
        lines += ["", f"    API_KEY: ClassVar[int] = {message.key}"]
    lines.append("")
    for column in message.structs[struct]:
        lines += _wrapped(f"    {column.name}: {_python_type(column)} = {_python_default(column)}")
        lines += _docstring(layout_notes.field_note(message.name, struct, column.name, str(column.versions)))
    if message.flexible:
        lines += ["    unknown_tags: UnknownTags = ()"]
    return "\n".join(lines) + "\n"


def _docstring(text: str) -> list[str]:
    return textwrap.wrap(f'"""{text}"""', LINE_LENGTH, initial_indent="    ", subsequent_indent="    ")


def _wrapped(line: str) -> list[str]:
    """As the formatter would have it."""
    if len(line) <= LINE_LENGTH:
        return [line]
    before, _, inside = line.partition("(")
    return [before + "(", f"        {inside[:-1]}", "    )"]


def _python_type(column: Column) -> str:
    item = column.type.removeprefix("[]")
    python = PYTHON_TYPES.get(item, "int" if item in WIRE_TYPES else item)
    if column.type != item:
        python = f"tuple[{python}, ...]"
    return f"{python} | None" if column.nullable else python


def _python_default(column: Column) -> str:
    if column.default is not None:
        return {"null": "None", "true": "True"}.get(column.default, column.default)
    if column.type.startswith("[]"):
        return "()"
    if column.type in WIRE_TYPES:
        return PYTHON_ZEROS.get(column.type, "0")
    return f"field(default_factory={column.type})"


def main() -> int:
    """Rewrite or check; the process's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a file would change")
    check = parser.parse_args().check
    try:
        jars = fetch_jars()
        messages = read_all(jars)
        texts = {
            WIRE / "layout_table.py": write_table(messages),
            WIRE / "messages.py": write_messages(messages),
            ADDRESS_TABLE: write_table(read_all_answers(jars), ADDRESS_TABLE_HEAD),
        }
    except LayoutError as error:
        print(f"make_layouts: {error}", file=sys.stderr)
        return 2
    except KeyError as error:
        print(f"make_layouts: layout_notes.py says nothing about {error}", file=sys.stderr)
        return 3
    changed = [file for file, text in texts.items() if not file.exists() or file.read_text() != text]
    if not changed:
        print("up to date: " + _relative(texts))
    elif check:
        print(f"{_relative(changed)}: not what Kafka's definitions give; run deploy/make_layouts.py", file=sys.stderr)
        return 1
    else:
        for file in changed:
            file.write_text(texts[file])
        print("written: " + _relative(changed))
    return 0


def _relative(files: Iterable[Path]) -> str:
    return ", ".join(str(file.relative_to(HERE.parent)) for file in files)


if __name__ == "__main__":
    sys.exit(main())
