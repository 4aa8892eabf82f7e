# SPDX-License-Identifier: Apache-2.0
"""The same work on many things in several processes, forked so that nothing but the results is sent between them."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from rtproof.errors import RtproofError

Item = TypeVar("Item")
Result = TypeVar("Result")

_adopted: list[tuple[Callable[[Any], Any], Sequence[Any]]] = []


def in_processes(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    """What the work gives for each item, in their order. workers: processes at once; none is forked for one of either.

    RtproofError if a process was killed. Errors of the work itself come through as they are.
    """
    if min(workers, len(items)) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(work, items)
        return
    fork = multiprocessing.get_context("fork")
    try:
        with ProcessPoolExecutor(min(workers, len(items)), fork, _adopt, (work, items)) as pool:
            yield from pool.map(_work_on, range(len(items)))
    except BrokenProcessPool:
        raise RtproofError("a process that read samples was killed: there may be too little memory") from None


def _adopt(work: Callable[[Any], Any], items: Sequence[Any]) -> None:
    """What a forked process begins with. An interrupt is for the parent alone, which ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopted.append((work, items))


def _work_on(number: int) -> Any:
    work, items = _adopted[-1]
    return work(items[number])
