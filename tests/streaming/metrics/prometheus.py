"""A real Prometheus, for tests to ask."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request

from streaming.demo.broker import HOST, free_port
from tests.real.harness import wait_for

PATIENCE_S = 600  # a bound for a machine on which twenty others want the processor


class Prometheus:
    """The real one. A scrape that takes too long leaves a hole, so whoever asks asks again."""

    def __init__(self, folder, *targets):
        self.address = f"{HOST}:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 2s, scrape_timeout: 2s}\n"
            "scrape_configs:\n"
            f"- {{job_name: rebalance-monitor, static_configs: [{{targets: {list(targets)}}}]}}\n"
        )
        self.log = (folder / "prometheus.log").open("w")
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={self.address}",
            ],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def ask(self, expression):
        """Labels (without the target's own) and value of each series that an instant query finds."""
        time.sleep(0.2)  # everybody asks until the answer is right, and scrapes are two seconds apart
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://{self.address}/api/v1/query?{query}", timeout=30) as answer:
                result = json.load(answer)["data"]["result"]
        except OSError:  # it is yet to come up
            return []
        own = {"__name__", "instance", "job"}
        return [({k: v for k, v in series["metric"].items() if k not in own}, float(series["value"][1])) for series in result]

    def kinds(self):
        """Metric family → type, as it was told."""
        with urllib.request.urlopen(f"http://{self.address}/api/v1/metadata", timeout=30) as answer:
            return {name: told[0]["type"] for name, told in json.load(answer)["data"].items()}

    def value(self, expression):
        """Of the only series found; None if there is none."""
        found = self.ask(expression)
        assert len(found) < 2, found
        return found[0][1] if found else None

    def wait(self, expression, wanted, timeout_s=PATIENCE_S):
        seen = []

        def there():
            seen[:] = [self.value(expression)]
            return seen[0] == wanted

        wait_for(there, f"{expression} is {wanted}; it was {seen}", timeout_s)
