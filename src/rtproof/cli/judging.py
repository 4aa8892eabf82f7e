# SPDX-License-Identifier: Apache-2.0
"""From the runs that CI is to judge to their rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rtproof.cli import histograms, results, several
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.analysis.model import Requirement
    from rtproof.report.ci.rows import Row

NO_LIMIT = (
    "there is no limit to judge by: give --limit, or better give it to rtproof run, which writes it down before the "
    "run begins"
)


@dataclass(frozen=True)
class Stated:
    """What the user states. beforehand: the limits were fixed before the runs; the others: of files that tell none."""

    beforehand: bool = False
    duration_ns: int | None = None
    period_ns: int | None = None


def judge(paths: Sequence[Path], later: "tuple[Requirement, ...]", stated: Stated) -> "list[Row]":
    """A row for each run at the paths, in order. UserError for a path without one, and if no run has a limit."""
    from rtproof.analysis.model import State
    from rtproof.report.ci import rows

    runs = several.find_runs(paths, histograms.is_one)
    found = several.read_runs(runs, _row, partial(_open, later, stated))
    told = dict(zip(found.paths, found.wanted, strict=True)) | {
        run: rows.unread(str(run), sentence) for run, sentence in found.failed
    }
    ordered = [told[run] for run in runs]
    if all(row.state is State.NOT_ASKED for row in ordered):
        raise UserError(NO_LIMIT)
    return ordered


def _open(
    later: "tuple[Requirement, ...]", stated: Stated, run: Path, workers: int
) -> "results.Result | histograms.Histogram":
    given = histograms.recognised(run)
    if given:
        told = given.with_stated(stated.duration_ns, stated.period_ns)
        return histograms.say(told, later, fixed=stated.beforehand)
    if stated.beforehand:
        return results.read_stated(run, later, workers)
    return results.read_run(run, later, workers=workers)


def _row(run: Path, found: "results.Result | histograms.Histogram") -> "Row":
    from rtproof.report.ci import rows

    if isinstance(found, histograms.Histogram):
        return rows.of_histogram(str(run), found.said)
    return rows.of_run(str(run), found.analysis)


def as_text(rows: "list[Row]") -> bytes:
    """For a terminal."""
    from rtproof.report.ci import tables

    return tables.text(rows)


def as_markdown(rows: "list[Row]", *, stated: bool) -> bytes:
    """For a pull request. stated: the user says that the limits came before the runs."""
    from rtproof.analysis.afterwards import STATED
    from rtproof.report.ci import tables

    return tables.markdown(rows, STATED if stated else "")


def as_junit(rows: "list[Row]", *, strict: bool) -> bytes:
    """For a CI service."""
    from rtproof.report.ci import junit

    return junit.junit(rows, strict=strict)


def exit_code(rows: "list[Row]") -> int:
    """That of the worst run."""
    from rtproof.report.ci.rows import exit_code as worst

    return worst(rows)
