# SPDX-License-Identifier: Apache-2.0
"""Were the runs of both sides taken by turns? Without that a slow change of the machine looks like a difference.

Judged by the order of the start times alone. ``imbalance`` is the largest difference, at any place in the series,
between the shares of both sides that have been measured by then. Whatever drifts, by whatever shape, moves the
difference of the means by at most the imbalance times the way that it drifted in all. A-then-B has 1, five pairs 0.2.
docs/comparison.md has the error of the test for each order, by simulation.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise

from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.model import Turns
from rtproof.analysis.phrases import quantity

MOST_AHEAD = 2
"""So many runs one side may be ahead of the other, each counted as its share of the smaller side ..."""
MOST_IMBALANCE = 0.2
"""... or so large a share of the runs."""
FEWEST_CHANGES = 5
"""What five pairs have; with four, a hump in time can fit the sides."""
CLOCK_SET_NS = 1_000_000_000_000_000_000
"""2001-09-09. A start before it comes from a clock that nobody set, and such clocks begin anew with each boot."""
MOST_ROWS = 10
NO_TIMES = "when it began is not known of {0}"
SAME_TIME = "runs of both sides have the same start time"


def turns(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> Turns:
    """Whether the order of the runs in time separates the sides from what drifted. None: the order is not known."""
    starts = [(run.started_ns, name) for name, side in (("A", a), ("B", b)) for run in side]
    known = sorted((start, name) for start, name in starts if start is not None and start >= CLOCK_SET_NS)
    if len(known) < len(starts):
        return Turns(None, "", NO_TIMES.format(f"{len(starts) - len(known)} of {quantity(len(starts), 'run')}"))
    if any(early[0] == late[0] and early[1] != late[1] for early, late in pairwise(known)):
        return Turns(None, "", SAME_TIME)
    order = "".join(name for _, name in known)
    even = interleaved(order)
    return Turns(even, order, "" if even else f"in order of time the runs are {shown(order)}")


def interleaved(order: str) -> bool:
    """Whether a series in this order, "ABBA" and such with both in it, tells the sides from what drifts."""
    fewest = min(order.count("A"), order.count("B"))
    most = max(MOST_AHEAD / fewest, MOST_IMBALANCE) + 1e-9
    return imbalance(order) <= most and changes(order) >= max(fewest - 1, FEWEST_CHANGES)


def imbalance(order: str) -> float:
    """The largest difference of the shares of A and B measured by any time; order: "ABBA" and such, with both in it."""
    n, m = order.count("A"), order.count("B")
    return max(abs(order[:at].count("A") / n - order[:at].count("B") / m) for at in range(1, len(order) + 1))


def changes(order: str) -> int:
    """How often the next run is of the other side."""
    return sum(early != late for early, late in pairwise(order))


def shown(order: str) -> str:
    """Runs in a row of one side, counted: "5 A, 5 B"; the first ten of such rows."""
    rows = [f"{len(list(some))} {name}" for name, some in groupby(order)]
    return ", ".join([*rows[:MOST_ROWS], *(["..."] if len(rows) > MOST_ROWS else [])])
