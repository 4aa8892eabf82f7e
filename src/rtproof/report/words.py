# SPDX-License-Identifier: Apache-2.0
"""Strings from a record are somebody else's: nothing in them may steer a terminal or hide in a page."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(words: str) -> str:
    """Without control and formatting characters (such as right-to-left override); line ends become blanks."""
    return "".join(c if c.isprintable() else " " if c in "\n\t" else REPLACEMENT for c in words)
