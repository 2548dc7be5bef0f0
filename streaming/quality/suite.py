"""The suite: what is expected of the mirror topic, as a file in Great Expectations' own format that an operator can extend.

``meta`` of an expectation says what its finding says. An expectation without it is checked too and reported as Q-99.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.finding import Blame, Certainty, Severity
from coordinator_model.rules.base import Rule
from streaming.config.settings import ConfigError
from streaming.quality.frame_rows import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DEFAULT_SUITE: Final = Path(__file__).with_name("suite.json")
FAMILY: Final = "Q"
UNNAMED: Final = "Q-99"

# Great Expectations' words for how bad a failure is, in ours.
_SEVERITIES: Final = {"critical": Severity.ERROR, "warning": Severity.WARNING, "info": Severity.INFO}


class Expected(NamedTuple):
    """One expectation of the suite."""

    rule: Rule
    subject: str  #: what makes it another one than the rest of its rule: its type and arguments
    config: Mapping[str, Any]  #: as Great Expectations reads it
    explain: tuple[str, ...]  #: columns to show beside an offending value

    @property
    def column(self) -> str | None:
        column: str | None = self.config["kwargs"].get("column")
        return column


class Suite(NamedTuple):
    """A suite file, read and checked."""

    name: str
    expectations: tuple[Expected, ...]
    columns: tuple[str, ...]  #: those that any of them asks for


def load(file: Path | None = None) -> Suite:
    """Read a suite file; the one that the monitor brings if none is named.

    :raises ConfigError: when it is not a suite, or an expectation asks for a column that there is not.
    """
    path = file or DEFAULT_SUITE
    try:
        content = json.loads(path.read_text())
        listed = content["expectations"]
        name = str(content["name"])
        expectations = tuple(_expected(path, number, config) for number, config in enumerate(listed, 1))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"quality.suite: cannot read {path}: {error}") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"quality.suite: {path} is not JSON: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise ConfigError(f"quality.suite: {path} is not a suite: it needs a name and a list of expectations") from None
    if not expectations:
        raise ConfigError(f"quality.suite: {path} has no expectations; to switch the checks off, set quality.enabled = false")
    return Suite(name, expectations, _columns(expectations))


def _columns(expectations: Iterable[Expected]) -> tuple[str, ...]:
    """The columns that the arguments name: ``column``, ``column_A``, ``column_list``, the text of a ``row_condition``."""
    arguments = json.dumps([each.config["kwargs"] for each in expectations])
    mentioned = set(re.findall(r"\w+", arguments))
    return tuple(column for column in COLUMNS if column in mentioned)


def _expected(path: Path, number: int, config: Mapping[str, Any]) -> Expected:
    where = f"quality.suite: {path}: expectation {number}"
    if "type" not in config:
        raise ConfigError(f"{where} has no type")
    kwargs, meta = config.get("kwargs", {}), config.get("meta") or {}
    explain = tuple(meta.get("explain", ()))
    for column in (kwargs.get("column", COLUMNS[0]), *explain):
        if column not in COLUMNS:
            raise ConfigError(f"{where} asks for column {column!r}; there are {', '.join(COLUMNS)}")
    severity = config.get("severity", "critical")
    if severity not in _SEVERITIES:
        raise ConfigError(f"{where} has severity {severity!r}; it must be one of {', '.join(_SEVERITIES)}")
    arguments = " ".join(f"{key}={value}" for key, value in sorted(kwargs.items()))
    rule = Rule(
        id=str(meta.get("rule", UNNAMED)),
        name=str(meta.get("name", config["type"])),
        severity=_SEVERITIES[severity],
        certainty=Certainty.CERTAIN,
        blame=Blame.CAPTURE,
        meaning=str(meta.get("expected", "")),
        condition=f"{config['type']} {arguments}",
        expected=str(meta.get("expected", f"{config['type']} {arguments}")),
        action=str(meta.get("action", "look at the records named")),
        false_alarms="",
    )
    return Expected(rule, f"{config['type']} {arguments}", {**config, "kwargs": dict(kwargs)}, explain)
