"""Several processes that share the tap's listeners (``SO_REUSEPORT``): the kernel gives each of them some of the connections.

A parent that is killed cannot end its workers, and they would go on taking connections beside those of the next tap. So each worker has the
reading end of a pipe whose writing end is the parent's alone, and ends when that is closed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


def in_workers(count: int, work: Callable[[int, int], int]) -> int:
    """Run ``work`` in processes until SIGTERM or SIGINT comes or one of them ends; return the worst of their exit statuses.

    To be called before this process has threads.

    :param work: given the number of the worker, from 0, and a file descriptor that becomes readable when it has to end; returns its
        exit status.
    """
    reading, writing = os.pipe()

    def end(*_: object) -> None:
        with suppress(OSError):  # closed before
            os.close(writing)

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_run, args=(work, number, reading, writing)) for number in range(count)]
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # until their receiver can take them
    for worker in workers:
        worker.start()
    _take(end)
    wait([worker.sentinel for worker in workers])
    end()
    for worker in workers:
        worker.join()
    os.close(reading)
    return max(abs(worker.exitcode or 0) for worker in workers)


def _run(work: Callable[[int, int], int], number: int, reading: int, writing: int) -> None:
    os.close(writing)
    _take(signal.SIG_IGN)
    sys.exit(work(number, reading))


def _take(handler: Callable[..., None] | signal.Handlers) -> None:
    for number in _ENDING:
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
