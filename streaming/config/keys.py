"""The keys of the configuration, derived from the settings classes, so that there is no list to maintain.

This module checks what pydantic-settings does not: variables without a key, values that must be JSON, secrets in the configuration file. It
also finds the source of each value. Some tables have keys chosen by the operator, with plain values (options, headers) or sections
(receivers). Any annotation may be wrapped in ``Optional`` or ``Annotated``.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "REBALANCE_MONITOR_"
NESTING: Final = "__"

NOT_CONFIGURATION: Final = frozenset(f"{PREFIX}{name}" for name in ("TRACEBACK", "JVM_CACHE", "IVY_SETTINGS"))
"""Variables with the monitor's prefix that other modules read: ``streaming.cli``, ``streaming.spark.jvm``."""

_LISTS: Final = (list, tuple, set, frozenset)
_SECRET_OPTION: Final = re.compile(r"(password|secret|key\.pem|keystore\.key|api[._-]?key|authorization|cookie)$", re.IGNORECASE)
_SECRET_IN_JAAS: Final = re.compile(r"(password|secret)\w*\s*=", re.IGNORECASE)

Path = tuple[str, ...]
"""The parts of a key."""


# --- what keys there are ----------------------------------------------------------------------------------------------


def keys(of: type) -> dict[str, Any]:
    """Return the names and annotations of a settings class."""
    if issubclass(of, BaseModel):
        return {name: field.annotation for name, field in of.model_fields.items()}
    return get_type_hints(of)


def section(annotation: Any) -> type | None:
    """Return the settings class in an annotation; None for a list, a table or a plain value."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)):
        return annotation
    if get_origin(annotation) in (*_LISTS, dict):
        return None
    return next((found for each in get_args(annotation) if (found := section(each)) is not None), None)


def table(annotation: Any) -> Any:
    """Return the value annotation of a table whose keys the operator chooses; None for anything else."""
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    if get_origin(annotation) in _LISTS:
        return None
    return next((found for each in get_args(annotation) if (found := table(each)) is not None), None)


def is_list(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return origin in _LISTS or (origin is not dict and any(is_list(each) for each in get_args(annotation)))


def is_secret(annotation: Any) -> bool:
    return annotation is SecretStr or (get_origin(annotation) is not dict and any(is_secret(each) for each in get_args(annotation)))


def inside(annotation: Any, part: str) -> Any:
    """Return the annotation below one part of a key; None if there is none."""
    under = table(annotation)
    if under is not None:
        return under
    here = section(annotation)
    return None if here is None else keys(here).get(part)


def annotation_at(of: type, path: Path) -> Any:
    """Return the annotation of a key; None if the key does not exist."""
    annotation: Any = of
    for part in path:
        annotation = inside(annotation, part)
        if annotation is None:
            return None
    return annotation


def known_paths(of: type) -> Iterator[Path]:
    """Yield every key, except those that the operator names."""
    for name, annotation in keys(of).items():
        here = section(annotation)
        yield from ((name,),) if here is None else ((name, *rest) for rest in known_paths(here))


def suggestion(of: type, path: Path) -> str:
    """Return a suggestion for an unknown key as the end of a sentence, or an empty string."""
    here = section(annotation_at(of, path[:-1])) if path[:-1] else of
    near = difflib.get_close_matches(path[-1], keys(here) if here else (), n=1)
    return f"; did you mean {near[0]}?" if near else ""


# --- the environment --------------------------------------------------------------------------------------------------


class Variable(NamedTuple):
    """An environment variable with the monitor's prefix."""

    name: str  #: as set in the environment
    path: Path  #: the key that it sets, in lower case
    value: str


def variables() -> list[Variable]:
    """Return the variables that set configuration keys; their names are case-insensitive."""
    return [
        Variable(name, tuple(name[len(PREFIX) :].lower().split(NESTING)), value)
        for name, value in sorted(os.environ.items())
        if name.upper().startswith(PREFIX) and name.upper() not in NOT_CONFIGURATION
    ]


def variable_for(path: Path) -> str:
    """Return the name of the environment variable that sets a key."""
    return PREFIX + NESTING.join(path).upper()


def environment_problems(of: type) -> list[str]:
    """Return a sentence for each variable that matches no key, or whose value cannot be parsed."""
    return [sentence for variable in variables() if (sentence := _problem(of, variable)) is not None]


def _problem(of: type, variable: Variable) -> str | None:
    annotation = annotation_at(of, variable.path)
    if annotation is None:
        near = difflib.get_close_matches(variable.name.upper(), map(variable_for, known_paths(of)), n=1, cutoff=0.7)
        meant = f"; did you mean {near[0]}?" if near else ""
        return f"environment variable {variable.name}: the configuration has no key {'.'.join(variable.path)}{meant}"
    wanted: type
    if is_list(annotation):
        if not variable.value.lstrip().startswith("["):
            return None
        wanted, form = list, 'a list, as a,b or in JSON as ["a", "b"]'
    elif table(annotation) is not None or section(annotation) is not None:
        wanted, form = dict, 'a JSON object, as {"key": "value"}'
    else:
        return None
    try:
        found = json.loads(variable.value)
    except ValueError:
        found = None
    return None if isinstance(found, wanted) else f"environment variable {variable.name}: it must hold {form}"


def origin(path: Path, file: Mapping[str, Any]) -> str:
    """Return the source of a key's value: ``file``, ``default``, or the name of an environment variable.

    :param file: the content of the configuration file.
    """
    for variable in variables():
        depth = len(variable.path)
        if variable.path == tuple(part.lower() for part in path[:depth]) and (
            depth == len(path) or _reaches(json.loads(variable.value), path[depth:])
        ):
            return variable.name
    return "file" if _reaches(file, path) else "default"


def _reaches(values: Any, path: Path) -> bool:
    for part in path:
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def with_lists(annotation: Any, values: Any) -> Any:
    """Return the values of the environment, with lists written as ``a,b`` converted."""
    if is_list(annotation) and isinstance(values, str):
        if values.lstrip().startswith("["):
            return json.loads(values)
        return [part.strip() for part in values.split(",") if part.strip()]
    if isinstance(values, Mapping):
        return {name: with_lists(inside(annotation, name), value) for name, value in values.items()}
    return values


# --- the file ---------------------------------------------------------------------------------------------------------


def file_problems(of: type, file: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each secret in the file, and for each boolean where a number is required."""
    problems = []
    for path, value in _values(of, file, ()):
        if may_be_secret(of, path, value):
            problems.append(f"{'.'.join(path)}: a secret does not belong into the configuration file; {_remedy(of, path)}")
        elif isinstance(value, bool) and annotation_at(of, path) in (int, float):
            problems.append(f"{'.'.join(path)}: input should be a number (it is {json.dumps(value)})")
    return problems


def may_be_secret(of: type, path: Path, value: object = "password=") -> bool:
    """Return True if a key is a secret, or a client property or header that contains one.

    :param value: the key's value. By default, a key that can contain a password counts.
    """
    if is_secret(annotation_at(of, path)):
        return True
    above = annotation_at(of, path[:-1]) if path[:-1] else of
    if table(above) is None or section(table(above)) is not None:
        return False
    return is_secret_property(path[-1], value)


def is_secret_property(name: str, value: object) -> bool:
    """Return True if a client property or header is a password or contains one."""
    if name == "sasl.jaas.config":
        return _SECRET_IN_JAAS.search(str(value)) is not None
    return _SECRET_OPTION.search(name) is not None


def _values(annotation: Any, values: Mapping[str, Any], above: Path) -> Iterator[tuple[Path, Any]]:
    for name, value in values.items():
        here = inside(annotation, name)
        if isinstance(value, Mapping) and (section(here) is not None or table(here) is not None):
            yield from _values(here, value, (*above, name))
        elif here is not None:
            yield (*above, name), value


def _remedy(of: type, path: Path) -> str:
    *above, name = path
    parent = section(annotation_at(of, tuple(above))) if above else of
    if parent is None:
        return f"set {variable_for(tuple(above))} to a JSON object that holds it"
    remedy = f"set the environment variable {variable_for(path)}"
    if f"{name}_file" in keys(parent):
        remedy += f", or write it to a file of its own and name that as {'.'.join((*above, name))}_file"
    return remedy
