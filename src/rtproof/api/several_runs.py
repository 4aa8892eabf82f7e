# SPDX-License-Identifier: Apache-2.0
"""Several runs together: an archive of them, two sides compared, and the history of a system."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias, overload

from rtproof.api.arguments import each_of, one_kind_of_error, path_of
from rtproof.api.opened_run import Run
from rtproof.api.opened_run import open as open_one
from rtproof.api.samples import View
from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import ComparisonFinding
from rtproof.compare.comparison_model import FactDifference as Difference
from rtproof.compare.comparison_model import MetricEffect as Effect
from rtproof.compare.history import analyse_history
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.notebook import Sentences, printed_sentences
from rtproof.core.phrases import quantity
from rtproof.experiment import run_sets, stored_runs
from rtproof.schema.published import comparison_dict, history_dict


@dataclass(frozen=True, eq=False, repr=False)
class Archive(Sequence[Run]):
    """The runs of a folder and of the folders in it, in the order in which they began.

    Iterating opens one run after the other, and keeps none of them.

    Attributes:
        path: The folder.
        paths: The path of each run.
        unreadable: The path of each file that cannot be read, and a sentence that says why.
    """

    path: Path
    paths: tuple[Path, ...]
    unreadable: tuple[tuple[Path, str], ...] = field(default=())

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.paths)

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> "Archive": ...
    def __getitem__(self, at: int | slice) -> "Run | Archive":
        """A run, or an archive of some of them."""
        return replace(self, paths=self.paths[at]) if isinstance(at, slice) else open_one(self.paths[at])

    def __repr__(self) -> str:
        """The folder and the number of runs."""
        failed = f", {len(self.unreadable)} unreadable" if self.unreadable else ""
        return f"<Archive {str(self.path)!r}: {quantity(len(self), 'run')}{failed}>"


def open_archive(folder: str | PathLike[str]) -> Archive:
    """The runs in a folder and in the folders there: run folders, records, and histograms of other tools.

    RtproofError if there is none. A run that cannot be read is in ``Archive.unreadable``.
    """
    place = path_of(folder)
    with one_kind_of_error():
        paths = stored_runs.find_runs([place], stored_runs.is_histogram_file)
    began: dict[Path, float] = {}
    failed: list[tuple[Path, str]] = []
    for path in paths:
        try:
            started = open_one(path).started
            began[path] = started.timestamp() if started else float("inf")
        except RtproofError as problem:
            failed.append((path, str(problem)))
    return Archive(place, tuple(sorted(began, key=lambda path: (began[path], path))), tuple(failed))


Runs: TypeAlias = "str | PathLike[str] | Run | Archive | Sequence[str | PathLike[str] | Run]"
"""Runs that count as one thing: a path, a run, an archive, or a list of paths or runs."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """What the runs of A and the runs of B say about each other.

    Attributes:
        names: What A and B are called.
        refusal: Why the two may not be compared, in one sentence; None if they were.
        finding: The finding over all metrics, in words; "refused" for a refusal.
        better: "A" or "B" if one is better; None in any other case.
        sentences: Label and text of each line to print.
        effects: One for each metric that both sides have.
        differences: Facts in which the sides differ, the most important first.
        left_out: The name of each run that no figure contains, and a sentence that says why.
    """

    names: tuple[str, str]
    refusal: str | None
    finding: str
    better: Literal["A", "B"] | None
    sentences: Sentences
    effects: tuple[Effect, ...]
    differences: tuple[Difference, ...]
    left_out: tuple[tuple[str, str], ...]
    _json: str = field(compare=False)

    def effect(self, metric: str) -> Effect:
        """The effect on a metric, such as "p99.9". RtproofError if there is none."""
        for each in self.effects:
            if each.metric == metric:
                return each
        known = ", ".join(each.metric for each in self.effects) or "none"
        raise RtproofError(f"there is no effect on {metric!r}: there are {known}")

    def to_json(self) -> str:
        """The JSON that ``rtproof compare --json`` prints. RtproofError, with the reason, for a refusal."""
        if self.refusal:
            raise RtproofError(self.refusal)
        return self._json

    def __str__(self) -> str:
        """The lines that the command line prints first, or the reason of a refusal."""
        return self.refusal or "\n".join(printed_sentences(self.sentences))

    def __repr__(self) -> str:
        """The sides and the finding."""
        return f"<Comparison of {self.names[0]} with {self.names[1]}: {self.finding}>"


def compare(
    a: Runs,
    b: Runs,
    *,
    although: str | Sequence[str] = (),
    view: View = "observed",
    names: tuple[str, str] | None = None,
) -> Comparison:
    """Compare runs of one thing, A, with runs of another, B. Only five runs on each side can show a difference.

    Args:
        a: The runs of A.
        b: The runs of B, the baseline.
        although: Facts that may differ because the comparison is about them, such as "policy".
        view: "observed": the activations that ran. "schedule": all that were due.
        names: What A and B are called; by default what the names of their folders have in common.

    Returns:
        A comparison. If the two may not be compared, it is a refusal: ``refusal`` says why.

    RtproofError for a path without a run, and if no run of a side can be read.
    """
    if view not in ("observed", "schedule"):
        raise RtproofError(f"view: {view!r} is none of: observed, schedule")
    with one_kind_of_error():
        paths = _paths("a", a), _paths("b", b)
        may_differ = run_sets.facts_that_may_differ([str(fact) for fact in each_of(although)], whatever=False)
        called = names or run_sets.names_of_sides(*paths)
        sides = run_sets.read_sides([(called[0], "", paths[0]), (called[1], "", paths[1])], schedule=view == "schedule")
        failed = (*sides[0].failed, *sides[1].failed)
        try:
            found = compare_sides(sides[0].runs, sides[1].runs, names=called, although=may_differ)
        except UserError as problem:
            return Comparison(called, str(problem), "refused", None, (), (), (), (), "")
    return Comparison(
        names=called,
        refusal=None,
        finding=found.finding,
        better=_BETTER.get(found.finding),
        sentences=found.sentences,
        effects=found.effects,
        differences=found.differences,
        left_out=tuple((one.run, one.why) for one in found.left_out),
        _json=json.dumps(comparison_dict(found, not_read=failed), indent=2),
    )


_BETTER: dict[ComparisonFinding, Literal["A", "B"]] = {ComparisonFinding.A_BETTER: "A", ComparisonFinding.B_BETTER: "B"}


@dataclass(frozen=True)
class Change:
    """A place at which the latency of a system changed.

    Attributes:
        run: The name of the first run after the change.
        started_ns: When that run began, in nanoseconds since 1970; None if it is not known.
        metrics: For each metric that changed its key, and the figure after the change over the one before.
        facts: For each fact that changed near it its name, the text before, and the text after.
    """

    run: str
    started_ns: int | None
    metrics: tuple[tuple[str, float], ...]
    facts: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, repr=False)
class History:
    """When the latency of a system changed, and what changed with it.

    Attributes:
        runs: The names of the runs, in order; those that measured something else follow each other by themselves.
        judged: Whether there were enough runs, at least 20 that measured alike, to look for changes.
        changes: In order.
        left_out: The name of each run that no figure contains, and a sentence that says why.
        unreadable: Sentences on files that could not be read.
    """

    runs: tuple[str, ...]
    judged: bool
    changes: tuple[Change, ...]
    left_out: tuple[tuple[str, str], ...]
    unreadable: tuple[str, ...]
    _json: str = field(compare=False)

    def to_json(self) -> str:
        """The JSON that ``rtproof history --json`` prints."""
        return self._json

    def __repr__(self) -> str:
        """How many runs there are, and how many changes."""
        found = quantity(len(self.changes), "change") if self.judged else "too few to look for changes"
        return f"<History of {quantity(len(self.runs), 'run')}: {found}>"


def history(runs: Runs, *, by_name: bool = False) -> History:
    """Find the runs at which the latency of a system changed. It needs 20 runs or more that measured alike.

    Args:
        runs: A folder of runs, an archive, or a list.
        by_name: Sort the runs by their names and not by their start.
    """
    with one_kind_of_error():
        (side,) = run_sets.read_sides([("", "", _paths("runs", runs))])
        ordered = sorted(side.runs, key=lambda run: run.name) if by_name else list(side.runs)
        found = analyse_history(ordered, by_name=by_name)
    return History(
        runs=tuple(run.name for one in found.sequences for run in one.runs),
        judged=any(one.judged for one in found.sequences),
        changes=tuple(
            Change(
                one.runs[place.at].name,
                one.runs[place.at].started_ns,
                tuple((change.metric, change.ratio) for change in place.found),
                tuple((fact.key, fact.before, fact.after) for fact in place.facts),
            )
            for one in found.sequences
            for place in one.places
        ),
        left_out=tuple((one.run, one.why) for one in found.left_out),
        unreadable=side.failed,
        _json=json.dumps(history_dict(found, "", side.failed), indent=2),
    )


def _paths(name: str, runs: object) -> list[Path]:
    """The paths of runs that count as one thing."""
    if isinstance(runs, Archive):
        found = list(runs.paths)
    else:
        found = [each.path if isinstance(each, Run) else path_of(each) for each in each_of(runs)]
    if not found:
        raise RtproofError(f"{name}: there is no run")
    return found
