# SPDX-License-Identifier: Apache-2.0
"""Read runs from the disk and analyse them: run folders, bare records, and histograms of other tools.

Many runs are read in forked processes, one run each, and only what the caller wants comes back. So a hundred long runs
take neither a hundred times as long nor a hundred times the memory.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from rtproof import importers
from rtproof.core import defects, files, plugins
from rtproof.core.errors import NoRecordError, RtproofError, UserError
from rtproof.core.phrases import duration, percent, unknown_name
from rtproof.core.printable import one_line
from rtproof.core.processes import each_by_itself
from rtproof.experiment.run_request import why_gap_too_short
from rtproof.judge.analyse import Requirements, analyse, analyse_two_boards, requirement_tuple
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.verdict import chosen_after_the_data, ended_when_decided, stated_by_the_user
from rtproof.judge.verdict_sentences import limit_sentence
from rtproof.judge.worst_first import worst_first
from rtproof.record import file_kinds, run_folder
from rtproof.record.chunks import is_record
from rtproof.record.contents import Record
from rtproof.record.requirement import Requirement, rated
from rtproof.record.run_folder import INFO_NAME, RECORD_NAME, Run, RunInfo
from rtproof.report import compose, formats, render, title
from rtproof.report.blocks import Section
from rtproof.summary.fields import judged_series
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.kernel_trace import has_trace
from rtproof.summary.recorded_facts import ends_when_decided, requested_limits_ns, virtual_time_clock
from rtproof.summary.summary_model import Doubt, Severity
from rtproof.summary.target_threads import FOREIGN
from rtproof.summary.tool_output import tool_output

if TYPE_CHECKING:
    from rtproof.explain.foreign_records import WantedThreads

ONLY_FACTS = "facts"
"""The fact ``collected`` of what ``rtproof-agent facts`` wrote. A run has no such fact."""


def open_run(run: Path) -> Run:
    """UserError for a file that is something else, which says what, and what can be read.

    The samples of another tool become a record, because they have their times, and so does a trace of trace-cmd.
    """
    if not (run / RECORD_NAME).exists() and (foreign := _foreign_run(run)):
        return foreign
    try:
        found = run_folder.open_run(run)
    except NoRecordError as problem:
        known = f"what can be read: {importers.READABLE}{', '.join(importers.tools())}"
        why = str(problem) if run.is_dir() else f"{file_kinds.advice(run) or problem}; {known}"
        if not run.is_dir() and (tool := importers.tool_of(run)):
            read_by = "show, report, judge, compare, history and export read it"
            why = f"{run} is the output of {tool}, a histogram: {read_by}"
        raise UserError(why) from None
    if found.record.fact("collected") == ONLY_FACTS:
        judge = f"rtproof audit {shlex.quote(str(run))}"
        raise UserError(f"{run} holds the facts of a system and no measurement: {judge} judges it")
    if found.record.fact("probe") != FOREIGN:
        return found
    return structs.replace(found, record=with_threads(found.record)) if is_foreign(found.record) else found


def _foreign_run(run: Path) -> Run | None:
    """The samples or the trace of another tool; None for any other file or folder."""
    from rtproof.importers import jitterdebugger
    from rtproof.summary.imported_samples import record_of_samples

    if is_trace_file(run):
        return Run(open_trace(run), None)
    if is_timed_samples(run):
        samples, place, size = jitterdebugger.read_samples(run)
        return Run(record_of_samples(samples, str(place), size), None)
    return None


def is_timed_samples(path: Path) -> bool:
    """Whether a folder or a file holds the samples of another tool, with their times."""
    from rtproof.importers import jitterdebugger

    if jitterdebugger.place_of_samples(path) is None:
        return False
    return not (path / RECORD_NAME).exists() if path.is_dir() else not is_record(path)


# Threads of an application: a run of the probe ``foreign``, or anybody's trace.dat. Both hold a trace and no samples.
# The activations are found in the trace whenever such a run is opened.


def is_trace_file(path: Path) -> bool:
    """Whether a path is a trace.dat of trace-cmd."""
    from rtproof.importers import _trace_dat

    return path.is_file() and _trace_dat.looks_like(path)


def open_trace(path: Path, wanted: "WantedThreads | None" = None) -> Record:
    """The trace with the activations of the threads that are wanted, by default of all real-time ones.

    UserError if it has none, or cannot be read.
    """
    from rtproof.explain.foreign_records import ALL_REAL_TIME, with_activations
    from rtproof.importers import _trace_dat
    from rtproof.summary.imported_samples import record_of_trace

    files.refuse_what_waits(path)
    trace = _trace_dat.read(path)
    return with_activations(record_of_trace(trace, str(path), path.stat().st_size), wanted or ALL_REAL_TIME)


def is_foreign(record: Record) -> bool:
    """Whether a record is of the probe that measures threads of others, and holds their trace."""
    return record.fact("probe") == FOREIGN and has_trace(record)


def with_threads(record: Record, wanted: "WantedThreads | None" = None) -> Record:
    """A record of the probe with the activations of the threads that are wanted, or else of those it was asked for."""
    from rtproof.explain.foreign_records import ALL_REAL_TIME, wanted_in, with_activations

    return with_activations(record, (wanted or ALL_REAL_TIME).or_else(wanted_in(record)))


def chosen_sections(sections: list[Section], only: Sequence[str]) -> list[Section]:
    """The sections of these names, or all if none is named. UserError for one that the report does not have."""
    names = [section.name for section in sections]
    for name in only:
        if name not in names:
            raise UserError(unknown_name("section", name, names, " in this report"))
    return [each for each in sections if each.name in only or not only]


HOST_FACTS = (
    *("started", "host", "user", "target", "generator"),
    *("rtproof_version", "agent_arch", "agent_sha256", "until_decided", "note"),
)
"""What the report has of ``run.json``."""


@dataclass(frozen=True)
class AnalysedRun:
    """A run that was read and analysed. info: what the host wrote down before it; None for a bare record."""

    analysis: Analysis
    info: RunInfo | None

    @property
    def exit_code(self) -> int:
        return self.analysis.verdict.state.exit_code

    def as_json(self) -> bytes:
        from rtproof.schema.published import analysis_dict

        return json.dumps(analysis_dict(self.analysis), indent=2).encode() + b"\n"

    def sections(self, *, short: bool = False) -> list[Section]:
        """The sections of its report; short: verdict, doubts and numbers only."""
        if self.info is None:
            return compose(self.analysis, {}, None, short=short)
        facts = {name: said for name in HOST_FACTS if (said := getattr(self.info, name))}
        return compose(self.analysis, facts, shlex.join(self.info.command), short=short)

    def report(self, form: str, *, short: bool = False, only: tuple[str, ...] = ()) -> bytes:
        """The report in one of its formats; short: verdict, doubts and numbers only; only: these sections.

        UserError for a section that there is not, or that this run does not have.
        """
        return render(form, title(self.analysis), chosen_sections(self.sections(short=short), only))


def read_run(  # noqa: PLR0913 - one for each thing that is asked of a stored run
    run: Path,
    later: Requirements = None,
    percentiles: tuple[float, ...] = (),
    workers: int | None = None,
    horizon: int | None = None,
    *,
    stated: bool = False,
    unit: str | None = None,
    duration_ns: int | None = None,
    period_ns: int | None = None,
) -> AnalysedRun:
    """A run folder, a bare record or another tool's file, judged against the limits that were fixed before the run.

    later: one or several given now; those that were not fixed before decide nothing, and those that were are tested as
    they were, each with its share. stated: the user states that they were fixed before, so they decide, and the
    statement stands beside each verdict that rests on it. percentiles: shares whose values are wanted besides those of
    the usual ones. workers: processes, by default one per CPU. horizon: how far a forecast looks. unit, duration_ns,
    period_ns: what the user states of another tool's file.
    """
    given = requirement_tuple(later)
    judged = stated_by_the_user if stated else chosen_after_the_data
    if imported := read_histogram_file(run, unit):
        from rtproof.judge.histogram_only import analyse_histogram

        analysis = analyse_histogram(imported.with_stated(duration_ns, period_ns), given, percentiles)
        return AnalysedRun(judged(analysis) if given else analysis, None)
    found = open_run(run)
    record = found.record
    fixed = _limits_fixed_before(found)
    asked = given or fixed
    # The period of events from outside may be anything.
    longest_ns = max((series.period_ns for series in judged_series(record) if not series.external), default=0)
    if reason := why_gap_too_short(given, longest_ns):
        raise UserError(reason)
    told = {each.limit_ns for each in given} if found.info is None else set()
    limits = len(rated({*given, *(each for each in fixed if each.limit_ns not in told)} if stated else fixed))
    if found.generator:
        analysis = analyse_two_boards(found, asked, workers, horizon, limits)
    elif output := tool_output(record):
        from rtproof.experiment import other_tools

        analysis = other_tools.analyse_tool_record(record, output, asked, limits)
    else:
        analysis = analyse(record, asked, workers, horizon, limits=limits)
    analysis = _with_doubt_about_limits(replace(analysis, shares=percentiles), found)
    if ends_when_decided(analysis.record) or (
        found.info and found.info.until_decided
    ):  # Older agents do not record it.
        analysis = ended_when_decided(analysis)
    return AnalysedRun(analysis if set(asked) <= set(fixed) else judged(analysis, fixed), found.info)


def _limits_fixed_before(run: Run) -> tuple[Requirement, ...]:
    """What was asked before the run. The record decides; in an older one, what run.json says of the record's limits.

    What nobody names is never to be exceeded.
    """
    if (kept := run_folder.claims_of_record(_asked_record(run))) is not None:
        return kept
    told = run.info.requirements if run.info else ()
    if run.info and not _contradicted(run):
        return told
    given = requested_limits_ns(_asked_record(run))
    unnamed = [limit_ns for limit_ns in given if limit_ns not in {each.limit_ns for each in told}]
    return (*(each for each in told if each.limit_ns in given), *map(Requirement, unnamed))


def _asked_record(run: Run) -> Record:
    """The record whose agent was given the limits. Of a run on two boards they are those of the generator's times."""
    return run.generator or run.record


def _contradicted(run: Run) -> bool:
    """Whether run.json asks for something else than the record. Those of older agents name the limits only, or none."""
    record = _asked_record(run)
    if run.info is None or record.fact("limits_ns") is None:
        return False
    if (kept := run_folder.claims_of_record(record)) is not None:
        return kept != run.info.requirements
    return {each.limit_ns for each in run.info.requirements} != set(requested_limits_ns(record))


def _with_doubt_about_limits(analysis: Analysis, run: Run) -> Analysis:
    """What speaks against the limits of run.json: the record, or that the record of an older agent cannot tell.

    A guest's cell is kept for campaigns with other limits, so its run.json names none.
    """
    record = _asked_record(run)
    if run.info is None or (virtual_time_clock(record) and not run.info.requirements):
        return analysis
    told, given = (
        "; ".join(map(_claim, asked)) or "none" for asked in (run.info.requirements, _limits_fixed_before(run))
    )
    if _contradicted(run):
        what, remedy = f"{INFO_NAME} names other limits than the record", "find who changed it"
        detail = f"{INFO_NAME}: {told}; the record, which decides: {given}"
        doubt = Doubt("limits-differ", Severity.WARNING, what, remedy, detail)
    elif record.fact("limits_ns") == "" or run_folder.claims_of_record(record) is not None:
        return analysis
    else:
        lacks = "the limits" if record.fact("limits_ns") is None else "the limits' rates"
        what, remedy = f"only {INFO_NAME} names {lacks}", "measure again if in doubt"
        detail = f"an older agent wrote the record; {INFO_NAME}: {told}; its command: {shlex.join(run.info.command)}"
        doubt = Doubt("limits-unrecorded", Severity.WARNING, what, remedy, detail)
    return replace(analysis, doubts=worst_first((*analysis.doubts, doubt)))


def _claim(each: Requirement) -> str:
    more = f"confidence {percent(each.confidence)}" if each.plain else f"gap {duration(each.gap_ns)}"
    return f"{limit_sentence(each)}, {more}"


def path_beside(run: Path, suffix: str) -> Path:
    """Where a file made from a run goes: next to it, because nothing is ever added to a run folder."""
    named = run if run.name not in ("", "..") else run.resolve()
    return named.with_name(named.name.removesuffix(".rtrec") + suffix)


def report_path(run: Path, form: str) -> Path:
    """Where the report of a run goes, unless it is told otherwise; never what exists already."""
    suffix: str = plugins.load_plugin(formats, form).SUFFIX
    return files.free_path(path_beside(run, suffix))


def form_of(given: str | None, output: Path | None, usual: str) -> str:
    """The name of a report's format: the one that was given, else by the ending of the file's name.

    usual: without a file, or for a name without an ending. UserError for an ending that no format has.
    """
    if given is not None or output is None or output == files.STANDARD_OUTPUT or not output.suffix:
        return given or usual
    ending_of = {name: plugins.load_plugin(formats, name).SUFFIX for name in plugins.plugin_names(formats)}
    for name, ending in ending_of.items():
        if output.suffix.lower() in (ending, f".{name}"):
            return name
    known = ", ".join(f"{name} ({ending})" for name, ending in ending_of.items())
    raise UserError(f"no format of a report ends in {output.suffix}: give --format NAME, one of {known}")


def write_new_file(path: Path, content: bytes) -> None:
    files.write_whole(path, content, new=True)


# Many runs at once: find the runs at the paths, read each in its own process, and return what the caller wants.


RECORD_SUFFIX = ".rtrec"

Extract = TypeVar("Extract")


def find_runs(paths: Iterable[Path], also: Callable[[Path], bool] = lambda _: False) -> list[Path]:
    """The run folders and records at the paths and in the folders there, in order, each once.

    A file that is named itself is taken whatever it is. also: what else is a run among the files of a folder.
    UserError for a path with nothing there and for a folder without a run.
    """
    found: dict[Path, Path] = {}
    for run in (run for path in paths for run in _runs_at(path, also)):
        found.setdefault(run.resolve(), run)
    return list(found.values())


def _runs_at(path: Path, also: Callable[[Path], bool]) -> list[Path]:
    if path == importers.STANDARD_INPUT:
        return [path]
    if path.is_symlink() and not path.exists():
        raise UserError(f"{path} is a link to nothing: name a run folder, a record, or a folder of them")
    if not path.exists():
        raise UserError(f"{path} does not exist: name a run folder, a record, or a folder of them")
    if not path.is_dir() or (path / RECORD_NAME).exists() or is_timed_samples(path):
        return [path]
    found = sorted(_runs_inside(path, also))
    if not found:
        raise UserError(f"there is no run in the folder {path}: a run is a folder with a {RECORD_NAME}")
    return found


def _runs_inside(folder: Path, also: Callable[[Path], bool]) -> Iterable[Path]:
    """Symbolic links to folders are not followed, since they may lead in circles."""
    closed: list[OSError] = []
    for here, folders, names in os.walk(folder, onerror=closed.append):
        if RECORD_NAME in names or INFO_NAME in names or is_timed_samples(Path(here)):  # one may have lost its record
            folders.clear()
            yield Path(here)
            continue
        yield from (place for name in names if (place := Path(here) / name).suffix == RECORD_SUFFIX or also(place))
    # A folder that cannot be looked into may hold runs: it becomes one that cannot be read.
    yield from (Path(problem.filename) for problem in closed)


def read_runs(
    runs: Sequence[Path], wanted: Callable[[Path, Any], Extract], read: Callable[..., Any] = read_run
) -> tuple[dict[Path, Extract], dict[Path, str]]:
    """What is wanted of each run that could be read, and for each other run the sentence that says why it could not.

    What is wanted has to be small and has to survive pickling; see ``find_runs``.

    read: takes the path, and ``workers``, and gives what ``wanted`` takes; by default an AnalysedRun.
    ``partial(read_run, later=...)`` judges by requirements given now.
    """
    cpus = len(os.sched_getaffinity(0))
    workers = max(1, cpus // max(len(runs), 1))

    def work(run: Path) -> Extract | RtproofError:
        return wanted(run, read(run, workers=workers))

    answers = each_by_itself(work, runs, cpus, lambda problem: RtproofError(defects.error_sentence(problem)))
    found: dict[Path, Extract] = {}
    failed: dict[Path, str] = {}
    for run, answer in zip(runs, answers, strict=True):
        if isinstance(answer, RtproofError):
            named = re.match(rf"(cannot read )?{re.escape(one_line(str(run)))}[ :/]", str(answer))
            failed[run] = str(answer) if named else f"{run}: {answer}"
        else:
            found[run] = answer
    return found, failed


HISTOGRAM_SUFFIXES = (".txt", ".json", ".hist", ".log")
"""Of the files in a folder only these are looked into, and those that gzip packed (.txt.gz)."""


def read_histogram_file(path: Path, unit: str | None = None) -> ImportedHistogram | None:
    """What another tool printed; None for a folder, a record, and a file of no tool that is known.

    unit: what the user states of cyclictest's text. UserError for a file of such a tool that makes no sense.
    """
    if (path / RECORD_NAME).is_file():
        return None
    from rtproof.importers import cyclictest, jitterdebugger

    if path == importers.STANDARD_INPUT:
        return cyclictest.in_stated_unit(importers.read(path), unit)
    if is_timed_samples(path):
        return None
    place = path / jitterdebugger.RESULTS if is_results_folder(path) else path
    if not place.is_file():
        return None
    files.refuse_what_waits(place)
    found = None if is_record(place) else importers.recognised(place)
    return found and cyclictest.in_stated_unit(found, unit)


def is_results_folder(path: Path) -> bool:
    """Whether a folder is that of another tool that kept no samples in it."""
    from rtproof.importers import jitterdebugger

    return path.is_dir() and not (path / RECORD_NAME).exists() and (path / jitterdebugger.RESULTS).is_file()


CAMPAIGN_FILE, CELLS_FOLDER = "campaign.json", "cells"
"""What the folder of a campaign has."""


def is_series(path: Path) -> bool:
    """Whether the folder holds run folders and is none itself: what --repeat and --abba leave, and their runs."""
    lone = (path / RECORD_NAME).exists() or is_results_folder(path)
    return not lone and any(any(path.glob(f"{inside}{RECORD_NAME}")) for inside in ("*/", "runs/*/"))


def is_campaign(path: Path) -> bool:
    """Whether the folder is that of a campaign, or what remains of one, and not a run folder."""
    return not (path / RECORD_NAME).exists() and any((path / name).exists() for name in (CAMPAIGN_FILE, CELLS_FOLDER))


TUNING_FILE = "tuning.json"


def is_tuning(path: Path) -> bool:
    """Whether the folder is that of a tuning that ended."""
    return (path / TUNING_FILE).is_file()


def is_histogram_file(path: Path) -> bool:
    """Whether a file of a folder is a histogram of a tool that is known, also if it makes no sense or cannot be read.

    So whoever reads it says what is wrong with it; a file that was left out would be dropped in silence.
    """
    name = path.with_suffix("") if path.suffix == ".gz" else path
    if name.suffix not in HISTOGRAM_SUFFIXES or not path.is_file():
        return False
    try:
        return importers.tool_of(path) is not None
    except (OSError, UserError):
        return True
