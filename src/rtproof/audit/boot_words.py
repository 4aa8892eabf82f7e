# SPDX-License-Identifier: Apache-2.0
"""Words of the kernel's command line: which name was meant (``boot_words.toml``), and lists of CPUs as values.

A list may have flags, strides, ``all``, and ``N`` for the last CPU.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from rtproof.core.toml import parse_toml

LONG = 8
"""A name of this length may differ from the right one by two letters, a shorter one by one."""
MOST_APART = 2
FLAGS = ("domain", "nohz", "managed_irq")
MOST, MOST_RANGES = 1 << 13, 1 << 12
"""More CPUs than any kernel knows, and more ranges than in a list of any kernel."""
_SINCE_LAST_CPU, _SKIPS_SINCE = (5, 13), (5, 7)
"""Earlier kernels do not know N and all in a list, or do not skip an unknown flag alone."""
_RANGE = re.compile(r"(\d{1,6}|N)(?:-(\d{1,6}|N)(?::(\d{1,6})/(\d{1,6}))?)?")


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
    text = Path(__file__).with_name("boot_words.toml").read_bytes()
    return parse_toml(text, BootWords, "boot_words.toml")


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def is_real_time(name: str) -> bool:
    """Whether a parameter matters for real time."""
    return _plain(name) in boot_words().real_time


def meant_name(name: str) -> str | None:
    """The real-time parameter that a name was probably meant to be; None if it is known, or is like none of them."""
    plain, words = _plain(name), boot_words()
    if plain in words.confused:
        return words.confused[plain]
    if plain in map(_plain, (*words.real_time, *words.other)) or len(plain) > max(map(len, words.real_time)) + 2:
        return None
    # A change of one letter adds at most one letter to those of a word, and takes at most one away.
    alike = [
        right
        for right in words.real_time
        if len(right) > 4 and abs(len(right) - len(plain)) <= MOST_APART and len({*right} ^ {*plain}) <= 2 * MOST_APART
    ]
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


@dataclass(frozen=True)
class CpuWord:
    """The value of a parameter that names CPUs. cpus: None if it is not known. trouble: a clause, or ""."""

    flags: tuple[str, ...]
    cpus: frozenset[int] | None
    trouble: str = ""


def read_cpu_word(name: str, text: str, possible: frozenset[int] | None, kernel: tuple[int, int] | None) -> CpuWord:
    """The CPUs and the flags of a value. possible: the CPUs that the kernel may have; None if they are not known."""
    parts = text.split(",")
    flags: tuple[str, ...] = ()
    while name == "isolcpus" and parts and re.fullmatch(r"[a-z_]+", parts[0]) and parts[0] != "all":
        flags += (parts.pop(0),)
    if wrong := [flag for flag in flags if flag not in FLAGS]:
        skips = kernel is not None and kernel >= _SKIPS_SINCE
        does = "skips it" if skips else "ignores the whole word (it skips the flag alone since 5.7)"
        return CpuWord(
            flags, _cpus(parts, possible)[0] if skips else None, f"the kernel has no flag {wrong[0]}, and {does}"
        )
    if name == "rcu_nocbs" and text in ("", "all"):
        return CpuWord((), possible if text else frozenset())  # "all" was known long before the other lists knew it
    if kernel is not None and kernel < _SINCE_LAST_CPU and any("N" in part or part == "all" for part in parts):
        return CpuWord(flags, None, "this kernel does not know N and all in a list of CPUs")
    return CpuWord(flags, *_cpus(parts, possible))


def _cpus(parts: list[str], possible: frozenset[int] | None) -> tuple[frozenset[int] | None, str]:
    """The CPUs, and a clause if the kernel refuses the list; None if it needs the unknown number of CPUs."""
    found: set[int] = set()
    refused = None, "this is no list of CPUs"
    if len(parts) > MOST_RANGES:
        return refused
    for part in parts:
        whole = _RANGE.fullmatch("0-N" if part == "all" else part)
        if not whole:
            return refused
        if "N" in whole[0] and not possible:
            return None, ""
        first, last = (max(possible or (0,)) if end == "N" else int(end) for end in (whole[1], whole[2] or whole[1]))
        used, group = int(whole[3] or 1), int(whole[4] or 1)
        if last < first or last > MOST or not used or used > group:
            return refused
        found.update(cpu for cpu in range(first, last + 1) if (cpu - first) % group < used)
    return frozenset(found), ""
