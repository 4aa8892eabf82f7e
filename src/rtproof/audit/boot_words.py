# SPDX-License-Identifier: Apache-2.0
"""Names of the kernel's parameters, and which of them a wrong name was meant to be: ``boot_words.toml``."""

from functools import cache
from importlib import resources

import msgspec

from rtproof.core.toml import parse_toml

LONG = 8
"""A name of this length may differ from the right one by two letters, a shorter one by one."""
MOST_APART = 2


class BootWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names. confused: wrong names of guides, with the right ones.

    built_with: the option of the build without which the kernel takes no notice. since: the first kernel that obeys.
    parsed_on: by the name of a condition that tells the architecture, words that only its kernels parse.
    """

    real_time: tuple[str, ...]
    other: tuple[str, ...]
    confused: dict[str, str]
    built_with: dict[str, str]
    parsed_on: dict[str, tuple[str, ...]]
    since: dict[str, str]


@cache
def boot_words() -> BootWords:
    """All names of the list."""
    text = resources.files("rtproof.audit").joinpath("boot_words.toml").read_bytes()
    return parse_toml(text, BootWords, "boot_words.toml")


@cache
def _known() -> frozenset[str]:
    words = boot_words()
    return frozenset(_plain(name) for name in (*words.real_time, *words.other))


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def is_real_time(name: str) -> bool:
    """Whether a parameter matters for real time."""
    return _plain(name) in boot_words().real_time


def meant_name(name: str) -> str | None:
    """The real-time parameter that a name was probably meant to be; None if it is known, or is like none of them."""
    plain = _plain(name)
    if plain in boot_words().confused:
        return boot_words().confused[plain]
    if plain in _known() or len(plain) > max(map(len, boot_words().real_time)) + 2:
        return None
    alike = [right for right in boot_words().real_time if len(right) > 4 and abs(len(right) - len(plain)) <= MOST_APART]
    least, right = min(((distance(plain, right), right) for right in alike), default=(MOST_APART + 1, ""))
    return right if least <= (MOST_APART if len(right) >= LONG else 1) else None


def distance(a: str, b: str) -> int:
    """How many letters must be put in, left out, exchanged or swapped to make one word of the other."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        above, row = row, [i + 1]
        for j, y in enumerate(b):
            cost = min(above[j + 1] + 1, row[j] + 1, above[j] + (x != y))
            if i and j and x == b[j - 1] and y == a[i - 1]:
                cost = min(cost, before[j - 1] + 1)
            row.append(cost)
        before = above
    return row[-1]
