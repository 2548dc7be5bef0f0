"""``rebalance-monitor demo``: runs the demo, and returns its result as exit status."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Final

import typer

from streaming.commands.output import EXIT_INTERRUPTED, fail, stdout
from streaming.commands.stopping import handled
from streaming.spark.jvm import JvmError

_UNITS_S: Final = {"s": 1.0, "m": 60.0, "": 1.0}


def seconds(text: str) -> float:
    """Return ``90s``, ``2m`` or ``90`` in seconds.

    :raises typer.BadParameter: when the text is not a duration.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([sm]?)\s*", text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a duration: write 90s or 2m")
    return float(found[1]) * _UNITS_S[found[2]]


def demo(
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Duration of the faults, in seconds or minutes (90s, 2m); at least 45s.")
    ] = "90s",
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Let everything run at the end, until Ctrl-C, and keep all data and logs in a folder.")
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print one line per event instead of live tables.")] = False,
) -> None:
    """Run the monitor on a real Kafka broker with real consumers, and inject ten faults.

    A consumer process is killed, another is stopped, a topic does not exist, and a right is missing. A zombie ignores that it was fenced,
    and two processes share an instance id. A member never rejoins, a leader never sends the assignment, another gives nothing up, and a
    proxy changes the broker's answers. The monitor must find each fault and name its culprit. It
    must report nothing about a healthy group. The demo prints the address of the page that shows it in a browser.

    Exit status: 0 if all faults were found and the healthy group had no finding, 1 if not, 2 if something could not be started.

    rebalance-monitor demo

    rebalance-monitor demo --duration 3m --keep

    rebalance-monitor demo --plain | tee demo.log
    """
    # Imported late: --help and an invalid option need not load Kafka's libraries.
    from confluent_kafka import KafkaException  # noqa: PLC0415

    from streaming.demo.broker import BrokerError  # noqa: PLC0415
    from streaming.demo.processes import ChildError  # noqa: PLC0415
    from streaming.demo.show import LEAST_DURATION_S, Spectacle, run, working_folder  # noqa: PLC0415
    from streaming.errors import SetupError  # noqa: PLC0415

    duration_s = seconds(duration)
    if duration_s < LEAST_DURATION_S:
        raise typer.BadParameter(
            f"{duration} is too short for ten faults: at least {LEAST_DURATION_S:.0f}s", param_hint="--duration"
        )
    console = stdout(soft_wrap=False)
    try:
        with _ended_by_signals(), working_folder(keep=keep) as folder:
            try:
                status = run(Spectacle(duration_s, folder, keep, plain), console)
            finally:
                if keep:
                    console.print(f"kept in {folder}", soft_wrap=True)
    except KeyboardInterrupt:
        console.print("everything is stopped")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except KafkaException as error:
        fail(f"the demo's Kafka broker: {error.args[0].str()}")
    except (BrokerError, ChildError, JvmError, SetupError, OSError) as error:
        fail(str(error))
    raise typer.Exit(status)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into a KeyboardInterrupt, which ends the demo with all its children.

    Later signals are ignored, because a closed terminal sends several. Only a second Ctrl-C exits at once; the children's guards then end
    the children.
    """
    received: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            raise KeyboardInterrupt
        if number == signal.SIGINT:
            os._exit(EXIT_INTERRUPTED)

    with handled(interrupt, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield
