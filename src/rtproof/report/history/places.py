# SPDX-License-Identifier: Apache-2.0
"""The places at which something changed: by how much, how surely, and which facts changed there."""

from collections.abc import Iterator

from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.history.model import FactChange, Found, Metric, Place, Sequence
from rtproof.analysis.phrases import instant, quantity
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.figures import number, unit_for

SHARE = "share"
SHOWN = 12
FACTS = ("fact", "before", "after", "at run", "on both sides", "why it may matter", "source")


def blocks(sequence: Sequence) -> Iterator[Block]:
    """Changes first, then figures in which none could be looked for."""
    for place in sequence.places:
        yield _table(place, sequence)
        yield from _facts(place)
    if sequence.judged and not sequence.places:
        yield Text(("No change is shown, which is not the same as none.",))
    whys = tuple((metric.label, metric.why) for metric in sequence.metrics if metric.why)
    if whys:
        yield Table("No change can be told in", ("figure", "why"), whys)


def _table(place: Place, sequence: Sequence) -> Table:
    run = sequence.runs[place.at]
    caption = f"Run {place.at + 1} of {len(sequence.runs)}: {run.name}, {started(run)}; means of the runs on both sides"
    header = ("figure", "from", "to", "ratio", "p", "runs before", "runs after")
    return Table(caption, header, tuple(_row(found) for found in place.found), (1, 2, 3, 4, 5, 6))


def _row(found: Found) -> tuple[str, ...]:
    since, until = found.runs
    return (
        found.label,
        shown(found.before, found.unit),
        shown(found.after, found.unit),
        ratio(found.ratio),
        f"{found.p:.2g}",
        str(found.at - since),
        str(until - found.at),
    )


def _facts(place: Place) -> Iterator[Block]:
    if not place.facts:
        yield Text(("No recorded fact changed there. What no record holds, such as temperature, may have.",))
        return
    first, rest = place.facts[:SHOWN], place.facts[SHOWN:]
    yield Table("Facts that changed there, most likely to matter first", FACTS, tuple(map(_fact, first)))
    if rest:
        caption = f"{quantity(len(rest), 'more fact')} that changed there"
        yield Table(caption, FACTS, tuple(map(_fact, rest)), folded=True)


def _fact(fact: FactChange) -> tuple[str, ...]:
    steady = "yes" if fact.steady else "no, it changes elsewhere too"
    return fact.key, fact.before, fact.after, str(fact.at + 1), steady, fact.why or "not known to matter", fact.source


def ratio(value: float) -> str:
    """Above 1: larger, that is later or more often."""
    return f"x{value:.3g}"


def shown(value: float, unit: str) -> str:
    """A figure with its unit; shares have none."""
    if unit == SHARE:
        return number(value, 3)
    return unit_for((value,))(value) if unit == "ns" else f"{number(value)} {unit}"


def started(run: RunFigures) -> str:
    """When a run began."""
    return "of unknown time" if run.started_ns is None else f"{instant(run.started_ns, 0)} UTC"


def scale(metric: Metric) -> tuple[str, float]:
    """Name and size of the unit of a metric's axis."""
    return (metric.label, 1.0) if metric.unit == SHARE else (f"{metric.label} [us]", 1_000.0)
