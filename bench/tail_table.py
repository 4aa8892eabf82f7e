# SPDX-License-Identifier: Apache-2.0
"""Write src/rtproof/tail/fit_test_table.py: the distribution of A^2 for a right fit, by shape and width of bins.

This takes a few minutes on four CPUs. The same seed gives the same numbers (to the last digit where numpy rounds
alike).
"""

from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rtproof.tail.pareto_fit import Excesses, anderson_darling_statistic, coarsened_excesses, fit_tail

PLACE = Path(__file__).parent.parent / "src" / "rtproof" / "tail" / "fit_test_table.py"
SHAPES = (-0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8)
WIDTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
PROBABILITIES = (0.99, 0.9, 0.75, 0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002)
EXCESSES = 800
REPETITIONS = 4000
FINEST = 1e-4
"""What stands for a width of 0, in sigma."""
SEED = 5
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""Quantiles of A^2 of fitted excesses, by shape and by the width of the bins in sigma. bench/tail_table.py writes them.

Each cell comes from {n} repetitions with {k} excesses. The probability of A^2 >= TABLE_QUANTILES[shape][width][i] is
TABLE_PROBABILITIES[i].
"""

TABLE_SHAPES = {shapes}
TABLE_WIDTHS = {widths}
TABLE_PROBABILITIES = {probabilities}
TABLE_QUANTILES = (
'''


def drawn(xi: float, width: float, k: int, generator: np.random.Generator) -> Excesses:
    """k excesses with sigma 1 in bins of a width, which begin at the threshold."""
    uniform = generator.random(k)
    values = -np.log(uniform) if xi == 0 else (uniform**-xi - 1) / xi
    step = width or FINEST
    bins, n = np.unique(np.floor(values / step), return_counts=True)
    return Excesses(0.0, bins * step, np.full(bins.size, step), n.astype(np.float64), k)


def cell(xi: float, width: float, repetitions: int, seed: int = SEED) -> NDArray[np.float64]:
    """The quantiles of one cell."""
    generator = np.random.default_rng([seed, SHAPES.index(xi), WIDTHS.index(width)])
    samples = (drawn(xi, width, EXCESSES, generator) for _ in range(repetitions))
    values = [anderson_darling_statistic(one, fit_tail(coarsened_excesses(one))) for one in samples]
    return np.quantile(values, [1 - p for p in PROBABILITIES])


def main() -> None:
    nodes = list(product(SHAPES, WIDTHS))
    with ProcessPoolExecutor(4) as pool:
        found = dict(zip(nodes, pool.map(cell, *zip(*nodes, strict=True), [REPETITIONS] * len(nodes)), strict=True))
    head = HEAD.format(k=EXCESSES, n=f"{REPETITIONS:,}", shapes=SHAPES, widths=WIDTHS, probabilities=PROBABILITIES)
    rows = ("".join(f"        {_row(found[xi, width])}\n" for width in WIDTHS) for xi in SHAPES)
    PLACE.write_text(head + "".join(f"    (\n{block}    ),\n" for block in rows) + ")\n")


def _row(values: NDArray[np.float64]) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in values) + "),"


if __name__ == "__main__":
    main()
