# SPDX-License-Identifier: Apache-2.0
"""Print several runs on one screen: the cells of a campaign, or the runs in a folder."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from rtproof import report
from rtproof.core.units import format_duration
from rtproof.experiment import campaign_folder, printed_runs, stored_runs
from rtproof.experiment.campaign_folder import CampaignDocument
from rtproof.experiment.run_request import program_name
from rtproof.judge.verdict import worst_state
from rtproof.record.requirement import Requirement
from rtproof.report.pages import several_summary
from rtproof.report.pages.ci_verdicts import RunRow, worst_exit_code
from rtproof.report.pages.first_screen import MOST_LINES
from rtproof.report.text_table import fitted_to_terminal


def print_campaign_screen(found: CampaignDocument, folder: Path) -> None:
    """Print the summary of a campaign, the names of its sections, and the command that prints them."""
    page = folder / campaign_folder.PAGE_FILE
    where = [("page", str(page))] if page.is_file() else []
    sections, runs = (
        [section.name for section in found.sections],
        several_summary.campaign_rows(found.measured),
    )
    runs = replace(runs, rest=_where_the_rest_is(found, runs, folder))
    most = MOST_LINES - len(printed_runs.section_lines(sections, folder)) - 1
    text = several_summary.several_text(runs, where, printed_runs.terminal_width(), most)
    states = [each.analysis.verdict.state for each in found.outcomes if each.analysis]
    printed_runs.print_with_sections(text, worst_state(states), sections, folder)


def _where_the_rest_is(found: CampaignDocument, runs: several_summary.SeveralRuns, folder: Path) -> str:
    """Where the doubts are that the screen of a campaign has no room for."""
    if runs.worst is None:
        return ", by --all"
    outcome = found.outcomes[list(runs.rows).index(runs.worst)]
    cell = folder / (outcome.run or campaign_folder.cell_run(outcome.cell.key))
    return f", by --all or cell by cell: {printed_runs.show_command(cell)}"


def print_campaign_sections(found: CampaignDocument, names: Sequence[str]) -> None:
    """Print the named sections whole; without names all of them. UserError for a name that no section has."""
    sections = found.sections
    known = [section.name for section in sections]
    printed_runs.refuse_unknown_sections(names, known)
    wanted = [section for section in sections if section.name in (names or known)]
    with fitted_to_terminal():
        click.echo(report.render(printed_runs.TEXT, found.title, wanted), nl=False)


def print_series_screen(folder: Path, later: tuple[Requirement, ...]) -> int:
    """Print the summary of the runs in a folder, and what prints each of them; the worst exit code."""
    runs, several = _read_series(folder, later)
    page = next((p for at in (folder, folder.parent) if (p := at / campaign_folder.PAGE_FILE).is_file()), None)
    one = printed_runs.show_command(runs[several.rows.index(several.worst or several.rows[0])])
    each = (
        _judge_command(folder, later)
        if several.judged or later
        else f"{program_name()} history {shlex.quote(str(folder))}"
    )
    where = (*([("page", str(page))] if page else []), ("more", each), ("", one))
    click.echo(several_summary.several_text(several, where, printed_runs.terminal_width()), nl=False)
    return worst_exit_code(several.rows)


def print_series_verdict(folder: Path, *, err: bool = False) -> int:
    """Print the worst verdict of the runs in a folder in one line; the worst exit code. err: to standard error."""
    _, several = _read_series(folder, ())
    click.echo(several_summary.verdict_line(several), err=err)
    return worst_exit_code(several.rows)


def _read_series(folder: Path, later: tuple[Requirement, ...]) -> tuple[list[Path], several_summary.SeveralRuns]:
    """The runs of a folder and their rows, one for each; what cannot be read has a row that says why."""
    runs = stored_runs.find_runs([folder], stored_runs.is_histogram_file)
    read = partial(stored_runs.read_run, later=later)
    read_rows, failed = stored_runs.read_runs(runs, _series_row, read)
    names = distinct_names(runs)
    rows = [
        replace(read_rows[run], name=name) if run in read_rows else RunRow(name, failure=failed[run])
        for run, name in zip(runs, names, strict=True)
    ]
    return runs, several_summary.SeveralRuns(rows, rest=", on the screens of the runs")


def _judge_command(folder: Path, later: tuple[Requirement, ...]) -> str:
    """What prints the verdict of each run, also on the limits given now."""
    words = ["judge", shlex.quote(str(folder))]
    for asked in later:
        words += ["--limit", format_duration(asked.limit_ns)]
    rates = {asked.at_most_ns for asked in later if not asked.plain}
    words += [f"--at-most 1/{format_duration(rate)}" for rate in rates]
    return " ".join((program_name(), *words))


def distinct_names(runs: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many parts before it as tell it from the others."""
    names: dict[Path, str] = {}
    for parts in range(1, max(len(run.parts) for run in runs) + 1):
        ends = {run: "/".join(run.parts[-parts:]) for run in runs if run not in names}
        taken = Counter("/".join(run.parts[-parts:]) for run in runs)
        names |= {run: end for run, end in ends.items() if taken[end] == 1}
    return [names.get(run, str(run)) for run in runs]


def _series_row(run: Path, result: stored_runs.AnalysedRun) -> RunRow:
    return several_summary.run_summary_row(run.name, result.analysis)
