# SPDX-License-Identifier: Apache-2.0
"""Lists of CPUs as the kernel's command line has them: with flags, strides, ``all`` and ``N`` for the last CPU."""

import re
from dataclasses import dataclass

from rtproof.audit.facts import MOST_RANGES, KernelVersion

FLAGS = ("domain", "nohz", "managed_irq")
MOST = 1 << 13
"""More CPUs than any kernel knows."""
_SINCE_LAST_CPU = KernelVersion(5, 13)
"""Earlier kernels do not know N and all in a list."""
_SKIPS_SINCE = KernelVersion(5, 7)
_RANGE = re.compile(r"(\d{1,6}|N)(?:-(\d{1,6}|N)(?::(\d{1,6})/(\d{1,6}))?)?")


@dataclass(frozen=True)
class CpuWord:
    """The value of a parameter that names CPUs. cpus: None if it is not known. trouble: a clause, or ""."""

    text: str
    flags: tuple[str, ...]
    cpus: frozenset[int] | None
    trouble: str = ""

    def has_flag(self, flag: str) -> bool:
        return flag in self.flags


def read_cpu_word(name: str, text: str, possible: frozenset[int] | None, kernel: KernelVersion | None) -> CpuWord:
    """The CPUs and the flags of a value. possible: the CPUs that the kernel may have; None if they are not known."""
    parts = text.split(",")
    flags = []
    while name == "isolcpus" and parts and re.fullmatch(r"[a-z_]+", parts[0]) and parts[0] != "all":
        flags.append(parts.pop(0))
    wrong = [flag for flag in flags if flag not in FLAGS]
    if wrong:
        skips = kernel is not None and not kernel.is_before(_SKIPS_SINCE)
        does = "skips it" if skips else "ignores the whole word (it skips the flag alone since 5.7)"
        known = _cpus(parts, possible) if skips else None
        rest = known if isinstance(known, frozenset) else None
        return CpuWord(text, tuple(flags), rest, f"the kernel has no flag {wrong[0]}, and {does}")
    if name == "rcu_nocbs" and not text:
        return CpuWord(text, (), frozenset())
    if name == "rcu_nocbs" and text == "all":
        return CpuWord(text, (), possible)  # known long before the other lists knew it
    early = kernel is not None and kernel.is_before(_SINCE_LAST_CPU)
    if early and any("N" in part or part == "all" for part in parts):
        return CpuWord(text, tuple(flags), None, "this kernel does not know N and all in a list of CPUs")
    cpus = _cpus(parts, possible)
    if isinstance(cpus, str):
        return CpuWord(text, tuple(flags), None, cpus)
    return CpuWord(text, tuple(flags), cpus)


def _cpus(parts: list[str], possible: frozenset[int] | None) -> frozenset[int] | str | None:
    """The CPUs; a clause if the kernel refuses the list; None if it needs the number of CPUs, which is not known."""
    found: set[int] = set()
    if len(parts) > MOST_RANGES:
        return "this is no list of CPUs"
    for part in parts:
        whole = _RANGE.fullmatch("0-N" if part == "all" else part)
        if not whole:
            return "this is no list of CPUs"
        if "N" in whole[0] and not possible:
            return None
        first, last = (_number(end, possible) for end in (whole[1], whole[2] or whole[1]))
        used, group = int(whole[3] or 1), int(whole[4] or 1)
        if last < first or last > MOST or not used or used > group:
            return "this is no list of CPUs"
        found.update(cpu for cpu in range(first, last + 1) if (cpu - first) % group < used)
    return frozenset(found)


def _number(text: str, possible: frozenset[int] | None) -> int:
    return max(possible or (0,)) if text == "N" else int(text)
