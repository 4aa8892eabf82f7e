# SPDX-License-Identifier: Apache-2.0
"""The stack of what an interrupt hit: which functions of the kernel ran, and which of them let interrupts in again."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rtproof.summary.trace_text import is_interrupt

_RESTORES = re.compile(
    r"_*raw_(spin|read|write)_unlock_irq(restore)?|_*rt_(spin|read|write)_unlock_irq\w*|(raw_|arch_)?local_irq_(restore|enable)"
    r"|native_(restore_fl|irq_enable)|trace_hardirqs_on\w*"
)
"""Functions that switch interrupts on again for their callers. Just behind them an interrupt comes that had to wait."""


class CommonPath(NamedTuple):
    """What some stacks have in common.

    functions: functions of the kernel, the outermost first, in which more than half of the time was spent. share: of
    the time of the parts that have a stack. stacks: how many stacks there are.
    """

    functions: tuple[str, ...]
    share: float
    stacks: int


def common_path(stacks: Sequence[tuple[tuple[str, ...], int]]) -> CommonPath:
    """The longest path from the outermost function inwards that has more than half of the time.

    stacks: each with the length of the time that it stands for, in ns.
    """
    whole_ns = sum(length_ns for _, length_ns in stacks)
    paths: Counter[tuple[str, ...]] = Counter()
    for stack, length_ns in stacks:
        outermost_first = stack[::-1]
        for depth in range(1, len(outermost_first) + 1):
            paths[outermost_first[:depth]] += length_ns
    often = [path for path, length_ns in paths.items() if 2 * length_ns > whole_ns]
    path = max(often, key=len, default=())
    return CommonPath(path, paths[path] / whole_ns if path else 0.0, len(stacks))


def hit_functions(stack: Sequence[str]) -> tuple[str, ...] | None:
    """The functions below the innermost interrupt of a stack; None if it does not show where the interrupt came."""
    entry = next((at for at, name in enumerate(stack) if is_interrupt(name)), None)
    if entry is None:
        return None
    while entry < len(stack) and is_interrupt(stack[entry]):
        entry += 1
    return tuple(stack[entry:])


def unlocks(functions: Sequence[str]) -> bool:
    """Whether an interrupt came where a spinlock lets interrupts in and has not yet switched preemption on again.

    Then the kernel counts preemption as off once more than it is as soon as the function ends.
    """
    return bool(functions) and "unlock_irq" in functions[0]


def let_interrupts_in(functions: Sequence[str]) -> str | None:
    """The function that had interrupts off until the interrupt came; None if the stack does not end behind a restore.

    Where an interrupt hits any other code, interrupts may have been on there for long.
    """
    if not functions or not _RESTORES.fullmatch(functions[0]):
        return None
    return next((name for name in functions if not _RESTORES.fullmatch(name)), None)
