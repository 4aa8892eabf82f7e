# SPDX-License-Identifier: Apache-2.0
"""Records whose activations have several values, as the probes of the kernel write them, made of plain numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from analysis_records import MS, SERIES, block, fact, file, record

from rtproof.record.contents import Moment, Record, Series, SystemFile

VIRTUAL = fact("virtual_time", "qemu icount shift=0: 1 ns is one instruction", Moment.START)
KERNEL = replace(SERIES, probe="kernel", method="task")
LOOP = replace(SERIES, probe="kernel", method="loop", field="task", period_ns=10 * MS, loop=True)
GPIO = replace(SERIES, probe="gpio", method="answer", on_grid=False, period_ns=30 * MS, external=True)


def fields_of(series: Series, thread: int, names: Sequence[str]) -> list[Series]:
    """The series of one thread, numbered as docs/record-format.md says."""
    number = len(names)
    return [
        replace(series, id=thread * number + at, thread=thread, cpu=thread, field=name) for at, name in enumerate(names)
    ]


def staged(
    *threads: dict[str, list[int]], series: Series = KERNEL, gaps: dict[int, int] | None = None, **parts: Any
) -> Record:
    """Threads with the values of each field; gaps: position and how many activations were missed behind it, in all."""
    all_series = [each for at, values in enumerate(threads) for each in fields_of(series, at, list(values))]
    values = [some for thread in threads for some in thread.values()]
    blocks = [block(some, gaps, series=each) for some, each in zip(values, all_series, strict=True)]
    return record(blocks, all_series, **parts)


def stimuli(answers: Sequence[tuple[int, int, int]], unanswered: int | None = None, **parts: Any) -> Record:
    """Edges from outside: when each came, until the task ran, until the output changed. Each has a block."""
    series = fields_of(GPIO, 0, ("task", "output"))
    blocks = []
    for at, each in enumerate(series):
        for index, (due_ns, *values) in enumerate(answers):
            gaps = {0: 1} if unanswered is not None and index == unanswered - 1 else None
            if index != unanswered:
                blocks.append(replace(block([values[at]], gaps, index, each), first_due_ns=due_ns))
    return record(blocks, series, **parts)


def usual(count: int = 3_000, thread: int = 0) -> dict[str, list[int]]:
    """Interrupt near 2 us, task 5 us behind, and one late task."""
    drawn = np.random.default_rng(thread)
    irq = 1_500 + drawn.gamma(2, 300, count).astype(np.int64)
    task = irq + 4_500 + drawn.gamma(2, 200, count).astype(np.int64)
    task[count // 2] += 90_000
    return {"irq": irq.tolist(), "task": task.tolist()}


def source_file(field: str, thread: int = 0, **numbers: int) -> SystemFile:
    """What the kernel module says of a field at the end."""
    lines = "".join(f"{word} {number}\n" for word, number in numbers.items())
    return file(f"rtproof.ko/thread{thread}/{field}", f"{lines}bin 5 1\nnews to come\n", Moment.END)
