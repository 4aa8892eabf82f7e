# SPDX-License-Identifier: Apache-2.0
"""Sound rows for the tests of the objections: their figures are computed from values, then rounded as printed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from rtproof.analysis.objections import Claim, Figures, Kind, Span, Thread

US, MS, MINUTE = 1_000, 1_000_000, 60_000_000_000


def figures_of(name: str, kind: Kind, values: Sequence[int], period_ns: int, step: int) -> Figures:
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
def runs(draw: st.DrawFn, name: str = "row") -> Claim:
    """A run of some minutes whose length is printed in whole ones, cut off or rounded, of one to four threads."""
    length = draw(st.integers(4, 60 * 60)) * MINUTE + draw(st.integers(0, MINUTE - 1))
    cut = draw(st.booleans())
    told = length // MINUTE * MINUTE if cut else (length + MINUTE // 2) // MINUTE * MINUTE
    threads = []
    for number in range(draw(st.integers(1, 4))):
        period = draw(st.sampled_from([500, 1_000, 1_500, 10_000])) * US
        least = draw(st.integers(-5_000, 200_000))
        most = least + draw(st.integers(0, 200_000_000))
        # The tail of a disturbed system: its mean lies in the lowest fifth.
        mean = least + (most - least) * draw(st.floats(0, 0.2))
        due = length // period
        count = due - draw(st.integers(0, min(20, due // 2_000)))
        threads.append(Figures(f"thread {number}", Kind.LATENCY, period, count, least, mean, most, in_bins=count))
    return Claim(
        name,
        tuple(threads),
        span=Span(told, told - MINUTE // 2, told + MINUTE),
        loadavg=(4.2, 4.1, 4.0),
        load_line="while true; do ./load 65; done &",
        threads=tuple(Thread(each.name, "fifo", "fifo", 80, 80, cpu=at) for at, each in enumerate(threads)),
        cpu_count=4,
    )


@st.composite
def apps(draw: st.DrawFn) -> Claim:
    """An absolute-time loop: loop i ends how late top i + 1 is; the first top may be left out of what is told."""
    period, step = 5 * MS, draw(st.sampled_from([1, 100, 1_000]))
    tops = draw(st.lists(st.integers(1, 3 * MS), min_size=12, max_size=60))
    tops[0] = min(tops)
    loops = [period + after - before for before, after in pairwise(tops)]
    told = tops[1:] if draw(st.booleans()) else tops
    return Claim(
        "app",
        (
            replace(figures_of("loop", Kind.LOOP, loops, period, step), in_bins=None),
            replace(figures_of("top", Kind.TOP, told, period, step), in_bins=None),
        ),
    )
