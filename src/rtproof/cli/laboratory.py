# SPDX-License-Identifier: Apache-2.0
"""What the commands of the lab share: their options, and the way from these to finished cells."""

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof import __version__, files, units
from rtproof.cli import about, complete, types
from rtproof.errors import UserError
from rtproof.printable import clean

if TYPE_CHECKING:
    from rtproof.lab.cells import Cell, Setting, System
    from rtproof.lab.matrix import Ran, Result
    from rtproof.lab.page import Making
    from rtproof.lab.systems import Named
    from rtproof.record.rundir import RunInfo
    from rtproof.report.blocks import Section

INTERRUPTED_CODE = 130
PAGE = "page.html"

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
KERNEL_HELP = "A name of 'rtproof lab kernels', or an image of your own: IMAGE or IMAGE:MODULES (lib/modules/RELEASE)."
LOAD_HELP = "idle, or a load without programs, with options (dd:mib=8); + joins several."
BOOT_HELP = "Further arguments of the kernel, in one word."

MEASURING = (
    click.option("--probe", default="timer", metavar="NAME", help="What is measured (default timer)."),
    click.option("--method", metavar="NAME", shell_complete=complete.methods, help="How the probe waits."),
    click.option("--period", type=types.LENGTH, default="1ms", help="Time between activations (default 1ms)."),
    click.option("--duration", type=types.LENGTH, default="2s", help="How long to measure, virtual (default 2s)."),
    click.option("--warmup", type=types.SPAN, default="1s", help="Run so long before measuring begins (default 1s)."),
    click.option(
        "--policy", type=click.Choice(["fifo", "rr", "other", "deadline"]), help="Scheduling policy (default fifo)."
    ),
    click.option("--priority", type=types.count(99), metavar="N", help="Priority of fifo and rr (default 80)."),
    click.option("--module", type=PATH, multiple=True, metavar="FILE", help="A module to load first; repeatable."),
)
JOBS = click.option("--jobs", type=types.count(1024), metavar="N", help="Guests at once (default: one per CPU).")
RUNNING = (
    click.option(
        "--shifts",
        type=types.count(1000),
        default=1,
        metavar="N",
        help="Measure each cell N times, begun at different moments (default 1).",
    ),
    JOBS,
)
OUTPUT = (
    click.option("--output", type=PATH, metavar="FOLDER", help="New folder for all of it (default one in runs)."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)


def given(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Give a command several options, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def say(sentence: str) -> None:
    """What goes on, beside the result."""
    click.echo(clean(sentence), err=True)


def named(texts: Sequence[str], modules: tuple[Path, ...], probe: str) -> "list[Named]":
    """The kernels, fetched if need be; with our own module where the probe cannot do without."""
    from rtproof.lab import kernels, systems

    resolve = partial(kernels.resolve, say=say)
    own = partial(kernels.module, say=say)
    return [systems.with_modules(systems.open_named(text, resolve), modules, probe, own) for text in texts]


def setting(values: dict[str, Any]) -> "Setting":
    """Take the options of MEASURING, but the modules, out of a command's values."""
    from rtproof.lab.cells import Setting

    further = {name: values.pop(name) for name in ("method", "policy", "priority")}
    more = tuple(word for name, value in further.items() if value for word in (f"--{name}", str(value)))
    period_ns, duration_ns, warmup_ns = (
        units.parse_duration(values.pop(name)) for name in ("period", "duration", "warmup")
    )
    return Setting(values.pop("probe"), period_ns, duration_ns, warmup_ns, more)


def agents(systems: "Sequence[System]") -> dict[str, Path]:
    """The agent for each architecture, built if there is none yet."""
    from rtproof.agents.find import find_agent

    return {arch: find_agent(arch) for arch in dict.fromkeys(system.machine.kernel.arch for system in systems)}


def refuse_unknown_loads(names: "Sequence[str]") -> None:
    """Before anything is booted. Of agents for other machines it is not known what they have."""
    from rtproof.agents import listing
    from rtproof.agents.find import ask, find_agent

    known = [row[1] for row in listing.rows(ask(find_agent(), "list"), "load")]
    for name in names:
        if name.partition(":")[0] not in known:
            raise UserError(f"there is no load {name.partition(':')[0]!r}; there are: idle, {', '.join(known)}")


def run(cells: "list[Cell]", at_once: int | None, command: tuple[str, ...]) -> "Ran":
    """Run what is not in the cache, with a line for each cell that ends. Ctrl-C ends the program."""
    from rtproof.lab import cache, matrix
    from rtproof.lab import cells as real

    infos = {cell.system.machine.kernel.arch: _info(cell, command) for cell in cells}
    runner = matrix.Runner(real.boot, partial(real.measure, infos))
    numbers = count(1)
    jobs = at_once or len(os.sched_getaffinity(0))
    try:
        with cache.opened() as kept:
            return matrix.run(cells, kept, runner, jobs, lambda result: _tell(next(numbers), len(cells), result))
    except matrix.Interrupted as interrupted:
        say(f"rtproof: {interrupted.sentence}")
        raise click.exceptions.Exit(INTERRUPTED_CODE) from None


def _tell(at: int, total: int, result: "Result") -> None:
    """A line for each cell; the failure of an only one is what the command itself says."""
    from rtproof.analysis.phrases import value

    if result.reading is None or result.kept is None:
        if total > 1:
            say(f"[{at}/{total}] {result.cell.name}: failed: {result.failure}")
        return
    how = f"{result.kept.cost.host_s:.1f} s" if result.kept.fresh else "cached"
    say(f"[{at}/{total}] {result.cell.name}: max {value(result.reading.max_ns)} ({how})")


def _info(cell: "Cell", command: tuple[str, ...]) -> "RunInfo":
    from rtproof.agents.architectures import architecture
    from rtproof.lab.comparison import VIRTUAL_TIME

    asked = about.Asked(command, "qemu", (), VIRTUAL_TIME)
    return about.about(asked, architecture(cell.system.machine.kernel.arch).machines[0], cell.agent)


def making(cells: "list[Cell]", command: tuple[str, ...]) -> "Making":
    """How cells came about."""
    from rtproof.lab.page import Making
    from rtproof.vm.qemu import version_of

    machines = {cell.system.machine.kernel.arch: cell.system.machine for cell in cells}
    agents = {cell.system.machine.kernel.arch: cell.agent for cell in cells}
    qemu = {arch: version_of(machine) for arch, machine in machines.items()}
    digests = {arch: hashlib.sha256(agent.read_bytes()).hexdigest() for arch, agent in agents.items()}
    return Making(shlex.join(command), __version__, qemu, digests)


@dataclass(frozen=True)
class Document:
    """A result in all its forms: sections of the page, of a README, of the terminal, and the JSON."""

    title: str
    page: "list[Section]"
    readme: "list[Section]"
    terminal: "list[Section]"
    json: bytes


def new_folder(wanted: Path | None, kind: str) -> Path:
    """Where a result goes; UserError if there is anything already."""
    folder = wanted or Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{kind}"
    files.refuse_existing(folder)
    return folder


def publish(document: Document, ran: "Ran", folder: Path, as_json: bool) -> None:
    """Write the page, the table, the JSON and the run folders of the cells; print the result."""
    from rtproof import report

    folder.mkdir(parents=True)
    (folder / PAGE).write_bytes(report.render("html", document.title, document.page))
    (folder / "table.md").write_bytes(report.render("markdown", document.title, document.readme))
    (folder / "result.json").write_bytes(document.json)
    for result in ran.results:
        if result.kept:
            shutil.copytree(result.kept.folder, folder / "cells" / result.cell.slug)
    click.echo(document.json if as_json else report.render("text", document.title, document.terminal), nl=False)
    click.echo(f"\npage: {folder / PAGE}", err=as_json)
