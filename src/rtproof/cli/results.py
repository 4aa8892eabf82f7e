# SPDX-License-Identifier: Apache-2.0
"""From a run on the disk to what is printed. Whatever takes long to import is imported here when a run is read."""

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof import files, plugins
from rtproof.errors import NoRecordError, UserError

if TYPE_CHECKING:
    from rtproof.analysis.analyse import Asked
    from rtproof.analysis.forecast.model import Horizon
    from rtproof.analysis.model import Analysis, Requirement
    from rtproof.record.rundir import Run, RunInfo


@dataclass(frozen=True)
class Result:
    """A run that was read and analysed. info: what the host wrote down before it; None for a bare record."""

    analysis: "Analysis"
    info: "RunInfo | None"

    @property
    def exit_code(self) -> int:
        return self.analysis.verdict.state.exit_code

    def as_json(self) -> bytes:
        """Everything that was found, in the documented schema."""
        from rtproof.analysis.as_json import to_dict

        return json.dumps(to_dict(self.analysis), indent=2).encode() + b"\n"

    def report(self, form: str, *, short: bool = False) -> bytes:
        """The report in one of its formats; short: verdict, doubts and numbers only."""
        from rtproof.report import compose, render, title

        command = shlex.join(self.info.command) if self.info else None
        sections = compose(self.analysis, self._host_facts(), command, short=short)
        return render(form, title(self.analysis), sections)

    def _host_facts(self) -> dict[str, object]:
        if self.info is None:
            return {}
        names = (
            "started",
            "host",
            "user",
            "target",
            "rtproof_version",
            "agent_arch",
            "agent_sha256",
            "until_decided",
            "note",
        )
        return {name: getattr(self.info, name) for name in names if getattr(self.info, name)}


def read_run(
    run: Path,
    later: "Asked" = None,
    percentiles: tuple[float, ...] = (),
    workers: int | None = None,
    horizon: "Horizon | None" = None,
) -> Result:
    """A run folder or a bare record, judged against the requirements that were fixed before the run.

    later: one or several given now; those that were not fixed before decide nothing, and those that were are tested as
    they were, each with its share. percentiles: shares whose values are wanted besides those of the usual ones.
    workers: processes, by default one per CPU. horizon: how far a forecast looks.
    """
    from rtproof.analysis.afterwards import chosen_after_the_data, limits_of_the_record
    from rtproof.analysis.analyse import analyse, several

    found = _open(run)
    fixed = _fixed(found)
    asked = several(later) or fixed
    analysis = replace(analyse(found.record, asked, workers, horizon, limits=len(fixed)), shares=percentiles)
    analysis = _as_it_ended(analysis, found.info)
    if found.info is None and fixed:
        analysis = limits_of_the_record(analysis, fixed)
    return Result(analysis if set(asked) <= set(fixed) else chosen_after_the_data(analysis, fixed), found.info)


def read_stated(run: Path, stated: "tuple[Requirement, ...]", workers: int | None = None) -> Result:
    """The same, where the user states that requirements given now were fixed before the run.

    So they decide, together with those that were, and the statement stands beside each verdict that rests on it.
    """
    from rtproof.analysis.afterwards import stated_by_the_user
    from rtproof.analysis.analyse import analyse

    found = _open(run)
    fixed = _fixed(found)
    told = {each.limit_ns for each in stated} if found.info is None else set()
    limits = len({*stated, *(each for each in fixed if each.limit_ns not in told)})
    analysis = _as_it_ended(analyse(found.record, stated, workers, limits=limits), found.info)
    return Result(analysis if set(stated) <= set(fixed) else stated_by_the_user(analysis, fixed), found.info)


def _open(run: Path) -> "Run":
    """UserError for a file that is something else, which says what, and what can be read."""
    from rtproof.record import rundir

    try:
        return rundir.open_run(run)
    except NoRecordError as problem:
        raise UserError(_refusal(run / rundir.RECORD_NAME if run.is_dir() else run, problem)) from None


def _refusal(path: Path, problem: NoRecordError) -> str:
    from rtproof import importers, kinds

    tool = importers.tool_of(path)
    if tool:
        return f"{path} is the output of {tool}, a histogram: show, report, judge, compare and history read it"
    return f"{kinds.what_it_is(path) or problem}; what can be read: {importers.READABLE}{', '.join(importers.tools())}"


def _as_it_ended(analysis: "Analysis", info: "RunInfo | None") -> "Analysis":
    """Runs of older agents say it in run.json only."""
    from rtproof.analysis.asked import until_decided
    from rtproof.analysis.stopped import ended_when_decided

    wanted = until_decided(analysis.record) or (info is not None and info.until_decided)
    return ended_when_decided(analysis) if wanted else analysis


def _fixed(run: "Run") -> "tuple[Requirement, ...]":
    """What run.json says; without one the limits that the agent was given, each at most once per the usual time."""
    from rtproof.analysis.asked import limits_ns
    from rtproof.analysis.model import NO_LONGEST, Requirement

    if run.info is None:
        return tuple(Requirement.usual(limit_ns, Requirement.at_most_ns) for limit_ns in limits_ns(run.record))
    return tuple(
        Requirement(
            each.limit_ns, each.at_most_ns, each.confidence, each.gap_ns, each.longest_ns or NO_LONGEST, each.bunches
        )
        for each in run.info.requirements
    )


def show(result: Result, as_json: bool, *, short: bool = False) -> None:
    """Print the result."""
    click.echo(result.as_json() if as_json else result.report("text", short=short), nl=False)


def beside(run: Path, suffix: str) -> Path:
    """Where a file made from a run goes: next to it, because nothing is ever added to a run folder."""
    named = run if run.name not in ("", "..") else run.resolve()
    return named.with_name(named.name.removesuffix(".rtrec") + suffix)


def report_path(run: Path, form: str) -> Path:
    """Where the report of a run goes, unless it is told otherwise."""
    from rtproof.report import formats

    suffix: str = plugins.load(formats, form).SUFFIX
    return beside(run, suffix)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet."""
    with files.new_path(path):
        path.write_bytes(content)
