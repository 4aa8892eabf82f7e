# SPDX-License-Identifier: Apache-2.0
"""A profile in guests: every cell on every system, in the first of its ways that can run there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtproof import units
from rtproof.analysis.analyse import analyse
from rtproof.analysis.model import Requirement
from rtproof.errors import UserError
from rtproof.lab.cells import REFUSAL, Cell, Load, Setting, System
from rtproof.lab.matrix import Ran, Result
from rtproof.lab.modules import OURS
from rtproof.lab.systems import Named, needs_own_module
from rtproof.profiles import CellPlan, Profile, Way, run_options
from rtproof.profiles.choose import with_settings
from rtproof.profiles.model import LOAD
from rtproof.profiles.plan import option_words
from rtproof.record import rundir
from rtproof.report.campaign import Outcome
from rtproof.report.campaign.asked import requirements
from rtproof.vm.kernel import Kernel
from rtproof.vm.modules import has

Resolve = Callable[[Sequence[str]], Iterable[str]]
"""What names of loads become on the agent's command line."""
PAIR = "veth"
"""The kernel's module of the device that joins two network namespaces; which loads want it is known to these only."""


@dataclass(frozen=True)
class Trial:
    """A cell of a profile on a system, and how it came out. way: the number of the one that was taken last."""

    system: System
    plan: CellPlan
    way: int = 0
    passed: tuple[tuple[Way, str], ...] = ()
    result: Result | None = None

    @property
    def slug(self) -> str:
        """A name for a folder."""
        return f"{self.system.name}__{self.plan.key}".replace(" ", "_").replace("/", "_")

    @property
    def link(self) -> str:
        """Where its own report is, from the page."""
        return f"cells/{self.slug}.html"


@dataclass(frozen=True)
class Bench:
    """What trials need. run: runs cells, in their order; agents: the agent's program file by architecture."""

    run: Callable[[list[Cell]], Ran]
    agents: Mapping[str, Path]
    resolve: Resolve


def for_guests(profile: Profile, given: Mapping[str, str]) -> Profile:
    """The same with what a guest has in place of what a user would name. given: what this one did name."""
    return with_settings(profile, {**profile.guest.settings, **given})


def needs_our_module(profile: Profile) -> bool:
    """For a probe, or for the hardware that stands in for the article's."""
    ways = [_probe(plan, way) for plan in profile.cells for way in plan.ways]
    return OURS in profile.guest.modules or any(map(needs_own_module, ways))


def with_hardware(kernels: Sequence[Named], profile: Profile) -> list[Named]:
    """The kernels with the modules of their own that the profile wishes for guests."""
    return [replace(each, modules=(*each.modules, *modules_of(each.kernel, profile))) for each in kernels]


def modules_of(kernel: Kernel, profile: Profile) -> list[str]:
    """What the profile wishes of a kernel, as far as that comes with it."""
    return [name for name in (PAIR, *profile.guest.modules) if name != OURS and has(kernel, name)]


def conduct(profile: Profile, systems: Sequence[System], bench: Bench) -> list[Trial]:
    """Every cell on every system, cells in the profile's order; what the agent refuses is tried in the next way."""
    trials = [Trial(system, plan) for plan in profile.cells for system in systems]
    trials = [_without_programs(trial, bench.resolve) for trial in trials]
    while to_run := [at for at, trial in enumerate(trials) if trial.result is None]:
        ran = bench.run([_cell(trials[at], bench, profile) for at in to_run])
        for at, result in zip(to_run, ran.results, strict=True):
            trials[at] = _without_programs(_after(trials[at], result), bench.resolve)
    return trials


def outcomes(profile: Profile, trials: Sequence[Trial]) -> list[Outcome]:
    """The trials as the page takes them."""
    asked = requirements(profile.claims)
    return [_outcome(trial, asked) for trial in trials]


def _outcome(trial: Trial, asked: tuple[Requirement, ...]) -> Outcome:
    result = trial.result
    if result is None or result.kept is None or result.failure:
        why = result.failure if result else "it was not run"
        return Outcome(trial.system.name, trial.plan, passed=trial.passed, failure=why)
    analysis = analyse(rundir.open_run(result.kept.folder).record, asked, 1)
    way = trial.plan.ways[trial.way]
    return Outcome(trial.system.name, trial.plan, analysis, way, trial.passed, link=trial.link)


def _after(trial: Trial, result: Result) -> Trial:
    if not result.failure.startswith(REFUSAL) or _is_last(trial):
        return replace(trial, result=result)
    return _passed(trial, result.failure.removeprefix(REFUSAL))


def _without_programs(trial: Trial, resolve: Resolve) -> Trial:
    """On to the first of the ways left that a guest can run; the last one is not passed over."""
    if trial.result or _is_last(trial):
        return trial
    try:
        _loads(trial.plan, trial.plan.ways[trial.way], resolve)
    except UserError as problem:
        return _without_programs(_passed(trial, str(problem)), resolve)
    return trial


def _is_last(trial: Trial) -> bool:
    return trial.way + 1 == len(trial.plan.ways)


def _passed(trial: Trial, why: str) -> Trial:
    return replace(trial, way=trial.way + 1, passed=(*trial.passed, (trial.plan.ways[trial.way], why)))


def _cell(trial: Trial, bench: Bench, profile: Profile) -> Cell:
    way = trial.plan.ways[trial.way]
    agent = bench.agents[trial.system.machine.kernel.arch]
    load = Load(trial.plan.key, tuple(_loads(trial.plan, way, bench.resolve)))
    return Cell(trial.system, load, _setting(trial.plan, way, profile), agent)


def _setting(plan: CellPlan, way: Way, profile: Profile) -> Setting:
    options: dict[str, Any] = run_options(plan, way)
    warmup_ns = units.parse_duration(options.pop("warmup", "1s"))
    for name in ("period", "duration", "samples", LOAD):
        options.pop(name, None)
    probe = options.pop("probe", "timer")
    more = tuple(word for name, value in options.items() for word in option_words(f"--{name.replace('_', '-')}", value))
    limits_ns = tuple(dict.fromkeys(claim.limit_ns for claim in profile.claims))
    return Setting(probe, plan.period_ns, plan.length_ns, warmup_ns, more, limits_ns, profile.guest.setup)


def _loads(plan: CellPlan, way: Way, resolve: Resolve) -> list[str]:
    """As the agent names them. UserError for programs, of which a guest has none."""
    words = iter(resolve(run_options(plan, way).get(LOAD, ())))
    found = []
    for option, value in zip(words, words, strict=True):
        if option != "--load":
            raise UserError(f"the load {value.partition(':')[0]!r} is a program, and guests have none of these")
        found.append(value)
    return found


def _probe(plan: CellPlan, way: Way) -> str:
    return str(run_options(plan, way).get("probe", "timer"))
