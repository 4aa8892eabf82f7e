# SPDX-License-Identifier: Apache-2.0
"""Results of the programs that a profile names beside its own cells, such as Xenomai's latency, where they are here."""

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof.errors import RtproofError
from rtproof.printable import clean

if TYPE_CHECKING:
    from rtproof.profiles import Profile, Program

FOLDER = "given"


def results(profile: "Profile", agent: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Label and file of each that could be run, as long as a cell and under its loads. Says why another could not."""
    for number, program in enumerate(profile.programs, 1):
        lack = missing(program)
        if lack:
            click.echo(clean(f"rtproof: {program.command[0]} ({program.label}) was not run: {lack}"), err=True)
            continue
        try:
            yield program.label, _run(profile, program, agent, folder / FOLDER / f"{number}.txt")
        except RtproofError as problem:
            click.echo(clean(f"rtproof: {program.label}: {problem}"), err=True)


def missing(program: "Program") -> str:
    """What keeps it from running here; "" if nothing does."""
    if program.needs and not Path(program.needs).exists():
        return f"there is no {program.needs}"
    return "" if shutil.which(program.command[0]) else f"there is no program {program.command[0]!r}"


def _run(profile: "Profile", program: "Program", agent: Path, output: Path) -> Path:
    from rtproof import loads
    from rtproof.run import foreign

    cell = profile.cells[0]
    length_s = max(1, math.ceil(cell.length_ns / 1e9))
    command = [word.replace("{seconds}", str(length_s)) for word in program.command]
    click.echo(clean(f"{' '.join(command)} ({program.label}), {length_s} s"), err=True)
    output.parent.mkdir(exist_ok=True)
    with foreign.loaded(agent, loads.resolve(cell.loads)):
        foreign.run(command, length_s, output)
    return output
