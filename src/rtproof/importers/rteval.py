# SPDX-License-Identifier: Apache-2.0
"""The file ``summary.xml`` of rteval, and the report that it prints, as far as it measured with cyclictest.

It has figures and histogram of each CPU, and of the system, which holds all CPUs once more. If a value lay beyond the
scale, rteval leaves all of them away. The report has the figures without the histogram. Of timerlat, rteval adds up the
values of interrupt, thread and user space, and drops those beyond the scale, so nothing of that is read. (Format:
rteval, rteval/modules/measurement/cyclictest.py and timerlat.py, MakeReport; the report: a public one of version 3.3.)
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

from rtproof.core.command_options import CYCLICTEST_LETTERS, CYCLICTEST_LONG_NAMES, options_of
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.core.units import MOST_DIGITS
from rtproof.importers._rt_tests import option_number, words_of
from rtproof.importers._tool_output import (
    STOPPED,
    imported_measurement,
    microseconds,
    printed_thread,
    refuse_several,
    whole_number,
)
from rtproof.importers.cyclictest import BIN_NS, OMITTED
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures

TOOL = "rteval"
STAGES_ADDED = (
    "it measured with timerlat: rteval adds up the values of interrupt, thread and user space, and drops those beyond "
    "its scale. Give the output of rtla itself"
)
ALL_LEFT_OUT = "it has no figures: a value lay beyond its scale, so rteval left all of them away"

MOST_ELEMENTS = 1_000_000
UNAME = {"release": "kernel", "machine": "arch", "nodename": "node"}
"""The elements of uname by the key of their fact."""

_HEAD = re.compile(r"^\s*(?:<\?xml[^>]{0,200}\?>\s*)?<rteval\b")
_REPORT = re.compile(r"^ *rteval \(v([\w.]{1,40})\) report *$", re.M)
_COMMAND = re.compile(r"^ *Command: +(cyclictest .{0,1000})$", re.M)
_CORE = re.compile(
    r"^ *CPU core (\d{1,6}) .*\n *Statistics: *\n *Samples: +(\d+) *\n *Mean: +(\S+?)us *\n"
    r"(?: *(?:Median|Mode|Range): .*\n)* *Min: +(\d+)us *\n *Max: +(\d+)us *$",
    re.M,
)
_KERNEL = re.compile(r"^ *Kernel: +(\S{1,200})", re.M)
_CPU = re.compile(r"\d{1,6}")


def looks_like(text: str) -> bool:
    return bool(_HEAD.match(text[:1_024]) or _REPORT.search(text))


def read(text: str) -> ImportedHistogram:
    """The measurement of cyclictest in the document or report; UserError if it has none or contradicts its form."""
    if not _HEAD.match(text[:1_024]):
        return _of_report(text)
    if "<!" in text.replace("<!--", ""):
        raise UserError("it has a type definition, which rteval never writes")
    if text.count("<") > MOST_ELEMENTS or text.count("=") > 2 * MOST_ELEMENTS:
        raise UserError(f"it has more than {MOST_ELEMENTS:,} elements")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 -- without a type definition nothing in it can expand
    except ElementTree.ParseError as problem:
        raise UserError(f"it is no whole XML document: {problem}") from None
    found = list(root.iter("cyclictest"))
    if not found:
        raise UserError(STAGES_ADDED if root.find(".//timerlat") is not None else "it has no measurement of cyclictest")
    if len(found) > 1:
        raise UserError(f"it has {len(found):,} measurements of cyclictest")
    command = found[0].get("command_line", "")
    scale_us = option_number(_options(command).get("h"))
    parts = [_part(core, scale_us) for core in found[0].findall("core")]
    threshold = found[0].find("./abort_report/breaktrace")
    broken = threshold.get("latency_threshold", "?") if threshold is not None else ""
    system = found[0].find("system")
    known = system is not None and whole_number(_text(system, "samples") or "0")
    whole = replace(_part(system, None, number="0"), overflow=None) if system is not None and known else None
    # What it says of the system, with the keys of the other tools.
    named = {key: (root.findtext(f"./uname/{path}") or "").strip()[:200] for key, path in UNAME.items()}
    facts = {**named, "rteval": root.get("version", "")[:40]}
    return _measurement(command, parts, tuple((key, said) for key, said in facts.items() if said), broken, whole)


def _options(command: str) -> dict[str, str]:
    return options_of(words_of(command)[1:], CYCLICTEST_LETTERS, CYCLICTEST_LONG_NAMES)


def _of_report(text: str) -> ImportedHistogram:
    """The measurement in the report that rteval prints."""
    versions, commands = _REPORT.findall(text), _COMMAND.findall(text)
    refuse_several(versions)
    if len(commands) != 1:
        raise UserError(f"its report has {quantity(len(commands), 'measurement')} of cyclictest")
    parts = []
    for core, samples, mean, low, high in _CORE.findall(text):
        cpu = int(core)
        ends = whole_number(low), microseconds(mean), whole_number(high)
        parts.append(printed_thread(cpu, cpu, whole_number(samples), ends, BIN_NS))
    release = [("release", name) for name in _KERNEL.findall(text)[:1]]
    return _measurement(commands[0], parts, (*release, ("rteval", versions[0])), "")


def _measurement(
    command: str,
    parts: Sequence[PrintedFigures],
    facts: tuple[tuple[str, str], ...],
    broken: str,
    whole: PrintedFigures | None = None,
) -> ImportedHistogram:
    """broken: the threshold in us at which the measurement stopped, empty if it did not."""
    if not parts:
        raise UserError(ALL_LEFT_OUT)
    options = _options(command)
    scale_us = option_number(options.get("h"))
    period_us = option_number(options.get("i", "1000"))
    return imported_measurement(
        TOOL,
        command[:200],
        parts,
        BIN_NS,
        whole=whole,
        scale_ns=scale_us * BIN_NS if scale_us is not None else None,
        priority=option_number(options.get("p")),
        period_ns=period_us * 1_000 if period_us and len(parts) == 1 else None,
        shortest_period_ns=period_us * 1_000 if period_us else None,
        facts=facts,
        notes=(OMITTED,),
        stop=STOPPED.format(f"the first value above {broken[:MOST_DIGITS]} us") if broken else "",
    )


def _part(core: ElementTree.Element, scale_us: int | None, number: str = "") -> PrintedFigures:
    """A CPU, or the whole system, which has no number of its own."""
    number = number or core.get("id", "")
    if not _CPU.fullmatch(number):
        raise UserError("a CPU has no number")
    cpu = int(number)
    samples = whole_number(_text(core, "samples"))
    bins = {
        whole_number(bucket.get("index", "")): whole_number(bucket.get("value", ""))
        for bucket in core.iterfind("./histogram/bucket")
    }
    if not samples:
        return printed_thread(cpu, cpu, 0, (0, 0, 0), BIN_NS)
    low, high = (whole_number(_text(core, name)) for name in ("minimum", "maximum"))
    ends = low, microseconds(_text(core, "mean")), high
    scale_ns = None if scale_us is None else scale_us * BIN_NS
    return printed_thread(cpu, cpu, samples, ends, BIN_NS, bins=bins, scale_ns=scale_ns)


def _text(core: ElementTree.Element, name: str) -> str:
    return (core.findtext(f"./statistics/{name}") or "").strip()
