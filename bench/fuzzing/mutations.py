# SPDX-License-Identifier: Apache-2.0
"""Files of other tools and records of ours, damaged in every way that a disk, an editor or an ill will may choose."""

import random
import re
from collections.abc import Callable

ODD_NUMBERS = (
    *(b"1e999", b"9" * 5_000, b"0.1", b"-1", b"", b"0", b"nan", b"-0", b"1e-400", b"00000000000000000000001"),
    *(b"9223372036854775808", b"9223372036854775807", b"18446744073709551615", b"4611686018427387904"),
    *(b"1000000000000000", b"\xc2\xb2", b"true", b"null", b'"\\u001b[31m"', b"\x1b[2J", b"[]"),
)
"""What may stand where a number stood."""
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
WORD = re.compile(rb"[A-Za-z_]{2,}")


def _some_number(content: bytes, dice: random.Random) -> bytes:
    places = list(NUMBER.finditer(content))
    return _swapped(content, dice.choice(places), dice.choice(ODD_NUMBERS)) if places else content


def _some_word(content: bytes, dice: random.Random) -> bytes:
    places = list(WORD.finditer(content))
    return _swapped(content, dice.choice(places), dice.choice((b"", b"\x1b[31m", b"\xff\xfe", b'"'))) if places else b""


def _swapped(content: bytes, place: "re.Match[bytes]", new: bytes) -> bytes:
    return content[: place.start()] + new + content[place.end() :]


def _cut(content: bytes, dice: random.Random) -> bytes:
    return content[: dice.randrange(len(content) + 1)]


def _line_gone(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    del lines[dice.randrange(len(lines))]
    return b"".join(lines)


def _line_twice(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    lines.insert(dice.randrange(len(lines)), dice.choice(lines))
    return b"".join(lines)


def _bytes_changed(content: bytes, dice: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(dice.randrange(1, 8)):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def _middle_gone(content: bytes, dice: random.Random) -> bytes:
    first, last = sorted(dice.randrange(len(content)) for _ in range(2))
    return content[:first] + content[last:]


WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(*[_some_number] * 4, _some_word, _cut, _line_gone, _line_twice, _bytes_changed, _middle_gone),
)


def mutated(content: bytes, seed: int) -> bytes:
    """The content after one to four damages; the same for the same seed."""
    dice = random.Random(seed)
    for _ in range(dice.choice((1, 1, 2, 4))):
        content = dice.choice(WAYS)(content, dice) if content else content
    return content
