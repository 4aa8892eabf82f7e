# SPDX-License-Identifier: Apache-2.0
"""Print a run: on one screen, as some of its sections, or whole; and what a run that was just measured leaves.

Nothing of it is needed before a run, and it takes longer to import than to start the agent.
"""

import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof import report
from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import clean
from rtproof.experiment import stored_runs
from rtproof.experiment.run_request import SUMMARY, TABLES, VERDICT_ONLY, RunRequest, program_name
from rtproof.judge.analysis_model import Analysis, State
from rtproof.report.pages import first_screen
from rtproof.report.section_list import SECTION_NAMES, sections_of
from rtproof.report.sections.verdict import KINDS
from rtproof.report.text_table import fitted_to_terminal
from rtproof.run.live_view import shows_colours
from rtproof.summary.kernel_trace import has_recorder, has_trace

if TYPE_CHECKING:
    from rtproof.run.session import AgentOutcome

TEXT, HTML = "text", "html"


def print_run(result: stored_runs.AnalysedRun, as_json: bool, *, short: bool = False) -> None:
    """Print the result as JSON, or all that its report says. short: verdict, doubts and numbers only."""
    with fitted_to_terminal():
        click.echo(result.as_json() if as_json else result.report(TEXT, short=short), nl=False)


def refuse_unknown_sections(names: Sequence[str], known: Sequence[str] = SECTION_NAMES) -> None:
    """UserError for a name that no section has. known: their names; those of a run if not given."""
    for name in names:
        if name not in known:
            raise UserError(unknown_name("section", name, known))


def print_sections(result: stored_runs.AnalysedRun, names: Sequence[str]) -> None:
    """Print the named sections whole, and a line for each that the run does not have."""
    had = [section for section in result.sections() if section.name in names]
    if had:
        with fitted_to_terminal():
            click.echo(report.render(TEXT, report.title(result.analysis), had), nl=False)
    lacking = set(names) - {section.name for section in had}
    for name in filter(lacking.__contains__, SECTION_NAMES):
        click.echo(f"This run has no section {name}.")


def print_screen(result: stored_runs.AnalysedRun, run: Path) -> None:
    """Print the summary of a run, the names of its sections, and the command that prints them."""
    page = stored_runs.path_beside(run, ".html")
    where = [("page", str(page))] if page.is_file() else []
    summary = first_screen.summary_text(result.analysis, where, terminal_width())
    print_with_sections(
        summary, result.analysis.verdict.state, [each.name for each in sections_of(result.analysis)], run
    )


def print_with_sections(summary: str, state: State, sections: Sequence[str], run: Path) -> None:
    """Print a summary, the names of the sections, and the command that prints them. state: the word to colour."""
    shown = "\n".join(section_lines(sections, run))
    click.echo(f"{coloured(summary, state)}\n{shown}")


def section_lines(sections: Sequence[str], run: Path) -> list[str]:
    """The names of the sections, and the command that prints them."""
    indent = " " * first_screen.LABEL
    head = f"{'sections':{first_screen.LABEL}}"
    listed = textwrap.wrap(", ".join(sections), terminal_width(), initial_indent=head, subsequent_indent=indent)
    return [*listed, f"{indent}{clean(show_command(run))} --section NAME, or --all"]


def show_command(run: Path) -> str:
    """What prints the screen of a run, or of a folder of runs."""
    return f"{program_name()} show {shlex.quote(str(run))}"


def print_summary(result: stored_runs.AnalysedRun, page: Path | None, show: str, *, new_page: bool) -> None:
    """Print what a run leaves on the screen. The page is named only once it is written.

    show: the command that prints all of it. new_page: write the page first; otherwise it is there already.
    """
    where = (*([("page", str(page))] if page else []), ("more", show))
    text = coloured(first_screen.summary_text(result.analysis, where, terminal_width()), result.analysis.verdict.state)
    lines = text.splitlines(keepends=True)
    click.echo("".join(lines[: -len(where)]), nl=False)
    named = lines[-1:]
    try:
        if page and new_page:
            stored_runs.write_new_file(page, result.report(HTML))
        named = lines[-len(where) :]
    finally:
        click.echo("".join(named), nl=False)


def terminal_width() -> int:
    """Of the terminal; the usual one where standard output is none."""
    return shutil.get_terminal_size((first_screen.WIDTH, 24)).columns if sys.stdout.isatty() else first_screen.WIDTH


def coloured(text: str, state: State) -> str:
    """The summary with the verdict in colour, on a terminal whose user did not refuse colours (https://no-color.org)."""
    colour = first_screen.COLOURS.get(KINDS[state])
    if not colour or not shows_colours(sys.stdout):
        return text
    word = state.value
    return text.replace(word, click.style(word, fg=colour, bold=True), 1)


CUT_OFF = "truncated"
"""The doubt about a record without an end; it says how much of what was asked the record covers."""


def judge(asked: RunRequest, folder: Path) -> tuple[Path | None, Analysis]:
    """Judge a run, write the page if one is asked, and print no result. The page, and what was found."""
    page = stored_runs.report_path(folder, HTML) if asked.report else None
    result = stored_runs.read_run(folder, percentiles=asked.percentiles)
    if page:
        stored_runs.write_new_file(page, result.report(HTML))
    for sentence in trace_sentences(asked, folder, result.analysis):
        click.echo(sentence, err=True)
    return page, result.analysis


def print_result(asked: RunRequest, folder: Path, outcome: "AgentOutcome") -> int:
    """Print and write what was found; the exit code."""
    page = stored_runs.report_path(folder, HTML) if asked.report else None
    result = stored_runs.read_run(folder, percentiles=asked.percentiles)
    show = show_command(folder)
    if asked.as_json or asked.shown == TABLES:
        print_run(result, asked.as_json, short=True)
        click.echo(f"\nall of it: {show} --all\nrun: {folder}", err=asked.as_json)
        if page:
            stored_runs.write_new_file(page, result.report(HTML))
            click.echo(f"report: {page}", err=asked.as_json)
    elif asked.shown == VERDICT_ONLY:
        click.echo(first_screen.verdict_line(result.analysis))
        if page:
            stored_runs.write_new_file(page, result.report(HTML))
    else:
        print_summary(result, page, show, new_page=True)
    for sentence in trace_sentences(asked, folder, result.analysis):
        click.echo(sentence, err=asked.as_json)
    report_agent_failure(outcome, result.analysis)
    return result.exit_code


def trace_sentences(asked: RunRequest, folder: Path, analysis: Analysis) -> list[str]:
    """Write the trace for other programs; the sentences to print. An explained run's screen has no room for all."""
    if not has_trace(analysis.record):
        return []
    from rtproof.experiment import exported_files

    told = exported_files.export_trace_files(folder, analysis)
    if asked.shown == SUMMARY and has_recorder(analysis.record):
        return [sentence for sentence in told if sentence.startswith(exported_files.NOT_WRITTEN)]
    return told


def report_agent_failure(outcome: "AgentOutcome", analysis: Analysis) -> None:
    """What the user must know of an agent that did not end well, after what was measured has been shown."""
    from rtproof.experiment import target_runner  # slow to import, and not needed to show a run

    cut_off = (doubt.what for doubt in analysis.doubts if doubt.code == CUT_OFF)
    if failure := target_runner.agent_failure(outcome, next(cut_off, "")):
        raise failure
