# SPDX-License-Identifier: Apache-2.0
"""Figures that cannot all be true, by arithmetic alone. Each printed figure may be off by a unit of its last digit."""

import math
from collections.abc import Iterable, Iterator, Sequence

from rtproof.analysis.objections.claim import Claim, Figures, Kind, Objection, of_parts
from rtproof.analysis.phrases import value

ORDER = 60
CODE = "sums"
DOUBTS = ("totals",)


def judge(claims: Sequence[Claim]) -> Iterable[Objection]:
    for claim in claims:
        alone = ((each, says) for each in claim.figures for says in _of_one(each))
        yield from of_parts(CODE, claim, alone)
        yield from (Objection(CODE, (claim.name,), f"{claim.name}: {says}") for says in _loops(claim.figures))


def _of_one(each: Figures) -> Iterator[str]:
    if each.in_bins is not None and each.count is not None and each.in_bins != each.count:
        yield f"its histogram holds {each.in_bins:,} values, its count says {each.count:,}"
    if each.out_of_band is not None and each.count is not None and each.out_of_band > each.count:
        yield f"{each.out_of_band:,} of {each.count:,} values are out of band"
    if each.min_ns is None or each.mean_ns is None or each.max_ns is None or each.at_least:
        return
    if not each.min_ns - each.step_ns <= each.mean_ns <= each.max_ns + each.step_ns:
        yield f"its mean {_shown(each.mean_ns)} is not between {_shown(each.min_ns)} and {_shown(each.max_ns)}"
    else:
        yield from _deviation(each, each.min_ns, each.mean_ns, each.max_ns)


def _deviation(each: Figures, least: float, mean: float, most: float) -> Iterator[str]:
    """Values between two ends scatter at most as if all were at the ends (Bhatia and Davis 2000), and at least as if
    only one were at each end."""
    if each.deviation_ns is None or each.count is None or each.count < 2:
        return
    n, step = each.count, each.step_ns
    largest = math.sqrt((mean - least + 2 * step) * (most - mean + 2 * step) * n / (n - 1))
    ends = [max(abs(end - mean) - 2 * step, 0) for end in (least, most)]
    smallest = math.hypot(*ends) / math.sqrt(n - 1) if least < most else 0
    if not smallest - step <= each.deviation_ns <= largest + step:
        yield (
            f"a standard deviation of {_shown(each.deviation_ns)} cannot be: with this minimum, mean, maximum and "
            f"count it lies between {_shown(smallest)} and {_shown(largest)}"
        )


def _loops(several: Sequence[Figures]) -> Iterator[str]:
    """A loop with absolute due times: loop i lasts a period, plus how late its end was, minus how late its top was.

    So the loops add up to their periods but for the lateness at both ends, and none differs from the period by more
    than the largest lateness, also where the first top, which no timer woke and which is not early, was not counted.
    """
    loops, tops = ([each for each in several if each.kind is kind] for kind in (Kind.LOOP, Kind.TOP))
    if len(loops) != 1 or len(tops) != 1 or not loops[0].period_ns or tops[0].max_ns is None:
        return
    loop, period, step = loops[0], loops[0].period_ns, loops[0].step_ns + tops[0].step_ns
    reach = tops[0].max_ns - min(tops[0].min_ns or 0, 0)
    if loop.mean_ns is not None and loop.count and abs(loop.mean_ns - period) > reach / loop.count + step:
        whole = _shown(abs(loop.mean_ns - period) * loop.count)
        yield (
            f"{loop.count:,} loops of {_shown(loop.mean_ns)} on average do not add up to as many periods of "
            f"{value(period)}: {whole} are missing or too many, and no top of a loop was later than {_shown(reach)}"
        )
    for end, which in ((loop.max_ns, "longest"), (loop.min_ns, "shortest")):
        if end is not None and abs(end - period) > reach + step:
            yield (
                f"the {which} loop of {_shown(end)} differs from the period of {value(period)} by more than any top of "
                f"a loop was late ({_shown(reach)})"
            )


def _shown(ns: float) -> str:
    return value(round(ns))
