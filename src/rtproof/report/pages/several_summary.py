# SPDX-License-Identifier: Apache-2.0
"""What several runs leave on the screen: the worst verdict with its fact, a row for each run, doubts, and the rest.

It has at most MOST_LINES lines, like the summary of one run, and no table wider than the terminal. What does not fit
is counted.
"""

import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtproof.core.phrases import quantity
from rtproof.core.printable import clean, distinct
from rtproof.judge.analysis_model import Analysis, State
from rtproof.judge.verdict import STATE_ORDER
from rtproof.judge.verdict_sentences import claim_answer, fact_if_invalid
from rtproof.judge.worst_first import worst_first
from rtproof.report.number_format import US, latency_unit
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_cells import MeasuredCampaign
from rtproof.report.pages.ci_verdicts import ERROR, RunRow, run_row
from rtproof.report.pages.first_screen import BREAKS, LABEL, MOST_LINES, WIDEST, fitting_cautions, labelled, table_times
from rtproof.report.text_table import GAP, plain_table, without_column
from rtproof.summary.quantiles import quantile, quantiles
from rtproof.summary.summary_model import Doubt, Severity

LEAST_CAUTIONS = 3
"""Lines that are kept for doubts, where there are that many."""
FEWEST_ROWS = 3
"""The fewest lines of the table."""
RUN_HEADER = ("run", "verdict", "n", "missed", "median", "99 %", "99.9 %", "max")
LEAST_COLUMNS = ("99 %", "median", "missed", "99.9 %", "n")
"""They are dropped in this order from a table that is too wide. The screen of each run has them."""
VERDICT_AT = 1
NO_RESULT = "no result"
SHARES = (0.5, 0.99, 0.999)
SHORT_NAME, SHORTEST_NAME = 24, 8
"""Columns of a name before a column of figures is dropped for it, and once there is none to drop."""
LONGEST_NAME = 40
"""Of a name in a sentence."""
NARROWEST_CELL = 16


@dataclass(frozen=True)
class SeveralRuns:
    """The rows of a table, under its header, whose first word says what a row is.

    cautions: besides the doubts about the runs. rest: where the doubts are that do not fit.
    """

    rows: Sequence[RunRow]
    header: tuple[str, ...] = RUN_HEADER
    cautions: tuple[str, ...] = ()
    rest: str = ""

    @property
    def noun(self) -> str:
        return self.header[0]

    @property
    def judged(self) -> bool:
        """Whether a limit was given to one of them."""
        return any(verdict.requirement for row in self.rows for verdict in row.verdicts)

    @property
    def worst(self) -> RunRow | None:
        """The run with the worst verdict, which the first line is about; None if no run has a result."""
        return min((row for row in self.rows if row.state), key=rank, default=None)

    def short_name(self, row: RunRow, most: int = LONGEST_NAME) -> str:
        """The name of a row in at most so many columns, where that is enough to tell it from the others."""
        return distinct(row.name, [each.name for each in self.rows], most)


def rank(row: RunRow) -> tuple[int, bool, float]:
    """The worst first: without a result, by verdict, with a limit exceeded, then by the largest latency."""
    known_ns = None if row.verdict is None else row.verdict.largest_ns
    largest_ns = known_ns or (row.times_ns[-1] if row.times_ns else 0) or 0
    return (STATE_ORDER.index(row.state) if row.state else -1, not row.exceeded, -largest_ns)


def _fact(row: RunRow) -> str:
    return "" if row.verdict is None else f"{claim_answer(row.verdict)} {fact_if_invalid(row.verdict)}".strip()


def run_summary_row(name: str, analysis: Analysis) -> RunRow:
    """The row of a run of a series."""
    counts, times_ns = _run_figures(analysis)
    cells = tuple("-" if n is None else f"{n:,}" for n in counts)
    return replace(run_row(name, analysis), cells=cells, times_ns=times_ns, unit=latency_unit(analysis))


def _run_figures(analysis: Analysis) -> tuple[tuple[int | None, int | None], tuple[float | None, ...]]:
    """The figures under RUN_HEADER. Of another tool's result they are the number of values and the largest.

    Of two boards they are the response times; an edge without an answer counts as missed.
    """
    none, largest_ns = (None,) * len(SHARES), analysis.verdict.largest_ns
    if edges := analysis.edges:
        of = edges.response
        shares = [quantile(of.counts, share, ends=of.moments).value for share in SHARES]
        times = (*shares, largest_ns) if edges.answered else (*none, None)
        return (edges.answered, edges.never_answered_ns.size), times
    if analysis.imported:
        largest_ns = analysis.imported.max_ns if largest_ns is None else largest_ns
        return (analysis.imported.count, None), (*none, largest_ns)
    summary = analysis.pooled
    if not summary.observed.count:
        return (0, summary.never_ran), (*none, None)
    known = (each.value for each in quantiles(summary, shares=SHARES))
    return (summary.obtained, summary.never_ran), (*known, summary.observed.max)


def campaign_rows(campaign: MeasuredCampaign) -> SeveralRuns:
    """The cells of a campaign, in their order, each with the figure that its article is about."""
    campaign = campaign.marked
    words, figure = campaign_page.answer_of_profile(campaign.profile)
    rows = []
    for name, each in campaign.named:
        row = replace(run_row(name, each.analysis), cells=(figure(each),)) if each.analysis else RunRow(name)
        rows.append(replace(row, failure=each.failure))
    own, _ = campaign_page.campaign_objections(campaign)
    speak = f"{quantity(len(own), 'objection')} {'speaks' if len(own) == 1 else 'speak'} against these figures"
    cautions = (
        *campaign_page.difference_sentences(campaign),
        *([f"{speak}: see the section objections"] if own else []),
    )
    return SeveralRuns(rows, ("cell", "verdict", words), cautions)


def several_text(runs: SeveralRuns, where: Sequence[tuple[str, str]], width: int, most: int = MOST_LINES) -> str:
    """The summary, one newline after each line. where: label and place of all the rest. most: lines of the screen."""
    runs, width = replace(runs, rows=sorted(runs.rows, key=rank)), min(width, WIDEST)
    head = _head_lines(runs, width)
    cautions = [*_doubt_sentences(runs), *runs.cautions]
    places = [f"{label:<{LABEL}}{clean(place)}" for label, place in where]
    taken = sum(-(-len(place) // width) for place in places)  # A command is not broken, so that it can be copied.
    room = most - len(head) - taken - BREAKS
    least = len(fitting_cautions(cautions, width, LEAST_CAUTIONS, runs.rest))
    table = _table(runs, max(room - least, FEWEST_ROWS), width)
    doubts = fitting_cautions(cautions, width, max(room - len(table), 1), runs.rest)
    parts = (head, table, [*doubts, *places])
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def verdict_line(runs: SeveralRuns) -> str:
    """The first words of the summary, in one line without a newline."""
    ranked = replace(runs, rows=sorted(runs.rows, key=rank))
    return " ".join(" ".join(_head_lines(ranked, sys.maxsize)).split())


def _head_lines(runs: SeveralRuns, width: int) -> list[str]:
    """How many runs have the worst verdict, and the fact of the worst one. No result is no good one."""
    measured = [row for row in runs.rows if row.state is not None]
    lacking, every = len(runs.rows) - len(measured), quantity(len(runs.rows), runs.noun)
    none = f"{lacking} of {every} {'has' if lacking == 1 else 'have'} no result."
    worst = runs.worst
    if worst is None:
        return labelled(ERROR, none, width)
    count, exceeded = sum(row.state is worst.state for row in measured), sum(row.exceeded for row in measured)
    said = f"{count} of {every}. {runs.short_name(worst)}: {_fact(worst)}"
    if worst.state is State.INVALID and exceeded:
        said += f" A limit was exceeded in {exceeded} of {every}."
    if lacking and not exceeded and worst.state is not State.INVALID:
        return labelled(ERROR, f"{none} {worst.word} {said}", width)
    return labelled(worst.word, f"{said} {none if lacking else ''}".strip(), width)


def _doubt_sentences(runs: SeveralRuns) -> Iterator[str]:
    """Why runs have no result, then each kind of doubt once, the worst first, with how many runs have it."""
    failed: dict[str, list[RunRow]] = defaultdict(list)
    kinds: dict[str, list[tuple[RunRow, Doubt]]] = defaultdict(list)
    for row in runs.rows:
        if row.failure:
            failed[row.failure].append(row)
        for code, doubt in {doubt.code: doubt for doubt in reversed(row.doubts)}.items():
            kinds[code].append((row, doubt))
    for failure, rows in failed.items():
        name = rows[0].name
        named = f"/{name}" in failure or failure.startswith((f"{name} ", f"{name}:", f"{name}/"))
        yield failure if named else f"{_whose(runs, rows, same=True)}: {failure}"
    for found in kinds.values():
        found.sort(key=lambda each: each[1].severity is not Severity.INVALID)
    for doubt in worst_first(found[0][1] for found in kinds.values()):
        rows = [row for row, _ in kinds[doubt.code]]
        same = all(each.brief == doubt.brief for _, each in kinds[doubt.code])
        if len(rows) > 1 or rows[0] is not runs.worst or doubt.what.lower() not in _fact(rows[0]).lower():
            yield f"{_whose(runs, rows, same=same)}: {doubt.brief}"


def _whose(runs: SeveralRuns, rows: Sequence[RunRow], *, same: bool) -> str:
    """The name of the only run, or how many there are. same: what is said is the same of all, and not of the first."""
    name = runs.short_name(rows[0])
    if len(rows) == 1:
        return name
    count = f"{len(rows)} of {quantity(len(runs.rows), runs.noun)}"
    return count if same else f"{count}, such as {name}"


def _table(runs: SeveralRuns, most: int, width: int) -> list[str]:
    for shown in range(min(len(runs.rows), most), 0, -1):
        lines = _table_lines(runs, runs.rows[:shown], width)
        if shown < len(runs.rows):
            lines.append(f"and {quantity(len(runs.rows) - shown, f'more {runs.noun}')}, none worse")
        if len(lines) <= most:
            break
    return lines


def _table_lines(runs: SeveralRuns, shown: Sequence[RunRow], width: int) -> list[str]:
    """The header and these rows, without the column of verdicts where no limit was given and each run has a result.

    Columns that matter least are left out until the names have room. A row of words may take several lines.
    """
    lacking = (NO_RESULT, *[""] * (len(runs.header) - 3))
    unit, header = runs.worst.unit if runs.worst else US, runs.header
    told = [(row.word, *((*row.cells, *table_times(row.times_ns, unit)) or lacking)) for row in shown]
    rows = [header[1:], *told]
    if not runs.judged and all(row.state is not None for row in runs.rows):
        rows = without_column(rows, header[VERDICT_AT])
    longest, broken = max(len(clean(row.name)) for row in shown), header is not RUN_HEADER
    figures_from = len(rows[0]) if broken else len(rows[0]) - len(RUN_HEADER) + 2
    for dropped in ("", *LEAST_COLUMNS):
        rows = without_column(rows, dropped)
        last = f"max {unit.name}" if header is RUN_HEADER else rows[0][-1]
        behind = plain_table([(*rows[0][:-1], last), *rows[1:]], figures_from)
        room = width - len(GAP) - len(behind[0])
        if room >= min(longest, SHORT_NAME):
            break
    most = max(room, min(longest, SHORT_NAME) if broken else SHORTEST_NAME)
    names = plain_table([(header[0],), *((clean(runs.short_name(row, most)),) for row in shown)], 1)
    before = len(names[0]) + len(GAP) + (len(behind[0]) - max(len(row[-1]) for row in rows))
    lines = (f"{name}{GAP}{line}".rstrip() for name, line in zip(names, behind, strict=True))
    return [part for line in lines for part in (_wrapped(line, width, before) if broken else [line])]


def _wrapped(line: str, width: int, before: int) -> list[str]:
    """A row as lines. Its last cell is a text, which goes on below itself."""
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, max(width, before + NARROWEST_CELL), subsequent_indent=" " * before)
