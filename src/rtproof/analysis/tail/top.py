# SPDX-License-Identifier: Apache-2.0
"""Whether the largest values belong to the rest: the fit of all others judges them.

A rare second mechanism shows first in a few values far beyond the others, which a fit that has seen them bends to meet.
"""

import math
from dataclasses import dataclass

import numpy as np

from rtproof.analysis.special import gamma_tails
from rtproof.analysis.tail.anderson_darling import survivals
from rtproof.analysis.tail.excesses import Excesses, Floats, coarsened
from rtproof.analysis.tail.likelihood import best_scale, survival
from rtproof.analysis.tail.region import SHAPES, Fit

LARGEST = 10
_NODES = 41


@dataclass(frozen=True)
class Top:
    """number: of the largest values that were judged; split: the edge above which they lie; p: how often as large."""

    number: int
    split: float
    p: float


def top_test(of: Excesses) -> Top:
    """Of about the ten largest values: if coarse bins don't part them there, of the nearest number.

    Fitted to the others, of these only their number is told to the fit. Beyond the split, -ln of the fitted survival is
    exponential, so of the values the largest and the sum (a gamma distribution) have known tails; p is twice the
    smaller, averaged over the shapes that the others leave likely.
    """
    above = of.n[::-1].cumsum()[::-1]
    at = int(np.argmin(np.abs(np.log(above / LARGEST))))
    number, split = int(above[at]), float(of.lo[at])
    rest = _censored(of, at)
    xi = np.linspace(*SHAPES, _NODES)
    t, score = best_scale(rest, xi)
    likely = np.exp(score.value - score.value.max())
    largest = Excesses(0.0, of.lo[at:], of.width[at:], of.n[at:], of.units)
    p = [_p(largest, split, Fit(*pair, 0.0)) for pair in zip(xi, np.exp(t), strict=True)]
    return Top(number, of.threshold + split, float(np.average(p, weights=likely)))


def _censored(of: Excesses, at: int) -> Excesses:
    """The bins below number ``at``, and one from there without end for all others."""
    body = coarsened(Excesses(of.threshold, of.lo[:at], of.width[:at], of.n[:at], of.units))
    ends = (np.array([of.lo[at]]), np.array([np.inf]), np.array([of.n[at:].sum()]))
    lo, width, n = (np.append(*pair) for pair in zip((body.lo, body.width, body.n), ends, strict=True))
    return Excesses(of.threshold, lo, width, n, of.units)


def _p(largest: Excesses, split: float, fit: Fit) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        places: Floats = -np.log(survivals(largest, fit) / survival(split, fit.xi, fit.sigma))
    total, most = float(places.sum()), float(places.max())
    if not math.isfinite(total):
        return 0.0
    of_most = -math.expm1(places.size * math.log1p(-math.exp(-most))) if most > 0 else 1.0
    return min(1.0, 2 * min(gamma_tails(places.size, total)[1], of_most))
