# SPDX-License-Identifier: Apache-2.0
"""What several runs leave on the screen: the worst verdict with its fact, a row for each run, cautions, and the rest.

It has at most MOST_LINES lines, like the summary of one run. What does not fit is counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.judge.analysis_model import Analysis, State
from rtproof.judge.verdict import STATE_ORDER
from rtproof.judge.verdict_sentences import claim_answer, fact_if_invalid
from rtproof.profiles import Profile
from rtproof.report.blocks import Text
from rtproof.report.number_format import US
from rtproof.report.pages import campaign_conditions, campaign_page
from rtproof.report.pages.campaign_outcomes import CellOutcome, outcomes_marked_in_band
from rtproof.report.pages.run_summary import BREAKS, LABEL, MOST_LINES, fitting_cautions, labelled
from rtproof.summary.quantiles import quantiles

LEAST_CAUTIONS = 3
"""Lines that are kept for cautions, where there are that many."""
RUN_HEADER = ("run", "verdict", "n", "missed", "median", "99 %", "99.9 %", "max us")
VERDICT_AT = 1
NOT_MEASURED = "not measured"
SHARES = (0.5, 0.99, 0.999)


@dataclass(frozen=True)
class SummaryRow:
    """A run in its table. state: None if there is no result. fact: of its verdict. cells: behind name and verdict.

    exceeded: its limit was, whatever the verdict is.
    """

    name: str
    state: State | None
    fact: str = ""
    largest_ns: int = 0
    cells: tuple[str, ...] = ()
    judged: bool = False
    exceeded: bool = False

    @property
    def rank(self) -> tuple[int, bool, int]:
        """The worst first: without a result, by verdict, with a limit exceeded, then by the largest latency."""
        return (-1 if self.state is None else STATE_ORDER.index(self.state), not self.exceeded, -self.largest_ns)


@dataclass(frozen=True)
class SeveralRuns:
    """The rows of a table, under its header. noun: what a row is. words_until: the first column of figures."""

    rows: Sequence[SummaryRow]
    header: tuple[str, ...] = RUN_HEADER
    noun: str = "run"
    words_until: int = 2

    @property
    def judged(self) -> bool:
        """Whether a limit was given to one of them."""
        return any(row.judged for row in self.rows)


def run_summary_row(name: str, analysis: Analysis) -> SummaryRow:
    """The row of a run of a series. It is small and survives pickling."""
    summary = analysis.pooled
    timed = summary.observed.count > 0 and analysis.imported is None and analysis.edges is None
    shares = [each.value for each in quantiles(summary, shares=SHARES)] if timed else []
    times = [*shares, summary.observed.max] if timed else [None] * (len(SHARES) + 1)
    counts = (f"{summary.obtained:,}", f"{summary.never_ran:,}") if timed else ("-", "-")
    cells = (*counts, *("-" if each is None else f"{each / US.ns:,.1f}" for each in times))
    return _row(name, analysis, cells)


def _row(name: str, analysis: Analysis, cells: tuple[str, ...]) -> SummaryRow:
    verdict = analysis.verdict
    fact = " ".join(filter(None, (claim_answer(verdict), fact_if_invalid(verdict))))
    judged = verdict.requirement is not None
    exceeded = any(each.exceeded for each in analysis.verdicts)
    return SummaryRow(name, verdict.state, fact, verdict.largest_ns or 0, cells, judged, exceeded)


def campaign_summary(
    profile: Profile, outcomes: Sequence[CellOutcome], where: Sequence[tuple[str, str]], width: int
) -> str:
    """The summary of a campaign: each cell with the figure that its article is about. where: label and place."""
    outcomes = outcomes_marked_in_band(outcomes)
    words, figure = campaign_page.answer_of_profile(profile)
    several = len({each.system for each in outcomes}) > 1
    rows = []
    for each in outcomes:
        name = f"{each.cell.label}, {each.system}" if several else each.cell.label
        rows.append(_row(name, each.analysis, (figure(each),)) if each.analysis else SummaryRow(name, None))
    cautions = list(_cautions(profile, outcomes))
    return several_text(SeveralRuns(rows, ("cell", "verdict", words), "cell", 3), cautions, where, width)


def _cautions(profile: Profile, outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    blocks = (
        *campaign_conditions.missing_block(outcomes),
        *campaign_conditions.in_band_block(outcomes),
        *campaign_conditions.virtual_time_block(outcomes),
        *campaign_conditions.difference_block(profile, outcomes),
    )
    yield from (line for block in blocks if isinstance(block, Text) for line in block.paragraphs)
    own, _ = campaign_page.campaign_objections(profile, outcomes, None)
    if own:
        speaks = "speaks" if len(own) == 1 else "speak"
        yield f"{quantity(len(own), 'objection')} {speaks} against these figures: see the section objections"


def several_text(runs: SeveralRuns, cautions: Sequence[str], where: Sequence[tuple[str, str]], width: int) -> str:
    """The summary, one newline after each line. where: label and place of all the rest."""
    runs = replace(runs, rows=sorted(runs.rows, key=lambda row: row.rank))
    head = _head_lines(runs, width)
    places = [f"{label:<{LABEL}}{clean(place)}" for label, place in where]
    room = MOST_LINES - len(head) - len(places) - BREAKS
    least = len(fitting_cautions(cautions, width, LEAST_CAUTIONS))
    table = _table(runs, max(room - least, 3))
    doubts = fitting_cautions(cautions, width, max(room - len(table), 1))
    parts = (head, table, [*doubts, *places])
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _head_lines(runs: SeveralRuns, width: int) -> list[str]:
    """How many runs have the worst verdict, and the fact of the worst one. No result is no good one."""
    measured = [row for row in runs.rows if row.state is not None]
    lacking, every = len(runs.rows) - len(measured), quantity(len(runs.rows), runs.noun)
    none = f"{lacking} of {every} {'has' if lacking == 1 else 'have'} no result."
    worst = measured[0] if measured else None
    if worst is None or worst.state is None:
        return labelled("ERROR", none, width)
    count, exceeded = sum(row.state is worst.state for row in measured), sum(row.exceeded for row in measured)
    said = f"{count} of {every}. {worst.name}: {worst.fact}"
    if worst.state is State.INVALID and exceeded:
        said += f" A limit was exceeded in {exceeded} of {every}."
    if lacking and not worst.state.exit_code:
        return labelled("ERROR", f"{none} {worst.state.word} {said}", width)
    return labelled(worst.state.word, f"{said} {none if lacking else ''}".strip(), width)


def _table(runs: SeveralRuns, most: int) -> list[str]:
    """The worst first, without the column of verdicts where no limit was given."""
    shown = runs.rows if len(runs.rows) < most else runs.rows[: most - 2]
    kept = [at for at in range(len(runs.header)) if at != VERDICT_AT or runs.judged]
    lacking = (NOT_MEASURED, *[""] * (len(runs.header) - 3))
    rows = [runs.header, *((clean(row.name), _word(row), *(row.cells or lacking)) for row in shown)]
    columns = [_column(at, [row[at] for row in rows], runs.words_until) for at in kept]
    left_out = len(runs.rows) - len(shown)
    more = [f"and {quantity(left_out, f'more {runs.noun}')}, none worse"] if left_out else []
    return [*("  ".join(cells).rstrip() for cells in zip(*columns, strict=True)), *more]


def _column(at: int, cells: Sequence[str], words_until: int) -> list[str]:
    """The cells in one width. Words begin on the left, figures end on the right."""
    size = max(map(len, cells))
    return [cell.ljust(size) if at < words_until else cell.rjust(size) for cell in cells]


def _word(row: SummaryRow) -> str:
    return "-" if row.state is None else row.state.word
