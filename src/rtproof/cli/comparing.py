# SPDX-License-Identifier: Apache-2.0
"""From the runs of two sides on the disk to what is printed about them, for ``compare`` and ``run --abba``."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import histograms, results, several
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.analysis.comparison.figures import RunFigures
    from rtproof.analysis.imported import Imported
    from rtproof.report.blocks import Section

PAGE = "report.html"
UNREAD_CODE = 2


@dataclass(frozen=True)
class Side:
    """Runs that count as one thing. what: it in words; failed: sentences on runs that could not be read."""

    name: str
    what: str
    runs: "tuple[RunFigures, ...]"
    failed: tuple[str, ...] = ()


def exit_code(sides: Sequence[Side]) -> int:
    """2 if a run could not be read: the result stands on fewer runs than were named."""
    return UNREAD_CODE if any(side.failed for side in sides) else 0


@dataclass(frozen=True)
class Wanted:
    """What to make of them. page: where, None for none; form: of the page; although: facts that may differ."""

    page: Path | None
    form: str = "html"
    as_json: bool = False
    although: Collection[str] = ()
    command: str = ""


def read(sides: Sequence[tuple[str, str, Sequence[Path]]], *, schedule: bool = False) -> list[Side]:
    """Name, words and paths of each side; folders are searched. UserError for a path without a run.

    Also for a run that stands on both sides, and where no run of a side can be read. schedule: with the activations
    that never ran, each as late as it was.
    """
    found = [(name, what, several.find_runs(paths, histograms.is_one)) for name, what, paths in sides]
    _refuse_shared([(name, runs) for name, _, runs in found])
    every = [run for _, _, runs in found for run in runs]
    answers = several.read_runs(every, _Take(len(every) == len(found), schedule), _open)
    figures, failed = dict(zip(answers.paths, answers.wanted, strict=True)), dict(answers.failed)
    told = [
        Side(name, what, tuple(figures[run] for run in runs if run in figures), _sentences(runs, failed))
        for name, what, runs in found
    ]
    for side in told:
        if not side.runs:
            of = f" of {side.name}" if side.name else ""
            raise UserError(f"no run{of} can be read: {'; '.join(side.failed)}")
    return told


def _sentences(runs: Sequence[Path], failed: dict[Path, str]) -> tuple[str, ...]:
    return tuple(failed[run] for run in runs if run in failed)


def _refuse_shared(sides: Sequence[tuple[str, Sequence[Path]]]) -> None:
    seen: dict[Path, str] = {}
    for name, runs in sides:
        for run in runs:
            other = seen.setdefault(run.resolve(), name)
            if other != name:
                raise UserError(f"{run} stands on both sides, {other} and {name}: a run is no witness against itself")


def _open(run: Path, workers: int) -> "results.Result | Imported":
    """A run of ours, or what another tool printed."""
    from rtproof.analysis.forecast.model import NOWHERE

    return histograms.recognised(run) or results.read_run(run, workers=workers, horizon=NOWHERE)


@dataclass(frozen=True)
class _Take:
    """The figures of a run. blocks: with its parts in time, which one run against one other needs."""

    blocks: bool
    schedule: bool

    def __call__(self, run: Path, found: Any) -> "RunFigures":
        from rtproof.analysis.comparison.figures import figures_of
        from rtproof.record import View

        if isinstance(found, results.Result):
            view = View.CHARGED if self.schedule else View.OBSERVED
            return figures_of(found.analysis, str(run), view, blocks=self.blocks)
        return histograms.figures(run, found)


def compare(a: Side, b: Side, wanted: Wanted) -> None:
    """Print the result and write the page. UserError where the two may not be compared."""
    from rtproof.analysis.comparison.compare import compare as found_of
    from rtproof.report import comparison as page
    from rtproof.report.comparison import as_json

    found = found_of(a.runs, b.runs, names=(a.name, b.name), although=wanted.although)
    told = page.Told((a.what, b.what), (*a.failed, *b.failed), wanted.command)
    publish(
        page.title(found),
        page.sections(found, told),
        page.sections(found, told, short=True),
        as_json.encode(found, told),
        wanted,
    )


def alone(side: Side, wanted: Wanted) -> None:
    """Print how much runs of one thing differ, and write the page."""
    from rtproof.analysis.phrases import quantity
    from rtproof.report import comparison as page
    from rtproof.report.comparison import as_json

    told = page.Told((side.what,), side.failed, wanted.command)
    title = f"rtproof: {quantity(len(side.runs), 'run')} of the same"
    whole, short = page.alone(side.runs, told), page.alone(side.runs, told, short=True)
    publish(title, whole, short, as_json.encode_alone(side.runs, told), wanted)


def publish(title: str, whole: "list[Section]", short: "list[Section]", encoded: bytes, wanted: Wanted) -> None:
    """The page in its form, the short form or the JSON on standard output."""
    from rtproof import report

    if wanted.page == Path("-"):
        click.echo(report.render(wanted.form, title, whole), nl=False)
        return
    if wanted.page:
        results.write_new(wanted.page, report.render(wanted.form, title, whole))
    click.echo(encoded if wanted.as_json else report.render("text", title, short), nl=False)
    if wanted.page:
        click.echo(f"\nreport: {wanted.page}", err=wanted.as_json)
