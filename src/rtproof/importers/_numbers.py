# SPDX-License-Identifier: Apache-2.0
"""Numbers that a tool printed. Whatever no tool prints is a UserError: a file may be damaged, or made to do harm."""

import math
import re

from rtproof.errors import UserError

LARGEST_NS = 10**15
"""Eleven days: a larger latency is an early wake-up that was stored without its sign."""
LARGEST_COUNT = 10**12
"""Values that a thread can have taken: eleven days with one each microsecond."""
MOST_DIGITS = 20
"""Of a whole number: as many as 64 bits have, since an early wake-up may be printed without its sign."""

_WHOLE = re.compile(r"-?[0-9]+")


def whole_number(text: str) -> int:
    """A whole number of at most 20 digits, without those in front that are 0."""
    if not _WHOLE.fullmatch(text):
        raise UserError(f"{_short(text)} stands where a whole number belongs")
    digits = text.lstrip("-0")
    if len(digits) > MOST_DIGITS:
        raise UserError(f"the number {_short(text)} is larger than any that it can have counted")
    number = int(digits or "0")
    return -number if text.startswith("-") else number


def microseconds(text: str) -> float:
    """A latency, which may have a fraction and a sign."""
    value = float(text) if len(text) <= 2 * MOST_DIGITS else math.inf
    if not abs(value) <= LARGEST_NS / 1_000:
        raise UserError(f"the latency {_short(text)} is larger than any clock can show")
    return value


def _short(text: str) -> str:
    return text if len(text) <= MOST_DIGITS + 2 else f"{text[:MOST_DIGITS]}... ({len(text):,} characters)"
