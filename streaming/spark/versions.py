"""What differs between the releases of Spark from 3.5 on, each with the release that it is for; nothing else asks for a version."""

from __future__ import annotations

import ast
import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyspark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import DataFrame

VERSION: Final = tuple(int(number) for number in re.findall(r"\d+", pyspark.__version__)[:3])
JARS: Final = Path(pyspark.__file__).parent / "jars"

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_MOVED: Final = f"{_STREAMING}.checkpointing" if VERSION >= (4, 1) else _STREAMING
FILE_MANAGER: Final = f"{_MOVED}.FileSystemBasedCheckpointFileManager"


class Connector(NamedTuple):
    """Spark's Kafka connector, as a Maven repository knows it."""

    scala: str  #: 2.12 up to 3.5, 2.13 since 4.0
    revision: str  #: for Ivy: not every release of Spark has one, or not at once, so the newest of its major up to this one

    @property
    def package(self) -> str:
        return f"org.apache.spark:spark-sql-kafka-0-10_{self.scala}:{pyspark.__version__}"


def connector() -> Connector:
    """The one that fits the Spark that is installed."""
    (core,) = JARS.glob("spark-core_*.jar")
    return Connector(core.name.split("_")[1].partition("-")[0], f"[{VERSION[0]}.0.0,{pyspark.__version__}]")


def misfit() -> str | None:
    """Which library does not fit this Spark, with the remedy; None if all do."""
    if VERSION < (4, 0) and int(version("pyarrow").split(".")[0]) >= 26:
        return f"Spark {pyspark.__version__} fails with pyarrow {version('pyarrow')}: pip install 'pyarrow<26'"
    return None


def to_arrow(frame: DataFrame) -> pa.Table:
    """The rows of a frame; 3.5 has no ``toArrow``."""
    if VERSION >= (4, 0):
        return frame.toArrow()
    import pyarrow as pa  # noqa: PLC0415 - only here

    return pa.Table.from_batches(frame._collect_as_arrow())  # noqa: SLF001 - pandas would turn None into NaN


def causes(error: StreamingQueryException) -> list[Any]:
    """An exception, then its cause, and so on; 3.5 has no causes."""
    chain: list[Any] = [error]
    while (cause := getattr(chain[-1], "_cause", None)) is not None:  # there is no other way to it
        chain.append(cause)
    return chain


def offsets(reported: Any) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition in a progress report: an object in 3.5, JSON in 4.2, Python's text of an object in 4.0 and 4.1.

    A query that has just been started again says ``null`` of some, which is ``None`` there.
    """
    if isinstance(reported, str):
        reported = (ast.literal_eval if reported.startswith(("{'", "None")) else json.loads)(reported) if reported else None
    return reported if isinstance(reported, dict) else {}
