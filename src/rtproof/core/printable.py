# SPDX-License-Identifier: Apache-2.0
"""Make text fit to print. Names in a record, a file or an argument come from others and may hold anything.

No such text may send escape codes to a terminal or hide other text on a page.
"""

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
