# SPDX-License-Identifier: Apache-2.0
"""Evidence: how much work the loads did, and what temperature and frequency did meanwhile."""

import numpy as np

from rtproof.analysis.model import Analysis
from rtproof.record import Counter, Moment
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text

SHORTEST_S = 0.5
"""The last reading comes when the run ends, perhaps only a moment after the one before: that says nothing of a rate."""

NONE = "No load of rtproof's own ran. Whether anything else did is not known."


def render(analysis: Analysis) -> list[Block]:
    counters = [counter for counter in analysis.record.counters if counter.time_ns.size]
    growing = [counter for counter in counters if counter.grows]
    gauges = [counter for counter in counters if not counter.grows]
    blocks: list[Block] = [] if any(counter.name.startswith("load.") for counter in growing) else [Text((NONE,))]
    if growing:
        header = ("counter", "unit", "work done", "per second", "slowest second", "quickest second")
        caption = "Work done while measuring; a load that stands still is no load"
        blocks.append(Table(caption, header, tuple(map(_work, growing)), (2, 3, 4, 5)))
    blocks += [Text((note,)) for note in _notes(analysis, growing)]
    if gauges:
        header = ("gauge", "unit", "readings", "smallest", "mean", "largest")
        blocks.append(Table("Readings, one a second", header, tuple(map(_readings, gauges)), (2, 3, 4, 5)))
    return blocks


def _notes(analysis: Analysis, counters: list[Counter]) -> list[str]:
    """What loads said of how they run on this machine, and of what they lack there."""
    keys = [(counter.name, f"{counter.name}.{what}") for counter in counters for what in ("note", "lack")]
    said = [(name, analysis.record.fact(key, Moment.START)) for name, key in keys]
    return [f"{name}: {text}." for name, text in said if text]


def _work(counter: Counter) -> tuple[str, ...]:
    """Between readings; a single reading says nothing about a rate."""
    if counter.time_ns.size < 2:
        return counter.name, counter.unit, *[figures.UNKNOWN] * 4
    done = np.diff(counter.value)
    seconds = np.diff(counter.time_ns) / figures.NS_PER_S
    whole = seconds >= SHORTEST_S
    rates = done[whole] / seconds[whole]
    if not rates.size:
        return counter.name, counter.unit, figures.count(int(done.sum())), *[figures.UNKNOWN] * 3
    shown = (done.sum() / seconds.sum(), rates.min(), rates.max())
    return counter.name, counter.unit, figures.count(int(done.sum())), *(figures.number(float(each)) for each in shown)


def _readings(counter: Counter) -> tuple[str, ...]:
    values = counter.value
    shown = (float(values.min()), float(values.mean()), float(values.max()))
    return counter.name, counter.unit, figures.count(values.size), *map(figures.number, shown)
