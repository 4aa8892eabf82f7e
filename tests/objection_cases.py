# SPDX-License-Identifier: Apache-2.0
"""Sound rows for the tests of the objections: their figures are computed from values, then rounded as printed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from rtproof.judge.objections import Figures, ResultClaim, RowKind, RowThread, Span

US, MS, MINUTE = 1_000, 1_000_000, 60_000_000_000


def figures_of(name: str, kind: RowKind, values: Sequence[int], period_ns: int, step: int) -> Figures:
    """min, mean, max and deviation of the values, each rounded to the step."""
    n, mean = len(values), sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None

    def printed(value: float) -> float:
        return round(value / step) * step

    return Figures(
        name,
        kind,
        period_ns,
        n,
        printed(min(values)),
        printed(mean),
        printed(max(values)),
        None if deviation is None else printed(deviation),
        step,
        in_bins=n,
    )


@st.composite
def _latencies(draw: st.DrawFn, name: str, length: int) -> Figures:
    """Of a thread: low latencies near each other, and sometimes one that is so late that others come due behind it, of
    which some never run and the rest one after the other, each late by a period less."""
    period = draw(st.sampled_from([500, 1_000, 1_500, 10_000])) * US
    least = draw(st.integers(-5_000, 200_000))
    low = least + draw(st.floats(0, 50_000))
    late = draw(st.one_of(st.just(60_000), st.integers(60_000, 200_000_000)))
    due = length // period
    first, *behind = [least + late - at * period for at in range(late // period + 1)]
    gone = min(draw(st.integers(0, 20)), due // 2_000, len(behind))
    ran = [first, *(behind[gone:] if draw(st.booleans()) else behind[: len(behind) - gone])]
    count = due - gone
    mean = (least + sum(ran) + (count - 1 - len(ran)) * low) / count
    return Figures(name, RowKind.LATENCY, period, count, least, mean, least + late, in_bins=count)


def with_count(each: Figures, count: int) -> Figures:
    """The same with fewer values, whose mean is that of the rest, or with more, all at the minimum."""
    assert each.count
    assert each.mean_ns is not None
    assert each.min_ns is not None
    assert each.max_ns is not None
    excess = (each.mean_ns - each.min_ns) * min(each.count / count, 1)
    mean = each.min_ns + max(excess, (each.max_ns - each.min_ns) / count)
    return replace(each, count=count, in_bins=count, mean_ns=mean)


@st.composite
def runs(draw: st.DrawFn, name: str = "row") -> ResultClaim:
    """A run of some minutes whose length is printed in whole ones, cut off or rounded, of one to four threads."""
    length = draw(st.integers(4, 60 * 60)) * MINUTE + draw(st.integers(0, MINUTE - 1))
    cut = draw(st.booleans())
    told = length // MINUTE * MINUTE if cut else (length + MINUTE // 2) // MINUTE * MINUTE
    threads = []
    for number in range(draw(st.integers(1, 4))):
        threads.append(draw(_latencies(f"thread {number}", length)))
    return ResultClaim(
        name,
        tuple(threads),
        span=Span(told, told - MINUTE // 2, told + MINUTE),
        loadavg=(4.2, 4.1, 4.0),
        load_line="while true; do ./load 65; done &",
        threads=tuple(RowThread(each.name, "fifo", "fifo", 80, 80, cpu=at) for at, each in enumerate(threads)),
        cpu_count=4,
    )


@st.composite
def apps(draw: st.DrawFn) -> ResultClaim:
    """An absolute-time loop: loop i ends how late top i + 1 is; the first top may be left out of what is told."""
    period, step = 5 * MS, draw(st.sampled_from([1, 100, 1_000]))
    tops = draw(st.lists(st.integers(1, 3 * MS), min_size=12, max_size=60))
    tops[0] = min(tops)
    loops = [period + after - before for before, after in pairwise(tops)]
    told = tops[1:] if draw(st.booleans()) else tops
    return ResultClaim(
        "app",
        (
            replace(figures_of("loop", RowKind.LOOP, loops, period, step), in_bins=None),
            replace(figures_of("top", RowKind.TOP, told, period, step), in_bins=None),
        ),
    )
