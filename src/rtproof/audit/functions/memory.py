# SPDX-License-Identifier: Apache-2.0
"""Judge memory: huge pages, swap, what moves or frees pages, and what the counts say of it."""

import math
import re

from rtproof.audit import readings
from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, Reading
from rtproof.core.printable import clean

_SWAP_HEAD = re.compile(r"Filename\s+Type\s+Size\s+Used\s+Priority")


def swap(facts: Facts, check: Check) -> Judgement:
    """There is no swap, or the application that was named is locked into memory as a whole."""
    found = facts.read(check.read[0])
    if not found.here:
        return readings.missing(check, [found])
    rows = [row.split() for row in found.text.splitlines() if row.strip()]
    if not rows or not _SWAP_HEAD.match(found.text.lstrip()):
        return readings.not_understood(found)
    places = [row[0] for row in rows[1:]]
    if not places:
        return readings.good("There is no swap.", [found])
    sentence = f"Memory may be swapped out to {clean(places[0])}" + (
        f" and {len(places) - 1} more" if places[1:] else ""
    )
    process = facts.read("process/status")
    sizes = {key: int(kb) for key, kb in re.findall(r"(?m)^(VmLck|VmRSS|VmSwap):\s+(\d{1,15}) kB$", process.text)}
    if len(sizes) < 3:
        why = "" if facts.request.pid is None else ", and it is not known whether the application is locked"
        return readings.finding(f"{sentence}{why}.", [found, process] if why else [found])
    if sizes["VmSwap"] == 0 and sizes["VmLck"] >= sizes["VmRSS"] > 0:
        sentence += "; the application is locked into memory, but the rest of the system may wait for the disk."
        return readings.finding(sentence, [found, process], Severity.LOW)
    sentence += f"; the application has locked {sizes['VmLck']:,} kB of {sizes['VmRSS']:,} kB."
    return readings.finding(sentence, [found, process], Severity.HIGH)


def overcommit(facts: Facts, check: Check) -> Judgement:
    """The kernel promises no more memory than it has; if it does, whether the stricter mode would fit now."""
    mode, memory = facts.read(check.read[0]), facts.read("/proc/meminfo")
    if not mode.here:
        return readings.missing(check, [mode])
    if mode.word not in ("0", "1", "2"):
        return readings.not_understood(mode)
    if mode.word == "2":
        return readings.good("", [mode])
    sizes = {key: int(kb) for key, kb in re.findall(r"(?m)^(CommitLimit|Committed_AS):\s+(\d{1,15}) kB$", memory.text)}
    sentence = "Programs may reserve more memory than there is" + (", without any limit." if mode.word == "1" else ".")
    if len(sizes) == 2:
        limit = f"the {sizes['CommitLimit']:,} kB that overcommit_memory=2 would allow"
        told = f"Programs have reserved {sizes['Committed_AS']:,} kB of {limit}"
        if sizes["Committed_AS"] > _ROOM * sizes["CommitLimit"]:
            return readings.not_applicable(f"{told}, so that mode would refuse memory soon.", [mode])
        sentence += f" {told}."
    return readings.finding(sentence, [mode])


_ROOM = 0.8


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
    total = sizes.get(
        "LowTotal", sizes.get("MemTotal")
    )  # the kernel counts only low memory, where there is high memory
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


_EVENTS = re.compile(
    r"^(pgmajfault|compact_stall|allocstall\w*|pgmigrate_success|thp_collapse_alloc|numa_hint_faults"
    r"|numa_pages_migrated|oom_kill) (\d{1,20})$",
    re.MULTILINE,
)


def events(facts: Facts, check: Check) -> Judgement:
    """Between the two moments no page was read from disk, moved or freed in a hurry, on any CPU."""
    moments = readings.two_moments(facts, check.read[0])
    if not moments.pairs:
        return readings.missing(check, moments.missing)
    start, end = moments.pairs[0]
    before, after = (dict(_EVENTS.findall(one.text)) for one in (start, end))
    if "pgmajfault" not in before or not before.keys() <= after.keys():
        return readings.unknown([start, end], "/proc/vmstat does not count page faults.")
    change = {name: int(after[name]) - int(count) for name, count in before.items()}
    if min(change.values()) < 0:
        return readings.unknown([start, end], readings.COUNT_FELL)
    shown = [Reading(f"{name} in /proc/vmstat", start.state, f"{before[name]}, then {after[name]}") for name in change]
    grown = {name: n for name, n in change.items() if n}
    if grown:
        words = ", ".join(f"{name} +{n:,}" for name, n in grown.items())
        return readings.finding(
            f"Between the two moments: {words}.",
            [one for one in shown if one.path.split()[0] in grown],
        )
    return readings.good("", shown[:1])
