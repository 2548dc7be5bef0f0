"""``rebalance-monitor demo``: options in, a show, an exit status that can be relied on."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from streaming.spark.jvm import JvmError

EXIT_FOUND: Final = 0
EXIT_MISSED: Final = 1
EXIT_CANNOT_START: Final = 2
EXIT_INTERRUPTED: Final = 130

_UNITS_S: Final = {"s": 1.0, "m": 60.0, "": 1.0}


def seconds(text: str) -> float:
    """``90s``, ``2m`` or ``90`` in seconds.

    :raises typer.BadParameter: when it is something else.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([sm]?)\s*", text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a duration: write 90s or 2m")
    return float(found[1]) * _UNITS_S[found[2]]


def demo(
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="How long to make trouble, in seconds or minutes (90s, 2m); at least 45s.")
    ] = "90s",
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep broker data, mirror topic, checkpoint and logs, and say where.")
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print a line for each event instead of live tables.")] = False,
) -> None:
    """Watch the monitor at work: a real Kafka broker, real consumers, and six troubles made on purpose.

    A consumer process is stopped, a zombie ignores that it was fenced, two processes share an instance id, a member never rejoins, a
    leader never hands out the assignment, and a proxy lies for the broker. Each must be found and its culprit named, while one healthy
    group must raise nothing.

    Exit status: 0 if all were found and the healthy group had no finding, 1 if not, 2 if something could not be started.

    Examples:
      rebalance-monitor demo

      rebalance-monitor demo --duration 3m --keep

      rebalance-monitor demo --plain | tee demo.log

    """
    # Imported late: --help and a wrong option should not wait for Kafka's libraries.
    from confluent_kafka import KafkaException  # noqa: PLC0415

    from streaming.demo.broker import BrokerError  # noqa: PLC0415
    from streaming.demo.processes import ChildError  # noqa: PLC0415
    from streaming.demo.show import LEAST_DURATION_S, Spectacle, run, working_folder  # noqa: PLC0415

    duration_s = seconds(duration)
    if duration_s < LEAST_DURATION_S:
        raise typer.BadParameter(
            f"{duration} is too short for six troubles: at least {LEAST_DURATION_S:.0f}s", param_hint="--duration"
        )
    console = Console(highlight=False)
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
        _fail(f"the demo's Kafka broker: {error.args[0].str()}")
    except (BrokerError, ChildError, JvmError, OSError) as error:
        _fail(str(error))
    raise typer.Exit(status)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal end the demo with all its children.

    What comes while it ends is ignored, for a closed terminal sends several; only a second Ctrl-C gives up at once, and leaves
    the rest to the guards of the children.
    """
    received: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            raise KeyboardInterrupt
        if number == signal.SIGINT:
            os._exit(EXIT_INTERRUPTED)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fail(sentence: str) -> NoReturn:
    Console(stderr=True, soft_wrap=True, highlight=False).print(Text("error: ", "bold red"), Text(sentence), sep="")
    raise typer.Exit(EXIT_CANNOT_START)
