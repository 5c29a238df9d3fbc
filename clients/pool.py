"""Jobs in processes of their own. Ctrl-C is for this process to hear: it tells them by an event."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from .errors import WorkerDied

CONTEXT = multiprocessing.get_context("spawn")
POLL_S = 0.2
# A worker has one core: BLAS threads of its own would fight those of the other workers.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

_T = TypeVar("_T")


def run(
    work: Callable[..., _T],
    calls: Sequence[tuple[Any, ...]],
    *,
    processes: int,
    start: Callable[..., None],
    shared: tuple[Any, ...],
    stop: Any,
    look: Callable[[int], None],
) -> list[_T]:
    """`work(*call)` for every call, the results in their order.

    A worker begins with `start(*shared)`. `stop` is the event that `work` ends early for; `look` is
    told now and then how many calls are done.
    """
    with (
        _environment(ONE_THREAD),
        ProcessPoolExecutor(processes, CONTEXT, _begin, (start, shared)) as pool,
    ):
        try:
            # A worker is started by `submit`, and inherits that Ctrl-C is ignored.
            with _interrupts(signal.SIG_IGN):
                futures = [pool.submit(work, *call) for call in calls]
            waiting: set[Future[_T]] = set(futures)
            while waiting:
                done, waiting = wait(waiting, POLL_S)
                for future in done:
                    future.result()
                look(len(futures) - len(waiting))
        except BaseException as error:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            if isinstance(error, BrokenProcessPool):
                raise WorkerDied("a worker process died; --jobs 1 runs without workers") from error
            raise
        return [future.result() for future in futures]


def _begin(start: Callable[..., None], shared: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start(*shared)


@contextmanager
def interrupts_noted() -> Iterator[threading.Event]:
    """Ctrl-C sets the event, so that nothing is cut in the middle."""
    noted = threading.Event()
    with _interrupts(lambda *_: noted.set()):
        yield noted


@contextmanager
def _interrupts(handler: Any) -> Iterator[None]:
    """Ctrl-C is handled so meanwhile; only the main thread can say that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
