# SPDX-License-Identifier: Apache-2.0
"""Files for other programs that a run leaves beside its record: the trace, samples, and what an article published."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rtproof import exporters
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.core.scratch import scratch_folder
from rtproof.experiment import stored_runs
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.histogram_only import analyse_histogram
from rtproof.profiles import Profile
from rtproof.report.pages.campaign_cells import CellOutcome
from rtproof.summary import loops
from rtproof.summary.kernel_trace import has_recorder, has_trace

MOST_LINES = 5_000_000
"""Samples beyond which a text of them is no use to anybody and fills the disk."""


TRACE_FILES = {"trace-txt": "trace.txt", "trace-dat": "trace.dat"}


NOT_WRITTEN = "no "
"""A sentence on a file that could not be written begins so."""


def export_trace_files(folder: Path, analysis: Analysis) -> list[str]:
    """Write the trace and the samples for other programs into the run folder.

    A sentence for each file says what was written, or why not.
    """
    if not has_trace(analysis.record):
        return []
    names = dict(TRACE_FILES)
    if not too_many_samples(analysis) and all(series.has_samples for series in analysis.record.series):
        names["app-csv" if loops.is_app(analysis.record) else "csv"] = "samples.csv"  # A line for each sample.
    if has_recorder(analysis.record):  # it is for explaining single activations: its text would be megabytes of parts
        names = {"trace-dat": TRACE_FILES["trace-dat"]}
    return [export_file(name, folder / file, analysis) for name, file in names.items()]


def too_many_samples(analysis: Analysis) -> bool:
    """Whether a line for each sample is more than anybody can use."""
    return analysis.pooled.obtained > MOST_LINES


def export_file(name: str, path: Path, analysis: Analysis, options: Mapping[str, str] | None = None) -> str:
    """Write the file in a format. A sentence that says what was written, or why not."""
    try:
        return write_export(name, path, analysis, options or {})
    except UserError as problem:
        return f"{NOT_WRITTEN}{path.name}: {problem}"


def write_export(name: str, path: Path, analysis: Analysis, options: Mapping[str, str]) -> str:
    """Write the new file in a format; the sentence that says what was written. UserError if it cannot be written."""
    try:
        sentence: str = plugins.load_plugin(exporters, name).export(analysis, path, dict(options))
    except OSError as problem:
        raise UserError(f"cannot write {path}: {problem.strerror}") from None
    return sentence


def exported_text(name: str, analysis: Analysis, options: Mapping[str, str]) -> str:
    """What a format of text writes."""
    with scratch_folder() as folder:
        path = folder / "exported"
        write_export(name, path, analysis, options)
        return path.read_text(encoding="ascii")


def keep_files(profile: Profile, outcome: CellOutcome, run: Path) -> tuple[tuple[str, ...], list[str]]:
    """Write what the article kept of a measured cell, and the trace; the files' paths from the page.

    run: the cell's run folder, beside which they lie. A trace lies in it. Also a sentence on each file.
    """
    analysis = outcome.analysis
    assert analysis
    sentences = export_trace_files(run, analysis)
    places: list[Path] = []
    for bins in (each for each in profile.bins if each.file):
        places.append(stored_runs.path_beside(run, f".{bins.file}"))
        stage = outcome.stage(bins.stage)
        if stage is None:
            sentences.append(f"no {places[-1].name}: what was measured does not tell the {bins.name}")
            continue
        options = {"width": f"{bins.width_ns}ns", "count": str(bins.count), "field": stage.series.field}
        sentences.append(export_file("bins", places[-1], analysis, options))
    for file in profile.kept:
        places.append(stored_runs.path_beside(run, f".{file.name}"))
        if too_many_samples(analysis):
            more = f"it would have more than {MOST_LINES:,} lines; 'rtproof export' writes it"
            sentences.append(f"no {places[-1].name}: {more}")
        else:
            sentences.append(export_file(file.format, places[-1], analysis, file.options))
    places += [run / name for name in TRACE_FILES.values()]
    return tuple(str(place.relative_to(run.parent.parent)) for place in places if place.exists()), sentences


def analysis_to_export(run: Path, name: str) -> Analysis:
    """What to export of a run, or of what another tool printed. UserError if the format needs more than that has."""
    imported = stored_runs.read_histogram_file(run)
    if imported is None:
        return stored_runs.read_run(run).analysis
    names = plugins.plugin_names(exporters)
    holding = [each for each in names if getattr(plugins.load_plugin(exporters, each), "HOLDS_COUNTS", False)]
    if name not in holding:
        formats = ", ".join(holding)
        raise UserError(f"{run} is a histogram of {imported.tool}, and the format {name} needs more: give {formats}")
    if imported.histogram is None:
        raise UserError(f"{run} has no histogram, only minimum, mean and maximum: there is nothing to export")
    if imported.overflow is None or imported.unsure:
        raise UserError(f"{run} does not tell which values lie beyond its scale, so it is not exported")
    analysis = analyse_histogram(imported, (), ())
    if analysis.imported and analysis.imported.faults:
        raise UserError(f"{run} contradicts itself, so it is not exported: {analysis.imported.faults[0]}")
    summaries = analysis.summaries or (analysis.pooled,)
    return replace(analysis, summaries=summaries, every=summaries)
