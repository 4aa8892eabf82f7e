# SPDX-License-Identifier: Apache-2.0
"""Apply one function to many items in several forked processes. Only the results are sent between processes."""

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from rtproof.core.errors import RtproofError

WorkItem = TypeVar("WorkItem")
WorkResult = TypeVar("WorkResult")

KILLED = "a process that read samples was killed: there may be too little memory"

_adopted: list[tuple[Callable[[Any], Any], Sequence[Any]]] = []


def in_processes(
    work: Callable[[WorkItem], WorkResult], items: Sequence[WorkItem], workers: int
) -> Iterator[WorkResult]:
    """What the work gives for each item, in their order. workers: processes at once; none is forked for one of either.

    RtproofError if a process was killed. Errors of the work itself come through as they are.
    """
    if min(workers, len(items)) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(work, items)
        return
    try:
        with _pool(work, items, workers) as pool:
            yield from pool.map(_work_on, range(len(items)))
    except BrokenProcessPool:
        raise RtproofError(KILLED) from None


def each_by_itself(
    work: Callable[[WorkItem], WorkResult],
    items: Sequence[WorkItem],
    workers: int,
    failed: Callable[[Exception], WorkResult],
) -> list[WorkResult]:
    """The same, but what keeps one item from a result costs no other its own. failed: makes a result of an error.

    If a process is killed, nobody knows on whose account: what had no result by then is worked on again, one at a time.
    """

    def tried(item: WorkItem) -> WorkResult:
        try:
            return work(item)
        except Exception as problem:
            return failed(problem)

    if min(workers, len(items)) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        return [tried(item) for item in items]
    found = _together(tried, items, workers)
    for number in set(range(len(items))) - set(found):
        again = _together(tried, [items[number]], 1)
        found[number] = again[0] if again else failed(RtproofError(KILLED))
    return [found[number] for number in range(len(items))]


def _together(work: Callable[[Any], WorkResult], items: Sequence[Any], workers: int) -> dict[int, WorkResult]:
    """Results by the numbers of their items, without those that were not done when a process was killed."""
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


def _adopt(work: Callable[[Any], Any], items: Sequence[Any]) -> None:
    """What a forked process begins with. An interrupt is for the parent alone, which ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopted.append((work, items))


def _work_on(number: int) -> Any:
    work, items = _adopted[-1]
    return work(items[number])
