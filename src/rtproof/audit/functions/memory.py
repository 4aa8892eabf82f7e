# SPDX-License-Identifier: Apache-2.0
"""Judge memory: huge pages, swap, what moves or frees pages, and what the counts say of it."""

import math
import re

from rtproof.audit import readings
from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check
from rtproof.audit.facts import Facts


def reserve(facts: Facts, check: Check) -> Judgement:
    """The kernel keeps enough memory free, and frees no more than it needs."""
    found = facts.read("/proc/sys/vm/min_free_kbytes")
    boost, memory = facts.read("/proc/sys/vm/watermark_boost_factor"), facts.read("/proc/meminfo")
    if not found.here:
        return readings.missing(check, [found])
    least, factor = found.number(), boost.number()
    if least is None or (boost.here and factor is None):
        return readings.not_understood(found if least is None else boost)
    sizes = dict(re.findall(r"(?m)^(LowTotal|MemTotal):\s+(\d{1,15}) kB$", memory.text))
    # The kernel counts only low memory, where there is high memory.
    total = sizes.get("LowTotal", sizes.get("MemTotal"))
    usual = min(math.isqrt(int(total) * 16), 65536) if total else None
    if usual is not None and least < usual // 2:
        sentence = f"The kernel keeps only {least:,} kB free; by itself it would keep about {usual:,} kB."
        return readings.finding(sentence, [found])
    if factor:
        sentence = f"The kernel frees more memory than it needs: watermark_boost_factor is {factor}."
        return readings.finding(sentence, [boost])
    if usual is None or not (boost.here or boost.absent):
        return readings.unknown([memory, boost])
    return readings.good("", [found, boost])
