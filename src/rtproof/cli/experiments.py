# SPDX-License-Identifier: Apache-2.0
"""A profile's cells in guests, for the commands of the lab that run one: from its systems to the page."""

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rtproof.cli import campaignpage, laboratory, profiled, results

if TYPE_CHECKING:
    from rtproof.lab.cells import Cell, System
    from rtproof.lab.experiment import Trial
    from rtproof.lab.matrix import Ran
    from rtproof.lab.systems import Named
    from rtproof.profiles import Profile
    from rtproof.report.blocks import Section


@dataclass(frozen=True)
class Asked:
    """typed: the command; kind: of its folder, where the user names none; jobs: guests at once (one a CPU)."""

    typed: tuple[str, ...]
    kind: str
    output: Path | None
    as_json: bool
    jobs: int | None


@dataclass(frozen=True)
class Part:
    """Cells of a profile that are run on the same systems."""

    profile: "Profile"
    systems: "tuple[System, ...]"


@dataclass
class _Rounds:
    """Runs cells, and remembers them: what is refused in one way is run again in another."""

    jobs: int | None
    typed: tuple[str, ...]
    ran: "list[Ran]" = field(default_factory=list)

    def run(self, cells: "list[Cell]") -> "Ran":
        self.ran.append(laboratory.run(cells, self.jobs, self.typed))
        return self.ran[-1]


def kernels(names: Sequence[str], modules: tuple[Path, ...], profile: "Profile") -> "list[Named]":
    """Kernels by name, each once, with the modules that the profile needs. modules: ours for images of the user's."""
    from rtproof.lab import experiment, systems

    probe = systems.PROBE_OF_MODULE if experiment.needs_our_module(profile) else ""
    return experiment.with_hardware(laboratory.named(list(dict.fromkeys(names)), modules, probe), profile)


def run(profile: "Profile", parts: Sequence[Part], asked: Asked) -> int:
    """Measure every part, leave the page, print the result; the exit code. profile: with the cells of all parts."""
    from rtproof import loads
    from rtproof.lab import experiment
    from rtproof.report import campaign as page

    article = profiled.article_of(profile)
    folder = laboratory.new_folder(asked.output, asked.kind)
    rounds = _Rounds(asked.jobs, asked.typed)
    agents = laboratory.agents([system for part in parts for system in part.systems])
    bench = experiment.Bench(rounds.run, agents, loads.resolve)
    trials = [trial for part in parts for trial in experiment.conduct(part.profile, part.systems, bench)]
    outcomes = experiment.outcomes(profile, trials)
    _keep_cells(folder, trials)
    more = page.More(command=shlex.join(asked.typed))
    found = campaignpage.Found(profile, outcomes, article, more, [_made(rounds, trials)])
    campaignpage.publish(found, folder, asked.as_json)
    return page.exit_code(outcomes)


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
