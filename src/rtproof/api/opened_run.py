# SPDX-License-Identifier: Apache-2.0
"""One run: open it, look at its numbers, judge it, and ask why it was late."""

import json
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from numbers import Integral
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from rtproof.api.arguments import (
    Duration,
    Limits,
    each_of,
    flag_of,
    length_ns,
    one_kind_of_error,
    path_of,
    requirements_of,
    share_of,
    whole_number,
)
from rtproof.api.results import Summary, summary_of
from rtproof.api.samples import Samples, View
from rtproof.compare.run_metrics import facts_of
from rtproof.core.errors import RtproofError
from rtproof.core.phrases import quantity
from rtproof.experiment import explained_runs, stored_runs
from rtproof.experiment.stored_runs import is_trace_file
from rtproof.explain.budget import TimeBudget as Budget
from rtproof.explain.coincidence import Coincidences
from rtproof.explain.coincidence import MovedCount as Coincidence
from rtproof.explain.explanation import CauseRow as Cause
from rtproof.judge.analysis_model import Analysis, Verdict
from rtproof.record.contents import Record
from rtproof.record.requirement import Requirement
from rtproof.record.run_folder import Run as OpenedRun
from rtproof.record.run_folder import RunInfo
from rtproof.schema.published import analysis_dict, coincidences_dict, explanation_dict
from rtproof.summary.fields import judged_series
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.summary_model import Doubt
from rtproof.summary.tool_output import tool_output

Kind: TypeAlias = Literal["run", "record", "samples", "trace", "histogram"]


@dataclass(frozen=True)
class Thread:
    """A measuring thread.

    Attributes:
        number: Its number in the run.
        cpu: The CPU that it is bound to; None if it is bound to none.
        period_ns: The time between its due times; None if another tool does not tell it.
        probe: What measured it.
        method: How the thread waited for its due time; None if another tool does not tell it.
    """

    number: int
    cpu: int | None
    period_ns: int | None
    probe: str
    method: str | None


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a run was late. A run without a trace has no causes, but may have coincidences.

    Attributes:
        traced: Whether the run has a trace of the kernel.
        limit_ns: Activations above this were explained; None: the largest were.
        late: How many late activations there are.
        explained: How many of them have a budget.
        outside: How many the trace does not hold.
        causes: The largest share first.
        budgets: Of late activations, the largest latency first.
        coincidences: Of a run without a trace, the smallest chance first.
        why_none: Why nothing can coincide, or why there is no trace; None if that is not so.
    """

    traced: bool
    limit_ns: int | None
    late: int
    explained: int
    outside: int
    causes: tuple[Cause, ...]
    budgets: tuple[Budget, ...]
    coincidences: tuple[Coincidence, ...]
    why_none: str | None
    _json: str = field(compare=False)

    def to_json(self) -> str:
        """The JSON that ``rtproof explain --json`` prints."""
        return self._json

    def __repr__(self) -> str:
        """How many activations were late, and what was found."""
        found = f"{len(self.causes)} causes" if self.traced else f"no trace, {len(self.coincidences)} coincidences"
        return f"<Explanation of {self.late:,} late activations: {found}>"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A run that was opened with ``rtproof.open`` or measured with ``rtproof.run``.

    Everything is read when it is asked for, and kept. A run can be pickled: the other process opens it again.

    Attributes:
        path: Where it lies, as it was named.
        kind: "run": a run folder. "record": a record without its folder. "samples": another tool's samples with their
            times. "trace": a trace.dat. "histogram": another tool's output without the order of time.
    """

    path: Path
    kind: Kind
    _opened: OpenedRun | None = field(repr=False)
    _imported: ImportedHistogram | None = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """The path, by which the other process opens the run."""
        return open, (str(self.path.absolute()),)

    @property
    def tool(self) -> str | None:
        """The other tool that measured a file, such as "cyclictest"; None for a run of rtproof."""
        if self._imported:
            return self._imported.tool
        return "jitterdebugger" if self.kind == "samples" else None

    @property
    def started(self) -> datetime | None:
        """When it began, in UTC; None if the file does not tell it."""
        info = self._info
        if info:
            return datetime.fromisoformat(info.started).astimezone(UTC)
        since_1970 = self._record.begin.origin_realtime_ns / 1e9 if self._record else None
        since_1970 = self._imported.started_s if self._imported else since_1970
        return datetime.fromtimestamp(since_1970, UTC) if since_1970 else None

    @property
    def kernel(self) -> str | None:
        """The release of the measured kernel; None if the file does not tell it."""
        return self.facts.get("kernel release")

    @property
    def system(self) -> str | None:
        """What was measured: the host of a run on this machine, or else the hardware as far as the system names it."""
        info = self._info
        if info and info.target == "local":
            return info.host
        return self.facts.get("hardware") or self.facts.get("machine")

    @property
    def note(self) -> str:
        """What the user noted when the run was measured."""
        return self._info.note if self._info else ""

    @cached_property
    def facts(self) -> Mapping[str, str]:
        """Texts by name: what was measured, and what the system said of itself.

        The names are those of ``rtproof compare``: "policy", "load", "kernel release", "cmdline isolcpus".
        """
        found = dict(self._imported.facts) | self._imported.comparable if self._imported else {}
        return MappingProxyType(facts_of(self._record) | found if self._record else found)

    @cached_property
    def threads(self) -> tuple[Thread, ...]:
        """The measuring threads, in their order."""
        if self._imported:
            tool = self._imported.tool
            return tuple(Thread(one.number, one.cpu, one.period_ns, tool, None) for one in self._imported.parts)
        series = judged_series(self._record) if self._record else ()
        return tuple(Thread(one.thread, one.bound_cpu, one.period_ns, one.probe, one.method) for one in series)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Reasons not to believe the numbers. Those that make the run INVALID come first."""
        return self._analysed.analysis.doubts

    def samples(self, thread: int | None = None, view: View = "observed") -> Samples:
        """The single latencies, of one thread or of all.

        Args:
            thread: The number of a thread; by default all.
            view: "observed": the activations that ran. "schedule": all that were due, the missed ones with their
                lateness.

        RtproofError, with the reason, for a run that keeps no samples: a histogram, or ``record="summary"``.
        """
        if view not in ("observed", "schedule"):
            raise RtproofError(f"view: {view!r} is none of: observed, schedule")
        record = self._record
        if record is None or tool_output(record):
            tool = self.tool or self.facts.get("probe", "another tool")
            raise RtproofError(f"{self.path} is a histogram that {tool} printed: it holds no single samples")
        series = judged_series(record)
        if isinstance(thread, bool) or not isinstance(thread, Integral | None):
            raise RtproofError(f"thread: the number of a thread is needed, and {thread!r} is none")
        chosen = series if thread is None else tuple(one for one in series if one.thread == thread)
        if not chosen:
            known = ", ".join(str(one.thread) for one in series) or "none"
            raise RtproofError(f"there is no thread {thread!r} in {self.path}: its threads are {known}")
        if not all(one.has_samples for one in chosen):
            raise RtproofError(f"{self.path} keeps a summary and no single samples (it was run with --record summary)")
        threads = tuple(one.thread for one in chosen)
        return Samples(view, threads, record.begin.origin_realtime_ns, record, chosen)

    def summary(self, shares: Sequence[float] = ()) -> Summary:
        """The numbers of each thread and of all threads together, of both views.

        Args:
            shares: Further quantiles besides the usual ones, such as ``[0.9995]``.
        """
        wanted = tuple(share_of(one) for one in each_of(shares))
        return summary_of(analysis_dict(self._judged((), wanted)) if wanted else self._json)

    def verdict(  # noqa: PLR0913 - one for each part of a claim
        self,
        limit: Limits = None,
        *,
        at_most: Duration | Sequence[Duration] | None = None,
        longest: Duration | None = None,
        gap: Duration | None = None,
        confidence: float | None = None,
        bunches: float | None = None,
        shows: Duration | None = None,
        fixed_beforehand: bool = False,
    ) -> Verdict:
        """Whether the run shows that a limit holds; of several limits the verdict that decides.

        Without arguments it is the verdict on the limits that were fixed before the run. A limit with ``at_most`` that
        is given here was chosen after the data, so the verdict only says what the run shows.

        Args:
            limit: The latency that is never to be exceeded, such as "500us"; or several.
            at_most: How often an episode above the limit may come, such as "1/h"; by default never.
            longest: How long an episode may last.
            gap: Late times no further apart than this are one episode.
            confidence: Of all verdicts together (default 0.95).
            bunches: Average episodes per bunch that PROVEN allows for (default 1).
            shows: HELD is long enough if it rules out more than one exceedance per this time, such as "1/day".
            fixed_beforehand: State that the limits were fixed before the run began. Then they decide, and the verdict
                shows the statement.
        """
        return self.verdicts(
            limit,
            at_most=at_most,
            longest=longest,
            gap=gap,
            confidence=confidence,
            bunches=bunches,
            shows=shows,
            fixed_beforehand=fixed_beforehand,
        )[0]

    def verdicts(  # noqa: PLR0913
        self,
        limit: Limits = None,
        *,
        at_most: Duration | Sequence[Duration] | None = None,
        longest: Duration | None = None,
        gap: Duration | None = None,
        confidence: float | None = None,
        bunches: float | None = None,
        shows: Duration | None = None,
        fixed_beforehand: bool = False,
    ) -> tuple[Verdict, ...]:
        """The verdict that decides, and then, if there are several limits, the verdict on each in its order.

        The arguments are those of ``verdict``.
        """
        claim = {"longest": longest, "gap": gap, "confidence": confidence, "bunches": bunches, "shows": shows}
        asked = requirements_of(limit, at_most, **claim)
        if flag_of("fixed_beforehand", fixed_beforehand) and not asked:
            raise RtproofError("fixed_beforehand speaks of a limit, and none is given")
        found = self._judged(asked, (), fixed=bool(fixed_beforehand)) if asked else self._analysed.analysis
        return (found.verdict, *(found.verdicts if len(found.verdicts) > 1 else ()))

    def causes(self, limit: Duration | None = None, top: int = 32) -> Explanation:
        """Why activations were late: every nanosecond from the due time to the end, by cause.

        It needs a run with ``trace`` or ``explain``. Of any other run it holds what coincides with late activations.

        Args:
            limit: Explain activations above this latency; by default above the run's smallest limit, or else the
                largest ones.
            top: How many of the largest to explain where there is no limit.

        RtproofError, with the reason, for a run that has no trace and too few readings of what the kernel counts.
        """
        limit_ns = None if limit is None else length_ns("limit", limit)
        top = whole_number("top", top, 1, 10_000)
        with one_kind_of_error():
            record, told, _ = explained_runs.explain_run(self.path, limit_ns, top, {})
        if isinstance(told, Coincidences):
            text = json.dumps(coincidences_dict(told, record), indent=2)
            why = told.too_few or record.fact("trace_refused")
            return Explanation(False, told.limit_ns, told.late, 0, 0, (), (), told.moved, why, text)
        text = json.dumps(explanation_dict(told, record), indent=2)
        explained = len(told.budgets)
        return Explanation(
            True, told.limit_ns, told.late, explained, told.outside, told.rows, told.budgets, (), None, text
        )

    def report(
        self,
        path: str | PathLike[str],
        format: str | None = None,  # noqa: A002 - as the option of the command line
        sections: Sequence[str] = (),
    ) -> Path:
        """Write the report into a new file, and return its path.

        Args:
            path: The file. Nothing is ever written over.
            format: html, summary, markdown, text, svg or png; by default by the ending of the file's name, or html.
            sections: Only these, such as "verdict" or "histogram".
        """
        place = path_of(path)
        if not isinstance(format, str | None):
            raise RtproofError(f"format: text such as 'html' is needed, and no {type(format).__name__}")
        with one_kind_of_error():
            form = stored_runs.form_of(format, place, "html")
            drawn = self._analysed.report(form, only=tuple(str(name) for name in each_of(sections)))
            stored_runs.write_new_file(place, drawn)
        return place

    def to_json(self) -> str:
        """Everything that was found, as published in docs/json-schema.md: what ``rtproof show --json`` prints."""
        return json.dumps(self._json, indent=2)

    @property
    def _record(self) -> Record | None:
        return self._opened.record if self._opened else None

    @property
    def _info(self) -> RunInfo | None:
        return self._opened.info if self._opened else None

    @cached_property
    def _analysed(self) -> stored_runs.AnalysedRun:
        with one_kind_of_error():
            return stored_runs.read_run(self.path, workers=_workers())

    @cached_property
    def _json(self) -> dict[str, Any]:
        return analysis_dict(self._analysed.analysis)

    def _judged(self, asked: tuple[Requirement, ...], shares: tuple[float, ...], *, fixed: bool = False) -> Analysis:
        """The same as ``_analysed`` with other limits or further quantiles."""
        with one_kind_of_error():
            found = stored_runs.read_run(self.path, asked or None, shares, _workers(), stated=fixed)
        return found.analysis

    def __repr__(self) -> str:
        """What it is, and where."""
        when = f", {self.started:%Y-%m-%d %H:%M:%S} UTC" if self.started else ""
        return f"<Run {str(self.path)!r}: {self.tool or self.kind}, {quantity(len(self.threads), 'thread')}{when}>"


def _workers() -> int | None:
    """Processes that may read a large record: none besides a worker of ``multiprocessing``, which may have none."""
    return 1 if multiprocessing.current_process().daemon else None


def open(path: str | PathLike[str]) -> Run:  # noqa: A001 - as io.open, gzip.open and many others
    """Open a run: a run folder, a record, or a file of another tool that rtproof reads (docs/formats.md).

    RtproofError, whose text is one sentence, if there is none, or if it is damaged beyond reading.
    """
    place = path_of(path)
    with one_kind_of_error():
        if not place.exists():
            raise RtproofError(f"{place} does not exist: name a run folder, a record, or a file of another tool")
        if place.is_dir() and stored_runs.is_campaign(place):
            raise RtproofError(f"{place} is the folder of a campaign: rtproof.open_archive opens all of its runs")
        imported = stored_runs.read_histogram_file(place)
        if imported:
            return Run(place, "histogram", None, imported)
        kind: Kind = "run" if place.is_dir() else "trace" if is_trace_file(place) else "record"
        kind = "samples" if stored_runs.is_timed_samples(place) else kind
        return Run(place, kind, stored_runs.open_run(place), None)
