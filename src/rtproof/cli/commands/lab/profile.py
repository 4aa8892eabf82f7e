# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab profile``: an article's experiment on real kernels in virtual time."""

import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import campaign, complete, laboratory, measuring, profiled, results, types
from rtproof.cli.laboratory import JOBS, OUTPUT
from rtproof.cli.options import once

if TYPE_CHECKING:
    from rtproof.lab.cells import Cell, System
    from rtproof.lab.experiment import Trial
    from rtproof.lab.matrix import Ran
    from rtproof.profiles import Profile
    from rtproof.report.blocks import Section

KERNELS = ("debian-6.1-rt", "debian-6.1")
DURATION = "5s"


@click.command("profile")
@click.argument("name", metavar="NAME|FILE", shell_complete=complete.profiles)
@laboratory.given(
    click.option(
        "--kernel",
        "kernels",
        multiple=True,
        metavar="NAME|IMAGE",
        default=KERNELS,
        help=f"{laboratory.KERNEL_HELP} Repeatable (default {', '.join(KERNELS)}).",
    ),
    click.option(
        "--preempt",
        "preempts",
        multiple=True,
        type=click.Choice(["none", "voluntary", "full", "lazy"]),
        help="Preemption model, for the kernels that have it; repeatable (default none, or the article's).",
    ),
    click.option("--duration", type=types.LENGTH, help=f"How long to measure in a cell, virtual (default {DURATION})."),
    click.option("--samples", type=types.count(2**62), metavar="N", help="Measure so many activations instead."),
    click.option("--set", "settings", type=types.KEY_VALUE, multiple=True, help="As of 'rtproof run --profile'."),
    click.option(
        "--load",
        multiple=True,
        metavar="NAME",
        shell_complete=complete.loads,
        help="Disturb with this in every cell, in place of the profile's loads; repeatable.",
    ),
    click.option("--module", type=laboratory.PATH, multiple=True, metavar="FILE", help="rtproof.ko for own images."),
    JOBS,
    *OUTPUT,
)
@click.pass_context
def command(ctx: click.Context, /, output: Path | None, as_json: bool, jobs: int | None, **values: Any) -> None:
    """Repeat an article's experiment on real kernels in guests, in virtual time.

    Every cell of the profile on every kernel, beside what the article published. The figures count instructions: what
    can be compared with the article is who is late and who is not, never by how much. Finished cells are kept and not
    run again. Where a guest has no such hardware, something else stands for it and the page says so.

    Exit codes: 0; 1, 3 or 4 as of the worst verdict, where the profile has a limit; 2 if a cell failed.

    \b
    rtproof lab profile akamina --duration 20s
    """
    from rtproof import loads
    from rtproof.lab import experiment
    from rtproof.report import campaign as page

    profile = _profile(values)
    article = profiled.article_of(profile)
    folder = laboratory.new_folder(output, f"lab-{profile.name}")
    rounds = _Rounds(jobs, ctx.obj or ("rtproof", "lab", "profile", values["name"]))
    systems = _systems(profile, values)
    bench = experiment.Bench(rounds.run, laboratory.agents(systems), loads.resolve)
    trials = experiment.conduct(profile, systems, bench)
    outcomes = experiment.outcomes(profile, trials)
    _keep_cells(folder, trials)
    more = page.More(command=shlex.join(rounds.typed))
    found = campaign.Found(profile, outcomes, article, more)
    campaign.publish(found, folder, as_json, [_made(rounds, trials)])
    ctx.exit(page.exit_code(outcomes))


@dataclass
class _Rounds:
    """Runs cells, and remembers them: what is refused in one way is run again in another."""

    jobs: int | None
    typed: tuple[str, ...]
    ran: "list[Ran]" = field(default_factory=list)

    def run(self, cells: "list[Cell]") -> "Ran":
        self.ran.append(laboratory.run(cells, self.jobs, self.typed))
        return self.ran[-1]


def _profile(values: dict[str, Any]) -> "Profile":
    """The profile with what the user asked for in it."""
    from rtproof import profiles
    from rtproof.lab import experiment
    from rtproof.profiles import choose

    measuring.refuse_two_lengths(values)
    own = profiles.load(values["name"])
    found = experiment.for_guests(own, once(f"the profile {own.name}", values["settings"]))
    given = {name: values[name] for name in ("samples", "duration", "load") if values[name]}
    if not values["load"]:
        found = choose.with_loads(found, found.guest.load)
    if not values["samples"]:
        given.setdefault("duration", DURATION)
    return choose.ready(choose.with_options(found, given))


def _systems(profile: "Profile", values: dict[str, Any]) -> "tuple[System, ...]":
    from rtproof.lab import experiment, systems

    names = list(dict.fromkeys(values["kernels"]))
    probe = systems.PROBE_OF_MODULE if experiment.needs_our_module(profile) else ""
    kernels = experiment.with_hardware(laboratory.named(names, values["module"], probe), profile)
    preempts = list(dict.fromkeys(values["preempts"])) or profile.guest.preempt
    return systems.systems(kernels, preempts)


def _made(rounds: _Rounds, trials: "list[Trial]") -> "Section":
    from rtproof.lab import page

    cells = [result.cell for ran in rounds.ran for result in ran.results]
    read = [(trial.system, trial.result.reading if trial.result else None) for trial in trials]
    return page.made_of(laboratory.making(cells, rounds.typed), read, rounds.ran)


def _keep_cells(folder: Path, trials: "list[Trial]") -> None:
    """Each cell as a run folder, and its report beside it."""
    for trial in trials:
        if trial.result and trial.result.kept:
            place = folder / "cells" / trial.slug
            shutil.copytree(trial.result.kept.folder, place)
            results.write_new(folder / trial.link, results.read_run(place).report("html"))
