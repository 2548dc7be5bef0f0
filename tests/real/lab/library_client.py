"""A child process of the laboratory: one consumer of a client library, led by its conformance driver (``tests/conformance/drivers``).

Run as ``python -m tests.real.lab.library_client JSON`` with the fields of :class:`tests.real.lab.client.Client`. SIGTERM ends it in good
order, SIGHUP makes it subscribe to its other topics and back; when this process is killed, the driver ends without a goodbye.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from typing import IO, Any

from streaming.demo.consumer import tell
from tests.conformance.libraries import LIBRARIES
from tests.real.lab.client import Client, Orders

LOOKS_EVERY_S = 0.1


def main() -> None:
    options = Client.of(sys.argv[1])
    orders = Orders()
    [library] = [library for library in LIBRARIES if library.name == options.kind]
    driver = subprocess.Popen(library.command(), stdin=subprocess.PIPE, stdout=sys.stderr, text=True)
    assert driver.stdin is not None
    _order(
        driver.stdin,
        "join",
        bootstrap=options.bootstrap,
        group=options.group,
        client_id=options.client_id,
        topics=options.topics,
        assignor=options.assignors[0],
        commits=options.commits,
        instance_id=options.instance_id,
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        rebalance_timeout_ms=options.rebalance_timeout_ms,
        request_timeout_ms=options.request_timeout_ms,
        release=options.release,
    )
    tell("started")
    switched = 0
    while driver.poll() is None and not orders.stop:
        if orders.switches != switched:
            switched = orders.switches
            _order(driver.stdin, "subscribe", topics=options.other_topics if switched % 2 else options.topics)
        time.sleep(LOOKS_EVERY_S)
    _order(driver.stdin, "close")
    status = driver.wait()
    tell("stopped")
    sys.exit(status)


def _order(drivers_input: IO[str], do: str, **details: Any) -> None:
    with contextlib.suppress(OSError):  # it has ended: its status says so
        drivers_input.write(json.dumps({"do": do, **details}) + "\n")
        drivers_input.flush()


if __name__ == "__main__":
    main()
