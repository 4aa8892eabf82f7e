# SPDX-License-Identifier: Apache-2.0
"""Episodes in lines that another tool printed one after the other, each with the maximum of a stretch of time.

A line with a maximum above the limit holds at least one late time, somewhere in its stretch. Two late times belong to
different episodes if they are further apart than the gap, with no late time between them. So here is counted only what
holds wherever in its stretch each of them lies.
"""

from collections.abc import Sequence
from itertools import pairwise

from rtproof.core.phrases import duration, quantity
from rtproof.record.requirement import Requirement
from rtproof.statistics import refuted_until_ns
from rtproof.summary.imported_histogram import NEVER, TimedLines

LateStretch = tuple[int, int, int]
"""A stretch of time with at least one late time: start, end and latest end in ns, as in ``TimedLines``."""


def late_stretches(lines: Sequence[TimedLines], limit_ns: int) -> list[LateStretch]:
    """The stretches of all threads that exceed the limit, in the order of time."""
    found = [
        (int(each.start_ns[at]), int(each.end_ns[at]), int(each.latest_ns[at]))
        for each in lines
        for at in ((each.most_ns > limit_ns) & each.fresh).nonzero()[0].tolist()
    ]
    return sorted(found)


def separate_episodes(
    lines: Sequence[TimedLines], asked: Requirement, found: Sequence[LateStretch]
) -> list[LateStretch]:
    """The first late stretch of each episode that is certainly another one.

    Maxima so far hide later values that are smaller. So only what lies further apart than an episode may last is
    another episode, or else one that lasts too long, which the claim does not allow either.
    """
    hidden = any(each.so_far for each in lines)
    apart_ns = max(asked.gap_ns, asked.longest_ns) if hidden else asked.gap_ns
    firsts: list[LateStretch] = []
    last_end_ns = 0
    for start_ns, end_ns, latest_ns in found:
        if not firsts or start_ns - last_end_ns > apart_ns:
            firsts.append((start_ns, end_ns, latest_ns))
        elif hidden:
            continue
        last_end_ns = max(last_end_ns, end_ns)
    return firsts


def too_often(lines: Sequence[TimedLines], asked: Requirement, alpha: float) -> str | None:
    """Why the lines show that episodes come more often than asked; None if they do not show it.

    The first of the separate episodes refute as soon as they are too many for the time until the last of them.
    """
    firsts = separate_episodes(lines, asked, late_stretches(lines, asked.limit_ns))
    for number, (_, _, latest_ns) in enumerate(firsts, 1):
        if latest_ns < NEVER and latest_ns <= refuted_until_ns(number, asked.at_most_ns, alpha):
            return (
                f"its lines exceeded the limit in at least {quantity(number, 'episode')} within the first "
                f"{duration(latest_ns, up=True)}, which is too many"
            )
    return None


def too_long(lines: Sequence[TimedLines], asked: Requirement) -> str | None:
    """Why the lines show that one episode lasted longer than asked; None if they do not show it.

    Neighbours that exceed the limit belong to one episode if even their far ends are no further apart than the gap.
    """
    for each in lines:
        found = [] if each.so_far else late_stretches((each,), asked.limit_ns)
        first_end_ns = found[0][1] if found else 0
        for (before_ns, _, _), (start_ns, end_ns, latest_ns) in pairwise(found):
            if latest_ns - before_ns > asked.gap_ns:
                first_end_ns = end_ns
            elif start_ns - first_end_ns > asked.longest_ns:
                return (
                    f"its lines exceeded the limit without a pause of {duration(asked.gap_ns)} for more than "
                    f"{duration(asked.longest_ns)}: one episode lasted longer than that"
                )
    return None
