# SPDX-License-Identifier: Apache-2.0
"""Read from one run what a comparison needs: a few numbers as logarithms, and facts."""

import math
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cache
from importlib import resources

import msgspec
import numpy as np

from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity, value
from rtproof.core.toml import parse_toml
from rtproof.core.units import format_cpus, format_duration, whole_number
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Moment, Record, Seconds, Series, View
from rtproof.summary import recorded_facts
from rtproof.summary.counts import Counts
from rtproof.summary.fields import judged_series
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.measured_kernel import LINUX, kernel_config, preemption_model
from rtproof.summary.quantiles import moments_and_counts_of_view
from rtproof.summary.recorded_facts import online_processors, probe_options, turns_of_processors, virtual_time_clock
from rtproof.summary.summary_model import Severity
from rtproof.summary.system_facts import system_facts
from rtproof.summary.target_threads import FOREIGN
from rtproof.summary.tool_output import tool_output


class KnownFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact that is known to change latencies. key: a pattern. why: a clause. source: a page, or "measured here"."""

    key: str
    why: str
    source: str


class KnownFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """known: the facts, strongest first. files: names of files, by path. asked: names of what the user asked for."""

    known: tuple[KnownFact, ...]
    files: dict[str, str]
    asked: dict[str, str]


@cache
def known_facts() -> KnownFacts:
    """The whole file."""
    text = resources.files("rtproof.compare").joinpath("known_facts.toml").read_bytes()
    return parse_toml(text, KnownFacts, "known_facts.toml")


# The next functions describe a run in words: a dictionary of all facts, besides latencies, in which runs may differ.
#
# Keys without a prefix are named in ``known_facts.toml``. "cmdline WORD" is a word of the kernel's command line.
# "config OPTION" is an option of the kernel's configuration, "module NAME" a loaded module, "option NAME" an option of
# the probe. A key that begins with a slash is a file of one line. A fact that is not known has no key.


Facts = dict[str, str]
BESIDE = "kernel beside Linux"
LONGEST_FACT = 300
_OWN = re.compile(
    r"/proc/(loadavg|stat|vmstat|meminfo|interrupts|softirqs|timer_list|uptime|version|cmdline|modules|xenomai/.*stat)"
    r"|/proc/sys/kernel/osrelease"
)
"""Files whose content differs in every run, or whose facts have keys of their own."""
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_TOLD = {"hardware": "hardware", "virtual machine": "virtual machine", "high-resolution timers": "timers"}


def facts_of(record: Record) -> Facts:
    """Return every known fact of a record: first the measurement, then the system, then files and options."""
    series = judged_series(record)
    found = dict(_measurement(record, series))
    found |= dict(_threads(record, series))
    found |= dict(_system(record))
    found |= {f"option {name}": said for name, said in probe_options(record).items()}
    found |= dict(_command_line(recorded_facts.file_line(record, "/proc/cmdline") or ""))
    config = kernel_config(record)
    found |= {f"config {name}": said for name, said in (config.options.items() if config else ()) if said != "n"}
    found |= dict(_files(record))
    modules = (recorded_facts.file_text(record, "/proc/modules") or "").splitlines()
    found |= {f"module {line.split()[0]}": "loaded" for line in modules if line.split()}
    return {key: said for key, said in found.items() if said and not said.startswith("unavailable")}


def _measurement(record: Record, series: tuple[Series, ...]) -> Iterator[tuple[str, str]]:
    for key, name in known_facts().asked.items():
        yield name, record.fact(key) or ""
    for name in ("probe", "method", "field", "unit"):
        yield name, ", ".join(sorted({getattr(each, name) for each in series}))
    periods_ns = {_period_ns(each) for each in series if each.period_ns}
    yield "period", ", ".join(format_duration(ns) for ns in sorted(periods_ns))
    loads = record.fact("loads")
    if loads is not None:
        yield "load", loads or "none of ours"
    yield "virtual time", virtual_time_clock(record) or "no"
    yield "processor turns", _turns(record) if virtual_time_clock(record) else ""
    yield "agent version", record.begin.agent_version
    asked_ns = whole_number(record.fact("duration_ns") or "")
    yield "length asked", format_duration(asked_ns) if asked_ns else ""


def _period_ns(series: Series) -> int:
    """To three digits where it was learned from what an application did, so that it is never the same to the ns."""
    return round(float(f"{series.period_ns:.3g}")) if series.probe == FOREIGN else series.period_ns


def _turns(record: Record) -> str:
    """How the processors of a guest in virtual time share the instructions, which is what makes their speeds."""
    count, turns = online_processors(record), turns_of_processors(record)
    if count == 1 and not turns.turn_us:
        return "none"
    length = f"at most {turns.turn_us} us" if turns.turn_us else "no pacer"
    busy = "with soakers" if turns.soakers_count else "without soakers"
    return f"{quantity(count, 'processor')}, {length}, {busy}"


def _threads(record: Record, series: tuple[Series, ...]) -> Iterator[tuple[str, str]]:
    """Yield each thread's facts as the thread found them at the start; where it did not, as the user asked for them."""
    yield "threads", str(len({each.thread for each in series})) if series else ""
    cpus = tuple(each.cpu for each in series)
    if cpus:
        yield "CPUs", format_cpus(cpus) if min(cpus) >= 0 else "not bound"
    threads = sorted({each.thread for each in series})
    for key, name in (("policy", "policy"), ("priority", "priority"), ("timer_slack_ns", "timer slack")):
        said = {text for thread in threads if (text := record.fact(key, Moment.START, thread))}
        words = sorted(said) or [record.fact(key) or ""]
        slacks_ns = [whole_number(word) if name == "timer slack" else None for word in words]
        shown = (word if ns is None else value(ns) for word, ns in zip(words, slacks_ns, strict=True))
        yield name, ", ".join(shown)


def _system(record: Record) -> Iterator[tuple[str, str]]:
    begin, model = record.begin, preemption_model(record)
    yield "kernel release", begin.kernel_release
    yield "kernel version", begin.kernel_version
    yield "preemption model", model.effective.value or ""
    yield "preemption model built", model.built.value or ""
    yield BESIDE, model.core.value or ""
    yield "machine", begin.machine
    cpus = recorded_facts.file_text(record, "/proc/cpuinfo") or ""
    models = re.findall(r"(?m)^(?:model name|Hardware|cpu model|uarch)\s*:\s*(.+?)\s*$", cpus)
    yield "CPU model", ", ".join(dict.fromkeys(models))
    for fact in system_facts(record):
        if fact.what in _TOLD and not fact.says.startswith("not known"):
            yield _TOLD[fact.what], fact.says
    yield from _frequencies(record)
    for key, name in (("memory_locked", "memory locked"), ("dma_latency", "DMA latency"), ("clock", "clock read")):
        yield name, record.fact(key, Moment.START) or ""


def _frequencies(record: Record) -> Iterator[tuple[str, str]]:
    """Yield the frequency facts from rows "cpuN governor lowest highest present"; "present" differs in every run."""
    rows = [
        words
        for row in (recorded_facts.file_text(record, "frequencies") or "").splitlines()
        if len(words := row.split()) == 5
    ]
    yield "governor", ", ".join(sorted({row[1] for row in rows}))
    yield "frequencies", ", ".join(sorted({f"{row[2]} to {row[3]} kHz" for row in rows}))


def _command_line(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words for the kernel; words after ``--`` are for init. A word that occurs twice has both texts."""
    said: dict[str, list[str]] = defaultdict(list)
    for word in _WORD.findall(text.partition(" -- ")[0]):
        name, _, rest = word.partition("=")
        said[name].append(rest or "set")
    return ((f"cmdline {name}", " ".join(texts)) for name, texts in said.items())


def _files(record: Record) -> Iterator[tuple[str, str]]:
    """Yield the files of one line, as they were at the start of the run. One that changed during the run is a count."""
    later = {file.path: file.content for file in record.files if file.moment is Moment.END}
    named = known_facts().files
    for file in record.files:
        text = file.content.strip(b" \t\n\0")
        if later.get(file.path, file.content) != file.content:
            continue
        if file.moment is not Moment.START or file.errno or b"\n" in text or len(text) > LONGEST_FACT:
            continue
        if file.path.startswith("/") and not _OWN.fullmatch(file.path):
            yield named.get(file.path, file.path), text.decode(errors="replace") or "empty"


QUANTILES = (0.5, 0.99, 0.999)
UNCOUNTED = "values beyond the scale of the histogram are not counted, so every figure may be too small"
NO_CLOCK = "the clock was not set (it showed a time before 2001, or after now), so the start is not known"
HOST_CLOCK = "the clock was not set, so the start is that in run.json, by the clock of the host"
CLOCK_SET_NS = 1_000_000_000_000_000_000
"""2001-09-09. An earlier start comes from a clock that nobody set. Such a clock starts anew with each boot."""
AHEAD_NS = 86_400_000_000_000
"""The clocks of two machines that somebody set differ by less."""
VIEWS = {View.OBSERVED: "observed", View.CHARGED: "schedule"}


@dataclass(frozen=True)
class FigureReading:
    """One number of one run as a logarithm, with the ends of its bin; ``why`` says why there is no number."""

    ln: float | None
    ln_low: float | None = None
    ln_high: float | None = None
    why: str = ""

    @property
    def size(self) -> float | None:
        """The number itself; None if there is none."""
        return None if self.ln is None else math.exp(self.ln)


@dataclass(frozen=True)
class RunFigures:
    """One run.

    name: as it is called in the texts. facts: texts by key. run_id: hexadecimal, "" if not known. unit: of the values.
    counts: values of all threads in one view. largest: the largest value. overflow: values beyond the scale of a
    histogram, of unknown size.
    seconds: None where the file has no order of time. span_ns: the time measured.
    started_ns: when it began, since 1970; None if not known or not set. booted_ns: when its kernel was booted, since
    1970, exact to a few seconds.
    invalid: why the run did not measure what was asked; a run with such reasons is not compared.
    missed: due times for which the thread never ran; None where the file does not count them. lost: values that are not
    known, likewise.
    unclear: sentences on what else the file does not tell.
    limits_ns: those that the run is judged by. order_seed: what drew the order of the series that the run belongs to;
    None if chance did not draw one.
    """

    name: str
    facts: Mapping[str, str]
    counts: Counts
    largest: int | None = None
    unit: str = "ns"
    overflow: int = 0
    seconds: Seconds | None = None
    span_ns: int | None = None
    missed: int | None = 0
    lost: int | None = 0
    run_id: str = ""
    started_ns: int | None = None
    booted_ns: int | None = None
    invalid: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    limits_ns: tuple[int, ...] = ()
    order_seed: int | None = None

    @property
    def core(self) -> str | None:
        """The co-kernel that ran beside the measured Linux; None if none was found."""
        name = self.facts.get(BESIDE)
        return None if name == LINUX else name

    @property
    def n(self) -> int:
        """The number of all values, with those beyond the scale."""
        return self.counts.total + self.overflow

    def quantile(self, p: float) -> FigureReading:
        """Return the natural logarithm of the quantile p by nearest rank, the upper end of its bin.

        The reading has no value where fewer than one of n values is expected above the quantile.
        """
        share = Fraction(repr(p))
        if self.n * (1 - share) < 1:
            return FigureReading(None, why=f"{self.n:,} values do not reach to {100 * p:g} %")
        rank = math.ceil(self.n * share)
        if rank > self.counts.total:
            return FigureReading(None, why=f"{100 * p:g} % lies beyond the scale of the histogram")
        low, high = self.counts.value_at_rank(rank)
        return self._read(low, high if self.largest is None else min(high, self.largest))

    def _read(self, low: int, high: int) -> FigureReading:
        if min(low, high) <= 0:  # a damaged record may have a maximum below its bins
            why = f"the value at that rank is {high:,} {self.unit}" if high <= 0 else f"its bin ends at {low:,}"
            return FigureReading(None, why=f"{why}, and only values above 0 have a ratio")
        return FigureReading(math.log(high), math.log(low), math.log(high))

    @property
    def second_maxima(self) -> FigureReading:
        """The mean logarithm of the largest value of each second in which an activation ran."""
        if self.seconds is None:
            return FigureReading(None, why="the file has no order of time, so there are no maxima of seconds")
        largest = self.seconds.max[self.seconds.obtained > 0]
        if not largest.size:
            return FigureReading(None, why="nothing ran")
        if int(largest.min()) <= 0:
            return FigureReading(
                None, why="the maximum of a second is not above 0, and only values above 0 have a ratio"
            )
        mean = float(np.log(largest).mean())
        return FigureReading(mean, mean, mean)

    def above(self, level: int) -> tuple[int, int]:
        """Return how many values are larger than a level, at least and at most; unequal if a bin holds the level."""
        least, most = self.counts.exceedances(level)
        return least + self.overflow, most + self.overflow

    def share_above(self, level: int) -> FigureReading:
        """Return the logarithm of the share of values above a level, computed as (k + 1/2) / (n + 1).

        This usual estimate is finite for k = 0 as well, and its logarithm is nearly unbiased.
        """
        if not self.n:
            return FigureReading(None, why="nothing ran")
        ends = [math.log((k + 0.5) / (self.n + 1)) for k in self.above(level)]
        return FigureReading((ends[0] + ends[1]) / 2, ends[0], ends[1])


def figures_of(analysis: Analysis, name: str = "", view: View = View.OBSERVED) -> RunFigures:
    """Return the figures of a run, for the field that a limit judges. name: by default the path of the record.

    view: with CHARGED, missed activations count with their lateness, which is not possible of what another tool
    printed. UserError if it printed no histogram.
    """
    if analysis.imported:
        found = _figures_of_import(name, analysis.imported)
        return _with_known_start(_of_record(found, analysis) if analysis.run_record else found)
    record, pooled = analysis.record, analysis.pooled
    counts, ends = moments_and_counts_of_view(pooled, view)
    begin = record.begin
    realtime, monotonic = begin.origin_realtime_ns, begin.origin_monotonic_ns
    found = RunFigures(
        name=name or record.path,
        facts={**facts_of(record), "view": VIEWS[view]},
        counts=counts,
        largest=ends.largest,
        unit=pooled.series.unit,
        seconds=pooled.seconds,
        span_ns=pooled.span_ns,
        missed=pooled.never_ran,
        lost=pooled.lost,
        limits_ns=tuple(dict.fromkeys(each.requirement.limit_ns for each in analysis.verdicts if each.requirement)),
        run_id=begin.run_id.hex() if any(begin.run_id) else "",
        started_ns=realtime or None,
        booted_ns=realtime - monotonic if realtime and monotonic else None,
        invalid=tuple(doubt.what for doubt in analysis.doubts if doubt.severity is Severity.INVALID),
    )
    return _with_known_start(found)


def _with_known_start(found: RunFigures) -> RunFigures:
    """Return the figures without the times of a clock that was not set."""
    if found.started_ns is None or clock_was_set(found.started_ns):
        return found
    return replace(found, started_ns=None, booted_ns=None, unclear=(*found.unclear, NO_CLOCK))


def clock_was_set(started_ns: int) -> bool:
    """Return whether a run can have started at this time, by a clock that somebody set."""
    return CLOCK_SET_NS <= started_ns <= time.time_ns() + AHEAD_NS


def started_by_host(found: RunFigures, started: str) -> RunFigures:
    """Return the figures with the start in ``run.json`` where the clock of the target was not set."""
    try:
        started_ns = round(datetime.fromisoformat(started).timestamp()) * 1_000_000_000
    except (ValueError, OverflowError):
        return found
    if NO_CLOCK not in found.unclear or not clock_was_set(started_ns):
        return found
    unclear = tuple(HOST_CLOCK if sentence == NO_CLOCK else sentence for sentence in found.unclear)
    return replace(found, started_ns=started_ns, unclear=unclear)


def _of_record(found: RunFigures, analysis: Analysis) -> RunFigures:
    """The figures of another tool, with its command, and with what the record tells without the agent's own thread."""
    record, begin, output = analysis.record, analysis.record.begin, tool_output(analysis.record)
    known = {key: said for key, said in facts_of(record).items() if key not in AGENTS_OWN}
    own = {"method": output.command[0], "tool's command": output.command_for_any_length} if output else {}
    return replace(
        found,
        facts={**known, **found.facts, "field": "latency", **own},
        run_id=begin.run_id.hex() if any(begin.run_id) else "",
        booted_ns=begin.origin_realtime_ns - begin.origin_monotonic_ns if begin.origin_monotonic_ns else None,
        invalid=tuple(doubt.what for doubt in analysis.doubts if doubt.severity is Severity.INVALID),
    )


AGENTS_OWN = (
    *("CPUs", "threads", "period", "policy", "priority", "timer slack", "probe", "method", "field", "memory locked"),
    *("option run", "option ask", "option tool"),
)
"""Facts of the agent's own thread, which does not measure where another tool does."""


def _figures_of_import(name: str, imported: ImportedHistogram) -> RunFigures:
    """A file that contradicts itself is INVALID here too."""
    if imported.histogram is None:
        figures = "rtproof show prints its figures"
        raise UserError(f"{name}: {imported.tool} prints no histogram there, so there is nothing to compare; {figures}")
    told = figures_of_histogram(name, imported.histogram, imported.comparable, imported.overflow, imported.largest_ns)
    started_ns = None if imported.started_s is None else imported.started_s * 1_000_000_000
    unclear = (*told.unclear, *imported.notes, *(doubt.what for doubt in imported.troubles))
    return replace(told, started_ns=started_ns, invalid=imported.faults, unclear=unclear, missed=imported.overruns)


def figures_of_histogram(
    name: str, counts: Counts, facts: Mapping[str, str], overflow: int | None = 0, largest: int | None = None
) -> RunFigures:
    """Return the figures of a histogram without order of time, such as another tool prints.

    overflow: the number of values beyond its scale. With None the tool does not count them; then all figures may be too
    small, and a sentence says so. largest: the maximum, if the tool prints it beside the histogram. facts: the known
    facts, with the keys of ``facts_of``.
    """
    return RunFigures(
        name,
        {"view": "observed", **facts},
        counts,
        None if overflow else largest,
        overflow=overflow or 0,
        missed=None,
        lost=None,
        unclear=(UNCOUNTED,) if overflow is None else (),
    )
