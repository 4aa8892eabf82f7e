# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab profile``: every cell of a profile in guests, on every system.

Each cell is measured in the first of its ways that can run in the guest.
"""

import json
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from rtproof import loads, profiles
from rtproof.core import files, units
from rtproof.core.errors import TargetError, UserError
from rtproof.core.plugins import options_once
from rtproof.experiment import campaign_folder, exported_files, guest_runner, profile_setup, run_request, stored_runs
from rtproof.experiment.campaign_folder import StoredCellEnd
from rtproof.experiment.stored_runs import CELLS_FOLDER
from rtproof.judge.analyse import analyse
from rtproof.lab import systems
from rtproof.lab.cell_runner import CellResult, CellResults
from rtproof.lab.guest_cell import REFUSAL_PREFIX, CellSetting, GuestCell, GuestLoad, GuestSystem
from rtproof.lab.systems import ONE_PROCESSOR, GuestProcessors
from rtproof.profiles import CellPlan, Profile, Way, run_options
from rtproof.profiles.profile import LOAD, cell_as_run, option_words, with_loads, with_options, with_parameters
from rtproof.record import run_folder
from rtproof.record.requirement import Requirement
from rtproof.report import render
from rtproof.report.blocks import Section, Table
from rtproof.report.pages import campaign_outcomes, cell_explanation_page, kernel_comparison_page
from rtproof.report.pages.campaign_outcomes import CellOutcome, requirements_of_limits
from rtproof.report.text_table import fitted_to_terminal
from rtproof.vm.machine import check_turns

EXPLANATIONS = "explanations.json"
ResolveLoadNames = Callable[[Sequence[str]], Iterable[str]]
"""Turns names of loads into the words of the agent's command line."""


@dataclass(frozen=True)
class GuestTrial:
    """A cell of a profile on a system, and its result. way: index of the way that was tried last."""

    system: GuestSystem
    plan: CellPlan
    way: int = 0
    passed: tuple[tuple[Way, str], ...] = ()
    result: CellResult | None = None


@dataclass(frozen=True)
class GuestBench:
    """What trials need. run: runs cells, in their order; agents: the agent's program file by architecture.

    measured_cpus: the CPUs on which cells measure that name none of their own; "" for all.
    """

    run: Callable[[list[GuestCell]], CellResults]
    agents: Mapping[str, Path]
    resolve: ResolveLoadNames
    measured_cpus: str = ""


def run_trials(profile: Profile, systems: Sequence[GuestSystem], bench: GuestBench) -> list[GuestTrial]:
    """Measure every cell on every system, in the profile's order.

    A cell that the agent refuses is tried in its next way.
    """
    trials = [GuestTrial(system, plan) for plan in profile.cells for system in systems]
    trials = [_without_programs(trial, bench.resolve) for trial in trials]
    while to_run := [at for at, trial in enumerate(trials) if trial.result is None]:
        ran = bench.run([_trial_cell(trials[at], bench, profile) for at in to_run])
        for at, result in zip(to_run, ran.results, strict=True):
            trials[at] = _without_programs(_trial_after(trials[at], result), bench.resolve)
    return trials


def trial_outcomes(profile: Profile, trials: Sequence[GuestTrial]) -> list[CellOutcome]:
    """The trials as the outcomes that the page shows."""
    asked = requirements_of_limits(profile.claims)
    return [_trial_outcome(trial, asked) for trial in trials]


def _trial_outcome(trial: GuestTrial, asked: tuple[Requirement, ...]) -> CellOutcome:
    result = trial.result
    if result is None or result.kept is None or result.failure:
        why = result.failure if result else "it was not run"
        return CellOutcome(trial.system.name, trial.plan, passed=trial.passed, failure=why)
    analysis = analyse(run_folder.open_run(result.kept.folder).record, asked, 1)
    way = trial.plan.ways[trial.way]
    plan = cell_as_run(trial.plan, way)
    link = campaign_folder.cell_link(trial.plan.key, trial.system.name)
    run = campaign_folder.cell_run(trial.plan.key, trial.system.name)
    return CellOutcome(trial.system.name, plan, analysis, way, trial.passed, link=link, run=run)


def _trial_after(trial: GuestTrial, result: CellResult) -> GuestTrial:
    if not result.failure.startswith(REFUSAL_PREFIX) or _is_last_way(trial):
        return replace(trial, result=result)
    return _next_way(trial, result.failure.removeprefix(REFUSAL_PREFIX))


def _without_programs(trial: GuestTrial, resolve: ResolveLoadNames) -> GuestTrial:
    """The trial in the first of its remaining ways that a guest can run. The last way is never skipped."""
    if trial.result or _is_last_way(trial):
        return trial
    try:
        _agent_loads(trial.plan, trial.plan.ways[trial.way], resolve)
    except UserError as problem:
        return _without_programs(_next_way(trial, str(problem)), resolve)
    return trial


def _is_last_way(trial: GuestTrial) -> bool:
    return trial.way + 1 == len(trial.plan.ways)


def _next_way(trial: GuestTrial, why: str) -> GuestTrial:
    return replace(trial, way=trial.way + 1, passed=(*trial.passed, (trial.plan.ways[trial.way], why)))


def _trial_cell(trial: GuestTrial, bench: GuestBench, profile: Profile) -> GuestCell:
    way = trial.plan.ways[trial.way]
    agent = bench.agents[trial.system.machine.kernel.arch]
    load = GuestLoad(trial.plan.key, tuple(_agent_loads(trial.plan, way, bench.resolve)))
    return GuestCell(trial.system, load, _cell_setting(trial.plan, way, profile, bench.measured_cpus), agent)


def _cell_setting(plan: CellPlan, way: Way, profile: Profile, measured_cpus: str) -> CellSetting:
    options: dict[str, Any] = run_options(plan, way)
    if measured_cpus and options.get("policy") != "deadline":  # such threads can't be bound
        options.setdefault("cpus", measured_cpus)
    warmup_ns = units.parse_duration(options.pop("warmup", "1s"))
    for name in ("period", "duration", "samples", LOAD):
        options.pop(name, None)
    probe = options.pop("probe", "timer")
    more = tuple(word for name, value in options.items() for word in option_words(f"--{name.replace('_', '-')}", value))
    limits_ns = tuple(dict.fromkeys(claim.limit_ns for claim in profile.claims))
    return CellSetting(probe, plan.period_ns, plan.length_ns, warmup_ns, more, limits_ns, profile.guest.setup)


def _agent_loads(plan: CellPlan, way: Way, resolve: ResolveLoadNames) -> list[str]:
    """The loads as the agent names them. UserError for a program: a guest has no programs."""
    words = iter(resolve(run_options(plan, way).get(LOAD, ())))
    found = []
    for option, value in zip(words, words, strict=True):
        if option != "--load":
            name = loads.load_name(value.split()[0])
            raise UserError(f"the load {name!r} is a program, and guests have none of these")
        found.append(value)
    return found


@dataclass(frozen=True)
class GuestCampaignRequest:
    """What the user asked for.

    typed: the command. kind: ends the folder's name if the user names none. jobs: guests at once (default one per CPU).
    explain: also say why the largest latency of each system was so large. processors: of each guest. measured_cpus: a
    list of those on which cells measure that name none of their own; "" for all.
    """

    typed: tuple[str, ...]
    kind: str
    output: Path | None
    as_json: bool
    jobs: int | None
    explain: bool = False
    processors: GuestProcessors = ONE_PROCESSOR
    measured_cpus: str = ""


@dataclass(frozen=True)
class CampaignPart:
    """Cells of a profile that run on the same systems."""

    profile: Profile
    systems: tuple[GuestSystem, ...]


def profile_for_guests(
    name: str, settings: tuple[tuple[str, str], ...], options: Mapping[str, Any], duration: str
) -> Profile:
    """The profile with what the user asked for in it. UserError where that makes no sense.

    options: those that stand on the command line; duration: of a cell, unless they say how long to measure.
    """
    run_request.refuse_two_lengths(options)
    own = profiles.load(name)
    found = guest_runner.for_guests(own, options_once(f"the profile {own.name}", settings))
    given = {name: options[name] for name in ("samples", "duration", "load", "trace") if options[name]}
    if not options["load"]:
        found = with_loads(found, found.guest.load)
    if not options["samples"]:
        given.setdefault("duration", duration)
    return with_parameters(with_options(found, given))


def run_on_kernels(
    profile: Profile,
    kernels: Sequence[str],
    preempts: Sequence[str],
    modules: tuple[Path, ...],
    asked: GuestCampaignRequest,
) -> int:
    """Measure the profile on every kernel with every preemption model; the exit code.

    kernels: names or images; preempts: by default those of the profile; modules: ours for images of the user's.
    """
    profile_setup.profile_requirements(profile, ())
    named = guest_runner.profile_kernels(kernels, modules, profile)
    found = systems.systems(named, list(dict.fromkeys(preempts)) or profile.guest.preempt, processors=asked.processors)
    for system in found:
        check_turns(system.machine)
    return run_guest_campaign(profile, [CampaignPart(profile, found)], asked)


def run_guest_campaign(profile: Profile, parts: Sequence[CampaignPart], asked: GuestCampaignRequest) -> int:
    """Measure every part, leave the page, print the result; the exit code. profile: with the cells of all parts."""
    article = profile_setup.published_article(profile)
    folder = run_request.new_folder(asked.output, asked.kind)
    rounds: list[CellResults] = []

    def run(cells: list[GuestCell]) -> CellResults:
        rounds.append(guest_runner.run_guest_cells(cells, asked.jobs, asked.typed))
        return rounds[-1]

    agents = guest_runner.agents_by_architecture([system for part in parts for system in part.systems])
    bench = GuestBench(run, agents, loads.resolve, asked.measured_cpus)
    trials = [trial for part in parts for trial in run_trials(part.profile, part.systems, bench)]
    trials = [_with_run_in(folder, trial) for trial in trials]
    outcomes = [
        _with_files(profile, outcome, _run_of(folder, trial))
        for trial, outcome in zip(trials, trial_outcomes(profile, trials), strict=True)
    ]
    ended = tuple(_keep_end(folder, trial, outcome) for trial, outcome in zip(trials, outcomes, strict=True))
    typed, making = shlex.join(asked.typed), _making_tables(rounds, trials, asked.typed)
    stored = campaign_folder.StoredCampaign(typed, profile, article, "", (), ended, making=making)
    campaign_folder.store_campaign(folder, stored)
    more = campaign_outcomes.CampaignExtras(command=typed)
    found = campaign_folder.CampaignDocument(profile, outcomes, article, more, making)
    campaign_folder.publish_campaign(found, folder, asked.as_json)
    if asked.explain:
        explain_largest(trials, folder, as_json=asked.as_json)
    return campaign_outcomes.campaign_exit_code(outcomes)


def explain_largest(trials: Sequence[GuestTrial], folder: Path, *, as_json: bool) -> None:
    """Explain the largest latency of each system, keep the explanations in the folder, and print them.

    A cell that cannot be explained has the reason in place of a cause.
    """
    found, failures = [], []
    for result in _largest_of_systems(trials):
        try:
            found.append(guest_runner.explain_result(result))
        except (UserError, TargetError) as problem:
            failures.append(f"{result.cell.name}: {problem}")
    documents = [cell_explanation_page.explanation_dict(each) for each in found]
    content = json.dumps({"explanations": documents, "failures": failures}, indent=2)
    files.write_whole(folder / EXPLANATIONS, f"{content}\n".encode())
    section = Section("why", "Why", tuple(cell_explanation_page.why_blocks(found, failures)))
    with fitted_to_terminal():
        click.echo(render("text", "The largest latency of each kernel", [section]), nl=False, err=as_json)


def _largest_of_systems(trials: Sequence[GuestTrial]) -> list[CellResult]:
    largest: dict[GuestSystem, CellResult] = {}
    for trial in trials:
        result = trial.result
        if result is None or result.reading is None or result.kept is None:
            continue
        before = largest.get(trial.system)
        if before is None or before.reading is None or result.reading.max_ns > before.reading.max_ns:
            largest[trial.system] = result
    return list(largest.values())


def _making_tables(rounds: list[CellResults], trials: list[GuestTrial], typed: tuple[str, ...]) -> tuple[Table, ...]:
    """How guests measured it. rounds: a refused cell runs again, in its next way, with all of its round."""
    results = tuple(result for ran in rounds for result in ran.results)
    whole = CellResults(results, sum(ran.host_s for ran in rounds))
    read = [(trial.system, trial.result.reading if trial.result else None) for trial in trials]
    cost = kernel_comparison_page.cost_rows(whole.fresh, len(whole.kept) - whole.fresh, whole.host_s, whole.cost)
    making = guest_runner.provenance([result.cell for result in results], typed)
    return kernel_comparison_page.making_of_rounds(making, read, cost)


def _run_of(folder: Path, trial: GuestTrial) -> Path:
    return folder / CELLS_FOLDER / campaign_folder.cell_name(trial.plan.key, trial.system.name)


def _with_run_in(folder: Path, trial: GuestTrial) -> GuestTrial:
    """The trial with a copy of its run, since the cache may be cleared."""
    if trial.result is None or trial.result.kept is None:
        return trial
    place = _run_of(folder, trial)
    shutil.copytree(trial.result.kept.folder, place)
    return replace(trial, result=replace(trial.result, kept=replace(trial.result.kept, folder=place)))


def _with_files(profile: Profile, outcome: CellOutcome, run: Path) -> CellOutcome:
    """The outcome with the files that the article kept. Those that cannot be written are printed."""
    kept, sentences = exported_files.keep_files(profile, outcome, run)
    for sentence in sentences:
        if sentence.startswith(exported_files.NOT_WRITTEN):
            guest_runner.print_progress(sentence)
    return kept


def _keep_end(folder: Path, trial: GuestTrial, outcome: CellOutcome) -> StoredCellEnd:
    """Write the cell's report beside its run, with the verdict that the page shows; how the cell ended."""
    place = _run_of(folder, trial)
    if outcome.analysis:
        found = stored_runs.AnalysedRun(outcome.analysis, run_folder.open_run(place).info)
        stored_runs.write_new_file(folder / outcome.link, found.report("html"))
    return campaign_folder.stored_cell_end(outcome, place, trial.system.name)
