# SPDX-License-Identifier: Apache-2.0
"""Files of other tools where a run is expected: a histogram without time order."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof import files
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.analysis.comparison.figures import RunFigures
    from rtproof.analysis.histogram_only import HistogramOnly
    from rtproof.analysis.imported import Imported
    from rtproof.analysis.model import Requirement

SUFFIXES = (".txt", ".json", ".hist")
"""Of the files in a folder only these are looked into."""


@dataclass(frozen=True)
class Histogram:
    """What is said of such a file."""

    said: "HistogramOnly"

    @property
    def exit_code(self) -> int:
        return self.said.state.exit_code

    def as_json(self) -> bytes:
        """In the documented schema."""
        from rtproof.analysis.histogram_json import to_dict

        return json.dumps(to_dict(self.said), indent=2).encode() + b"\n"

    def report(self, form: str) -> bytes:
        """The report in one of its formats."""
        from rtproof.report import histogram_only, render

        return render(form, histogram_only.title(self.said), histogram_only.sections(self.said))


def recognised(path: Path) -> "Imported | None":
    """What another tool printed; None for a folder, a record, and a file of no tool that is known.

    UserError for a file of such a tool that makes no sense.
    """
    from rtproof import importers
    from rtproof.record.framing import is_record

    if not path.is_file():
        return None
    files.refuse_what_waits(path)
    return None if is_record(path) else importers.recognised(path)


def is_one(path: Path) -> bool:
    """Whether a file of a folder is a histogram of a tool that is known, also if it makes no sense or cannot be read.

    So whoever reads it says what is wrong with it; a file that was left out would be dropped in silence.
    """
    from rtproof import importers

    if path.suffix not in SUFFIXES or not path.is_file():
        return False
    try:
        return importers.tool_of(path) is not None
    except OSError:
        return True


def say(
    found: "Imported", requirements: "Sequence[Requirement]", shares: tuple[float, ...] = (), *, fixed: bool = False
) -> Histogram:
    """What remains of a file. fixed: the user states that the limits were fixed before it was measured."""
    from rtproof.analysis import histogram_only
    from rtproof.analysis.afterwards import STATED, WHAT
    from rtproof.analysis.quantiles import DEFAULT

    said = histogram_only.say(found, requirements, tuple(sorted({*DEFAULT, *shares})))
    return Histogram(histogram_only.stated(said, STATED) if fixed else histogram_only.after_the_data(said, WHAT))


def figures(path: Path, found: "Imported") -> "RunFigures":
    """What comparison and history look at; a file that contradicts itself is INVALID there too."""
    from rtproof.analysis.comparison.figures import figures_of_histogram

    if found.histogram is None:
        raise UserError(f"{path}: {found.tool} prints no histogram there, so there is nothing to compare")
    told = figures_of_histogram(str(path), found.histogram, found.comparable, found.overflow, found.largest_ns)
    started_ns = None if found.started_s is None else found.started_s * 1_000_000_000
    return replace(told, started_ns=started_ns, invalid=found.faults, unclear=(*told.unclear, *found.notes))


def show(found: Histogram, as_json: bool) -> None:
    """Print it."""
    click.echo(found.as_json() if as_json else found.report("text"), nl=False)
