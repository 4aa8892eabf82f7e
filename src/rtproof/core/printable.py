# SPDX-License-Identifier: Apache-2.0
"""Make foreign text printable. Names in a record, a file or an argument come from others and may hold any character.

No such text may send escape codes to a terminal or hide other text on a page.
"""

from collections.abc import Iterable

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


CUT = "..."


def distinct(name: str, names: Iterable[str], most: int) -> str:
    """The name with parts cut out of it, if it is longer than ``most``, where the rest still tells it from ``names``.

    Its middle is cut, or else both its ends. Where neither leaves anything that no other name has, it stays whole.
    """
    if len(name) <= most:
        return name
    others, room = [each for each in names if each != name], max(most - len(CUT), 1)
    for size in sorted(range(room + 1), key=lambda size: abs(room // 2 - size)):
        begin, end = name[: room - size], name[len(name) - size :]
        if not any(other.startswith(begin) and other.endswith(end) for other in others):
            return f"{begin}{CUT}{end}"
    size = max(room - len(CUT), 1)
    pieces = (name[at : at + size] for at in range(1, len(name) - size))
    piece = next((piece for piece in pieces if not any(piece in other for other in others)), None)
    return f"{CUT}{piece}{CUT}" if piece else name
