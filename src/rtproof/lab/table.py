# SPDX-License-Identifier: Apache-2.0
"""A comparison in words and tables, for the terminal, a README and the page alike."""

import math
from collections.abc import Callable

from rtproof.analysis.phrases import quantity, value
from rtproof.lab.comparison import (
    CLEAR,
    ONE_OBSERVATION,
    VIRTUAL_TIME,
    Comparison,
    Place,
    Spot,
    beside_a_core,
    common_loads,
    first_under,
    marked,
    ranking,
)
from rtproof.report import figures
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.figures import Unit

US = Unit("us", 1_000, 1)
MOST_TRIPLES = 4
"""Columns of "min / mean / max" that fit a line; with more systems the table shows maxima."""
LEAST_CONTRAST = 10.0
"""The hottest cell is at least so many times the coolest, so that like figures look alike."""
NO_FIGURE = {True: "failed", False: "invalid"}


def sections(comparison: Comparison) -> list[Section]:
    """What a terminal shows: the order, the table, and what went wrong."""
    comparison = marked(comparison)
    found = [
        Section("ranking", "Ranking", tuple(ranking_blocks(comparison))),
        Section("latencies", "Latencies", tuple(latency_tables(comparison))),
        Section("faults", "Failed and doubtful cells", tuple(faults(comparison))),
    ]
    return [section for section in found if section.blocks]


def title(comparison: Comparison) -> str:
    kernels = list(dict.fromkeys(system.kernel for system in comparison.systems))
    return f"rtproof lab: {', '.join(kernels)} in virtual time"


def ranking_blocks(comparison: Comparison) -> list[Block]:
    """The order, and what such figures are good for."""
    places = ranking(comparison)
    words = (VIRTUAL_TIME, _observation(comparison))
    beside = tuple(beside_a_core(comparison))
    blocks: list[Block] = [Text(beside, "doubt")] if beside else []
    blocks += [Text((*_first_words(comparison, places), *words), headline=headline(places))]
    if len(places) > 1:
        blocks.append(_ranking_table(places))
    return blocks


def headline(places: list[Place]) -> str:
    """Who was latest and who was not, in a sentence."""
    if not places:
        return "There is no load under which every system has figures."
    first, last = places[0], places[-1]
    if first is last:
        return f"{first.system.name} stayed within {_at(first)}."
    times = last.spot.max_ns / max(first.spot.max_ns, 1)
    reached = f"{last.system.name} reached {_at(last)}"
    return f"{first.system.name} stayed within {_at(first)}; {reached}, {times:,.1f} times as much."


def _at(place: Place) -> str:
    return f"{value(place.spot.max_ns)} ({place.spot.load.name})"


def _first_words(comparison: Comparison, places: list[Place]) -> list[str]:
    if len(places) < 2:
        return []
    first = [load.name for load in first_under(comparison, places[0])]
    listed = f": {', '.join(first)}" if first else ""
    clearly = f"Every other system's largest latency is at least {CLEAR:g} times as large under"
    words = [f"{clearly} {len(first)} of {_loads(comparison)}{listed}."]
    common = common_loads(comparison)
    if len(common) < len(comparison.loads):
        words.append(f"Ranked by those {len(common)} of {_loads(comparison)} under which all have figures.")
    return words


def _loads(comparison: Comparison) -> str:
    return quantity(len(comparison.loads), "load")


def _observation(comparison: Comparison) -> str:
    n = quantity(comparison.shifts, "shift")
    return f"{ONE_OBSERVATION} Here: {n} per cell." if comparison.shifts > 1 else ONE_OBSERVATION


def _ranking_table(places: list[Place]) -> Table:
    least = max(places[0].spot.max_ns, 1)
    rows = tuple(
        (
            f"{at}. {place.system.name}",
            US.show(place.spot.max_ns),
            f"{place.spot.max_ns / least:,.1f}",
            place.spot.load.name,
        )
        for at, place in enumerate(places, 1)
    )
    header = ("system", f"largest latency [{US.name}]", "ratio to the first", "under")
    return Table("Systems by their largest latency under any load", header, rows, (1, 2))


def latency_tables(comparison: Comparison) -> list[Block]:
    """The table itself; with many systems the rest of its figures; the range over shifts; missed activations."""
    wide = len(comparison.systems) > MOST_TRIPLES
    amount = _amount(comparison)
    triple = f"min / mean / max latency [{US.name}] of the activations that ran, {amount}"
    tables = [_grid(comparison, triple, _triple, heat=not wide, folded=wide)]
    if wide:
        tables.insert(0, _grid(comparison, f"Largest latency [{US.name}], {amount}", _maximum, heat=True))
    if comparison.shifts > 1:
        ranges = f"Range of the largest latency over {comparison.shifts} shifts [{US.name}]"
        tables.append(_grid(comparison, ranges, _range))
    if any(spot.missed for spot in comparison.spots):
        tables.append(_grid(comparison, "Missed activations", lambda spot: figures.count(spot.missed)))
    return list(tables)


def _amount(comparison: Comparison) -> str:
    counts = sorted({spot.count for spot in comparison.spots if spot.readings})
    if not counts:
        return "none"
    least = figures.count(counts[0])
    return f"n = {least} per cell" if len(counts) == 1 else f"n = {least} to {figures.count(counts[-1])} per cell"


def _triple(spot: Spot) -> str:
    return " / ".join(US.show(each) for each in (spot.min_ns, spot.mean_ns, spot.max_ns))


def _maximum(spot: Spot) -> str:
    return US.show(spot.max_ns)


def _range(spot: Spot) -> str:
    return f"{US.show(spot.smallest_max_ns)} to {US.show(spot.max_ns)}"


def _grid(
    comparison: Comparison, caption: str, show: Callable[[Spot], str], heat: bool = False, folded: bool = False
) -> Table:
    """Loads by systems."""
    lines = [comparison.row(load) for load in comparison.loads]
    rows = tuple(
        (load.name, *(_cell(spot, show) for spot in line)) for load, line in zip(comparison.loads, lines, strict=True)
    )
    shades = tuple((None, *line) for line in heat_of(lines)) if heat else ()
    header = ("load", *(system.name for system in comparison.systems))
    return Table(caption, header, rows, tuple(range(1, len(header))), folded=folded, heat=shades)


def _cell(spot: Spot, show: Callable[[Spot], str]) -> str:
    return show(spot) if spot.usable else NO_FIGURE[bool(spot.failures)]


def heat_of(lines: list[list[Spot]]) -> list[list[float | None]]:
    """Shares of each cell's maximum on a logarithmic scale from the smallest in the table to the largest."""
    maxima = [max(spot.max_ns, 1) for line in lines for spot in line if spot.usable]
    if not maxima:
        return [[None] * len(line) for line in lines]
    low = math.log(min(maxima))
    span = max(math.log(max(maxima)) - low, math.log(LEAST_CONTRAST))
    return [[(math.log(max(s.max_ns, 1)) - low) / span if s.usable else None for s in line] for line in lines]


def faults(comparison: Comparison) -> list[Block]:
    """A sentence for each cell that failed, and for each reason not to believe one."""
    failed = [f"{_name(spot)}: {why}" for spot in comparison.failed for why in dict.fromkeys(spot.failures)]
    invalid = [
        f"{_name(spot)}: {what}"
        for spot in comparison.invalid
        for what in dict.fromkeys(doubt.what for reading in spot.readings for doubt in reading.invalid)
    ]
    blocks: list[Block] = []
    if failed:
        blocks.append(Text(tuple(failed), "bad", f"{quantity(len(failed), 'cell')} failed"))
    if invalid:
        blocks.append(Text(tuple(invalid), "doubt", "These did not measure what was asked"))
    return blocks


def _name(spot: Spot) -> str:
    return f"{spot.system.name}, {spot.load.name}"
