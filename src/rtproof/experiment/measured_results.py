# SPDX-License-Identifier: Apache-2.0
"""Judge a run that was measured on a target, print what was found, and write its page.

Nothing of it is needed before a run, and it takes longer to import than to start the agent.
"""

import shlex
from pathlib import Path

import click

from rtproof.experiment import printed_runs, run_request, stored_runs, target_runner
from rtproof.experiment.run_request import TABLES, VERDICT_ONLY, ExperimentRequest, program_name
from rtproof.judge.analysis_model import Analysis
from rtproof.report.pages.first_screen import verdict_line
from rtproof.run.session import AgentOutcome
from rtproof.summary.kernel_trace import has_recorder, has_trace

HTML = "html"
CUT_OFF = "truncated"
"""The doubt about a record without an end; it says how much of what was asked the record covers."""


def judge(asked: ExperimentRequest, folder: Path) -> tuple[Path | None, Analysis]:
    """Judge a run, write the page if one is asked, and print no result. The page, and what was found."""
    page = stored_runs.report_path(folder, HTML) if asked.report else None
    result = stored_runs.read_run(folder, percentiles=asked.percentiles)
    if page:
        stored_runs.write_new_file(page, result.report(HTML))
    for sentence in trace_sentences(asked, folder, result.analysis):
        click.echo(sentence, err=True)
    return page, result.analysis


def print_result(asked: ExperimentRequest, folder: Path, outcome: AgentOutcome) -> int:
    """Print and write what was found; the exit code."""
    report = stored_runs.report_path(folder, HTML) if asked.report else None
    result = stored_runs.read_run(folder, percentiles=asked.percentiles)
    show = f"{program_name()} show {shlex.quote(str(folder))}"
    if asked.as_json or asked.shown == TABLES:
        printed_runs.print_run(result, asked.as_json, short=True)
        click.echo(f"\nall of it: {show} --all\nrun: {folder}", err=asked.as_json)
    elif asked.shown == VERDICT_ONLY:
        click.echo(verdict_line(result.analysis))
    else:
        printed_runs.print_summary(result, report, show, new_page=report is not None)
        report = None
    if report:
        stored_runs.write_new_file(report, result.report(HTML))
        if asked.as_json or asked.shown == TABLES:
            click.echo(f"report: {report}", err=asked.as_json)
    for sentence in trace_sentences(asked, folder, result.analysis):
        click.echo(sentence, err=asked.as_json)
    report_agent_failure(outcome, result.analysis)
    return result.exit_code


def trace_sentences(asked: ExperimentRequest, folder: Path, analysis: Analysis) -> list[str]:
    """Write the trace for other programs; the sentences to print. An explained run's screen has no room for all."""
    if not has_trace(analysis.record):
        return []
    from rtproof.experiment import exported_files

    told = exported_files.export_trace_files(folder, analysis)
    if asked.shown == run_request.SUMMARY and has_recorder(analysis.record):
        return [sentence for sentence in told if sentence.startswith(exported_files.NOT_WRITTEN)]
    return told


def report_agent_failure(outcome: AgentOutcome, analysis: Analysis) -> None:
    """What the user must know of an agent that did not end well, after what was measured has been shown."""
    cut_off = (doubt.what for doubt in analysis.doubts if doubt.code == CUT_OFF)
    if failure := target_runner.agent_failure(outcome, next(cut_off, "")):
        raise failure
