# SPDX-License-Identifier: Apache-2.0
"""Columns of the result table: what each says of a cell, and which of the article's figures stands beside it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rtproof.analysis import systemfiles
from rtproof.analysis.bounds import share_upper
from rtproof.analysis.cycles import CONFIDENCE, most_out_of_band
from rtproof.analysis.model import Cycles, Moments, Summary
from rtproof.analysis.phrases import duration, percent
from rtproof.analysis.quantiles import quantile
from rtproof.articles import Figure, Row
from rtproof.errors import UserError
from rtproof.record import Moment
from rtproof.report import figures
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.figures import MS, US, Unit

MOST_DIGITS = 3


@dataclass(frozen=True)
class Metric:
    """A column. here: the cell's words; article: those of an article's row, "" where it has no such figure."""

    heading: str
    here: Callable[[Outcome], str]
    article: Callable[[Row], str]
    help: str = ""


def metrics(names: tuple[str, ...]) -> list[Metric]:
    """Columns by their names; UserError with the list of what there is."""
    for name in names:
        if name not in METRICS:
            raise UserError(f"columns: there is no column {name!r}; there are: {', '.join(METRICS)}")
    return [METRICS[name] for name in names]


def printed(figure: Figure | None, unit: Unit | None = None) -> str:
    """A figure of an article with the digits that it was printed with, in a unit if it has one."""
    if figure is None:
        return ""
    if unit is None or figure.unit != "ns":
        return figure.text
    digits = min(max(0, math.ceil(-math.log10(figure.step / unit.ns))), MOST_DIGITS) if figure.step else 0
    return f"{'> ' if figure.at_least else ''}{figure.value / unit.ns:,.{digits}f}"


def _figure(name: str, unit: Unit | None = None) -> Callable[[Row], str]:
    return lambda row: printed(row.figures.get(name), unit)


def _nothing(_row: Row) -> str:
    return ""


def _of_summary(words: Callable[[Summary], str]) -> Callable[[Outcome], str]:
    return lambda outcome: words(outcome.shown) if outcome.shown else ""


def _us(value: Callable[[Summary], float | None]) -> Callable[[Outcome], str]:
    return _of_summary(lambda summary: US.show(value(summary) if summary.observed.count else None))


def _rare(summary: Summary) -> str:
    return US.show(quantile(summary.observed_counts, 0.99999, ends=summary.observed).value)


def _largest(summary: Summary) -> str:
    """Of the activations that ran; of a thread that never ran again what it was at least."""
    if summary.stalled_ns > summary.observed.max:
        return f"at least {US.show(summary.stalled_ns)}"
    return US.show(summary.observed.max if summary.observed.count else None)


def longest(summary: Summary) -> str:
    """The largest latency in microseconds. An event without an answer by the next one was later than a period, however
    much."""
    seen = summary.observed
    if summary.stalled_ns > seen.max:
        return f"at least {US.show(summary.stalled_ns)}"
    if summary.missed and seen.max < summary.series.period_ns:
        return f"> {US.show(summary.series.period_ns)}"
    return US.show(seen.max if seen.count else None)


def length(row: Row) -> str:
    """As the article tells it; "" if it does not."""
    told = row.duration or row.asked
    return told.text if told else ""


def _of_cycles(words: Callable[[Cycles], str]) -> Callable[[Outcome], str]:
    def here(outcome: Outcome) -> str:
        cycles = outcome.analysis.cycles if outcome.analysis else None
        return words(cycles) if cycles else figures.UNKNOWN

    return here


def part_of(outcome: Outcome, part: str) -> Moments | None:
    """Article 3's work, loop or top of a periodic application; None of anything else."""
    loops = outcome.loops
    return {"work": loops.work, "loop": loops.loop, "top": loops.error}[part] if loops else None


def _of_loops(part: str, name: str) -> Metric:
    def here(outcome: Outcome) -> str:
        found = part_of(outcome, part)
        return US.show(getattr(found, name) if found and found.count else None)

    words = {"mean": "avg", "deviation": "sd"}.get(name, name)
    return Metric(f"{part} {words} [us]", here, _figure(f"{part}.{name}", US))


def most_out(share: float | None) -> str:
    """None seen is not none to come, so a count of cycles out of the band does not stand alone."""
    return figures.UNKNOWN if share is None else percent(float(f"{share:.2g}"))


def _most_out_there(row: Row) -> str:
    told = [row.figures.get(name) for name in ("below", "above", "count")]
    below, above, count = (figure.value if figure else None for figure in told)
    if below is None or above is None or not count:
        return ""
    return most_out(share_upper(int(below + above), int(count), CONFIDENCE))


def stalled(cycles: Cycles) -> str:
    """How long loops stood still in all."""
    stalled_ns = sum(stall.duration_ns for stall in cycles.stalls)
    return f"STALLED {duration(stalled_ns)}" if stalled_ns else "no"


def _stopped(row: Row) -> str:
    return "stopped" if row.stopped else "no"


def _verdict(outcome: Outcome) -> str:
    return outcome.analysis.verdict.state.value if outcome.analysis else ""


def _loadavg(outcome: Outcome) -> str:
    """The first of three, which is of the last minute, at the end of the run."""
    text = systemfiles.text(outcome.analysis.record, "/proc/loadavg", Moment.END) if outcome.analysis else None
    return text.split()[0] if text and text.split() else figures.UNKNOWN


METRICS: Mapping[str, Metric] = {
    "n": Metric("n", _of_summary(lambda s: figures.count(s.observed.count)), _figure("count")),
    "min": Metric("min [us]", _us(lambda s: s.observed.min), _figure("min", US)),
    "mean": Metric("avg [us]", _us(lambda s: s.observed.mean), _figure("mean", US)),
    "max": Metric("max [us]", _of_summary(_largest), _figure("max", US)),
    "longest": Metric("max [us]", _of_summary(longest), _figure("max", US)),
    "length": Metric("length", _of_summary(lambda s: duration(s.span_ns)), length),
    "deviation": Metric("deviation [us]", _us(lambda s: s.observed.deviation), _figure("deviation", US)),
    "missed": Metric("missed", _of_summary(lambda s: figures.count(s.never_ran)), _nothing),
    "p99.999": Metric("99.999 % [us]", _of_summary(_rare), _nothing),
    "verdict": Metric("verdict", _verdict, _nothing),
    "loadavg": Metric("load average", _loadavg, lambda row: f"{row.loadavg[0]:.2f}" if row.loadavg else ""),
    "cycles": Metric("cycles", _of_cycles(lambda c: figures.count(c.counted)), _figure("count")),
    "below": Metric("below band", _of_cycles(lambda c: figures.count(c.short)), _figure("below")),
    "above": Metric("above band", _of_cycles(lambda c: figures.count(c.long)), _figure("above")),
    "out-share": Metric(
        f"out of band, at most ({percent(CONFIDENCE)})",
        _of_cycles(lambda c: most_out(most_out_of_band(c))),
        _most_out_there,
    ),
    "cycle-max": Metric("max [ms]", _of_cycles(lambda c: MS.show(c.max_ns)), _figure("max", MS)),
    "cycle-min": Metric("min [ms]", _of_cycles(lambda c: MS.show(c.min_ns)), _figure("min", MS)),
    "catch-up": Metric("catch-up pairs", _of_cycles(lambda c: figures.count(c.catch_up_pairs)), _nothing),
    "stalled": Metric("stalled", _of_cycles(stalled), _stopped),
    **{
        f"{part}-{name}": _of_loops(part, name)
        for part in ("work", "loop", "top")
        for name in ("min", "mean", "max", "deviation")
    },
}
