# SPDX-License-Identifier: Apache-2.0
"""Apply one function to many items in several forked processes. Only the results are sent between processes."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from rtproof.core.errors import RtproofError

WorkItem = TypeVar("WorkItem")
WorkResult = TypeVar("WorkResult")

KILLED = "a process that read samples was killed: there may be too little memory"

PR_SET_PDEATHSIG = 1
"""prctl(2)."""

_adopted: list[tuple[Callable[[Any], Any], Sequence[Any]]] = []


def in_processes(
    work: Callable[[WorkItem], WorkResult], items: Sequence[WorkItem], workers: int
) -> Iterator[WorkResult]:
    """The results of ``work`` for each item, in the order of the items.

    ``workers`` is the number of processes that run at once. For one worker or one item no process is forked.
    RtproofError if a process was killed. An error that ``work`` raises is raised here unchanged.
    """
    if min(workers, len(items)) <= 1 or not _may_fork():
        yield from map(work, items)
        return
    try:
        with _pool(work, items, workers) as pool:
            yield from pool.map(_work_on, range(len(items)))
    except BrokenProcessPool:
        raise RtproofError(KILLED) from None


def in_threads(work: Callable[[WorkItem], WorkResult], items: Sequence[WorkItem], workers: int) -> Iterator[WorkResult]:
    """The results of ``work`` for each item, in the order of the items, from threads. ``work`` leaves the interpreter.

    An error that ``work`` raises is raised here unchanged.
    """
    if min(workers, len(items)) <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(min(workers, len(items))) as pool:
        yield from pool.map(work, items)


def each_by_itself(
    work: Callable[[WorkItem], WorkResult],
    items: Sequence[WorkItem],
    workers: int,
    failed: Callable[[Exception], WorkResult],
) -> list[WorkResult]:
    """The results of ``work`` for each item, in their order. An error in one item does not affect the other items.

    ``failed`` turns the error of an item into the result of that item. If a process is killed, nobody knows which item
    caused it. So the items without a result are tried again, one at a time.
    """

    def tried(item: WorkItem) -> WorkResult:
        try:
            return work(item)
        except Exception as problem:
            return failed(problem)

    if min(workers, len(items)) <= 1 or not _may_fork():
        return [tried(item) for item in items]
    found = _together(tried, items, workers)
    for number in set(range(len(items))) - set(found):
        again = _together(tried, [items[number]], 1)
        found[number] = again[0] if again else failed(RtproofError(KILLED))
    return [found[number] for number in range(len(items))]


def _may_fork() -> bool:
    """Whether this process may have children of its own, and locks to share with them.

    A worker of a user's ``multiprocessing.Pool`` may not have children. The locks need a /dev/shm that this user may
    write to, which a bare chroot lacks.
    """
    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.current_process().daemon:
        return False
    try:
        multiprocessing.get_context("fork").Lock()
    except OSError:
        return False
    return True


def _together(work: Callable[[Any], WorkResult], items: Sequence[Any], workers: int) -> dict[int, WorkResult]:
    """Results by item number. Items that were unfinished when a process was killed have no result here."""
    found: dict[int, WorkResult] = {}
    with _pool(work, items, workers) as pool:
        ordered = [pool.submit(_work_on, number) for number in range(len(items))]
        try:
            for number, each in enumerate(ordered):
                with contextlib.suppress(BrokenProcessPool):
                    found[number] = each.result()
        finally:
            for each in ordered:
                each.cancel()
    return found


def _pool(work: Callable[[Any], Any], items: Sequence[Any], workers: int) -> ProcessPoolExecutor:
    fork = multiprocessing.get_context("fork")
    return ProcessPoolExecutor(min(workers, len(items)), fork, _adopt, (work, items))


def signal_when_parent_ends(number: signal.Signals) -> None:
    """Let the kernel send this process a signal when the thread that began it ends (prctl(2)).

    A parent that has ended before this call sends nothing, so the caller looks whether it still lives.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def _adopt(work: Callable[[Any], Any], items: Sequence[Any]) -> None:
    """Prepare a forked process. It ignores an interrupt: only the parent handles one, and ends its children.

    If the parent is killed, the kernel kills the process: its queue would wait without an end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(AttributeError, OSError):
        signal_when_parent_ends(signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:
        os._exit(1)  # It died before prctl.
    _adopted.append((work, items))


def _work_on(number: int) -> Any:
    work, items = _adopted[-1]
    return work(items[number])
