"""The Java clients of the laboratory, each compiled once: consumers against the jars of the newest broker, Streams against its own."""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streaming.spark import jvm

FOLDER = Path(__file__).parent
CONSUMER, STREAMS = "LabClient", "LabStreams"
_COMPILING = threading.Lock()

#: A Java client is one of many small processes here: little memory, and no time spent on optimising what runs for a minute.
OPTIONS = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def why_not() -> str | None:
    """Why there is no Java client here; None when there is one."""
    return None if shutil.which("javac") else "no javac on PATH: install a JDK"


def _jars(main: str) -> list[Path]:
    if main == STREAMS:
        return jvm.jars("streams", ivy_file=FOLDER / "ivy.xml")
    return [jar for jar in jvm.jars("broker") if jar.name.startswith(("kafka-clients-", "slf4j-api-", "lz4-", "snappy-", "zstd-"))]


def class_path(main: str) -> str:
    """Where a compiled client and what it needs are."""
    with _COMPILING:
        return _compiled(main)


@functools.cache
def _compiled(main: str) -> str:
    source = FOLDER / f"{main}.java"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"rebalance-monitor-lab-client-{digest}"
    path = ":".join(str(jar) for jar in _jars(main))
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            classes = Path(fresh) / "classes"
            quiet = ("-nowarn", "-XDignore.symbol.file", "-XDsuppressNotes")
            subprocess.run(["javac", *quiet, "-cp", path, "-d", classes, source], check=True)
            try:
                classes.rename(folder)
            except OSError:
                if not folder.exists():  # as it does if another process was faster
                    raise
    return f"{folder}:{path}"


def command(options: Mapping[str, Any]) -> list[str]:
    """The command line of a client's process; options that are None are left out."""
    words = [f"{name}={value}" for name, value in options.items() if value is not None]
    main = STREAMS if options["protocol"] == "streams" else CONSUMER
    return [jvm.java_command(), *OPTIONS, "-cp", class_path(main), main, *words]
