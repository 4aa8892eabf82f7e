# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab profile`` and ``lab ten-ms``: the cells of a profile in guests, each on its systems.

Each cell is measured in the first of its ways that can run in the guest.
"""

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from rtproof import loads, profiles
from rtproof.core import files, units
from rtproof.core.errors import UserError
from rtproof.core.plugins import option_words
from rtproof.experiment import campaign_folder, guest_runner, profile_campaign, run_request
from rtproof.experiment.campaign_folder import CampaignDocument, StoredCampaign
from rtproof.experiment.run_request import QEMU_TARGET, RunRequest
from rtproof.experiment.target_runner import CellEnd
from rtproof.lab import systems
from rtproof.lab.cell_runner import CellResult, CellResults
from rtproof.lab.guest_cell import REFUSAL_PREFIX, CellSetting, GuestCell, GuestLoad, GuestSystem
from rtproof.profiles import CellPlan, Profile, Way, run_options
from rtproof.profiles.profile import LOAD
from rtproof.report import render
from rtproof.report.blocks import Section, Table
from rtproof.report.pages import cell_explanation_page, kernel_comparison_page
from rtproof.report.pages.campaign_cells import CellOutcome
from rtproof.report.text_table import fitted_to_terminal
from rtproof.summary import loops
from rtproof.vm.machine import check_turns

EXPLANATIONS = "explanations.json"


Trial = tuple[CellPlan, GuestSystem]
"""A cell of a profile, and the system that it is measured on."""


def run_trials(
    trials: Sequence[Trial],
    cell_of: Callable[[CellPlan, GuestSystem, Way], GuestCell],
    run: Callable[[list[GuestCell]], CellResults],
) -> list[tuple[CellResult, tuple[str, ...]]]:
    """Measure every trial. One that a guest or the agent refuses is tried in its next way.

    cell_of: the cell to run; UserError for a way that no guest can run. run: runs cells, in their order. Of each trial
    the last result, and why each way before could not be taken.
    """
    refused: list[list[str]] = [[] for _ in trials]
    results: list[CellResult | None] = [None] * len(trials)

    def cell(at: int) -> GuestCell:
        """In the first of the remaining ways that a guest can run. UserError if there is none."""
        plan, system = trials[at]
        while True:
            try:
                return cell_of(plan, system, plan.ways[len(refused[at])])
            except UserError as problem:
                if len(refused[at]) + 1 == len(plan.ways):
                    raise
                refused[at].append(str(problem))

    while to_run := [at for at, result in enumerate(results) if result is None]:
        for at, result in zip(to_run, run([cell(at) for at in to_run]).results, strict=True):
            if result.failure.startswith(REFUSAL_PREFIX) and len(refused[at]) + 1 < len(trials[at][0].ways):
                refused[at].append(result.failure.removeprefix(REFUSAL_PREFIX))
            else:
                results[at] = result
    return [(result, tuple(why)) for result, why in zip(results, refused, strict=True) if result]


def trial_cell(  # noqa: PLR0913, PLR0917 - what a cell is made of
    profile: Profile, agents: Mapping[str, Path], measured_cpus: str, plan: CellPlan, system: GuestSystem, way: Way
) -> GuestCell:
    """The cell of a trial. UserError if a load is a program: a guest has no programs.

    agents: the agent's program file by architecture. measured_cpus: the CPUs on which cells measure that name none of
    their own; "" for all.
    """
    options = run_options(plan, way)
    words = loads.resolve(options.pop(LOAD, ()))
    if "--program" in words:
        name = loads.load_name(words[words.index("--program") + 1].split()[0])
        raise UserError(f"the load {name!r} is a program, and guests have none of these")
    load = GuestLoad(plan.key, tuple(words[1::2]))
    setting = _cell_setting(plan, options, profile, measured_cpus)
    return GuestCell(system, load, setting, agents[system.machine.kernel.arch])


def _cell_setting(plan: CellPlan, options: dict[str, Any], profile: Profile, measured_cpus: str) -> CellSetting:
    if measured_cpus and options.get("policy") != "deadline":  # such threads can't be bound
        options.setdefault("cpus", measured_cpus)
    warmup_ns = units.parse_duration(options.pop("warmup", "1s"))
    for name in ("period", "duration", "samples"):
        options.pop(name, None)
    probe = options.pop("probe", "timer")
    more = tuple(word for name, value in options.items() for word in option_words(f"--{name.replace('_', '-')}", value))
    limits_ns = tuple(dict.fromkeys(claim.limit_ns for claim in profile.claims))
    return CellSetting(probe, plan.period_ns, plan.length_ns, warmup_ns, more, limits_ns, profile.guest.setup)


def profile_for_guests(options: Mapping[str, Any], duration: str) -> Profile:
    """The profile with what the user asked for in it. UserError where that makes no sense.

    options: those that stand on the command line; duration: of a cell, unless they say how long to measure.
    """
    run_request.refuse_two_lengths(options)
    given = {name: options[name] for name in ("samples", "duration", "load", "trace") if options[name]}
    if not options["samples"]:
        given.setdefault("duration", duration)
    asked = RunRequest((), QEMU_TARGET, profile=options["name"], settings=options["settings"], options=given)
    return profile_campaign.requested_profile(asked, in_guest=True)


def run_on_kernels(options: Mapping[str, Any], duration: str, typed: tuple[str, ...]) -> int:
    """Measure a profile on every kernel with every preemption model; the exit code.

    options: of ``rtproof lab profile``, by name. duration: as for ``profile_for_guests``. typed: the command.
    """
    processors = systems.chosen_processors(options)
    options = {**options, "measured_cpus": systems.measured_cpus(options["measured_cpus"], options["cpus"])}
    guest_runner.refuse_missing_cpus([GuestLoad(name, (name,)) for name in options["load"]], options["cpus"])
    profile = profile_for_guests(options, duration)
    profile_campaign.profile_requirements(profile, ())
    kernels = guest_runner.profile_kernels(options["kernels"], options["module"], profile)
    preempts = list(dict.fromkeys(options["preempts"])) or profile.guest.preempt
    found = systems.systems(kernels, preempts, processors=processors)
    for system in found:
        check_turns(system.machine)
    trials = [(plan, system) for plan in profile.cells for system in found]
    folder = run_request.new_folder(options["output"], f"lab-{profile.name}")
    return run_guest_campaign(profile, trials, folder, options, typed)


PLAIN_CELLS = ("other--idle", "other--stress")
"""Cells without a real-time policy, on the plain kernel. The article had PREEMPT_RT here too."""
RT_CELLS = ("fifo--stress", "fifo--stress-flood")
"""Cells with one, on PREEMPT_RT."""


def run_scenarios(options: Mapping[str, Any], typed: tuple[str, ...]) -> int:
    """Run every scenario of article 2, each on its kernel, and publish the campaign; the exit code.

    options: of ``rtproof lab ten-ms``, by name: kernels ``plain`` and ``rt``, preemption model of the plain one, our
    module for own images, cycles to count in each scenario, and those of ``run_guest_campaign``. UserError for a kernel
    that is not what its place needs.
    """
    whole = profiles.load("ten-ms").shortened(samples=in_all(options["counted"]))
    plain, rt = (guest_runner.profile_kernels([options[name]], options["module"], whole)[0] for name in ("plain", "rt"))
    if systems.is_rt(plain.kernel) or not systems.is_rt(rt.kernel):
        wrong, is_rt = (plain, "") if systems.is_rt(plain.kernel) else (rt, "not ")
        raise UserError(f"{wrong.name} is {is_rt}built with PREEMPT_RT: give another kernel")
    on_plain, on_rt = systems.systems([plain], [options["preempt"]]), systems.systems([rt], [])
    trials = [(whole.cell(key), system) for key in PLAIN_CELLS for system in on_plain]
    trials += [(whole.cell(key), system) for key in RT_CELLS for system in on_rt]
    profile = structs.replace(whole, cells=tuple(map(whole.cell, (*PLAIN_CELLS, *RT_CELLS))))
    return run_guest_campaign(profile, trials, run_request.new_folder(options["output"], "ten-ms"), options, typed)


def in_all(counted: int) -> int:
    """How many cycles a run has to have so that so many are counted.

    The first cycles are not counted; of a short run that is a tenth.
    """
    return counted + min(loops.IGNORE, -(-counted // (loops.SHORT_RUN - 1)))


def run_guest_campaign(
    profile: Profile, trials: Sequence[Trial], folder: Path, options: Mapping[str, Any], typed: tuple[str, ...]
) -> int:
    """Measure every trial, leave the page, print the result; the exit code. profile: with the cells of all trials.

    options: by name, as_json, jobs (guests at once, default one per CPU), explain (also say why the largest latency of
    each system was so large), and measured_cpus, as for ``trial_cell``.
    """
    article = profile_campaign.published_article(profile)
    rounds: list[CellResults] = []

    def run(cells: list[GuestCell]) -> CellResults:
        rounds.append(guest_runner.run_guest_cells(cells, options["jobs"], typed))
        return rounds[-1]

    agents = guest_runner.agents_by_architecture([system for _, system in trials])
    ended = run_trials(trials, partial(trial_cell, profile, agents, options.get("measured_cpus", "")), run)
    results = [result for result, _ in ended]
    making = _making_tables(rounds, results, typed)
    campaign = StoredCampaign(shlex.join(typed), profile, article, "", (), making=making)
    outcomes: list[CellOutcome] = []
    for (plan, system), (result, refused) in zip(trials, ended, strict=True):
        if result.folder is not None:  # The cache may be cleared.
            shutil.copytree(result.folder, folder / campaign_folder.cell_run(plan.key, system.name))
        if result.folder is None or result.failure:
            end = CellEnd(plan.key, refused=refused, failure=result.failure, system=system.name)
            outcome = campaign_folder.outcome_of_end(campaign, plan, end)
        else:
            end = CellEnd(plan.key, way=len(refused), refused=refused, system=system.name)
            end, outcome = campaign_folder.end_cell(folder, campaign, end, report=True)
        campaign = replace(campaign, cells=(*campaign.cells, end))
        outcomes.append(outcome)
    campaign_folder.store_campaign(folder, campaign)
    found = CampaignDocument(campaign, outcomes)
    campaign_folder.publish_campaign(found, folder, options["as_json"])
    if options.get("explain"):
        explain_largest(results, folder, options["jobs"], as_json=options["as_json"])
    return found.exit_code


def explain_largest(results: Sequence[CellResult], folder: Path, jobs: int | None, *, as_json: bool) -> None:
    """Explain the largest latency of each system, keep the explanations in the folder, and print them.

    A cell that cannot be explained has the reason in place of a cause.
    """
    of_systems: dict[GuestSystem, list[CellResult]] = {}
    for result in results:
        if result.reading:
            of_systems.setdefault(result.cell.system, []).append(result)
    found, failures = guest_runner.explain_results([*map(guest_runner.largest, of_systems.values())], jobs)
    documents = [cell_explanation_page.explanation_dict(each) for each in found]
    content = json.dumps({"explanations": documents, "failures": failures}, indent=2)
    files.write_whole(folder / EXPLANATIONS, f"{content}\n".encode())
    section = Section("why", "Why", tuple(cell_explanation_page.why_blocks(found, failures)))
    with fitted_to_terminal():
        click.echo(render("text", "The largest latency of each kernel", [section]), nl=False, err=as_json)


def _making_tables(rounds: list[CellResults], ended: list[CellResult], typed: tuple[str, ...]) -> tuple[Table, ...]:
    """How guests measured it. rounds: a refused cell runs again, in its next way, with all of its round."""
    whole = CellResults(tuple(result for ran in rounds for result in ran.results), sum(ran.host_s for ran in rounds))
    read = [(result.cell.system, result.reading) for result in ended]
    cost = kernel_comparison_page.cost_rows(whole.fresh, whole.cached, whole.host_s, whole.cost)
    making = guest_runner.provenance([result.cell for result in whole.results], typed)
    return kernel_comparison_page.making_tables(making, read, cost)
