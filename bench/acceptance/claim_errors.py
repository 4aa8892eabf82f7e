# SPDX-License-Identifier: Apache-2.0
"""Measure how often a verdict is false if episodes come once per T, by process.

Each run is judged at every instant, and its first decision counts. If episodes come independently and at a steady rate,
the goals are the errors that the verdict's sentence states. The other processes break that condition. Their figures are
compared with those of docs/verdict.md.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

from claim_judges import Claim, Told, exact, product
from claim_processes import PROCESSES, Process, Span, rate_for, runs

from acceptance import Benchmark, Result, Value

MINUTE_S, HOUR_S = 60.0, 3600.0
AT_MOST_S = (MINUTE_S, HOUR_S, 6 * HOUR_S)
NAMES = dict(zip(AT_MOST_S, ("1 min", "1 h", "6 h"), strict=True))
TIMES = 100
"""How many T a run is long."""
CALIBRATED = 300_000
PAGE = Path(__file__).parent.parent.parent / "docs" / "verdict.md"
DRIFT = 5.0
"""Percent by which a figure of the page may differ from what is measured: 3.2 standard errors of two of 2,000 runs."""


@dataclass(frozen=True)
class Cell:
    """One process at one T. exactly: its own rate is 1 / T, and is not scaled to episodes at that rate."""

    process: Process
    at_most_s: float
    exactly: bool = False
    bunches: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class Shares:
    """Percent of runs: PROVEN and REFUTED first, for each m of the cell; and REFUTED by a long episode."""

    by_m: tuple[tuple[float, float], ...]
    by_length: float


def share(part: int, of: int) -> float:
    return round(100 * part / of, 2)


def measured(cell: Cell, count: int, seed: tuple[int, ...]) -> Shares:
    """Of so many runs of 100 T."""
    span = Span(TIMES * cell.at_most_s, cell.at_most_s)
    claims = [Claim.usual(cell.at_most_s, m) for m in cell.bunches]
    rate = 1 / cell.at_most_s
    if not cell.exactly:
        rate = rate_for(cell.process, claims[0].gap_s, Span(CALIBRATED * cell.at_most_s, cell.at_most_s), (0, *seed))
    told: list[list[Told]] = [[] for _ in claims]
    for late in runs(cell.process, rate, span, count, (1, *seed)):
        for claim, found in zip(claims, told, strict=True):
            found.append(product(exact(late), span.length_s, claim))
    states = [[one.state for one in found] for found in told]
    shares = [(share(each.count("PROVEN"), count), share(each.count("REFUTED"), count)) for each in states]
    return Shares(tuple(shares), share(sum(one.by_length for one in told[0]), count))


def measure_all(cells: Sequence[Cell], count: int, seed: int) -> list[Shares]:
    """Several at a time; each has a seed of its own."""
    with Pool() as pool:
        return pool.starmap(measured, [(cell, count, (seed, number)) for number, cell in enumerate(cells)], chunksize=1)


def slack(percent: float, count: int, short: bool) -> float:
    """What fewer runs than the full ones may be off by: three standard errors."""
    return 3 * math.sqrt(percent * (100 - percent) / count) if short else 0.0


def named(name: str) -> Process:
    return next(one for one in PROCESSES if one.name == name)


MOST = {
    "Poisson": (5.7, 3.5),
    "regular, every T": (1.0, 1.0),
    "Weibull 2": (1.0, 1.0),
    "storms of 60 s": (6.0, 5.0),
}
"""Percent PROVEN and REFUTED at most."""


def has(process: Process, at_most_s: float) -> bool:
    """Storms of 60 s are longer than D where T is a minute: each of them refutes, and nothing is to be counted."""
    return process.name != "storms of 60 s" or Claim.usual(at_most_s).longest_s >= MINUTE_S


def errors(short: bool) -> Result:
    count = 400 if short else 2000
    cells = [
        Cell(named(name), at_most_s, exactly=name == "Poisson")
        for name in MOST
        for at_most_s in (AT_MOST_S[:2] if short else AT_MOST_S)
        if has(named(name), at_most_s)
    ]
    found = measure_all(cells, count, 1)
    held = [
        all(
            of <= most + slack(most, count, short)
            for of, most in zip(one.by_m[0], MOST[cell.process.name], strict=True)
        )
        and one.by_length == 0
        for cell, one in zip(cells, found, strict=True)
    ]
    value: dict[str, Value] = {
        f"{cell.process.name} {NAMES[cell.at_most_s]}": {"proven": one.by_m[0][0], "refuted": one.by_m[0][1]}
        for cell, one in zip(cells, found, strict=True)
    }
    value |= {"runs": count, "by_length": sum(one.by_length for one in found)}
    errors = " + 3 standard errors" if short else ""
    goal = f"percent PROVEN and REFUTED at r0 at most {MOST}{errors}, none by length"
    return Result(value, goal, all(held))


def table(short: bool) -> Result:
    """Every process, as the rows of the page; measured anew, they may not drift from it. Short: four of them."""
    count = 250 if short else 2000
    chosen = [one for one in PROCESSES if not short or one.name in SHORT]
    columns = AT_MOST_S[:2] if short else AT_MOST_S
    cells = [
        Cell(process, at_most_s, bunches=(1.0, 2.0, 5.0) if at_most_s == HOUR_S else (1.0,))
        for process in chosen
        for at_most_s in columns
        if has(process, at_most_s)
    ]
    found = dict(zip(cells, measure_all(cells, count, 2), strict=True))
    rows = {process.name: _row(process, columns, found) for process in chosen}
    written = on_the_page()
    allowed = DRIFT + (8.0 if short else 0.0)
    off: dict[str, Value] = {
        name: f"{cells} measured, {written.get(name)} on the page"
        for name, cells in rows.items()
        if not _alike(cells, written.get(name), allowed)
    }
    says = tuple(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())
    goal = f"each figure of the table in docs/verdict.md within {allowed:.0f} points of what is measured"
    return Result({"runs": count, "rows": len(rows), "off": off}, goal, not off, says)


SHORT = ("Poisson", "Weibull 2", "Hawkes .8, 1 h", "storms of 60 s")
NONE = "-"


def _row(process: Process, columns: Sequence[float], found: dict[Cell, Shares]) -> list[str]:
    """At each T, then with m = 2 and 5 at 1 h."""
    by_time = {cell.at_most_s: one for cell, one in found.items() if cell.process is process}
    cells = []
    for at_most_s in columns:
        one = by_time.get(at_most_s)
        cells.append(_cell(one.by_m[0]) if one else NONE)
    return [*cells, *map(_cell, by_time[HOUR_S].by_m[1:])]


def _cell(percent: tuple[float, float]) -> str:
    return f"{percent[0]:.1f} / {percent[1]:.1f}"


def on_the_page() -> dict[str, list[str]]:
    """The cells of each row by the process's name."""
    rows = re.findall(r"^\| ([^|]+?) \| (.+ / .+) \|$", PAGE.read_text(), re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in rows}


def _alike(cells: Sequence[str], written: Sequence[str] | None, allowed: float) -> bool:
    if written is None:
        return False
    if len(cells) < len(written):
        written = [*written[: len(cells) - 2], *written[-2:]]
    for one, other in zip(cells, written, strict=True):
        if (one == NONE) != (other == NONE):
            return False
        if one != NONE and any(
            abs(a - b) > allowed for a, b in zip(*(map(float, cell.split(" / ")) for cell in (one, other)), strict=True)
        ):
            return False
    return True


BENCHMARKS = (
    Benchmark("01a_errors", "false verdicts where episodes come exactly once per T, as the sentence promises", errors),
    Benchmark("01b_processes", "the same where episodes are not independent or not steady: the page's table", table),
)
