"""Compile layouts to decoders: one straight-line Python function per (message, version).

A generated function reads header and body of a frame without a call or a table look-up per field. One ``struct`` call reads adjacent
fields of fixed size and the length that follows them.

Only bad frames, which are read twice, pay for locating the error. The *fast* function omits the check that a string ends within the
frame: a slice beyond the end is merely short, and the next read, or the check at the end, detects that. The *exact* function has that
check and determines the error. The field of each of its lines is recorded, so the exception's line number leads to the field.
Both refuse the same frames.

Bounds: an element count is checked against the minimum size of its elements, and a slice cannot be longer than the frame. Time and
memory are therefore proportional to the frame. The last check of every function, that all bytes are consumed, catches most frames that
are read with the wrong layout.

In flexible versions a position points *at* the last byte of a length prefix while a value is sliced, which saves an addition per
string. Every other position points at the next unread byte.
"""

from __future__ import annotations

import struct
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from coordinator_model.wire import messages
from coordinator_model.wire.errors import DecodeError
from coordinator_model.wire.layouts import INTEGERS, NO_VERSIONS, Field, Layout
from coordinator_model.wire.message import ZERO_UUID, Frame
from coordinator_model.wire.runtime import (
    COUNT,
    NEGATIVE,
    NULL,
    OVERRUN,
    PRESENCE,
    SHORT_LENGTH,
    TAG_SIZE,
    TRAILING,
    WRONG_HEADER,
    UndecodableBytes,
    read_integers,
    read_tag,
    read_tags,
    read_varint,
    uuid_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Decoder: TypeAlias = "Callable[[bytes], Any]"

_UUID_SIZE: Final = 16


# --------------------------------------------------------------------------------------------------------------------------------
# Generating


class _Step(NamedTuple):
    """The place in the message that a generated line reads."""

    path: str  #: ``members[{a1}].metadata``: names in braces are the local lists whose length is the index
    back: int  #: bytes between the field's beginning and the position variable when the line runs
    run: tuple[tuple[int, int, str], ...] = ()  #: for a line that reads several fields: (offset, offset of the end, path) of each


_STEPS: Final[dict[CodeType, tuple[str, int | None, list[_Step]]]] = {}  # by code object: message, version, a step per line


class _Source:
    """The lines of a function that is being generated."""

    def __init__(self, layout: Layout, version: int, *, exact: bool) -> None:
        self.layout = layout
        self.exact = exact
        self.version = version
        self.flexible = version in layout.flexible
        self.lines: list[str] = []
        self.steps: list[_Step] = []
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "Frame": Frame,
            "UndecodableBytes": UndecodableBytes,
            "read_varint": read_varint,
            "read_tags": read_tags,
            "read_tag": read_tag,
            "read_integers": read_integers,
            "uuid_text": uuid_text,
        }
        self._run: list[tuple[str, str, str]] = []  # pending (struct letter, variable, path)
        self._counter = 0
        self._indent = 1

    # -- lines

    def emit(self, line: str, path: str, back: int = 0, run: tuple[tuple[int, int, str], ...] = ()) -> None:
        self.lines.append("    " * self._indent + line)
        self.steps.append(_Step(path, back, run))

    def refuse_if(self, condition: str, reason: str, path: str, back: int = 0) -> None:
        self.emit(f"if {condition}: raise UndecodableBytes({reason!r})", path, back)

    def variable(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}{self._counter}"

    def constant(self, prefix: str, value: Any) -> str:
        name = self.variable(prefix)
        self.names[name] = value
        return name

    def indent(self, by: int) -> None:
        self._indent += by

    # -- runs of fixed size

    def fixed(self, letter: str, variable: str, path: str) -> None:
        """Add a pending field, to be read together with adjacent ones."""
        self._run.append((letter, variable, path))

    def flush(self, *, stay_on_last: bool = False, known_position: int | None = None) -> None:
        """Read the pending fields.

        ``stay_on_last``: leave the position on the last byte read, which is a one-byte prefix. ``known_position``: the constant position
        at which the run begins.
        """
        run, self._run = self._run, []
        if not run:
            return
        path = run[-1][2]
        letters = "".join(letter for letter, _, _ in run)
        size = struct.calcsize(">" + letters)
        if letters == "B":
            self.emit(f"{run[0][1]} = b[p]", path)
        else:
            reader = self.constant("read", struct.Struct(">" + letters).unpack_from)
            targets = ", ".join(variable for _, variable, _ in run)
            self.emit(f"{targets}{',' if len(run) == 1 else ''} = {reader}(b, p)", path, 0, _spans(run))
        advance = size - 1 if stay_on_last else size
        if known_position is not None:
            self.emit(f"p = {known_position + advance}", path)
        elif advance:
            self.emit(f"p += {advance}", path)

    # -- structs

    def struct(self, name: str, path: str, *, outermost: bool = False) -> str:
        """Read one struct; return the variable that holds it."""
        fields = self.layout.fields(name, self.version)
        values = [(field.name, self.field(field, _join(path, field.name))) for field in fields]
        tags = self.tag_section(name, path, values) if self.flexible else None
        self.flush()
        if outermost:
            self.refuse_if("p != z", TRAILING, "")
        made = self.variable("o")
        klass = getattr(messages, name)
        self.emit(f"{made} = new({self.constant('C', klass)})", path)
        given = dict(values)
        for field in self.layout.structs[name]:
            self.emit(f"{made}.{field.name} = {given.get(field.name) or self.default(field)}", path)
        if "unknown_tags" in klass.__slots__:
            self.emit(f"{made}.unknown_tags = {tags or '()'}", path)
        return made

    def default(self, field: Field) -> str:
        """Return the source of a field's default value."""
        if field.default is not None:
            return {"null": "None", "true": "True"}.get(field.default, field.default)
        if field.is_array:
            return "()"
        if field.type in INTEGERS:
            return "False" if field.type == "bool" else "0"
        if field.type in self.layout.structs:
            return f"{self.constant('C', getattr(messages, field.type))}()"
        return repr({"string": "", "bytes": b"", "uuid": ZERO_UUID}[field.type])

    # -- fields

    def field(self, field: Field, path: str) -> str:
        """Read one field; return the variable that holds it."""
        nullable = self.version in field.nullable
        value = self.variable("v")
        if field.is_array:
            self.array(field, value, path, nullable=nullable)
        elif field.type in INTEGERS:
            self.fixed(INTEGERS[field.type], value, path)
        elif field.type == "uuid":
            self.fixed("16s", value, path)
            return f"uuid_text({value})" if not nullable else value
        elif field.type in self.layout.structs:
            if not nullable:
                return self.struct(field.type, path)
            self.nullable_struct(field, value, path)
        else:
            self.text(field.type, value, path, nullable=nullable)
        return value

    def nullable_struct(self, field: Field, value: str, path: str) -> None:
        present = self.variable("n")
        self.fixed("b", present, path)
        self.flush()
        self.emit(f"if {present} == -1: {value} = None", path, 1)
        self.emit(f"elif {present} != 1: raise UndecodableBytes({PRESENCE!r})", path, 1)
        self.emit("else:", path)
        self.indent(1)
        self.emit(f"{value} = {self.struct(field.type, path)}", path)
        self.indent(-1)

    def text(self, type_: str, value: str, path: str, *, nullable: bool) -> None:
        """Read a string or bytes."""
        length = self.variable("n")
        compact = self.flexible
        decode = ".decode()" if type_ == "string" else ""
        self.prefix(length, "B" if compact else "h" if type_ == "string" else "i", path)
        start = "p + 1" if compact else "p"
        back = 0 if compact else 2 if type_ == "string" else 4
        if nullable:
            self.emit(f"if {length} == {0 if compact else -1}:", path)
            self.emit(f"    {value} = None{'; p += 1' if compact else ''}", path)
            self.emit("else:", path)
            self.indent(1)
        if not compact:
            self.refuse_if(f"{length} < 0", NEGATIVE, path, back)
        elif not nullable:
            self.refuse_if(f"not {length}", NULL, path)
        self.emit(f"e = p + {length}", path, back)
        if self.exact:
            self.refuse_if("e > z", OVERRUN, path, back)
        self.emit(f"{value} = b[{start}:e]{decode}; p = e", path, back)
        if nullable:
            self.indent(-1)

    def prefix(self, length: str, letter: str, path: str) -> None:
        """Read a length or count, after the pending fields."""
        self.fixed(letter, length, path)
        self.flush(stay_on_last=letter == "B")
        if letter == "B":
            self.emit(f"if {length} > {SHORT_LENGTH}: {length}, p = read_varint(b, p, {length})", path)

    def array(self, field: Field, value: str, path: str, *, nullable: bool) -> None:
        count = self.variable("n")
        self.prefix(count, "B" if self.flexible else "i", path)
        null, back = ("0", 0) if self.flexible else ("-1", 4)
        if nullable:
            self.emit(f"if {count} == {null}:", path)
            self.emit(f"    {value} = None{'; p += 1' if self.flexible else ''}", path)
            self.emit("else:", path)
            self.indent(1)
        elif self.flexible:
            self.refuse_if(f"not {count}", NULL, path)
        if self.flexible:
            self.emit(f"{count} -= 1; p += 1", path)
        else:
            self.refuse_if(f"{count} < 0", NEGATIVE, path, back)
        self.refuse_if(f"{count} * {self.least(field.item_type)} > z - p", COUNT, path, back)
        self.elements(field, value, count, path)
        if nullable:
            self.indent(-1)

    def elements(self, field: Field, value: str, count: str, path: str) -> None:
        item = field.item_type
        if item in INTEGERS:
            letter = INTEGERS[item]
            self.emit(f"{value} = read_integers(b, p, {count}, {letter!r}) if {count} else ()", path)
            self.emit(f"p += {count} * {struct.calcsize('>' + letter)}", path)
            return
        index = self.variable("a")
        self.emit(f"{index} = []", path)
        self.emit(f"for _ in range({count}):", path)
        self.indent(1)
        inner = f"{path}[{{{index}}}]"
        made = self.struct(item, inner) if item in self.layout.structs else self.field(_element(item), inner)
        self.flush()
        self.emit(f"{index}.append({made})", inner)
        self.indent(-1)
        self.emit(f"{value} = tuple({index})", path)

    def least(self, item: str) -> int:
        """Return the minimum size of an element in bytes; at least 1, because a count must be bounded."""
        if item in INTEGERS:
            return struct.calcsize(">" + INTEGERS[item])
        if item == "uuid":
            return _UUID_SIZE
        if item in self.layout.structs:
            return sum(self.least_of(field) for field in self.layout.fields(item, self.version)) + self.flexible
        return 1 if self.flexible else 2 if item == "string" else 4  # strings, bytes and arrays: the prefix

    def least_of(self, field: Field) -> int:
        if self.version in field.nullable and field.type in self.layout.structs:
            return 1
        return self.least(field.type)

    # -- tags

    def tag_section(self, name: str, path: str, values: list[tuple[str, str]]) -> str:
        """Read the tag section; return the variable that holds the unknown tags."""
        count, tags = self.variable("n"), self.variable("t")
        where = _join(path, "tags")
        self.fixed("B", count, where)
        self.flush(stay_on_last=True)
        known = self.layout.tagged(name, self.version)
        for field in known:
            values.append((field.name, self.variable("v")))
            self.emit(f"{values[-1][1]} = {self.default(field)}", where)
        self.emit(f"if {count}:", where)
        self.indent(1)
        if known:
            self.known_tags(count, tags, known, dict(values), path)
        else:
            self.emit(f"{tags}, p = read_tags(b, p, {count})", where)
        self.indent(-1)
        self.emit("else:", where)
        self.emit(f"    {tags} = (); p += 1", where)
        return tags

    def known_tags(self, count: str, tags: str, known: tuple[Field, ...], values: dict[str, str], path: str) -> None:
        where = _join(path, "tags")
        tag, last, end = self.variable("k"), self.variable("k"), self.variable("k")
        self.emit(f"if {count} > {SHORT_LENGTH}: {count}, p = read_varint(b, p, {count})", where)
        self.emit(f"p += 1; {tags} = []; {last} = -1", where)
        self.refuse_if(f"{count} * 2 > z - p", COUNT, where)
        self.emit(f"for _ in range({count}):", where)
        self.indent(1)
        self.emit(f"{tag}, p, {end} = read_tag(b, p, {last}); {last} = {tag}", where)
        for at, field in enumerate(known):
            inner = _join(path, field.name)
            self.emit(f"{'el' if at else ''}if {tag} == {field.tag}:", inner)
            self.indent(1)
            read = self.field(field, inner)
            self.flush()
            self.emit(f"{values[field.name]} = {read}", inner)
            self.refuse_if(f"p != {end}", TAG_SIZE, inner)
            self.indent(-1)
        self.emit("else:", where)
        self.emit(f"    {tags}.append(({tag}, bytes(b[p:{end}]))); p = {end}", where)
        self.indent(-1)
        self.emit(f"{tags} = tuple({tags})", where)

    # -- whole functions

    def begin(self, position: int = 0) -> None:
        """Emit the first lines: size and position; for messages with ``bytes`` fields also a check that the frame is ``bytes``."""
        self.emit(f"z = len(b); p = {position}", "")
        if any(field.item_type == "bytes" for fields in self.layout.structs.values() for field in fields):
            self.emit("if type(b) is not bytes: raise TypeError", "")

    def function(self) -> Decoder:
        """Compile the lines to a function."""
        file = f"<{self.layout.name} v{self.version}>"
        text = "def decode(b):\n" + "\n".join(self.lines) + "\n"
        exec(compile(text, file, "exec"), self.names)  # noqa: S102 - our own text, made from our own table
        decoder: Decoder = self.names["decode"]
        _STEPS[decoder.__code__] = (self.layout.name, self.version, self.steps)
        return decoder


def _spans(run: list[tuple[str, str, str]]) -> tuple[tuple[int, int, str], ...]:
    at, spans = 0, []
    for letter, _, path in run:
        end = at + struct.calcsize(">" + letter)
        spans.append((at, end, path))
        at = end
    return tuple(spans)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _element(item: str) -> Field:
    return Field("", item, NO_VERSIONS, NO_VERSIONS, None, ignorable=False, tag=None)


def compile_request(layout: Layout, version: int, *, exact: bool) -> Decoder:
    """Return a function from a request's bytes to its :class:`Frame`. If ``exact``, :func:`explain` explains its exceptions."""
    source = _Source(layout, version, exact=exact)
    source.begin()
    for letter, variable, path in (("I", "w", "api_key"), ("i", "c", "correlation_id"), ("h", "n", "client_id")):
        source.fixed(letter, variable, path)
    source.flush(known_position=0)
    source.refuse_if(f"w != {(layout.api_key or 0) << 16 | version}", WRONG_HEADER, "api_key", 10)
    source.emit("if n == -1: client = None", "client_id", 2)
    source.emit("else:", "client_id")
    source.indent(1)
    source.refuse_if("n < 0", NEGATIVE, "client_id", 2)
    source.emit("e = 10 + n", "client_id", 2)
    if exact:
        source.refuse_if("e > z", OVERRUN, "client_id", 2)
    source.emit("client = b[10:e].decode(); p = e", "client_id", 2)
    source.indent(-1)
    return _finish(source, header_tags=source.flexible, client="client", api_key=layout.api_key)


def compile_response(layout: Layout, version: int, *, exact: bool) -> Decoder:
    """Return a function from a response's bytes to its :class:`Frame`. If ``exact``, :func:`explain` explains its exceptions."""
    source = _Source(layout, version, exact=exact)
    source.begin()
    source.fixed("i", "c", "correlation_id")
    # An ApiVersions response is sent before the two sides have agreed on a version: it always has header v0.
    return _finish(
        source, header_tags=source.flexible and layout.name != "ApiVersionsResponse", client="None", api_key=layout.api_key
    )


def compile_body(layout: Layout, version: int, *, begin: int, whole: bool) -> Decoder:
    """Return a function from the bytes of an embedded message, whose fields begin at ``begin``, to that message.

    If ``whole``, bytes left over are refused. :func:`explain` explains its exceptions.
    """
    source = _Source(layout, version, exact=True)
    source.begin(begin)
    source.emit(f"return {source.struct(layout.name, '', outermost=whole)}", "")
    return source.function()


def _finish(source: _Source, *, header_tags: bool, client: str, api_key: int | None) -> Decoder:
    tags = "()"
    if header_tags:
        tags = "ht"
        source.fixed("B", "hn", "header.tags")
        source.flush(stay_on_last=True)
        source.emit("if hn: ht, p = read_tags(b, p, hn)", "header.tags")
        source.emit("else: ht = (); p += 1", "header.tags")
    body = source.struct(source.layout.name, "", outermost=True)
    source.emit("f = Frame()", "")  # it has no __init__, which makes the plain call the fastest
    source.emit(f"f.api_key = {api_key}; f.api_version = {source.version}; f.correlation_id = c", "")
    source.emit(f"f._client_id = {client}; f._header_tags = {tags}; f.body = {body}", "")
    source.emit("return f", "")
    return source.function()


# --------------------------------------------------------------------------------------------------------------------------------
# Explaining a failure


def explain(error: Exception, frame: bytes) -> DecodeError:
    """Return the :class:`DecodeError` for an exception that a generated function raised on ``frame``."""
    found: TracebackType | None = None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in _STEPS:
            found = at
        at = at.tb_next
    if found is None:
        raise error
    message, version, steps = _STEPS[found.tb_frame.f_code]
    step = steps[found.tb_lineno - 2]
    names = found.tb_frame.f_locals
    position = names["p"] - step.back
    path = step.path
    if isinstance(error, UndecodableBytes):
        reason = str(error)
    elif isinstance(error, UnicodeDecodeError):
        reason = "is not UTF-8"
    else:
        reason = OVERRUN
        start, path = next(((start, path) for start, end, path in step.run if position + end > len(frame)), (0, path))
        position += start
    indexes = {name: len(value) for name, value in names.items() if type(value) is list}
    return DecodeError(message, version, path.format_map(indexes), position, reason)
