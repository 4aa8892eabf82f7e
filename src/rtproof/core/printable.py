# SPDX-License-Identifier: Apache-2.0
"""Make foreign text printable. Names in a record, a file or an argument come from others and may hold any character.

No such text may send escape codes to a terminal or hide other text on a page.
"""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(words: str) -> str:
    """The text without control and formatting characters (such as right-to-left override). Line ends become blanks."""
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else " " if c in "\n\t" else REPLACEMENT for c in words)


def one_line(words: str, most: int | None = None) -> str:
    """The clean text in one line, with single blanks. If it is longer than ``most`` characters, its middle is cut."""
    line = clean(" ".join(words.split()))
    if most is None or len(line) <= most:
        return line
    half = (most - 5) // 2
    return f"{line[:half]} ... {line[-half:]}"
