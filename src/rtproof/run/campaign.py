# SPDX-License-Identifier: Apache-2.0
"""Several runs one after another on the same target, each in the first of its ways that the target can go."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rtproof.errors import RtproofError, UserError
from rtproof.run import session
from rtproof.run.live import LiveView
from rtproof.run.session import Outcome, Plan
from rtproof.targets import Target

LACKS = "can't run here"
"""What the agent says of a method or load that this machine has no means for."""
INTERRUPTED = "not measured: the campaign was interrupted before"
KEPT = "what it measured until then is kept and judged"


@dataclass(frozen=True)
class Cell:
    """A run and the plans of its ways, all into the same folder. name: for people."""

    name: str
    ways: Sequence[tuple[str, Plan]]


@dataclass(frozen=True)
class Ended:
    """How a cell came out. way: place of the way that was taken, None if none was.

    refused: the sentence of each before. outcome: None if nothing was measured. failure: what the user must know of it,
    "" if all is well.
    """

    cell: Cell
    way: int | None = None
    refused: tuple[str, ...] = ()
    outcome: Outcome | None = None
    failure: str = ""
    interrupted: bool = False


View = Callable[[int, Cell], LiveView]
"""The live view of the cell with this number, counted from 1."""


def run(target: Target, cells: Iterable[Cell], view: View) -> Iterator[Ended]:
    """Each cell as it ends. Ctrl-C lets the one that measures finish and skips all others."""
    stopped = False
    for number, cell in enumerate(cells, 1):
        ended = (
            Ended(cell, failure=INTERRUPTED, interrupted=True) if stopped else _run(target, cell, view(number, cell))
        )
        stopped = stopped or ended.interrupted
        yield ended


def _run(target: Target, cell: Cell, view: LiveView) -> Ended:
    refused: list[str] = []
    try:
        for at, (name, plan) in enumerate(cell.ways):
            try:
                return _measured(cell, at, tuple(refused), session.run(target, plan, view))
            except UserError as problem:
                refused.append(str(problem))
                if at + 1 < len(cell.ways):
                    view.say(f"{name} can't be had here ({problem}); {cell.ways[at + 1][0]} is tried instead")
    except RtproofError as problem:
        return Ended(cell, refused=tuple(refused), failure=str(problem))
    except OSError as error:
        return Ended(cell, refused=tuple(refused), failure=f"{error.filename or cell.name}: {error.strerror}")
    except KeyboardInterrupt:
        return Ended(cell, refused=tuple(refused), failure=INTERRUPTED, interrupted=True)
    return Ended(cell, refused=tuple(refused), failure=_no_way(cell, refused))


def _measured(cell: Cell, way: int, refused: tuple[str, ...], outcome: Outcome) -> Ended:
    failure = ""
    if outcome.failed:
        failure = outcome.said or f"the agent ended with exit code {outcome.exit_code}"
    elif outcome.killed_by:
        failure = f"the agent was killed by {outcome.killed_by}; {KEPT}"
    elif outcome.interrupted:
        failure = f"it was interrupted; {KEPT}"
    return Ended(cell, way, refused, outcome, failure, outcome.interrupted)


def _no_way(cell: Cell, refused: Sequence[str]) -> str:
    """One sentence; the last way's reason alone where it is the same for all, or nothing that the machine lacks."""
    if len(set(refused)) == 1 or LACKS not in refused[-1]:
        return refused[-1]
    reasons = "; ".join(f"{name}: {why}" for (name, _), why in zip(cell.ways, refused, strict=True))
    return f"none of its ways can be had here ({reasons})"
