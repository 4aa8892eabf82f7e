# SPDX-License-Identifier: Apache-2.0
"""Numbers as articles print them: "177 us", "-3.835 us", ">30 ms", "44 h 30 min", "1.3 %".

Each knows the unit of its last digit, because a duration in whole minutes may be a minute longer than it says.
"""

import re
from decimal import Decimal

from rtproof import units
from rtproof.articles.article import Figure
from rtproof.errors import UserError

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([^\s0-9.]+)")
_PARTS = re.compile(rf"(?:{_PART.pattern}\s*)+")


def duration(text: str) -> Figure:
    """A time of one or more parts, each with its unit; with ">" in front at least that. UserError for anything else."""
    bare = text.strip().removeprefix(">").strip()
    sign, bare = (-1, bare[1:]) if bare.startswith("-") else (1, bare)
    parts = _PART.findall(bare) if _PARTS.fullmatch(bare) else []
    if not parts:
        raise UserError(f"{text!r} is not a time: write a number and its unit ({units.UNIT_NAMES}), such as 177 us")
    value = sign * sum(units.parse_duration(number + unit) for number, unit in parts)
    sizes = [units.parse_duration(f"1{unit}") for _, unit in parts]
    if sizes != sorted(set(sizes), reverse=True):
        raise UserError(f"{text!r} is not a time: its units have to become smaller, as in 9 h 47 min")
    return Figure(text.strip(), value, "ns", _step_ns(*parts[-1]), at_least=text.strip().startswith(">"))


def time(text: str) -> Figure:
    """A time with one unit, such as a latency."""
    figure = duration(text)
    if len(_PART.findall(text)) != 1:
        raise UserError(f"{text!r} has several units where one is enough: write it such as 177 us")
    return figure


def share(text: str) -> Figure:
    """A percentage, as a share of 1; UserError without its sign, which tells it from a share."""
    if not text.strip().endswith("%"):
        raise UserError(f"{text!r} is not a percentage: write it with its sign, such as 99.999 %")
    value = units.parse_percentage(text)
    return Figure(text.strip(), float(value), "%")


def count(value: int) -> Figure:
    """A whole number that is 0 or more."""
    if value < 0:
        raise UserError(f"{value} is a negative count")
    return Figure(f"{value:,}", value, "count", 1)


def _step_ns(number: str, unit: str) -> int:
    digits = Decimal(number).as_tuple().exponent
    step = Decimal(units.parse_duration(f"1{unit}")).scaleb(int(digits))
    return int(step)
