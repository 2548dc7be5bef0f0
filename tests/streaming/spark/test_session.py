"""The options that the JVM is started with."""

from __future__ import annotations

import shlex
from pathlib import Path

from streaming.spark import session as spark


def test_folders_with_blanks_and_quotes_in_their_names_are_whole_options():
    options = spark._jvm_options("-Xss2m -XX:+UseSerialGC", Path("/home/alice's work/log"), Path("/my checkpoint/scratch"))
    assert shlex.split(options) == [
        f"-Dlog4j2.configurationFile={spark.LOG_SETTINGS.as_uri()}",
        "-Drebalance.log=/home/alice's work/log",
        "-Djava.io.tmpdir=/my checkpoint/scratch",
        "-Xss2m",
        "-XX:+UseSerialGC",
    ]
