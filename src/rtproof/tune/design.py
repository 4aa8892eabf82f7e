# SPDX-License-Identifier: Apache-2.0
"""Which knobs are on in which run: a screening of all, and a factorial of the few that may matter.

A screening is a Plackett-Burman design with its mirror image (R. L. Plackett, J. P. Burman: The design of optimum
multifactorial experiments, Biometrika 33, 1946). Each run is followed or preceded by the run in which every knob has
the other position. The difference of such a pair has the effect of each knob in full. A slow change of the machine and
what two knobs do together cancel out in it.
"""

import random
from collections.abc import Iterator
from itertools import product

Positions = tuple[bool, ...]
"""Of all knobs in one run: True is on."""

MOST_KNOBS = 39
SPARE_PAIRS = 8
"""Degrees of freedom that the residuals of a screening keep at least."""


def screening_pairs(knobs: int) -> int:
    """How many pairs of runs screen this many knobs: the least that leave SPARE_PAIRS to estimate the scatter."""
    return next(
        size for size in range(4, MOST_KNOBS + SPARE_PAIRS + 4, 4) if size > knobs + SPARE_PAIRS and _order(size)
    )


def screening(knobs: int, drawn: random.Random) -> list[tuple[Positions, Positions]]:
    """Pairs of runs; the two of a pair are each other's mirror image. Chance draws the order of pairs and of each pair.

    Over all pairs, no two knobs go together.
    ValueError for more than MOST_KNOBS.
    """
    if not 0 < knobs <= MOST_KNOBS:
        raise ValueError(f"a screening has 1 to {MOST_KNOBS} knobs, not {knobs}")
    matrix = hadamard(screening_pairs(knobs))
    columns = drawn.sample(range(1, len(matrix)), knobs)
    pairs = []
    for row in matrix:
        positions = tuple(row[column] > 0 for column in columns)
        mirrored = tuple(not on for on in positions)
        pairs.append((positions, mirrored) if drawn.random() < 0.5 else (mirrored, positions))
    drawn.shuffle(pairs)
    return pairs


def factorial_blocks(knobs: int, drawn: random.Random) -> Iterator[list[Positions]]:
    """Blocks without end. Each has all 2^knobs settings once, in an order that chance draws."""
    while True:
        block = list(product((False, True), repeat=knobs))
        drawn.shuffle(block)
        yield block


def hadamard(size: int) -> list[list[int]]:
    """A matrix of 1 and -1 whose rows are orthogonal, and so are its columns. Its first column is 1 throughout.

    By the constructions of Sylvester and Paley (R. E. A. C. Paley: On orthogonal matrices, 1933). ValueError for a size
    for which neither gives one.
    """
    kind = _order(size)
    if not kind:
        raise ValueError(f"no Hadamard matrix of {size} rows is known here")
    if kind == "one":
        matrix = [[1]]
    elif kind == "double":
        half = hadamard(size // 2)
        matrix = [row + row for row in half] + [row + [-value for value in row] for row in half]
    elif kind == "paley":
        matrix = _paley(size - 1)
    else:
        matrix = _paley_symmetric(size // 2 - 1)
    return [[value * row[0] for value in row] for row in matrix]


def _order(size: int) -> str:
    """Which construction gives a matrix of this size; "" if none does."""
    if size == 1:
        return "one"
    if size > 2 and size % 4:
        return ""
    if _is_prime(size - 1) and (size - 1) % 4 == 3:
        return "paley"
    if size % 2 == 0 and _is_prime(size // 2 - 1) and (size // 2 - 1) % 4 == 1:
        return "symmetric"
    return "double" if size % 2 == 0 and _order(size // 2) else ""


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % divisor for divisor in range(2, int(n**0.5) + 1))


def _residues(q: int) -> list[list[int]]:
    """Row i, column j: whether i - j is a square modulo the prime q: 1, else -1, and 0 on the diagonal."""
    squares = {x * x % q for x in range(1, q)}
    sign = [0] + [1 if x in squares else -1 for x in range(1, q)]
    return [[sign[(i - j) % q] for j in range(q)] for i in range(q)]


def _paley(q: int) -> list[list[int]]:
    """Of q + 1 rows, for a prime q of the form 4 n + 3."""
    rows = [[-1 if i == j else value for j, value in enumerate(row)] for i, row in enumerate(_residues(q))]
    return [[1] * (q + 1)] + [[1, *row] for row in rows]


def _paley_symmetric(q: int) -> list[list[int]]:
    """Of 2 (q + 1) rows, for a prime q of the form 4 n + 1."""
    core = [[0] + [1] * q] + [[1, *row] for row in _residues(q)]
    blocks = {0: ((1, -1), (-1, -1)), 1: ((1, 1), (1, -1)), -1: ((-1, -1), (-1, 1))}
    return [[blocks[value][part][column] for value in row for column in (0, 1)] for row in core for part in (0, 1)]
