"""Files by any address that Spark's Hadoop knows, such as ``s3a://`` or ``hdfs://``: through the JVM, with the settings that Spark has.

An object store has no folders and no locks, and a rename there is a copy. So each file is written whole, and read whole.
"""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

if TYPE_CHECKING:
    from collections.abc import Iterator


class HadoopPath:
    """A file or folder, with as much of :class:`pathlib.Path` as the checkpoint needs; what fails is an :class:`OSError`."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    def __str__(self) -> str:
        return self._address

    def __truediv__(self, name: str, /) -> HadoopPath:
        return HadoopPath(f"{self._address}/{name}")

    @property
    def name(self) -> str:
        return self._address.rpartition("/")[2]

    def exists(self) -> bool:
        with _opened(self._address) as (files, path):
            return bool(files.exists(path))

    def is_dir(self) -> bool:
        return any(self.glob("*"))

    def glob(self, pattern: str, /) -> Iterator[HadoopPath]:
        with _opened(f"{self}/{pattern}") as (files, path):
            found = [HadoopPath(str(each.getPath())) for each in files.globStatus(path) or ()]
        yield from found

    def read_text(self) -> str:
        with _opened(self._address) as (files, path):
            opened = files.open(path)
            try:
                return str(_jvm().org.apache.commons.io.IOUtils.toString(opened, "UTF-8"))
            finally:
                opened.close()

    def write_text(self, text: str, /) -> None:
        """Write the whole file, in the place of the one that is there."""
        with _opened(self._address) as (files, path):
            opened = files.create(path, True)
            opened.write(bytearray(text.encode()))
            opened.close()


@contextlib.contextmanager
def _opened(address: str) -> Iterator[tuple[Any, Any]]:
    """The file system of an address, and the address as its path."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - as no public name holds it
    try:
        path = _jvm().org.apache.hadoop.fs.Path(address)
        yield path.getFileSystem(context._jsc.hadoopConfiguration()), path  # noqa: SLF001
    except (Py4JError, AttributeError) as error:  # the JVM may be gone
        lines = [line for line in str(error).splitlines() if line.startswith(("Caused by: ", ": "))]
        raise OSError(errno.EIO, lines[-1].partition(": ")[2] if lines else str(error), address) from None


def _jvm() -> Any:
    return SparkContext._jvm  # noqa: SLF001 - the only way to Hadoop
