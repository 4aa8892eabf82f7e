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


class HitStack(NamedTuple):
    """The functions that an interrupt hit at a time, the innermost first; () if it hit no code of the kernel."""

    hit_ns: int
    functions: tuple[str, ...]


class CommonPath(NamedTuple):
    """The functions, the outermost first, that some stacks have in common, and how many of the stacks have them."""

    functions: tuple[str, ...]
    within: int
    stacks: int


def common_path(stacks: Sequence[tuple[str, ...]]) -> CommonPath:
    """The longest path from the outermost function inwards that more than half of the stacks have in common."""
    paths: Counter[tuple[str, ...]] = Counter()
    for stack in stacks:
        outermost_first = stack[::-1]
        paths.update(outermost_first[: length + 1] for length in range(len(outermost_first)))
    often = [path for path, count in paths.items() if 2 * count > len(stacks)]
    path = max(often, key=len, default=())
    return CommonPath(path, paths[path], len(stacks))


def hit_functions(stack: Sequence[str]) -> tuple[str, ...] | None:
    """The functions below the innermost interrupt of a stack; None if it does not show where the interrupt came."""
    entry = next((at for at, name in enumerate(stack) if is_interrupt(name)), None)
    if entry is None:
        return None
    while entry < len(stack) and is_interrupt(stack[entry]):
        entry += 1
    return tuple(stack[entry:])


def let_interrupts_in(functions: Sequence[str]) -> str | None:
    """The function that had interrupts off until the interrupt came; None if the stack does not end behind a restore.

    Where an interrupt hits any other code, interrupts may have been on there for long.
    """
    if not functions or not _RESTORES.fullmatch(functions[0]):
        return None
    return next((name for name in functions if not _RESTORES.fullmatch(name)), None)
