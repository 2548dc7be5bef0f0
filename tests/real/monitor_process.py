"""``rebalance-monitor run`` as an operator starts it: a process of its own, what it says, what it wrote, and how to kill each part of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from coordinator_model.settings import Settings
from streaming.config.settings import SHORT_LIVED_JVM
from streaming.errors import SetupError
from streaming.spark import checkpoint
from tests.processes import below, lives
from tests.real.harness import raw_topic, wait_for

START_UP_S = 900
SETTINGS = Settings(silence_ms=4_000, reorder_window_ms=200)


class MonitorProcess:
    """A monitor on result topics and a checkpoint of its own.

    :param mirror: the mirror topic.
    :param python: the interpreter that runs it.
    :param sections: keys of the configuration, by section, that differ from a test's usual ones.
    """

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        name: str,
        *,
        mirror: str,
        python: str | Path = sys.executable,
        **sections: dict[str, object],
    ) -> None:
        self.python = python
        self.folder = folder / name
        self.folder.mkdir()
        self.name = name
        self.bootstrap = bootstrap
        self.config = self.folder / "monitor.toml"
        self.said: list[str] = []
        self.process: subprocess.Popen[str] | None = None
        self.set(
            {
                "kafka": {"bootstrap_servers": bootstrap, "reach_timeout_s": 120},
                "topics": {
                    "mirror": mirror,
                    **{kind: f"{name}-{kind}" for kind in ("findings", "groups", "events", "status", "dead_letters", "quality")},
                },
                "job": {
                    "checkpoint": str(self.folder / "checkpoint"),
                    "log_file": str(self.folder / "log"),
                    "jvm_options": SHORT_LIVED_JVM,
                    "wait_for_records": 0,
                    "trigger_ms": 500,  # half as many batches as by default: they take the cores from the tests beside
                },
                "quality": {"trigger_s": 1, "docs": str(self.folder / "docs")},
                "model": {"silence_ms": SETTINGS.silence_ms, "reorder_window_ms": SETTINGS.reorder_window_ms},
            },
            **sections,
        )

    def set(self, base: dict[str, dict[str, object]] | None = None, **sections: dict[str, object]) -> None:
        """Write the configuration, changed for the next start."""
        merged = base or self._sections
        self._sections = {section: {**merged.get(section, {}), **sections.get(section, {})} for section in {**merged, **sections}}
        lines = []
        for section, values in self._sections.items():
            lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
        self.config.write_text("\n".join(lines) + "\n")

    @property
    def checkpoint(self) -> Path:
        return Path(str(self._sections["job"]["checkpoint"]))

    # --- its life ------------------------------------------------------------------------------------------------

    @property
    def command(self) -> list[str]:
        return [str(self.python), "-m", "streaming.cli", "run", "--config", str(self.config)]

    def start(self) -> MonitorProcess:
        self.said.clear()
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
        return self

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.said.extend(process.stdout)

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)

    def stop_all(self) -> int:
        """Ask every process of it to end."""
        assert self.process is not None
        for pid in [self.process.pid, *self._descendants("")]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return self.process.wait(60)

    def kill(self) -> None:
        """End its driver as a crash does; without effect if it does not run."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def kill_jvm(self) -> None:
        os.kill(self._one(r"\bjava\b"), signal.SIGKILL)

    def kill_worker(self) -> None:
        """The Python worker that holds the models: what the daemon forked, not the daemon itself."""
        pids = self._descendants(r"pyspark[./]daemon")
        os.kill(pids[-1], signal.SIGKILL)

    def jvm_pid(self) -> int:
        return self._one(r"\bjava\b")

    def checks_pid(self) -> int:
        """The process of the quality checks."""
        return self._one(r"streaming\.quality\.worker")

    def has_worker(self) -> bool:
        return len(self._descendants(r"pyspark[./]daemon")) > 1

    def _one(self, pattern: str) -> int:
        pids = self._descendants(pattern)
        assert pids, f"no process {pattern} under the monitor"
        return pids[0]

    def _descendants(self, pattern: str) -> list[int]:
        """Process ids below the monitor whose command matches, parents first."""
        assert self.process is not None
        return [process.pid for process in below(self.process.pid, pattern) if lives(process.pid)]

    # --- what it says and writes ---------------------------------------------------------------------------------

    def has_said(self, words: str) -> bool:
        return any(words in line for line in self.said)

    def wait_until_said(self, words: str, timeout_s: float = START_UP_S) -> None:
        def said() -> bool:
            assert self.runs() or self.has_said(words), "".join(self.said)
            return self.has_said(words)

        wait_for(said, f"{self.name} says {words!r}; it said:\n{''.join(self.said)}", timeout_s)

    def topic(self, kind: str) -> dict[str, Any]:
        """The newest value of each key."""
        messages = raw_topic(self.bootstrap, f"{self.name}-{kind}")
        return {message.key().decode(): json.loads(message.value()) if message.value() else None for message in messages}

    def events(self) -> dict[str, list[dict[str, Any]]]:
        """What happened in each group, by the key of its records: each event once, in the order in which it came first."""
        told: dict[str, dict[str, dict[str, Any]]] = {}
        for message in raw_topic(self.bootstrap, f"{self.name}-events"):
            event = json.loads(message.value())
            told.setdefault(message.key().decode(), {}).setdefault(event["id"], event)
        return {key: list(events.values()) for key, events in told.items()}

    def positions(self) -> dict[int, int]:
        """Next offset by partition of which anything was read, as far as batches are committed."""
        try:
            return {partition: offset for partition, offset in checkpoint.read_to(self.checkpoint).items() if offset}
        except SetupError:  # Spark has taken the file away meanwhile
            return {}

    def status(self) -> list[dict[str, Any]]:
        """The newest status of each partition, in order."""
        told = [value for value in self.topic("status").values() if "partition" in value]
        return sorted(told, key=lambda value: int(value["partition"]))

    def model_findings(self) -> dict[str, str]:
        """Id to status. Those of the driver itself depend on when it looks, and are left out."""
        found = self.topic("findings")
        return {name: told["status"] for name, told in found.items() if told["family"] != "Q" and told["rule"] != "V-03"}

    def wait_until_read(self, ends: dict[int, int]) -> None:
        def there() -> bool:
            assert self.runs(), "".join(self.said)
            return self.positions() == ends

        wait_for(there, f"{self.name} reads to {ends}", START_UP_S)

    def wait_until_read_further(self, partitions: int) -> None:
        """Wait until each of the mirror's partitions is read further than it is now."""
        before = self.positions()

        def further() -> bool:
            assert self.runs(), "".join(self.said)
            now = self.positions()
            return len(now) == partitions and all(now[partition] > before.get(partition, 0) for partition in now)

        wait_for(further, "every partition is read further", START_UP_S)

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None
