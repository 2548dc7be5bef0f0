"""The JVM and the Spark session in it.

The traps: Spark's launcher reads a dozen environment variables of whatever other Spark the operator has; its workers take the first
``python3`` on PATH; its log goes to the terminal; and a JVM whose Python was killed lives on for a moment, with its hands still on
the checkpoint. So the environment is set here, the log has a file, and the JVM inherits the lock of the checkpoint.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from coordinator_model.snapshots import unpack_partition
from streaming.kafka.topics import SetupError
from streaming.spark import checkpoint, jvm, model_store
from streaming.spark.job import SPARK_SETTINGS
from streaming.spark.model_store import SnapshotRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import Row

    from streaming.config.settings import Job

SCRATCH: Final = "scratch"
"""Folder of the checkpoint for what Spark needs while it runs: a JVM that is killed leaves it behind, tens of megabytes each time."""

LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")

_log: Final = logging.getLogger(__name__)

_FOREIGN: Final = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_REMOTE",
    "SPARK_LOCAL_DIRS",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",
)


def open_session(job: Job, *, inherited: Iterable[int] = ()) -> SparkSession:
    """Start a JVM with a Spark session in it.

    Spark's log goes to ``job.log_file``, rotated; what the JVM itself prints goes beside it, to ``job.jvm_log``.

    :param inherited: file descriptors that the JVM holds open as long as it lives.
    :raises streaming.spark.jvm.JvmError: when Java or a jar is missing.
    """
    _prepare_environment()
    log_file = job.log_file.resolve()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    threads = max(job.cores, job.lanes + 1)  # a task of the quality query must not keep a lane waiting
    conf = SparkConf(loadDefaults=False).setAppName("rebalance-monitor").setMaster(f"local[{threads},4]")
    conf.setAll([(name, value) for name, value, _ in SPARK_SETTINGS])
    scratch = _emptied(job.checkpoint.resolve() / SCRATCH)
    conf.set("spark.local.dir", str(scratch))
    conf.set("spark.driver.memory", job.driver_memory)
    conf.set("spark.driver.extraClassPath", os.pathsep.join(map(str, connector_jars())))
    conf.set("spark.driver.extraJavaOptions", _jvm_options(job.jvm_options, log_file, scratch))
    with job.jvm_log.open("wb") as printed:
        launch: Callable[..., Any] = launch_gateway
        gateway = launch(conf, {"stdout": printed, "stderr": subprocess.STDOUT, "pass_fds": tuple(inherited)})
    context = SparkContext(conf=conf, gateway=gateway)
    # When the JVM dies its side channel breaks too, and Python's server for it prints a traceback to the terminal.
    context._accumulatorServer.handle_error = _log_broken_channel  # type: ignore[method-assign]  # noqa: SLF001
    return SparkSession(context)


def _jvm_options(own: str, log_file: Path, scratch: Path) -> str:
    """Spark takes them apart as a shell does, and any of the folders may have a blank in its name."""
    ours = {"log4j2.configurationFile": LOG_SETTINGS.as_uri(), "rebalance.log": log_file, "java.io.tmpdir": scratch}
    return f"{shlex.join(f'-D{name}={value}' for name, value in ours.items())} {own}"


def _emptied(folder: Path) -> Path:
    """Whoever opens a session holds the checkpoint's lock, so that what is here belongs to nobody any more."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _log_broken_channel(request: object, client_address: object) -> None:
    del request
    _log.warning("the JVM's channel for accumulators at %s broke", client_address, exc_info=True)


def close_session(spark: SparkSession, *, wait_s: float = 10.0) -> None:
    """Stop Spark and its JVM, whatever state they are in."""
    gateway, process = _gateway(spark), _process(spark)
    context = spark.sparkContext
    with contextlib.suppress(Exception):  # a JVM that is gone answers with a dozen kinds of error
        spark.stop()
    with contextlib.suppress(Exception):  # where that left off half-way, Python's side is yet to be told
        context.stop()
    with contextlib.suppress(Exception):
        gateway.shutdown()
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()  # what the JVM waits for
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = None  # noqa: SLF001 - else a second session in this process would call a JVM that is gone
    SparkContext._jvm = None  # noqa: SLF001


def snapshots(spark: SparkSession, folder: Path) -> dict[int, bytes]:
    """The snapshots in a checkpoint by mirror partition, on which the models of each lane's newest committed batch build.

    :raises streaming.kafka.topics.SetupError: when Spark cannot read them.
    :raises coordinator_model.snapshots.SnapshotError: when one of them is none, or gone.
    """
    blobs = [_blob(row, folder / model_store.FOLDER) for row in states(spark, folder)]
    return {unpack_partition(blob)[0]["partition"]: blob for blob in blobs}


def states(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    """What Spark's state in a checkpoint holds of each mirror partition.

    :raises streaming.kafka.topics.SetupError: when Spark cannot read it.
    """
    _ = spark.streams.active  # brings up Spark's coordinator of state stores, without which none can be read
    return [row.asDict() for lane in checkpoint.lanes_in(folder) for row in _rows(spark, lane)]


def _rows(spark: SparkSession, query: Path) -> list[Row]:
    try:
        return spark.read.format("statestore").load(str(query.resolve())).select("value.groupState.*").collect()
    except (PySparkException, Py4JError) as error:
        raise SetupError(f"Spark cannot read the state in {query}: {reason(str(error))}") from None


def _blob(row: dict[str, Any], models: Path) -> bytes:
    """Of a state row; those of the first formats of checkpoints have the snapshot itself, as bytes or as base64, the third no batches."""
    if "snapshot" not in row:
        return model_store.read(models, SnapshotRef(**{"base": row["sequence"]} | row))[0]
    snapshot = row["snapshot"]
    return base64.b64decode(snapshot) if isinstance(snapshot, str) else bytes(snapshot)


def reason(text: str) -> str:
    """The one sentence in a Spark exception that tells what happened."""
    causes = re.findall(r"^(?:Caused by: )?(?:[\w$]+\.)+([A-Z]\w*(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    python = re.findall(r"^([A-Za-z_.]*(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    for kind, message in [*reversed(python), *reversed(causes)]:
        if message.strip():
            return f"{message.strip().rstrip('.')} ({kind.rpartition('.')[2]})"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    return first.partition(" terminated with exception: ")[2] or first


def said_by(error: BaseException) -> str:
    """The text of an error out of the JVM, which is asked for it and may be gone."""
    try:
        return str(error)
    except Exception:  # an error while an error is put into words
        return f"{type(error).__name__}, of which the JVM that has ended can say no more"


def jvm_is_alive(spark: SparkSession, *, wait_s: float = 0.0) -> bool:
    """Whether the process of the session's JVM runs, and goes on running for ``wait_s``."""
    try:
        _process(spark).wait(wait_s)
    except subprocess.TimeoutExpired:
        return True
    return False


def _gateway(spark: SparkSession) -> Any:
    return spark.sparkContext._gateway  # noqa: SLF001 - the only way to the process that Spark started


def _process(spark: SparkSession) -> subprocess.Popen[bytes]:
    return _gateway(spark).proc  # type: ignore[no-any-return]


def connector_jars() -> list[Path]:
    """What the Kafka source needs beyond the jars that pyspark brings.

    :raises streaming.spark.jvm.JvmError: when they cannot be had.
    """
    brought = {_artifact(path) for path in Path(pyspark.__file__).parent.joinpath("jars").glob("*.jar")}
    return [path for path in jvm.jars("spark") if _artifact(path) not in brought]


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[\w.]*$", "", jar.stem)


def _prepare_environment() -> None:
    for name in _FOREIGN:
        os.environ.pop(name, None)
    os.environ["JAVA_HOME"] = str(jvm.java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
