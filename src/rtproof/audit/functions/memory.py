# SPDX-License-Identifier: Apache-2.0
"""Judge memory: huge pages, swap, what moves or frees pages, and what the counts say of it."""

import math
import re

from rtproof.audit import conditions, readings
from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, KernelVersion, Reading, State
from rtproof.core.printable import clean

THP = "/sys/kernel/mm/transparent_hugepage"
_MODES = ("always", "madvise", "never", "inherit")


def _mode(reading: Reading) -> str | None:
    """The word in brackets; None if it is none that a kernel writes."""
    found = re.search(r"\[(\w+)\]", reading.word)
    return found[1] if found and found[1] in _MODES else None


def huge_pages(facts: Facts, check: Check) -> Judgement:
    """The kernel makes no huge pages of memory that did not ask for them; new kernels decide that by size as well."""
    main, sizes = facts.read(f"{THP}/enabled"), facts.match(f"{THP}/hugepages-*/enabled")
    if not main.here:
        return readings.missing(check, [main])
    here = [main, *(one for one in sizes if one.here)]
    always = [one for one in here if _mode(one) == "always"]
    if always:
        return readings.finding(f"The kernel makes huge pages of any memory: {clean(always[0].word)}.", always)
    strange = [one for one in here if _mode(one) is None]
    if strange:
        return readings.not_understood(strange[0])
    lost = [one for one in sizes if one.state is State.UNREADABLE]
    return readings.unknown(lost) if lost else readings.good("", [main])


def khugepaged(facts: Facts, check: Check) -> Judgement:
    """The thread that makes huge pages in the background does not move memory for it."""
    main, defrag = facts.read(f"{THP}/enabled"), facts.read(f"{THP}/khugepaged/defrag")
    if main.absent:
        return readings.absent(check, [main])
    sizes = [one for one in facts.match(f"{THP}/hugepages-*/enabled") if one.here]
    modes = {_mode(one) for one in (main, *sizes)}
    if main.here and modes <= {"never", "inherit"}:
        return readings.not_applicable("Huge pages are off, so that the thread does not run.", [main])
    if not defrag.here:
        return readings.missing(check, [defrag])
    if defrag.word not in ("0", "1"):
        return readings.not_understood(defrag)
    if defrag.word == "0":
        return readings.good("", [defrag])
    sentence = "khugepaged moves memory to make room for huge pages."
    return readings.finding(sentence, [main, defrag])


def same_pages(facts: Facts, check: Check) -> Judgement:
    """The kernel does not merge pages, and no merged page is left."""
    run, sharing = facts.read(check.read[0]), facts.read("/sys/kernel/mm/ksm/pages_sharing")
    if not run.here:
        return readings.missing(check, [run])
    if run.word not in ("0", "1", "2"):
        return readings.not_understood(run)
    if run.word == "1":
        return readings.finding("The kernel merges pages that are alike.", [run, sharing])
    return readings.good("", [run]) if run.word == "2" else _merged_before(run, sharing)


def _merged_before(run: Reading, sharing: Reading) -> Judgement:
    shared = sharing.number()
    if shared is None:
        why = sharing.reason or "it is no number"
        return readings.unknown([sharing], f"It is not known whether pages are still merged: {why}.")
    if shared:
        sentence = f"No more pages are merged, but {shared:,} still are; a write to one of them faults."
        return readings.finding(sentence, [run, sharing], Severity.LOW)
    return readings.good("", [run, sharing])


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
_SKIPS_ISOLATED = KernelVersion(6, 5)


def statistics(facts: Facts, check: Check) -> Judgement:
    """The counts of memory are rarely collected, or the kernel leaves the isolated CPUs alone."""
    found = facts.read(check.read[0])
    if not found.here:
        return readings.missing(check, [found])
    seconds = found.number()
    if seconds is None or seconds < 0:
        return readings.not_understood(found)
    if seconds >= 10:
        return readings.good("", [found])
    wanted = conditions.isolated_cpus(facts)
    lists = [facts.cpus(f"/sys/devices/system/cpu/{name}") for name in ("isolated", "nohz_full")]
    isolated = frozenset().union(*(cpus for cpus in lists if cpus))
    if facts.kernel and not facts.kernel.is_before(_SKIPS_ISOLATED) and wanted and wanted <= isolated:
        return readings.good(f"Since {_SKIPS_ISOLATED} the kernel leaves isolated CPUs alone.", [found])
    return readings.finding(
        f"A kernel worker runs on every CPU every {seconds} s; it adds up the counts of memory.", [found]
    )


DIRTY = "/proc/sys/vm/dirty"
_MOST_BYTES, _MOST_PERCENT = 512 * 1024 * 1024, 10


def dirty_memory(facts: Facts, check: Check) -> Judgement:
    """Little memory waits to be written, so that writing does not come in bursts. Of a pair, one knob is always 0."""
    size, ratio = facts.read(f"{DIRTY}_bytes"), facts.read(f"{DIRTY}_ratio")
    pair = [size, ratio]
    if not size.here or not ratio.here:
        return readings.missing(check, pair) if size.state is ratio.state else readings.unknown(pair)
    n_bytes, percent = size.number(), ratio.number()
    if n_bytes is None or percent is None or min(n_bytes, percent) < 0:
        return readings.not_understood(size if n_bytes is None else ratio)
    if n_bytes and percent:
        sentence = "Both dirty_bytes and dirty_ratio are set, which a kernel never shows: each sets the other to 0."
        return readings.judgement(Outcome.CONFLICTING, sentence, pair)
    if n_bytes > _MOST_BYTES or percent > _MOST_PERCENT:
        most = f"{n_bytes:,} bytes" if n_bytes else f"{percent} % of the memory"
        return readings.finding(f"Up to {most} may wait to be written to disk.", pair)
    return readings.good("", pair)


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
