# SPDX-License-Identifier: Apache-2.0
"""Numbers as a row of small bars, one character each, for a terminal."""

import math
from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"


def sparklines_of(rows: Sequence[Sequence[int]]) -> list[str]:
    """A line for each row, all on one logarithmic scale from the smallest to the largest positive number.

    A number that is not positive is a space.
    """
    known = [number for row in rows for number in row if number > 0]
    low, high = (math.log(min(known)), math.log(max(known))) if known else (0.0, 0.0)
    return ["".join(_level(number, low, high) for number in row) for row in rows]


def _level(number: int, low: float, high: float) -> str:
    if number <= 0:
        return " "
    share = (math.log(number) - low) / (high - low) if high > low else 0.0
    return LEVELS[round(share * (len(LEVELS) - 1))]
