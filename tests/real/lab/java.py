"""The Java client of the laboratory: compiled once against the kafka-clients jar that the newest broker comes with."""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streaming.spark import jvm

SOURCE = Path(__file__).with_name("LabClient.java")

#: A Java client is one of many small processes here: little memory, and no time spent on optimising what runs for a minute.
OPTIONS = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def why_not() -> str | None:
    """Why there is no Java client here; None when there is one."""
    return None if shutil.which("javac") else "no javac on PATH: install a JDK"


@functools.cache
def class_path() -> str:
    """Where the compiled client and what it needs are."""
    jars = [jar for jar in jvm.jars("broker") if jar.name.startswith(("kafka-clients-", "slf4j-api-", "lz4-", "snappy-", "zstd-"))]
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"rebalance-monitor-lab-client-{digest}"
    path = ":".join(str(jar) for jar in jars)
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            command = ["javac", "-nowarn", "-XDignore.symbol.file", "-XDsuppressNotes", "-cp", path, "-d", fresh, str(SOURCE)]
            subprocess.run(command, check=True)
            shutil.copytree(fresh, f"{fresh}.whole")
        Path(f"{fresh}.whole").rename(folder)
    return f"{folder}:{path}"


def command(options: Mapping[str, Any]) -> list[str]:
    """The command line of a client's process; options that are None are left out."""
    words = [f"{name}={value}" for name, value in options.items() if value is not None]
    return [jvm.java_command(), *OPTIONS, "-cp", class_path(), "LabClient", *words]
