# SPDX-License-Identifier: Apache-2.0
"""The distribution functions against exact arithmetic, published tables and, where it is installed, scipy."""

import math
from fractions import Fraction

import pytest

from rtproof import statistics


def exact_binomial_at_most(k: int, n: int, p: Fraction) -> float:
    return float(sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1)))


@pytest.mark.parametrize(("k", "n"), [(0, 1), (3, 10), (9, 10), (10, 10), (-1, 10), (40, 100), (1, 300), (280, 300)])
@pytest.mark.parametrize("p", [Fraction(1, 1000), Fraction(1, 3), Fraction(1, 2), Fraction(99, 100)])
def test_binomial_tails_are_those_of_exact_arithmetic(k: int, n: int, p: Fraction) -> None:
    exact = exact_binomial_at_most(k, n, p)
    assert statistics.binomial_at_most(k, n, float(p)) == pytest.approx(exact, rel=1e-11, abs=1e-300)
    if k >= 0:
        once = float(math.comb(n, k) * p**k * (1 - p) ** (n - k))
        assert statistics.binomial_probability(k, n, float(p)) == pytest.approx(once, rel=1e-12)


@pytest.mark.parametrize(("k", "mean"), [(0, 3.0), (3, 0.01), (5, 5.0), (20, 3.5), (60, 100.0), (-1, 1.0)])
def test_poisson_tails_are_sums_of_terms(k: int, mean: float) -> None:
    terms = math.fsum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(k + 1))
    assert statistics.poisson_at_most(k, mean) == pytest.approx(terms, rel=1e-12, abs=1e-300)


def test_a_large_binomial_near_its_middle() -> None:
    """Symmetric: half of all and half of the middle one lie at or below the middle."""
    n = 200_000_000
    middle = statistics.binomial_probability(n // 2, n, 0.5)
    assert middle == pytest.approx(math.sqrt(2 / (math.pi * n)) * (1 - 1 / (4 * n)), rel=1e-12)
    assert statistics.binomial_at_most(n // 2, n, 0.5) == pytest.approx(0.5 + middle / 2, rel=1e-11)


@pytest.mark.parametrize("n", [10**6, 2 * 10**8, 10**12])
def test_rare_binomials_turn_into_poisson(n: int) -> None:
    for events in (0, 3, 20):
        share = statistics.beta_inverse(0.95, events + 1, n - events)
        mean = statistics.gamma_inverse(0.95, events + 1)
        assert share * n == pytest.approx(mean, rel=50 * (events + 1) / n + 1e-12)


@pytest.mark.parametrize("p", [1e-9, 0.025, 0.5, 0.975, 0.999999])
@pytest.mark.parametrize("a", [0.5, 1, 2.5, 40, 3000, 1e6])
def test_inverses_invert(p: float, a: float) -> None:
    assert statistics.gamma_tails(a, statistics.gamma_inverse(p, a))[0] == pytest.approx(p, rel=1e-9)
    for b in (1, 7.5, 5e5):
        assert statistics.beta_tails(statistics.beta_inverse(p, a, b), a, b)[0] == pytest.approx(p, rel=1e-8)


def test_the_ends_of_the_scale() -> None:
    assert statistics.gamma_tails(3, 0) == (0, 1)
    assert statistics.beta_tails(0, 3, 4) == (0, 1)
    assert statistics.beta_tails(1, 3, 4) == (1, 0)
    lower, upper = statistics.beta_tails(1e-3, 200, 300)
    assert 0 < lower < 1e-300 or lower == pytest.approx(0, abs=1e-300)
    assert upper == 1


def test_agrees_with_scipy() -> None:
    scipy_special = pytest.importorskip("scipy.special")
    for a in (1, 2, 17, 300, 40_000, 1e7):
        for x in (a * 0.5, a * 0.99, a, a * 1.01, a * 2):
            lower, upper = statistics.gamma_tails(a, x)
            assert lower == pytest.approx(scipy_special.gammainc(a, x), rel=1e-8, abs=1e-250)
            assert upper == pytest.approx(scipy_special.gammaincc(a, x), rel=1e-8, abs=1e-250)
        for b in (1, 5, 900, 1e6):
            mean = a / (a + b)
            for x in (mean * 0.9, mean, mean + (1 - mean) * 0.1):
                lower, upper = statistics.beta_tails(x, a, b)
                assert lower == pytest.approx(scipy_special.betainc(a, b, x), rel=1e-8, abs=1e-250)
                assert upper == pytest.approx(scipy_special.betaincc(a, b, x), rel=1e-8, abs=1e-250)
