"""The JVM and the Spark session in it.

Without ``spark-submit`` the monitor starts a JVM of its own, on one machine or as the client of a cluster. Started by ``spark-submit``
it is a child of the driver's JVM, which has its settings by then: only what is not set is added.

Spark's launcher reads a dozen environment variables of whatever other Spark the operator has; its workers take the first
``python3`` on PATH; its log goes to the terminal; and a JVM whose Python was killed goes on for a moment, with its hands still on
the checkpoint. So for one machine the environment is set here, the log has a file, and the JVM inherits the lock of the checkpoint.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streaming.config.spark import DEPENDED_ON, contradiction, is_submitted
from streaming.errors import SetupError
from streaming.spark import jvm, versions
from streaming.spark.job import SPARK_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streaming.config.settings import Job
    from streaming.config.spark import Spark

SCRATCH: Final = "scratch"
"""Folder of the checkpoint for what Spark needs while it runs: a JVM that is killed leaves it behind, tens of megabytes each time."""

LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")

_log: Final = logging.getLogger(__name__)

_OF_ANOTHER_SPARK: Final = ("SPARK_HOME", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")
_OF_A_CLUSTER: Final = ("SPARK_CONF_DIR", "SPARK_LOCAL_DIRS")
_ONE_MACHINE: Final = "127.0.0.1"
_CONNECTOR: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def open_session(job: Job, settings: Spark, *, inherited: Iterable[int] = ()) -> SparkSession:
    """Start a Spark session, and a JVM for it unless ``spark-submit`` has.

    The log of a JVM of our own goes to ``job.log_file``, rotated; what it prints goes beside it, to ``job.jvm_log``.

    :param inherited: file descriptors that the JVM holds open until it ends.
    :raises streaming.spark.jvm.JvmError: when Java or a jar is missing.
    :raises SetupError: when a library does not fit, or spark-submit was given a setting that the job cannot use.
    """
    if (trouble := versions.misfit()) is not None:
        raise SetupError(trouble)
    launch: Callable[..., Any] = launch_gateway
    if is_submitted():
        gateway = launch()
        conf = _submitted(SparkConf(_jvm=gateway.jvm), settings)
    else:
        conf = _conf(job, settings)
        _prepare_environment(settings)
        with job.jvm_log.open("wb") as printed:
            gateway = launch(conf, {"stdout": printed, "stderr": subprocess.STDOUT, "pass_fds": tuple(inherited)})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _own_interrupt():
        context = SparkContext(conf=conf, gateway=gateway)
    # When the JVM dies its side channel breaks too, and Python's server for it prints a traceback to the terminal.
    context._accumulatorServer.handle_error = _log_broken_channel  # noqa: SLF001
    _check_connector(gateway)
    return SparkSession(context)


@contextlib.contextmanager
def _own_interrupt() -> Iterator[None]:
    """Keep the handler of SIGINT: SparkContext sets one that cancels the batch and raises KeyboardInterrupt."""
    own = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, own)


def _defaults() -> dict[str, str]:
    fixed = {name: value for name, (value, _) in DEPENDED_ON.items()}
    return fixed | {name: value for name, value, _ in SPARK_SETTINGS} | {"spark.app.name": "rebalance-monitor"}


def _conf(job: Job, settings: Spark) -> SparkConf:
    """For a JVM of our own: later ones of the same name count."""
    log_file = job.log_file.resolve()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    scratch = _emptied(job.checkpoint.resolve() / SCRATCH)
    threads = max(job.cores, job.lanes + 1)  # a task of the quality query must not keep a lane waiting
    conf = _defaults() | {
        "spark.master": settings.master or f"local[{threads},4]",
        "spark.driver.memory": job.driver_memory,
        "spark.driver.extraJavaOptions": _jvm_options(job.jvm_options, log_file, scratch),
    }
    if settings.is_one_machine:  # nothing listens outside, and the one class path is enough
        conf |= {"spark.driver.host": _ONE_MACHINE, "spark.driver.bindAddress": _ONE_MACHINE, "spark.local.dir": str(scratch)}
        conf["spark.driver.extraClassPath"] = jvm.listed(connector_jars(), os.pathsep)
        conf |= settings.conf
    else:
        conf |= settings.conf
        given = [conf["spark.jars"]] if "spark.jars" in conf else []
        conf["spark.jars"] = ",".join([*given, jvm.listed(connector_jars(), ",", Path.as_uri)])
    return SparkConf(loadDefaults=False).setAll(list(conf.items()))


def _submitted(conf: SparkConf, settings: Spark) -> SparkConf:
    """What spark-submit has set, and what is not set.

    :raises SetupError: when it has set something else than the job depends on.
    """
    for name in DEPENDED_ON:
        if (problem := contradiction(name, conf.get(name, DEPENDED_ON[name][0]))) is not None:
            raise SetupError(f"spark-submit: {problem}")
    for name, value in (_defaults() | settings.conf).items():
        conf.setIfMissing(name, value)
    return conf


def _check_connector(gateway: Any) -> None:
    try:
        gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_CONNECTOR)
    except Py4JJavaError:
        package = versions.connector().package
        raise SetupError(f"Spark's Kafka connector is missing: submit the monitor with --packages {package}") from None


def _jvm_options(own: str, log_file: Path, scratch: Path) -> str:
    """Spark takes them apart as a shell does, and any of the folders may have a blank in its name."""
    ours = {"log4j2.configurationFile": LOG_SETTINGS.as_uri(), "rebalance.log": log_file, "java.io.tmpdir": scratch}
    return f"{shlex.join(f'-D{name}={value}' for name, value in ours.items())} {own}"


def _emptied(folder: Path) -> Path:
    """The caller holds the checkpoint's lock, so no running session uses what is here."""
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
    if process is None:  # it ends when this process does
        context.stop()
        return
    with contextlib.suppress(Exception):  # a JVM that is gone answers with a dozen kinds of error
        spark.stop()
    with contextlib.suppress(Exception):  # if that failed half-way, Python still holds the old session
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


def reason(text: str) -> str:
    """Return the one sentence of a Spark exception that says what happened."""
    causes = re.findall(r"^(?:Caused by: )?(?:[\w$]+\.)+([A-Z]\w*(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    python = re.findall(r"^([A-Za-z_.]*(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    for kind, message in [*reversed(python), *reversed(causes)]:
        if message.strip():
            return f"{message.strip().rstrip('.')} ({kind.rpartition('.')[2]})"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    return first.partition(" terminated with exception: ")[2] or first


def text_of(error: BaseException) -> str:
    """The text of an error out of the JVM, which is asked for it and may be gone."""
    try:
        return str(error)
    except Exception:  # an error while an error is put into words
        return f"{type(error).__name__}, of which the JVM that has ended can say no more"


def jvm_is_alive(spark: SparkSession, *, wait_s: float = 0.0) -> bool:
    """Whether the process of the session's JVM runs, and goes on running for ``wait_s``."""
    process = _process(spark)
    if process is None:
        time.sleep(wait_s)
        return os.getppid() == _PARENT
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return True
    return False


_PARENT: Final = os.getppid()
"""The JVM, if spark-submit has started it; another process takes its place when it ends."""


def _gateway(spark: SparkSession) -> Any:
    return spark.sparkContext._gateway  # noqa: SLF001 - the only way to the process that Spark started


def _process(spark: SparkSession) -> subprocess.Popen[bytes] | None:
    """The JVM that this process has started; None if spark-submit has."""
    return _gateway(spark).proc  # type: ignore[no-any-return]


def connector_jars() -> list[Path]:
    """What the Kafka source needs beyond the jars that pyspark brings.

    :raises streaming.spark.jvm.JvmError: when they cannot be had.
    """
    brought = {_artifact(path) for path in versions.JARS.glob("*.jar")}
    return [path for path in jvm.jars("spark") if _artifact(path) not in brought]


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[\w.]*$", "", jar.stem)


def _prepare_environment(settings: Spark) -> None:
    for name in (*_OF_ANOTHER_SPARK, *(_OF_A_CLUSTER if settings.is_one_machine else ())):
        os.environ.pop(name, None)
    os.environ["JAVA_HOME"] = str(jvm.java_home())
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # else glibc keeps memory for each of 300 threads
    if settings.is_one_machine:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = _ONE_MACHINE
