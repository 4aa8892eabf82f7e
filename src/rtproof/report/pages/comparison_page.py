# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison of two sides, each of several runs, or of how much runs of one thing differ."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import stdev

from rtproof.compare.comparison_model import Comparison, ComparisonFinding, named_finding
from rtproof.compare.run_metrics import FigureReading, RunFigures
from rtproof.core.phrases import duration, quantity, value
from rtproof.judge.verdict_sentences import texts_under_labels
from rtproof.report.blocks import Block, Marker, Plot, Section, Table, Text
from rtproof.report.number_format import in_unit, table_of
from rtproof.report.pages import comparison_figures
from rtproof.report.pages.comparison_figures import DrawnSides, curve_blocks, curve_unit, outcome_sentence
from rtproof.summary.measured_kernel import IN_BAND

BESIDE_LINUX = (
    "Only threads of Linux were measured (in-band). The tasks of the co-kernel beside Linux were not measured; they do "
    "not wait for Linux."
)


MOST_NAMED = 3


def left_out_rows(some: Iterable[tuple[str, str, str]], complaints: Sequence[str]) -> list[Block]:
    """Return side, run and reason of the runs that no figure contains, and the sentences on unreadable runs."""
    runs: dict[tuple[str, str], list[str]] = {}
    for side, run, why in some:
        runs.setdefault((side, why), []).append(run)
    lines = []
    for (side, why), who in runs.items():
        more = len(who) - MOST_NAMED
        named = ", ".join(who) if more <= 1 else f"{', '.join(who[:MOST_NAMED])} and {quantity(more, 'more run')}"
        lines.append(f"Left out{f' of {side}' if side else ''}: {named}: {why}")
    lines += [f"Not read: {sentence}" for sentence in complaints]
    return [Text(tuple(lines), "doubt")] if lines else []


def beside_a_core(some: Iterable[RunFigures]) -> list[Block]:
    """Return what a co-kernel beside Linux means for the figures; empty where no run has one."""
    counts = Counter(run.core for run in some if run.core)
    words = tuple(f"{core}: {quantity(n, 'run')}." for core, n in counts.items())
    return [Text(words, "doubt", BESIDE_LINUX)] if words else []


def runs_table(sides: DrawnSides) -> Table:
    """Return a row for each run, one side after the other. Columns that would be 0 in each row are a sentence."""
    unit, runs = curve_unit(sides), [run for _, runs in sides for run in runs]
    nothing_gone = all((run.missed, run.lost) == (0, 0) for run in runs)
    lost = [("missed", lambda run: run.missed), ("lost", lambda run: run.lost)]
    table = table_of(
        "1-s maxima: geometric mean of the largest latency of each second"
        + "; no activation was missed or lost" * nothing_gone,
        runs,
        ("run", lambda run: f"{run.name} ({IN_BAND})" if run.core else run.name),
        ("n", lambda run: run.n),
        ("length", lambda run: None if run.span_ns is None else duration(run.span_ns)),
        in_unit(unit, "50 %", lambda run: run.quantile(0.5).size),
        in_unit(unit, "99 %", lambda run: run.quantile(0.99).size),
        in_unit(unit, "99.9 %", lambda run: run.quantile(0.999).size),
        in_unit(unit, "max", lambda run: run.largest),
        in_unit(unit, "1-s maxima", lambda run: run.second_maxima.size),
        *([] if nothing_gone else lost),
    )
    if len(sides) == 1:
        return table
    names = (name if at == 0 else "" for name, side in sides for at in range(len(side)))
    rows = tuple((name, *row) for name, row in zip(names, table.rows, strict=True))
    return replace(table, header=("side", *table.header), rows=rows, numeric=tuple(at + 1 for at in table.numeric))


OF_A_PAGE = ("page", "curves", "tails")
"""Sections that a terminal has no use for."""
MOST_ROWS = 5
"""Of a table that a page folds: with more rows it is not printed on a terminal."""
METRICS: tuple[tuple[str, Callable[[RunFigures], FigureReading]], ...] = (
    ("50 %", lambda run: run.quantile(0.5)),
    ("99 %", lambda run: run.quantile(0.99)),
    ("99.9 %", lambda run: run.quantile(0.999)),
    ("1-s maxima", lambda run: run.second_maxima),
)


BETTER = (ComparisonFinding.A_BETTER, ComparisonFinding.B_BETTER)
ASKED = {
    "SIMULATED": "Simulated",
    "CURVES": "Curves",
    "CONDITIONS": "Conditions",
    "COMPARED": "Compared",
    "MAX": "Maximum",
}
"""Labels of the sentences that explain the result, in the order of the page; other labels have another place."""


def outcome_section(found: Comparison, what: Sequence[str]) -> Section:
    headline, *rest = texts_under_labels(found.sentences, "VERDICT")
    sides = zip((found.a, found.b), what, strict=True)
    compared = " ".join(
        f"{side.name}: {'' if words == side.name else f'{words}, '}{quantity(len(side.runs), 'run')}."
        for side, words in sides
    )
    names = found.a.name, found.b.name
    said = tuple(outcome_sentence(each, names) for each in (headline, *rest))
    blocks: list[Block] = [Text(said[1:], "good" if found.finding in BETTER else "doubt", said[0]), Text((compared,))]
    blocks = [*beside_a_core((*found.a.runs, *found.b.runs)), *blocks]
    rows = tuple(
        (words if at == 0 else "", outcome_sentence(text, names))
        for label, words in ASKED.items()
        for at, text in enumerate(texts_under_labels(found.sentences, label))
    )
    blocks.append(Table("About the result", ("about", "what it means"), rows))
    return Section("result", "Result", tuple(blocks))


SHOWN = 8
NOTHING = "No recorded fact differs. Something that no record holds may differ, such as temperature."
WHY = "not known to matter"


def differences_section(found: Comparison) -> Section:
    whole = table_of(
        "What differs, most likely to matter first",
        found.differences,
        ("fact", lambda one: one.key),
        (found.a.name, lambda one: one.a),
        (found.b.name, lambda one: one.b),
        ("why it may matter", lambda one: f"{'what you compare; ' if one.said else ''}{one.why or WHY}"),
        ("source", lambda one: one.source),
        numeric=(),
    )
    first = first_and_rest(whole, SHOWN, "What else differs") if whole.rows else [Text((NOTHING,))]
    return Section("differences", "What differs in the facts", tuple(first))


def first_and_rest(whole: Table, most: int, rest: str) -> Iterator[Table]:
    """Yield the first rows of a table, and the others folded. rest: the caption of these."""
    yield replace(whole, rows=whole.rows[:most])
    if len(whole.rows) > most:
        yield replace(whole, caption=rest, rows=whole.rows[most:], folded=True)


MEANS = (
    "One run to the next: the factor by which runs of the same typically differ (exp of the standard deviation of the "
    "logarithms). Two single runs of different systems have to differ by much more."
)


def spread_section(found: Sequence[RunFigures], complaints: Sequence[str]) -> Section:
    """Return how much the runs differ. Runs that did not measure what was asked are only in the table of runs."""
    good = [run for run in found if not run.invalid]
    rows = []
    for name, read in METRICS:
        if known := [ln for run in good if (ln := read(run).ln) is not None]:
            factor = f"x {math.exp(stdev(known)):.2f}" if len(known) > 1 else "unknown: one run"
            sizes = (sum(known) / len(known), min(known), max(known))
            rows.append((name, *(value(round(math.exp(ln))) for ln in sizes), factor))
    largest = [run.largest for run in good if run.largest is not None]
    headline = "No run measured what was asked."
    if largest:
        some = f"{value(min(largest))} in one and {value(max(largest))} in another"
        latency = some if len(largest) > 1 else value(largest[0])
        headline = f"{quantity(len(good), 'run')}: the largest latency is {latency}."
    blocks: list[Block] = beside_a_core(found)
    blocks += [Text((quantity(len(found), "run") + " of the same.",), "normal", headline)]
    if rows:
        header = ("metric", "geometric mean", "least", "most", "one run to the next")
        blocks += [Table("From run to run", header, tuple(rows), (1, 2, 3, 4)), Text((MEANS,))]
    blocks.append(runs_table([("", found)]))
    blocks += left_out_rows([("", run.name, "; ".join(run.invalid)) for run in found if run.invalid], complaints)
    return Section("result", "Runs of the same", tuple(blocks))


def comparison_sections(
    found: Comparison, what: Sequence[str], complaints: Sequence[str] = (), command: str = ""
) -> list[Section]:
    """Return the sections of the page.

    what: each side in the user's words. complaints: on unreadable runs. command: as the user typed it.
    """
    sides = [(side.name, side.runs) for side in (found.a, found.b)]
    unit = curve_unit(sides)
    left_out = left_out_rows([(one.side, one.run, one.why) for one in found.left_out], complaints)
    crossings = tuple(Marker("they cross", "x", unit.scale(one.value)) for one in found.order.crossings)
    parts = [
        outcome_section(found, what),
        comparison_figures.metrics_section(found),
        _tails(sides, crossings),
        differences_section(found),
        Section("runs", "The runs", (replace(runs_table(sides), folded=True), *left_out)),
        comparison_figures.notes_section(found),
        made_by(command),
    ]
    return [part for part in parts if part.blocks]


def comparison_in_short(found: Comparison, what: Sequence[str]) -> list[str]:
    """Return the sentences that a screen has room for, the finding first. what: each side in the user's words."""
    names = found.a.name, found.b.name
    headline, *rest = (outcome_sentence(each, names) for each in texts_under_labels(found.sentences, "VERDICT"))
    named = zip(names, what, strict=True)
    sides = " ".join(f"{name}: {words}." for name, words in named if name not in words.split())
    count = sum(not one.is_copy for one in found.left_out)
    left_out = f"{quantity(count, 'INVALID run')} {'is' if count == 1 else 'are'} not compared." if count else ""
    return [headline, *filter(None, (left_out, sides)), *rest]


def comparison_title(found: Comparison) -> str:
    """Return a title that tells this page from others: the finding and the number of runs."""
    count = f"{quantity(len(found.a.runs), 'run')} against {len(found.b.runs)}"
    names = found.a.name, found.b.name
    return f"rtproof: {names[0]} against {names[1]}, {count} - {named_finding(found.finding, names)}"


def single_side_sections(found: Sequence[RunFigures], complaints: Sequence[str] = ()) -> list[Section]:
    """Return how much runs of the same thing differ. Every comparison with these runs starts from this."""
    return [spread_section(found, complaints), _tails([("all", found)])]


def made_by(command: str) -> Section:
    return Section("page", "This page", (Text((f"Made by: {command}",)),) if command else ())


def for_terminal(page: Sequence[Section]) -> list[Section]:
    """The sections of a page for a terminal: without plots, and without the rows of long tables that a page folds."""
    found = []
    for section in page:
        folded = [
            each for each in section.blocks if isinstance(each, Table) and each.folded and len(each.rows) > MOST_ROWS
        ]
        kept = [block for block in section.blocks if not isinstance(block, Plot) and block not in folded]
        more = [
            Text((f"{each.caption}: {len(each.rows)} rows; the page and --format text have them.",)) for each in folded
        ]
        if kept and section.name not in OF_A_PAGE:
            found.append(replace(section, blocks=(*kept, *more)))
    return found


def _tails(sides: DrawnSides, crossings: tuple[Marker, ...] = ()) -> Section:
    return Section("curves", "Tails", tuple(curve_blocks(sides, curve_unit(sides), crossings)))
