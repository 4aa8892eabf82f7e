# SPDX-License-Identifier: Apache-2.0
"""Strings from a record are somebody else's."""

from rtproof.printable import clean

__all__ = ("clean", "whole_number")

MOST_DIGITS = 20


def whole_number(words: str) -> int | None:
    """The number that a file or a fact gives in decimal digits; None for anything else, also for digits without end."""
    return int(words) if words.isascii() and words.isdigit() and len(words) <= MOST_DIGITS else None
