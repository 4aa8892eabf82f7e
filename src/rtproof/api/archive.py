# SPDX-License-Identifier: Apache-2.0
"""Many runs in a folder, in the order of time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import overload

from rtproof.api.arguments import one_kind_of_error, path_of
from rtproof.api.opened_run import Run
from rtproof.api.opened_run import open as open_one
from rtproof.core.errors import RtproofError
from rtproof.core.phrases import quantity
from rtproof.experiment import stored_runs


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
