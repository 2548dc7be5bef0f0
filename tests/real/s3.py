"""The job with its state in S3, on a server that runs here: killed and started again, it finds what a local run finds.

    python -m tests.real.s3

The server is moto's, the file system Hadoop's ``s3a://``. A second monitor is turned away while the first runs, and again after a kill.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from streaming.demo.broker import HOST, Broker, free_port
from streaming.spark import jvm
from tests.real.cluster import LANES, PARTITIONS, differences, wait_until_read_further
from tests.real.environments import ROOT, installed
from tests.real.feeder import Feeder
from tests.real.harness import wait_for
from tests.real.monitor_process import START_UP_S, MonitorProcess

JARS: Final = ROOT / "deploy" / "ivy-s3.xml"
BUCKET: Final = "state"


class Store:
    """A server of S3, which takes any credentials for good ones."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str) -> str:
        credentials = {
            "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        }
        with urllib.request.urlopen(
            urllib.request.Request(f"{self.url}/{BUCKET}{path}", headers=credentials), timeout=60
        ) as answer:
            return str(answer.read().decode())

    def make_bucket(self) -> None:
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/{BUCKET}", method="PUT"), timeout=5):
            pass

    def newest(self, folder: str) -> str | None:
        """The newest file of one of Spark's logs."""
        keys = re.findall(r"<Key>([^<]*/\d+)</Key>", self.get(f"?list-type=2&prefix={folder}/"))
        return max(keys, key=lambda key: int(key.rpartition("/")[2]), default=None)


@contextlib.contextmanager
def server() -> Iterator[Store]:
    """A server with an empty bucket."""
    port = free_port()
    environment = os.environ | {"PYTHONPATH": str(installed("moto", "moto[s3,server]"))}
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    store = Store(f"http://{HOST}:{port}")

    def answers() -> bool:
        assert running.poll() is None, "the server of S3 ended"
        try:
            store.make_bucket()
        except OSError:
            return False
        return True

    try:
        wait_for(answers, "the server of S3 answers")
        yield store
    finally:
        running.kill()
        running.wait()


class OnS3(MonitorProcess):
    """A monitor whose state is there."""

    store: Store

    def positions(self) -> dict[int, int]:
        read: dict[int, int] = {}
        for lane in range(LANES):
            folder = f"{self.name}/findings/{lane}"
            newest = self.store.newest(f"{folder}/commits")
            if newest is not None:
                lines = self.store.get(f"/{folder}/offsets/{newest.rpartition('/')[2]}").splitlines()
                read |= {
                    int(partition): offset for of in json.loads(lines[-1]).values() for partition, offset in of.items() if offset
                }
        return read


def run(folder: Path, broker: Broker, store: Store, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """Do all of it on servers that run; gives what is not as it should be."""
    topic, name = "s3", "on-s3"
    broker.create_topic(topic, PARTITIONS)
    sections: dict[str, dict[str, object]] = {"job": {"lanes": LANES, "trigger_ms": 100}, "quality": {"enabled": False}}
    os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "us-east-1"}
    monitor = OnS3(folder, broker.internal, name, mirror=topic, **sections)
    monitor.store = store
    monitor.set(job={"state": f"s3a://{BUCKET}/{name}"})
    conf = {
        "spark.jars": ",".join(map(str, jvm.jars("s3", ivy_file=JARS))),
        "spark.hadoop.fs.s3a.endpoint": store.url,
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    monitor.config.write_text(f"{monitor.config.read_text()}[spark.conf]\n" + "".join(f'"{key}" = "{conf[key]}"\n' for key in conf))
    second = [*monitor.command[:-1], str(_elsewhere(monitor))]
    feeder = Feeder(broker.internal, topic, PARTITIONS).start()
    try:
        for what in ("started", "killed and started again"):
            began = time.monotonic()
            monitor.kill()
            monitor.start()
            wait_until_read_further(monitor)
            tell(f"{what}; every partition is read further after {time.monotonic() - began:.0f} s")
            refused = subprocess.run(second, capture_output=True, text=True, check=False, timeout=START_UP_S)
            assert refused.returncode == 2, refused.stdout + refused.stderr
            assert f"another monitor is running on the checkpoint s3a://{BUCKET}/{name}" in refused.stderr, refused.stderr
            tell("a second one was turned away")
        return differences(folder, monitor, feeder, tell, **sections)
    finally:
        feeder.stop()
        monitor.kill()


def _elsewhere(monitor: OnS3) -> Path:
    """The configuration of a monitor on another machine: the same state, and nothing else in common."""
    file = monitor.folder / "second.toml"
    text = monitor.config.read_text()
    for key in ("checkpoint", "log"):
        text = text.replace(f'{monitor.folder}/{key}"', f'{monitor.folder}/second-{key}"')
    file.write_text(text)
    return file


def main() -> int:
    with server() as store, Broker() as broker, tempfile.TemporaryDirectory() as folder:
        wrong = run(Path(folder), broker, store, tell=lambda said: print(said, flush=True))
    print("\n".join(wrong) or "equal to a local run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
