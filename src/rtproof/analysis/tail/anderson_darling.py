# SPDX-License-Identifier: Apache-2.0
"""Whether excesses are those of the fitted distribution: the test of Anderson and Darling, which looks at both ends.

A^2 is taken of the fitted distribution's values of the excesses, which would be uniform. Where in its bin a value lies
is not known; A^2 is the mean over all places in the bins, instead of one that depends on places drawn at random. With
parameters estimated from the same data it is smaller than the textbook's: ``table`` has how it is distributed by shape
and by width of the bins, simulated by bench/tail_table.py (as Choulakian and Stephens 2001 did for exact values).
"""

import numpy as np

from rtproof.analysis.tail import table
from rtproof.analysis.tail.excesses import Excesses, Floats
from rtproof.analysis.tail.likelihood import survival
from rtproof.analysis.tail.region import Fit

_LOGS = np.log(table.PROBABILITIES)


def survivals(of: Excesses, fit: Fit) -> Floats:
    """1 - F of each excess, decreasing: those of a bin spread evenly over it."""
    upper, lower = survival(of.lo, fit.xi, fit.sigma), survival(of.lo + of.width, fit.xi, fit.sigma)
    n = of.n.astype(np.int64)
    before = np.repeat(n.cumsum() - n, n)
    share = (np.arange(before.size) - before + 0.5) / np.repeat(n, n)
    return np.asarray(np.repeat(upper, n) - share * np.repeat(upper - lower, n), dtype=np.float64)


def statistic(of: Excesses, fit: Fit) -> float:
    """A^2; inf if an excess lies where the fit has none."""
    sf = survivals(of, fit)
    weights = 2 * np.arange(1, sf.size + 1) - 1
    with np.errstate(divide="ignore"):
        even = float(-sf.size - (weights * (np.log1p(-sf) + np.log(sf[::-1]))).sum() / sf.size)
    return even + _within(of, fit)


def _within(of: Excesses, fit: Fit) -> float:
    """What places at random inside the bins add on average to A^2 of places that are spread evenly.

    Of n values in a bin of probability w, the count up to a share s of it has the variance n s (1 - s); that of evenly
    spread ones varies by 1/12. Both are divided by F (1 - F) and integrated over the bin.
    """
    high, low = survival(of.lo, fit.xi, fit.sigma), survival(of.lo + of.width, fit.xi, fit.sigma)
    spread = _integral(low, high) + _integral(1 - high, 1 - low)
    return float(((of.n - 0.5) * spread).sum() / of.n.sum())


def _integral(a: Floats, b: Floats) -> Floats:
    """The integral over [a, b] of s (1 - s) / x, where s goes from 0 to 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (b - a) / a
        exact = ((b**2 - a**2) / 2 - a * b * np.log1p(ratio)) / (b - a) ** 2
    narrow = (b - a) / (3 * (a + b) + 1e-300)
    return np.asarray(np.where(a <= 0, 0.5, np.where(ratio > 1e-3, exact, narrow)), dtype=np.float64)


def p_value(a2: float, xi: float, coarseness: float) -> float:
    """How often A^2 is that large by chance, at most 1. coarseness: width of the bins in sigma.

    Between the nodes of the table interpolated, beyond its smallest probability continued as the straight line that its
    logarithm nearly is.
    """
    quantiles = _interpolated(xi, coarseness)
    if a2 <= quantiles[-1]:
        return float(np.exp(np.interp(a2, quantiles, _LOGS)))
    decay = (_LOGS[-1] - _LOGS[-4]) / (quantiles[-1] - quantiles[-4])
    return float(np.exp(_LOGS[-1] + decay * (a2 - quantiles[-1])))


def _interpolated(xi: float, coarseness: float) -> Floats:
    """The quantiles of A^2 at the probabilities of the table; outside the table those of its nearest cell."""
    cells = np.array(table.QUANTILES)
    by_width = _between(cells, _place(xi, table.SHAPES))
    return _between(by_width, _place(coarseness, table.WIDTHS))


def _place(value: float, nodes: tuple[float, ...]) -> float:
    return float(np.interp(value, nodes, np.arange(len(nodes))))


def _between(rows: Floats, place: float) -> Floats:
    at = min(int(place), len(rows) - 2)
    return np.asarray(rows[at] + (place - at) * (rows[at + 1] - rows[at]), dtype=np.float64)
