# SPDX-License-Identifier: Apache-2.0
"""What the commands of the lab share: their options, and the way from these to finished cells."""

import hashlib
import os
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof import __version__, units
from rtproof.cli import about, complete, types
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.lab.cells import Setting
    from rtproof.lab.comparison import Comparison
    from rtproof.lab.matrix import Matrix, Result
    from rtproof.lab.page import Making
    from rtproof.lab.systems import Named

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
KERNEL_HELP = "A name of 'rtproof lab kernels', or an image of your own: IMAGE or IMAGE:MODULES (lib/modules/RELEASE)."
LOAD_HELP = "idle, or a load of the agent, with options (dd:mib=8); + joins several."
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
RUNNING = (
    click.option(
        "--shifts",
        type=types.count(1000),
        default=1,
        metavar="N",
        help="Measure each cell N times, begun at different moments (default 1).",
    ),
    click.option("--jobs", type=types.count(1024), metavar="N", help="Guests at once (default: one per CPU)."),
)


def given(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Give a command several options, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def jobs(wanted: int | None) -> int:
    return wanted or len(os.sched_getaffinity(0))


def say(sentence: str) -> None:
    """What goes on, beside the result."""
    click.echo(sentence, err=True)


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
    lengths = {f"{name}_ns": units.parse_duration(values.pop(name)) for name in ("period", "duration", "warmup")}
    return Setting(values.pop("probe"), more=more, **lengths)


def agents(systems: "Sequence[Any]") -> dict[str, Path]:
    """The agent for each architecture, built if there is none yet."""
    from rtproof.agents.find import find_agent

    return {arch: find_agent(arch) for arch in dict.fromkeys(system.machine.kernel.arch for system in systems)}


def refuse_unknown_loads(names: "Sequence[str]") -> None:
    """Before anything is booted. Of agents for other machines it is not known what they have."""
    from rtproof.agents.find import ask, find_agent

    rows = [line.split("\t") for line in ask(find_agent(), "list").splitlines()]
    known = [row[1] for row in rows if row[0] == "load"]
    for name in names:
        if name.partition(":")[0] not in known:
            raise UserError(f"there is no load {name.partition(':')[0]!r}; there are: idle, {', '.join(known)}")


def run(matrix: "Matrix", at_once: int, command: tuple[str, ...]) -> "tuple[Comparison, list[Result]]":
    """Run what is not in the cache, with a line for each cell that ends. Ctrl-C ends the program."""
    from rtproof.lab import cells
    from rtproof.lab.cache import Cache
    from rtproof.lab.matrix import Interrupted, Runner
    from rtproof.lab.matrix import run as run_matrix
    from rtproof.vm.places import lab_cache

    infos = {arch: _info(arch, agent, command) for arch, agent in matrix.agents.items()}
    runner = Runner(cells.boot, partial(cells.measure, infos))
    total, count = len(matrix.cells()), iter(range(1, 1 << 62))
    try:
        return run_matrix(
            matrix, Cache(lab_cache() / "cells"), runner, at_once, lambda result: _tell(next(count), total, result)
        )
    except Interrupted as interrupted:
        say(f"rtproof: {interrupted.sentence}")
        raise click.exceptions.Exit(130) from None


def _tell(at: int, total: int, result: "Result") -> None:
    from rtproof.analysis.phrases import value

    if result.reading is None or result.kept is None:
        say(f"[{at}/{total}] {result.cell.name}: failed: {result.failure}")
        return
    how = f"{result.kept.cost.host_s:.1f} s" if result.kept.fresh else "cached"
    say(f"[{at}/{total}] {result.cell.name}: max {value(result.reading.max_ns)} ({how})")


def _info(arch: str, agent: Path, command: tuple[str, ...]) -> Any:
    from rtproof.agents.architectures import architecture
    from rtproof.lab.comparison import VIRTUAL_TIME

    asked = about.Asked(command, "qemu", None, VIRTUAL_TIME)
    return about.about(asked, architecture(arch).machines[0], agent)


def making(matrix: "Matrix", command: tuple[str, ...]) -> "Making":
    """How a comparison came about."""
    from rtproof.lab.page import Making
    from rtproof.vm.qemu import version_of

    qemu = {system.machine.kernel.arch: version_of(system.machine) for system in matrix.systems}
    digests = {arch: hashlib.sha256(agent.read_bytes()).hexdigest() for arch, agent in matrix.agents.items()}
    return Making(shlex.join(command), __version__, qemu, digests)
