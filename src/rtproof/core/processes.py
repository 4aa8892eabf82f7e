# SPDX-License-Identifier: Apache-2.0
"""Apply one function to many items in several forked processes, and end as Ctrl-C does when a signal asks for it.

The libraries of pools are imported where a pool is made: most commands read one run.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rtproof.core.errors import RtproofError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.process import BaseProcess

WorkItem = TypeVar("WorkItem")
WorkResult = TypeVar("WorkResult")

KILLED = "its process was killed: there may be too little memory"
CLEAN_UP_S = 20
"""How long an interrupted process may take to clean up before it is killed."""

SIGNAL_SEEN_S = 0.5
"""Python runs the handler of a signal, such as Ctrl-C, between two waits of this length."""
PR_SET_PDEATHSIG = 1
"""prctl(2)."""

_adopted: list[tuple[Callable[[Any], Any], Sequence[Any]]] = []


def in_threads(work: Callable[[WorkItem], WorkResult], items: Sequence[WorkItem], workers: int) -> Iterator[WorkResult]:
    """The results of ``work`` for each item, in the order of the items, from threads. ``work`` leaves the interpreter.

    An error that ``work`` raises is raised here unchanged.
    """
    if min(workers, len(items)) <= 1:
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(workers, len(items))) as pool:
        yield from pool.map(work, items)


def each_by_itself(
    work: Callable[[WorkItem], WorkResult],
    items: Sequence[WorkItem],
    workers: int,
    failed: Callable[[Exception], WorkResult],
    told: Callable[[WorkItem, WorkResult], None] = lambda item, result: None,
) -> list[WorkResult]:
    """The results of ``work`` for each item, in their order. An error in one item does not affect the other items.

    ``failed`` turns the error of an item into the result of that item. ``told`` is called as each item ends. If a
    process is killed, nobody knows which item caused it. So the items without a result are tried again, one at a time.
    Any exception here, also KeyboardInterrupt, raises KeyboardInterrupt in the processes and waits until they end.
    """

    def tried(item: WorkItem) -> WorkResult:
        try:
            return work(item)
        except Exception as problem:
            return failed(problem)

    found: dict[int, WorkResult] = {}

    def take(number: int, result: WorkResult) -> None:
        found[number] = result
        told(items[number], result)

    if min(workers, len(items)) <= 1 or not _may_fork():
        for number, item in enumerate(items):
            take(number, tried(item))
    else:
        _together(tried, items, workers, take)
    for number in sorted(set(range(len(items))) - set(found)):
        alone: dict[int, WorkResult] = {}
        _together(tried, [items[number]], 1, alone.__setitem__)
        take(number, alone[0] if alone else failed(RtproofError(KILLED)))
    return [found[number] for number in range(len(items))]


def _may_fork() -> bool:
    """Whether this process may have children of its own, and locks to share with them.

    A worker of a user's ``multiprocessing.Pool`` may not have children. The locks need a /dev/shm that this user may
    write to, which a bare chroot lacks.
    """
    import multiprocessing

    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.current_process().daemon:
        return False
    try:
        multiprocessing.get_context("fork").Lock()
    except OSError:
        return False
    return True


def _together(
    work: Callable[[Any], WorkResult], items: Sequence[Any], workers: int, take: Callable[[int, WorkResult], None]
) -> None:
    """Take the result of each item by its number. Items that were unfinished when a process was killed have none."""
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    others = multiprocessing.active_children()
    submitted: dict[Future[WorkResult], int] = {}
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(min(workers, len(items)), fork, _adopt, (work, items)) as pool:
        try:
            with contextlib.suppress(BrokenProcessPool):
                for number in range(len(items)):
                    submitted[pool.submit(_work_on, number)] = number
            waiting = set(submitted)
            while waiting:
                # A signal that comes just before a wait does not end the wait.
                ended, waiting = wait(waiting, SIGNAL_SEEN_S, FIRST_COMPLETED)
                for each in ended:
                    with contextlib.suppress(BrokenProcessPool):
                        take(submitted[each], each.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            _interrupt([each for each in multiprocessing.active_children() if each not in others])
            raise


def _interrupt(processes: "Sequence[BaseProcess]") -> None:
    """Interrupt what these processes do until they have ended; kill those that take longer than CLEAN_UP_S."""
    from multiprocessing import connection

    patience_ends = time.monotonic() + CLEAN_UP_S
    while running := [each for each in processes if each.is_alive()]:
        for each in running:
            each.terminate() if time.monotonic() < patience_ends else each.kill()
        connection.wait([each.sentinel for each in running], timeout=0.1)


def signal_when_parent_ends(number: signal.Signals) -> None:
    """Let the kernel send this process a signal when the thread that began it ends (prctl(2)).

    A parent that has ended before this call sends nothing, so the caller looks whether it still lives.
    """
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def _adopt(work: Callable[[Any], Any], items: Sequence[Any]) -> None:
    """Prepare a forked process. It ignores Ctrl-C: only the parent handles it, and interrupts its children by SIGTERM.

    If the parent is killed, the kernel kills the process: its queue would wait without an end.
    """
    import multiprocessing

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(AttributeError, OSError):
        signal_when_parent_ends(signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:
        os._exit(1)  # It died before prctl.
    _adopted.append((work, items))


def _work_on(number: int) -> Any:
    work, items = _adopted[-1]
    signal.signal(signal.SIGTERM, _interrupt_once)
    try:
        return work(items[number])
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _interrupt_once(number: int, frame: object) -> None:
    """Interrupt the item that a process works on. It cleans up undisturbed."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt meanwhile. A signal that is ignored, as under nohup, stays ignored.

    Only the main thread can have handlers of signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    changed = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, before[number])
