# SPDX-License-Identifier: Apache-2.0
"""Cycles or works that together last longer than the run, or work that lasts longer than the loop that it is in.

Cycles, loops and the works in them follow one another in a thread. So n times their mean fits into the length of the
run. Latencies do not follow one another: one thread may be late for several activations at once.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rtproof.core.phrases import duration, value
from rtproof.judge.doubts.case import INVALID
from rtproof.judge.doubts.result_row import Figures, ResultClaim, RowKind, of_parts
from rtproof.summary.summary_model import Doubt

ORDER = 64
CODE = "lengths"
REMEDY = "use none of them"
DOUBTS: tuple[str, ...] = ()
CLOCKS = 500e-6
"""The clock of the cycles and that of the run may differ by so much, as with ``samples-surplus``."""
LEFT_OUT = 0.5
"""Loops at the beginning may be left out. If more than this part of the run is in no loop, most were not counted."""
ROUNDING_NS = 1


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        yield from of_parts(Doubt(CODE, INVALID, "", REMEDY), claim, _against_run(claim))
        yield from of_parts(Doubt(CODE, INVALID, "", REMEDY), claim, _later_than_the_run(claim))
        yield from of_parts(Doubt(CODE, INVALID, "", REMEDY), claim, _against_loop(claim))


def _against_run(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    for each in claim.figures:
        if claim.span is None or not each.count or each.kind not in (RowKind.LENGTH, RowKind.LOOP):
            continue
        step = max(each.step("min" if each.mean_ns is None else "mean"), ROUNDING_NS)
        longest, shortest = claim.span.longest_ns * (1 + CLOCKS), claim.span.shortest_ns
        number = f"{each.count:,} lengths"
        typical, word = (each.min_ns, "or more") if each.mean_ns is None else (each.mean_ns, "on average")
        whole = each.count * (typical - step) if typical is not None else 0
        in_bins = _least_in_bins(each)
        if typical is not None and whole > each.loops * (longest + (each.max_ns or 0) + step):
            yield each, f"{number} of {_shown(typical)} {word} do not fit into {duration(claim.span.longest_ns)}"
        elif in_bins > longest + (each.max_ns or 0):
            lasts = duration(round(in_bins))
            yield each, f"the values of its bins last {lasts} together, of {duration(claim.span.told_ns)}"
        elif each.max_ns is not None and each.max_ns - each.step("max") > longest:
            yield each, f"the longest of {_shown(each.max_ns)} does not fit into {duration(claim.span.longest_ns)}"
        else:
            covers = each.kind is RowKind.LOOP or each.period_ns
            most = None if each.at_least else each.max_ns
            end, word = (most, "at most") if each.mean_ns is None else (each.mean_ns, "on average")
            short = end is not None and each.count * (end + step) < LEFT_OUT * shortest
            if covers and short and end is not None and not claim.measured:
                lasts, of = duration(round(each.count * end)), duration(claim.span.told_ns)
                yield each, f"{number} of {_shown(end)} {word} last {lasts} together, of {of}"


def _least_in_bins(each: Figures) -> float:
    """The shortest time that the values in the bins can last together."""
    return 0.0 if each.counts is None else float(np.maximum(each.counts.lo, 0).astype(np.float64) @ each.counts.n)


def _later_than_the_run(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    """A latency that a tool saw is over before the tool tells its length. A run of rtproof waits for the last one."""
    if claim.span is None or claim.measured:
        return
    longest = claim.span.longest_ns * (1 + CLOCKS)
    for each in claim.figures:
        if each.kind is RowKind.LATENCY and each.max_ns is not None and each.max_ns - each.step("max") > longest:
            length = duration(claim.span.longest_ns)
            yield each, f"its largest value {_shown(each.max_ns)} does not fit into {length}"


def _against_loop(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    """Each work is a part of its loop. Only the first or the last loop may lack one of the two."""
    loops = [each for each in claim.figures if each.kind is RowKind.LOOP]
    works = [each for each in claim.figures if each.kind is RowKind.LENGTH and not each.period_ns]
    for work in works if len(loops) == 1 else ():
        loop = loops[0]
        more = (work.count or 0) - (loop.count or 0)
        pairs = (
            ("shortest", work.min_ns, loop.min_ns, more >= 0),
            ("longest", work.max_ns, loop.max_ns, more <= 0 and not loop.at_least),
            ("mean", *_means(work, loop), True),
        )
        names = {"shortest": "min", "longest": "max", "mean": "mean"}
        for which, of_work, of_loop, paired in pairs:
            step = work.step(names[which]) + loop.step(names[which]) + ROUNDING_NS
            if paired and of_work is not None and of_loop is not None and of_work > of_loop + step:
                yield (
                    work,
                    f"the {which} work of {_shown(of_work)} is longer than the {which} loop of {_shown(of_loop)}",
                )


def _means(work: Figures, loop: Figures) -> tuple[float | None, float | None]:
    """The smallest possible mean of the works that have a loop, and the largest of the loops that have a work.

    A work without a loop may have been the longest, and a loop without a work as well.
    """
    if work.mean_ns is None or loop.mean_ns is None:
        return None, None
    if not work.count or not loop.count or work.count == loop.count:
        return work.mean_ns, loop.mean_ns
    if work.count > loop.count:
        if work.max_ns is None:
            return None, None
        return (work.count * work.mean_ns - (work.count - loop.count) * work.max_ns) / loop.count, loop.mean_ns
    shortest = loop.min_ns or 0
    return work.mean_ns, (loop.count * loop.mean_ns - (loop.count - work.count) * shortest) / work.count


def _shown(ns: float) -> str:
    return value(round(ns))
