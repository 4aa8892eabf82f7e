# SPDX-License-Identifier: Apache-2.0
"""Many runs at once: the paths that a user gives, the runs that lie there, and what is wanted of each of them.

Each run is read in a forked process of its own, and only what is wanted of it comes back, so that a hundred long runs
take neither a hundred times as long nor as much memory.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from rtproof import defects
from rtproof.cli.results import Result, read_run
from rtproof.errors import UserError
from rtproof.printable import one_line

RECORD_NAME = "run.rtrec"
RECORDS = ".rtrec"

Wanted = TypeVar("Wanted")


@dataclass(frozen=True)
class Read(Generic[Wanted]):
    """What was wanted of each run that could be read, in their order. failed: the others, each with a sentence."""

    paths: tuple[Path, ...]
    wanted: tuple[Wanted, ...]
    failed: tuple[tuple[Path, str], ...] = ()


@dataclass(frozen=True)
class _Failed:
    sentence: str

    def of(self, run: Path) -> str:
        """The sentence with the name of the run before it, unless it begins with that."""
        named = re.match(rf"(cannot read )?{re.escape(one_line(str(run)))}[ :/]", self.sentence)
        return self.sentence if named else f"{run}: {self.sentence}"


def find_runs(paths: Iterable[Path], also: Callable[[Path], bool] = lambda _: False) -> list[Path]:
    """The run folders and records at the paths and in the folders there, in order, each once.

    A file that is named itself is taken whatever it is. also: what else is a run among the files of a folder.
    UserError for a path with nothing there and for a folder without a run.
    """
    found: dict[Path, Path] = {}
    for run in (run for path in paths for run in _at(path, also)):
        found.setdefault(run.resolve(), run)
    return list(found.values())


def _at(path: Path, also: Callable[[Path], bool]) -> list[Path]:
    if path.is_symlink() and not path.exists():
        raise UserError(f"{path} is a link to nothing: name a run folder, a record, or a folder of them")
    if not path.exists():
        raise UserError(f"{path} does not exist: name a run folder, a record, or a folder of them")
    if not path.is_dir() or (path / RECORD_NAME).exists():
        return [path]
    found = sorted(_inside(path, also))
    if not found:
        raise UserError(f"there is no run in the folder {path}: a run is a folder with a {RECORD_NAME}")
    return found


def _inside(folder: Path, also: Callable[[Path], bool]) -> Iterable[Path]:
    """Symbolic links to folders are not followed, since they may lead in circles."""
    closed: list[OSError] = []
    for here, folders, files in os.walk(folder, onerror=closed.append):
        if RECORD_NAME in files:
            folders.clear()
            yield Path(here)
            continue
        yield from (place for name in files if (place := Path(here) / name).suffix == RECORDS or also(place))
    # A folder that cannot be looked into may hold runs: it becomes one that cannot be read.
    yield from (Path(problem.filename) for problem in closed)


def read_runs(
    runs: Sequence[Path], wanted: Callable[[Path, Any], Wanted], read: Callable[..., Any] = read_run
) -> Read[Wanted]:
    """What is wanted of each run, which has to be small and has to survive pickling; see ``find_runs``.

    read: takes the path, and ``workers``, and gives what ``wanted`` takes; by default a Result.
    ``partial(read_run, later=...)`` judges by requirements given now.
    """
    # Imported once for all processes, not once in each of them.
    from rtproof.analysis.analyse import analyse  # noqa: F401
    from rtproof.analysis.forked import each_by_itself
    from rtproof.record import rundir  # noqa: F401

    cpus = len(os.sched_getaffinity(0))
    work = partial(_want, wanted, partial(read, workers=max(1, cpus // max(len(runs), 1))))
    answers = each_by_itself(work, runs, cpus, _failed)
    told = [(run, each) for run, each in zip(runs, answers, strict=True) if not isinstance(each, _Failed)]
    failed = tuple((run, e.of(run)) for run, e in zip(runs, answers, strict=True) if isinstance(e, _Failed))
    return Read(tuple(run for run, _ in told), tuple(each for _, each in told), failed)


def _want(wanted: Callable[[Path, Any], Any], read: Callable[[Path], Any], run: Path) -> Any:
    return wanted(run, read(run))


def _failed(problem: Exception) -> "_Failed":
    return _Failed(defects.sentence(problem))


def whole(_run: Path, result: Result) -> Result:
    """The run as it was read, for those who need all of it."""
    return result
