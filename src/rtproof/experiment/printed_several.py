# SPDX-License-Identifier: Apache-2.0
"""Print several runs on one screen: the cells of a campaign, or the runs in a folder."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from rtproof import report
from rtproof.experiment import campaign_folder, printed_runs, stored_runs
from rtproof.experiment.campaign_folder import CampaignDocument
from rtproof.experiment.run_request import program_name
from rtproof.experiment.run_sets import UNREAD_RUN_CODE
from rtproof.judge.requirement import Requirement
from rtproof.judge.verdict import worst_state
from rtproof.report.pages import several_summary
from rtproof.report.pages.ci_verdicts import WORST_FIRST
from rtproof.report.text_table import fitted_to_terminal


def print_campaign_screen(found: CampaignDocument, folder: Path) -> None:
    """Print the summary of a campaign, the names of its sections, and the command that prints them."""
    page = folder / campaign_folder.PAGE_FILE
    where = [("page", str(page))] if page.is_file() else []
    text = several_summary.campaign_summary(found.profile, found.outcomes, where, printed_runs.terminal_width())
    states = [each.analysis.verdict.state for each in found.outcomes if each.analysis]
    worst = worst_state(states)
    printed_runs.print_with_sections(text, worst, found.sections(), folder)


def print_campaign_sections(found: CampaignDocument, names: Sequence[str]) -> None:
    """Print the named sections whole; without names all of them. UserError for a name that no section has."""
    sections = found.sections()
    known = [section.name for section in sections]
    printed_runs.refuse_unknown_sections(names, known)
    wanted = [section for section in sections if section.name in (names or known)]
    with fitted_to_terminal():
        click.echo(report.render(printed_runs.TEXT, found.title, wanted), nl=False)


def print_series_screen(folder: Path, later: tuple[Requirement, ...]) -> int:
    """Print the summary of the runs in a folder, and what prints each of them; the worst exit code."""
    runs = stored_runs.find_runs([folder])
    read = partial(stored_runs.read_run, later=later)
    found = stored_runs.read_runs(runs, _series_row, read)
    rows = [*found.wanted, *(several_summary.SummaryRow(Path(run).name, None) for run, _ in found.failed)]
    page = next((p for at in (folder, folder.parent) if (p := at / campaign_folder.PAGE_FILE).is_file()), None)
    show, place = program_name(), shlex.quote(str(folder))
    several = several_summary.SeveralRuns(rows)
    each = f"{show} judge {place}" if several.judged else f"{show} history {place}"
    one = shlex.quote(str(min(runs)))
    where = (*([("page", str(page))] if page else []), ("more", each), ("", f"{show} show {one}"))
    unread = [sentence for _, sentence in found.failed]
    click.echo(several_summary.several_text(several, unread, where, printed_runs.terminal_width()), nl=False)
    codes = [UNREAD_RUN_CODE if row.state is None else row.state.exit_code for row in rows]
    return min(codes, key=WORST_FIRST.index)


def _series_row(run: Path, result: stored_runs.AnalysedRun) -> several_summary.SummaryRow:
    return several_summary.run_summary_row(run.name, result.analysis)
