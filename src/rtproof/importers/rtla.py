# SPDX-License-Identifier: Apache-2.0
"""What ``rtla timerlat`` and ``rtla osnoise`` print: the histograms of ``hist`` and the tables of ``top``.

timerlat measures each activation in up to three places: in the timer's interrupt (IRQ), in the thread that it wakes
(Thr), and back in user space (Usr). All three count from the time at which the timer was due, so the last one holds the
others. Only the last one is taken: added up, the three would count each activation three times. osnoise measures how
long something took the CPU from a loop.

A CPU that measured nothing has no column, and a bin that is empty on all CPUs has no row, so columns and rows are found
by their names. Values beyond the last bin are counted in the row "over", but rtla does not say where its scale ends,
nor which period and priority it used. No bin is wider than the greatest common divisor of their beginnings, and none
reaches the largest value beyond the scale. (Format: kernel, tools/tracing/rtla/src/timerlat_hist.c, timerlat_top.c,
osnoise_hist.c, osnoise_top.c.)
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np

from rtproof.core.errors import UserError
from rtproof.core.phrases import value
from rtproof.core.units import UNITS_NS
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import (
    BUSY_LOOP,
    LARGEST_COUNT,
    STOPPED,
    UNCOUNTABLE,
    clock_ns,
    histogram_of,
    imported_measurement,
    microseconds,
    notes_that_apply,
    refuse_several,
    whole_number,
)
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures
from rtproof.summary.summary_model import Doubt, Severity

TOOL = "rtla"
STAGES = {"Usr": "return to user space", "Thr": "wake-up of the thread", "IRQ": "interrupt of the timer"}
"""Of timerlat, from the last one on."""
WHOLE = 100
FEWEST_BINS, WIDEST = 10, 1_000_000
"""rtla takes no fewer bins and no wider ones, in its unit. So a value beyond the scale is as long as ten bins."""
NOTHING = "no CPU counted a value: nothing was as long as what it counts"
NO_BINS = "it has no histogram: minimum, mean and maximum of each CPU are all that is left"
NO_SETTING = "it says neither its period nor its priority"
TAKEN = "of the places where it measures, the last one is taken: {0}"
ELSEWHERE = "of CPU {0} nothing was counted in {1}: its other places are in no figure"
HELD_UP = "rtla loses activations that it cannot read in time, and does not count them"
PART_LARGER = (
    "of CPU {0} the longest noise, that of a period, all noise and the runtime are not each at least the one before"
)
CUT_OFF = (
    "its last rows are missing (over, count, min, max): it was ended while it printed, or told to leave them away "
    "(--no-summary), so nothing tells how many values lie beyond its scale"
)

_TITLE = re.compile(r"^# RTLA (timerlat|osnoise) histogram$", re.M)
_UNIT = re.compile(r"^# Time unit is \w+ \((us|ns)\)$", re.M)
_DURATION = re.compile(r"^(?:# Duration:|duration:)? *(\d{1,6}) (\d{2}):(\d{2}):(\d{2})\b", re.M)
_INDEX = re.compile(r"^Index((?: +[A-Za-z]{3}-\d{1,5})*) *$", re.M)
_ROW = re.compile(r"^(\d{1,12}|over:|count:|min:|avg:|max:)((?: +(?:-|-?\d+(?:\.\d+)?))+) *$", re.M)
_TOP_TIMERLAT = re.compile(r"^CPU COUNT +\|(?: +cur +min +avg +max *\|?){2,3} *$", re.M)
_TOP_OSNOISE = re.compile(r"^CPU Period +Runtime +Noise +% CPU Aval +Max Noise +Max Single\b", re.M)
_TOP = re.compile(r"^CPU (?:COUNT +\||Period +Runtime )", re.M)
_TOP_ROW = re.compile(r"^ *(\d{1,5}) #(\d{1,18}) +([^<\n]*)(?:<.*)?$", re.M)
_TOP_UNIT = re.compile(r"Latency \((us|ns)\)")
_STOPPED = re.compile(r"hit stop tracing|## CPU \d+ hit stop|^rtla \w+ hit stop", re.M)
_ANALYSED = re.compile(r"^## CPU (\d{1,5}) hit stop tracing, analyzing it ##$", re.M)
_ANALYSIS = re.compile(
    r"^ *(\S[^:\n]{0,60}(?::\d{1,9})?):? +(-?\d{1,9}\.\d{1,3} us(?: \(\d{1,3}(?:\.\d\d)? ?%\))?) *$", re.M
)
OTHER = (
    r"# .*|.*\|.*|(?:CPU|IRQ|Index|RTLA|Thr|Usr)\b.*| *Timer Latency *| *Operating System Noise *| +\S.*|"
    r"rtla \w+ hit stop.*|## CPU .*|-+ *|The system has exit.*|Saving trace.*|duration: .*|"
    r"(?:over|count|min|avg|max): *"
)
LINES = tool_lines(r" *\d+ #\d|\d+ +[-\d]|(?:over|count|min|avg|max):", [_ROW, _TOP_ROW, _ANALYSIS, r"^ALL\b.*"], OTHER)


def looks_like(text: str) -> bool:
    return bool(_TITLE.search(text) or _TOP.search(text))


def read(text: str) -> ImportedHistogram:
    """The measurement in the text; UserError if its figures contradict each other or are missing."""
    title = _TITLE.search(text)
    refuse_several(_TITLE.findall(text))
    if title:
        return _histogram(text, title[1])
    if _TOP_TIMERLAT.search(text):
        return _timerlat_top(text)
    if _TOP_OSNOISE.search(text):
        return _osnoise_top(text)
    raise UserError("the head of its table is not whole: its lines were cut off or wrapped, and numbers with them")


def _histogram(text: str, mode: str) -> ImportedHistogram:
    unit, head = _UNIT.search(text), _INDEX.search(text)
    if not unit or not head:
        raise UserError("its unit or the names of its columns are missing")
    columns = head[1].split()
    if not columns:
        kind = "CPU" if mode == "osnoise" else "Thr"
        return _measurement(kind, (), text, UNITS_NS[unit[1]])
    # Newer versions add a block of all CPUs, whose rows have the same names.
    rows = _rows(text[head.end() :].partition("\nALL:")[0], columns)
    kind = _last_kind(columns, rows["count:"])
    if (mode == "osnoise") != (kind == "CPU"):
        raise UserError(f"its title says {mode}, and the names of its columns do not")
    unit_ns = UNITS_NS[unit[1]]
    bins, width_ns = _bins(rows, unit_ns)
    places: Places = {name: [] for name in (*reversed(STAGES), "CPU")}
    for at, name in enumerate(columns):
        places.setdefault(name[:3], []).append(_part(rows, bins, (width_ns, unit_ns), at, int(name[4:])))
    whole = _whole(text[head.end() :].partition("\nALL:")[2], kind, unit_ns)
    found = _measurement(kind, places[kind], text, unit_ns, whole)
    there = {each.cpu for each in places[kind] if each.told}
    idle = sorted({each.cpu or 0 for some in places.values() for each in some if each.told and each.cpu not in there})
    faults = () if found.stop else _contradictions(places)
    return replace(
        found,
        faults=(*found.faults, *faults),
        doubts=(*found.doubts, *_larger_elsewhere(places, kind, found.max_ns)),
        notes=(*found.notes, *([ELSEWHERE.format(", ".join(map(str, idle)), kind)] if idle else [])),
        scale_ns=max(bins) + width_ns if bins else None,
    )


Rows = Mapping[Any, Sequence[str]]
"""The numbers of each row, by its name or by the lower end of its bin."""


def _rows(text: str, columns: Sequence[str]) -> dict[str, list[str]]:
    """The numbers of each row by its name."""
    rows = {name: words.split() for name, words in _ROW.findall(text)}
    if wrong := next((name for name, words in rows.items() if len(words) != len(columns)), None):
        raise UserError(f"the row {wrong} has {len(rows[wrong])} numbers, and its head names {len(columns)} columns")
    if not {"over:", "count:", "min:", "max:"} <= set(rows):
        raise UserError(CUT_OFF)
    return rows


def _last_kind(columns: Sequence[str], counts: Sequence[str]) -> str:
    """The last stage that counted anything; of osnoise, the CPUs."""
    measured = {name[:3] for name, n in zip(columns, counts, strict=True) if n != "0"}
    if not measured <= {*STAGES, "CPU"}:
        raise UserError("a column has the name of no stage")
    return next((kind for kind in STAGES if kind in measured), "CPU" if columns[0][:3] == "CPU" else "Thr")


Places = dict[str, list[PrintedFigures]]
"""The figures of each CPU in each place where it measures. Each place counts from the same time as the one before."""


def _contradictions(places: Places) -> Iterator[str]:
    """A sentence for each CPU of which a place has larger ends than the next one."""
    for (first, before), (then, after) in pairwise((place, each) for place, each in places.items() if each):
        for one in before:
            other = next((each for each in after if each.cpu == one.cpu), one)
            for name, low_ns, high_ns in (("minimum", one.min_ns, other.min_ns), ("maximum", one.max_ns, other.max_ns)):
                if (
                    one.told
                    and one.told == other.told
                    and None not in (low_ns, high_ns)
                    and (low_ns or 0) > (high_ns or 0)
                ):
                    ends = f"{value(low_ns or 0)} in {first}, and {value(high_ns or 0)} in {then}"
                    yield f"the {name} of CPU {one.cpu} is {ends}, later on"


def _larger_elsewhere(places: Places, kind: str, largest_ns: int | None) -> Iterator[Doubt]:
    """A doubt if an activation was later in an earlier place than any in the place that is taken: that one lacks it."""
    others = [(each.max_ns or 0, each.cpu, place) for place, some in places.items() if place != kind for each in some]
    most_ns, cpu, place = max(others, key=lambda each: each[0], default=(0, None, ""))
    if most_ns > (largest_ns or 0):
        what = f"CPU {cpu}: {value(most_ns)} in {place}, above all in {kind}"
        detail = f"{kind} lacks this activation, which came there later still"
        yield Doubt("larger-elsewhere", Severity.WARNING, what, "do not stop at a latency", detail)


def _whole(text: str, kind: str, unit_ns: int) -> PrintedFigures | None:
    """Count and maximum of all CPUs together, as newer versions print them; None if they are not printed."""
    columns = text.partition("\n")[0].split()
    rows = {name: words.split() for name, words in _ROW.findall(text)}
    at = columns.index(kind) if kind in columns else None
    if at is None or len(rows.get("count:", ())) <= at or len(rows.get("max:", ())) <= at:
        return None
    return PrintedFigures(told=whole_number(rows["count:"][at]), max_ns=_ns(rows["max:"][at], unit_ns))


def _bins(rows: Rows, unit_ns: int) -> tuple[dict[int, Sequence[str]], int]:
    """The counts of the bins by their lower ends in ns, increasing, and their width.

    The file does not say the width: the largest possible one is taken.
    """
    found = {whole_number(name) * unit_ns: words for name, words in rows.items() if name[0].isdigit()}
    maxima = [_ns(word, unit_ns) or 0 for word in rows["max:"]]
    beyond = [most for most, over in zip(maxima, rows["over:"], strict=True) if over.strip("0-")]
    step, last = gcd(*found) // unit_ns, max(found, default=0)
    largest = (max(maxima, default=0) + unit_ns) // unit_ns
    most = min((min(each - last, each // FEWEST_BINS) // unit_ns for each in beyond), default=step or largest)
    width = _divisor(step, most) if step else min(most, largest)
    return dict(sorted(found.items())), max(width, 1) * unit_ns


def _divisor(number: int, most: int) -> int:
    """The largest divisor that is at most ``most``; 1 if there is none."""
    fewest = -(-number // max(most, 1))
    parts = range(fewest, min(number, fewest + WIDEST) + 1)
    return next((number // each for each in parts if number % each == 0), 1)


def _part(rows: Rows, bins: Rows, width_and_unit_ns: tuple[int, int], at: int, cpu: int) -> PrintedFigures:
    """The column at this place."""
    width_ns, unit_ns = width_and_unit_ns
    count, beyond = whole_number(rows["count:"][at]), whole_number(rows["over:"][at])
    counts = [whole_number(words[at]) for words in bins.values()]
    if not 0 <= count <= LARGEST_COUNT or not 0 <= beyond <= LARGEST_COUNT or max(counts, default=0) > LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    low = np.array(list(bins), np.int64) // width_ns
    return PrintedFigures(
        number=cpu,
        cpu=cpu,
        count=sum(counts) + beyond,
        min_ns=_ns(rows["min:"][at], unit_ns),
        mean_ns=_ns(rows["avg:"][at], unit_ns) if "avg:" in rows else None,
        max_ns=_ns(rows["max:"][at], unit_ns),
        overflow=beyond,
        histogram=histogram_of(low, np.array(counts, np.int64), width_ns),
        told=count,
    )


def _ns(word: str, unit_ns: int) -> int | None:
    return None if word == "-" else round(microseconds(word) * unit_ns)


def _measurement(
    kind: str, parts: Sequence[PrintedFigures], text: str, unit_ns: int, whole: PrintedFigures | None = None
) -> ImportedHistogram:
    mode = "osnoise" if kind == "CPU" else "timerlat"
    # ``top`` prints a table each second, each with the time since the start. The last one counts.
    *_, duration = (None, *_DURATION.finditer(text))
    notes = {
        BUSY_LOOP: mode == "osnoise",
        TAKEN.format(STAGES.get(kind)): mode == "timerlat" and bool(parts),
        NOTHING: not parts,
        NO_BINS: any(part.histogram is None for part in parts),
        NO_SETTING: True,
        HELD_UP: True,
    }
    return imported_measurement(
        TOOL,
        mode if mode == "osnoise" else f"{mode}: {STAGES[kind]}",
        parts,
        unit_ns,
        whole=whole,
        duration_ns=_duration_ns(duration) if duration else None,
        lossy=True,
        notes=notes_that_apply(notes),
        stop=STOPPED.format("a latency that it was told to stop at") if _STOPPED.search(text) else "",
        doubts=tuple(_told_cause(text)),
    )


def _told_cause(text: str) -> Iterator[Doubt]:
    """What rtla's own analysis of the latency at which it stopped says: the largest part first."""
    head = _ANALYSED.search(text)
    figures = _ANALYSIS.findall(text[head.end() :]) if head else []
    if head and figures:
        shares = [
            (float(words.partition("(")[2].rstrip(" %)")), name, words)
            for name, words in figures
            if words.endswith(")")
        ]
        parts = sorted(shares, key=lambda each: each[0] % WHOLE, reverse=True)
        threads = [each for each in figures if re.fullmatch(r"\S.*:\d+", each[0])]
        causes = [f"{name} {words}" for *_, name, words in (*parts[:1], *threads[:2])]
        what = f"rtla's own analysis of CPU {head[1]} blames {', '.join(causes)}"
        detail = ", ".join(f"{name} {words}" for name, words in figures)
        yield Doubt("told-cause", Severity.WARNING, what, "look for its cause in the trace that rtla saved", detail)


def _duration_ns(duration: re.Match[str]) -> int | None:
    days, *clock = duration.groups()
    return whole_number(days) * UNITS_NS["d"] + clock_ns(*clock) or None


def _top_rows(text: str, head: re.Pattern[str]) -> list[tuple[int, int, list[str]]]:
    """CPU, count and further words of each row of the last table: ``top`` prints a table each second."""
    *_, last = head.finditer(text)
    times = [_duration_ns(each) or 0 for each in _DURATION.finditer(text)]
    if times != sorted(times):
        raise UserError("its tables are of several runs: give each in a file of its own")
    rows = [
        (int(cpu), whole_number(count), words.replace("|", " ").split())
        for cpu, count, words in _TOP_ROW.findall(text[last.end() :])
    ]
    if not rows:
        raise UserError("its table has no row")
    if max(count for _, count, _ in rows) > LARGEST_COUNT or len({cpu for cpu, *_ in rows}) != len(rows):
        raise UserError("a CPU has two rows, or more values than can be")
    return rows


def _timerlat_top(text: str) -> ImportedHistogram:
    rows = _top_rows(text, _TOP_TIMERLAT)
    *_, head = _TOP_TIMERLAT.finditer(text)
    stages = ("IRQ", "Thr", "Usr")[: head[0].count("cur")]
    units = _TOP_UNIT.findall(text)
    unit_ns = UNITS_NS[units[-1]] if units else 1_000
    if any(len(words) != 4 * len(stages) for *_, words in rows):
        raise UserError(f"a row has not four figures for each of the {len(stages)} places where it measures")
    places: Places = {
        stage: [
            PrintedFigures(number=cpu, cpu=cpu, count=count, min_ns=least, mean_ns=mean, max_ns=most)
            for cpu, count, words in rows
            for _, least, mean, most in [[_ns(word, unit_ns) for word in words[4 * at : 4 * at + 4]]]
        ]
        for at, stage in enumerate(stages)
    }
    measured = [stage for stage, some in places.items() if any(each.max_ns is not None for each in some)]
    kind = measured[-1] if measured else "Thr"
    found = _measurement(kind, places[kind], text, unit_ns)
    return replace(found, doubts=(*found.doubts, *_larger_elsewhere(places, kind, found.max_ns)))


def _osnoise_top(text: str) -> ImportedHistogram:
    """Of osnoise's table, the longest single noise; its other figures are sums of a whole period."""
    rows = _top_rows(text, _TOP_OSNOISE)
    if any(len(words) < 5 for *_, words in rows):
        raise UserError("a row has fewer figures than its head")
    parts = [PrintedFigures(number=cpu, cpu=cpu, max_ns=_ns(words[4], 1_000)) for cpu, _, words in rows]
    faults = []
    for cpu, _, words in rows:
        known = [ns for at in (4, 3, 1, 0) if (ns := _ns(words[at], 1_000)) is not None]
        faults += [PART_LARGER.format(cpu)] if known != sorted(known) else []
    found = _measurement("CPU", parts, text, 1_000)
    return replace(found, faults=(*found.faults, *faults))
