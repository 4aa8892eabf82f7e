# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --repeat N`` and ``--abba A B``: several runs one after another, of the same or of two things by turns.

One run tells nothing of how much runs differ from each other. Two things measured by turns, A B B A A B B A ..., see
the same drift of the machine; measured one after the other, the drift would be their difference.
"""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof import files, units
from rtproof.cli import about, comparing, laboratory, measuring
from rtproof.cli.campaign import Desk
from rtproof.errors import TargetError, UserError
from rtproof.printable import clean
from rtproof.run.live import clock

if TYPE_CHECKING:
    from rtproof.run.campaign import Cell, Ended
    from rtproof.run.live import LiveView

Command = TypeVar("Command", bound=Callable[..., Any])
RUNS = "runs"
MOST = 999
USUAL_TIMES = 5
"""The fewest runs a side with which a difference can be shown."""
WARMUP_DEFAULT = "1s"
ALLOWED = "what may stand there are options of the measurement, such as --policy; all others hold for both"
FAILED = 2
"""Exit code of a series of which a run ended badly."""

OPTIONS = (
    click.option("--repeat", type=click.IntRange(1, MOST), metavar="N", help="Measure N times (with --abba: each)."),
    click.option(
        "--abba",
        type=(str, str),
        metavar="'A' 'B'",
        help=f"Compare two sets of options, measured by turns, {USUAL_TIMES} times each unless --repeat says.",
    ),
)


@dataclass(frozen=True)
class Side:
    """One of the things measured. name: A, B, or "" for an only one; words: its own options as typed."""

    name: str
    words: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """How often to measure each side."""

    times: int
    sides: tuple[Side, ...]

    @property
    def kind(self) -> str:
        """For the name of its folder."""
        return "repeat" if len(self.sides) == 1 else "abba"

    @property
    def probe(self) -> str:
        """What is measured, as far as that decides how the target is opened."""
        return next((str(side.values["probe"]) for side in self.sides if side.values["probe"]), "")

    def order(self) -> tuple[Side, ...]:
        """The side of each run: A B B A A B B A ..., so that a drift meets both alike."""
        if len(self.sides) == 1:
            return self.sides * self.times
        a, b = self.sides
        return ((a, b, b, a) * self.times)[: 2 * self.times]


def repeat_options(command: Command) -> Command:
    """Give a command the options of several runs."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def refuse_beside(options: Mapping[str, bool]) -> None:
    """UsageError where another option is given that makes several runs of its own, or one unlike others."""
    for name, is_given in options.items():
        if is_given:
            raise click.UsageError(f"--repeat and --abba are for plain runs: leave {name} out")


def take(values: dict[str, Any]) -> Asked | None:
    """Take the options of several runs out of a command's values; None if one run is asked."""
    times, pair = values.pop("repeat"), values.pop("abba")
    if times is None and pair is None:
        return None
    sides = [_side(name, words, values) for name, words in zip("AB", pair, strict=True)] if pair else []
    return Asked(times or USUAL_TIMES, tuple(sides) or (Side("", "", values),))


@click.command(add_help_option=False)
@measuring.agent_options
def _side_options(**_values: Any) -> None:
    """What may stand in the options of one side."""


def _side(name: str, words: str, common: Mapping[str, Any]) -> Side:
    """The options of one side, on top of those that both have; its loads come beside the common ones."""
    try:
        own = _side_options.make_context(name, shlex.split(words)).params
        given = {key: value for key, value in own.items() if value not in (None, False, ())}
        values = {**common, **given, "load": (*common["load"], *given.get("load", ()))}
        measuring.agent_arguments(values)
    except (click.UsageError, UserError, ValueError) as problem:
        said = problem.format_message() if isinstance(problem, click.UsageError) else str(problem)
        hint = f"; {ALLOWED}" if isinstance(problem, click.NoSuchOption) else ""
        raise click.UsageError(f"{name} of --abba, {words!r}: {said.rstrip('.?')}{hint}") from None
    return Side(name, words, values)


@dataclass(frozen=True)
class Measured:
    """The run folders of each side that hold a run, and how the series ended. failure: why it ended early, or ""."""

    folders: Mapping[str, tuple[Path, ...]]
    complaints: tuple[str, ...]
    failure: str = ""
    interrupted: bool = False


def measure(desk: Desk, asked: Asked, folder: Path) -> Measured:
    """Every run into FOLDER/runs, each by a new process of the agent on the target, which stays open for all of them.

    Ctrl-C lets the one that measures finish and skips the rest. So does a run that cannot be had, because the next one
    would fail alike. UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    order = asked.order()
    click.echo(_announcement(asked), err=True)
    with files.no_empty_folders(folder / RUNS):
        (folder / RUNS).mkdir(parents=True)
        ended = list(_until_one_fails(_runs(desk, order, folder)))
        kept = [(side, each) for side, each in zip(order, ended, strict=False) if each.outcome is not None]
        last = ended[-1]
        if not kept:
            raise UserError(_named(last))
    folders = {side.name: tuple(_folder(each) for other, each in kept if other is side) for side in asked.sides}
    complaints = tuple(_named(each) for each in ended if each.failure and each.outcome)
    failure = "" if last.outcome or last.interrupted else _named(last)
    return Measured(folders, complaints, failure, any(each.interrupted for each in ended))


def _folder(ended: "Ended") -> Path:
    (_, plan), *_ = ended.cell.ways
    return plan.folder


def _named(ended: "Ended") -> str:
    return f"run {ended.cell.name}: {ended.failure}"


def _until_one_fails(runs: "Iterator[Ended]") -> "Iterator[Ended]":
    for ended in runs:
        yield ended
        if ended.outcome is None or ended.interrupted:
            return


def _runs(desk: Desk, order: Sequence[Side], folder: Path) -> "Iterator[Ended]":
    from rtproof.run import campaign
    from rtproof.run.live import LiveView
    from rtproof.run.session import Plan

    machine, total = desk.target.machine(), len(order)
    names = _names(order)
    limits = measuring.limit_arguments(desk.asked.requirements)

    def view(number: int, cell: "Cell") -> "LiveView":
        side, rest = order[number - 1], sum(_length_ns(side) for side in order[number - 1 :])
        going = f"[{number}/{total}] {cell.name}, {clock(_length_ns(side))}; {clock(rest)} to go in all"
        click.echo(clean(going), err=True)
        return LiveView(
            sys.stderr, f"{measuring.goal(dict(side.values))}, run {number} of {total}", sys.stderr.isatty()
        )

    def cells() -> "Iterator[Cell]":
        """Each when it is its turn, because its folder tells when it was started."""
        for name, side in zip(names, order, strict=True):
            info = about.about(replace(desk.asked, note=_note(desk.asked.note, side)), machine, desk.agent)
            words = (*measuring.agent_arguments(dict(side.values)), *limits)
            yield campaign.Cell(name, [("", Plan(folder / RUNS / name, desk.agent, words, info))])

    return campaign.run(desk.target, cells(), view)


def _names(order: Sequence[Side]) -> list[str]:
    """01-A, 02-B, ... so that they sort in the order of time."""
    width = max(2, len(str(len(order))))
    return [f"{at:0{width}}" + (f"-{side.name}" if side.name else "") for at, side in enumerate(order, 1)]


def _note(note: str, side: Side) -> str:
    """What the user noted, and what makes this run one of its side."""
    return "; ".join(filter(None, (note, f"{side.name}: {side.words}" if side.name else "")))


def _length_ns(side: Side) -> int:
    return measuring.length_ns(dict(side.values)) + units.parse_duration(side.values["warmup"] or WARMUP_DEFAULT)


def _announcement(asked: Asked) -> str:
    """What will be done and how long it takes, before it begins."""
    order = asked.order()
    whole = clock(sum(_length_ns(side) for side in order))
    if len(asked.sides) == 1:
        return f"{len(order)} run{'s' * (len(order) > 1)}, {whole} in all, without the time to start each"
    turns = " ".join(side.name for side in order[:8]) + (" ..." if len(order) > 8 else "")
    return f"{len(order)} runs by turns, {turns}, {whole} in all, without the time to start each"


def tell(desk: Desk, asked: Asked, measured: Measured, folder: Path, as_json: bool) -> int:
    """Write the page and print what the runs say; the exit code."""
    from rtproof.analysis.comparison.alike import MUST_AGREE

    command = shlex.join(desk.asked.command)
    for sentence in measured.complaints:
        click.echo(clean(f"rtproof: {sentence}"), err=True)
    page = folder / comparing.PAGE if desk.report else None
    wanted = comparing.Wanted(page, as_json=as_json, although=MUST_AGREE, command=command)
    what = {side.name: side.words or "no options of its own" for side in asked.sides}
    read = comparing.read([(name, what[name], paths) for name, paths in measured.folders.items() if paths])
    try:
        if len(read) == 2:
            comparing.compare(read[0], read[1], wanted)
        else:
            comparing.alone(read[0], wanted)
    finally:
        click.echo(f"runs: {folder / RUNS}", err=as_json)
        if desk.asked.requirements:
            click.echo(f"verdicts: rtproof judge {shlex.quote(str(folder / RUNS))}", err=as_json)
    return _exit_code(measured)


def _exit_code(measured: Measured) -> int:
    """Of how the series went; what the runs say is on the page."""
    if measured.interrupted:
        click.echo("rtproof: interrupted: what was measured until then is kept", err=True)
        return laboratory.INTERRUPTED_CODE
    if measured.failure:
        raise TargetError(f"{measured.failure}; what was measured before is kept")
    return FAILED if measured.complaints else 0
