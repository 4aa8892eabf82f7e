# SPDX-License-Identifier: Apache-2.0
"""Strings from a record are somebody else's: nothing in them may steer a terminal or hide in a page."""

MOST_DIGITS = 20
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def whole_number(words: str) -> int | None:
    """The number that a file or a fact gives in decimal digits; None for anything else, also for digits without end."""
    return int(words) if words.isascii() and words.isdigit() and len(words) <= MOST_DIGITS else None


def clean(words: str) -> str:
    """Without control and formatting characters (such as right-to-left override); line ends become blanks."""
    return "".join(c if c.isprintable() else " " if c in "\n\t" else REPLACEMENT for c in words)
