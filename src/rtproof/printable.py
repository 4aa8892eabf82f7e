# SPDX-License-Identifier: Apache-2.0
"""Strings from a record, a file or an argument are somebody else's: none may steer a terminal or hide in a page."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(words: str) -> str:
    """Without control and formatting characters (such as right-to-left override); line ends become blanks."""
    return "".join(c if c.isprintable() else " " if c in "\n\t" else REPLACEMENT for c in words)


def one_line(words: str, most: int | None = None) -> str:
    """The same with single blanks only. most: characters at most; a longer text loses its middle."""
    line = clean(" ".join(words.split()))
    if most is None or len(line) <= most:
        return line
    half = (most - 5) // 2
    return f"{line[:half]} ... {line[-half:]}"
