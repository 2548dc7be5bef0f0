"""What ``watch`` imports: no more than its input and the parts that are asked for need. Each library costs memory for as long as it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.streaming.mirror.wires import Connection, pcap

RUN = """
import json, sys
from streaming.cli import main
sys.argv[0] = "rebalance-monitor"
try:
    main()
finally:
    json.dump(sorted({name.partition(".")[0] for name in sys.modules} | {name for name in sys.modules if "streaming." in name}), sys.stderr)
"""

OF_THE_JOB = {"great_expectations", "kafka", "numpy", "pandas", "py4j", "pyarrow", "pyspark", "streaming.spark.job"}
OF_KAFKA = {"confluent_kafka", "streaming.mirror.tap"}
OF_CONFIGURATION = {"pydantic_settings", "streaming.config.base", "streaming.config.keys"}  # typer may bring pydantic itself
OF_ALERTS = {"charset_normalizer", "requests", "urllib3"}
OF_THE_PAGE = {"starlette", "uvicorn"}
OF_LOGS_AND_FILES = {"streaming.mirror.broker_log.reader", "streaming.mirror.broker_log.scan"}
OF_RARE_PACKETS = {"dpkt"}
OF_SOME_CONFIGURATIONS = {"cryptography", "streaming.notify.digest", "streaming.report.contents", "streaming.traces.sender"}
ALL = (
    OF_THE_JOB
    | OF_KAFKA
    | OF_CONFIGURATION
    | OF_ALERTS
    | OF_THE_PAGE
    | OF_LOGS_AND_FILES
    | OF_RARE_PACKETS
    | OF_SOME_CONFIGURATIONS
    | {"jinja2", "prometheus_client"}
)


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ([], set()),
        (["--web", "127.0.0.1:0"], OF_THE_PAGE | {"jinja2"}),
        (["--config", "monitor.toml"], OF_CONFIGURATION | OF_ALERTS | {"jinja2"}),
        (["--metrics", "127.0.0.1:0"], OF_CONFIGURATION | {"prometheus_client"}),
    ],
)
def test_watch_on_packets_imports_what_its_options_need_and_nothing_else(
    options: list[str], needed: set[str], tmp_path: Path
) -> None:
    (tmp_path / "url").write_text("http://127.0.0.1:9/")
    (tmp_path / "monitor.toml").write_text('[notify.webhook.chat]\nurl_file = "url"\n')
    line = Connection([]).open()
    line.heartbeat(1)
    command = [sys.executable, "-c", RUN, "watch", "-", "--state", str(tmp_path / "state"), *options]
    root = Path(__file__).parents[3]
    done = subprocess.run(
        command,
        input=pcap(line.packets),
        capture_output=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(root)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    imported = set(json.loads(done.stderr.splitlines()[-1]))
    assert imported & (ALL - needed) == set()


@pytest.mark.parametrize("module", ["streaming.watch.topic", "streaming.mirror.producer"])
def test_topics_are_read_and_written_without_what_reads_certificates(module: str) -> None:
    command = [sys.executable, "-c", f"import sys, {module}; sys.exit('cryptography' in sys.modules)"]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
