# SPDX-License-Identifier: Apache-2.0
"""Run cells in guests: fetch the kernels and modules, measure what is not stored yet, publish the result."""

import hashlib
import itertools
import math
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from rtproof import __version__, report
from rtproof.agents import build
from rtproof.agents.architectures import architecture, host_architecture
from rtproof.agents.build import agent_prints
from rtproof.core import units
from rtproof.core.errors import TargetError, UserError
from rtproof.core.files import write_whole
from rtproof.core.phrases import limit_value, quantity, unknown_name, value
from rtproof.core.printable import clean
from rtproof.core.processes import each_by_itself
from rtproof.core.units import format_cpus
from rtproof.experiment import run_request, target_runner
from rtproof.experiment.run_request import INTERRUPTED_CODE, QEMU_TARGET
from rtproof.lab import cell_runner, guest_cell, kernel_catalogue, systems
from rtproof.lab.cell_explanation import CellExplanation, RecordDiffersError, explain_cell
from rtproof.lab.cell_runner import CellResult, CellResults, compare_kernels
from rtproof.lab.guest_cell import CellSetting, GuestCell, GuestLoad, GuestSystem, cell_store, parse_guest_load
from rtproof.lab.kernel_catalogue import OUR_MODULE
from rtproof.lab.kernel_comparison import (
    VIRTUAL_TIME,
    KernelComparison,
    SystemUnderLoad,
    cokernel_sentences,
    turns_sentences,
    with_in_band_marks,
)
from rtproof.lab.systems import NamedKernel, needs_own_module
from rtproof.loads import load_name
from rtproof.profiles import Profile, run_options
from rtproof.report.pages import cell_explanation_page, kernel_comparison_page
from rtproof.report.pages.kernel_comparison_page import Provenance
from rtproof.report.text_table import fitted_to_terminal
from rtproof.vm.initramfs import build_guest_agent, toolchain_name
from rtproof.vm.kernel_files import Kernel, has_module
from rtproof.vm.machine import check_turns, emulator_version

COMPARISON_PAGE = "page.html"


def print_progress(sentence: str) -> None:
    """Print what the program is doing to standard error, beside the result."""
    click.echo(clean(sentence), err=True)


def named_kernels(texts: Sequence[str], modules: tuple[Path, ...], probe: str) -> list[NamedKernel]:
    """The kernels, fetched if need be, with our own module if the probe needs it."""
    resolve = partial(kernel_catalogue.resolve_kernel, say=print_progress)
    own = partial(kernel_catalogue.module_for_kernel, say=print_progress)
    return [systems.with_modules(systems.open_named(text, resolve), modules, probe, own) for text in texts]


def agents_by_architecture(systems: Sequence[GuestSystem]) -> dict[str, Path]:
    """The agent for each architecture, built if there is none yet."""
    return {arch: build_guest_agent(arch) for arch in dict.fromkeys(system.machine.kernel.arch for system in systems)}


def build_agents(kernels: Sequence[str]) -> None:
    """Build the agents for kernels of the catalogue, before any kernel is fetched. UserError if one can't be built."""
    machine_of = {entry.name: entry.arch for entry in kernel_catalogue.catalogue()}
    names = (name.partition(kernel_catalogue.VERSION_MARK)[0] for name in kernels)
    for arch in dict.fromkeys(machine_of[name] for name in names if name in machine_of):
        build_guest_agent(arch)


def refuse_missing_cpus(loads: Sequence[GuestLoad], processors: int) -> None:
    """UserError for a load that is bound to a CPU that the guests do not have, before anything is booted."""
    for load in loads:
        for text in load.loads:
            binding = units.split_cpus(text)[1]
            missing = [cpu for cpu in units.parse_cpus(binding[1:] or "0") if cpu >= processors]
            if missing:
                there = "only CPU 0" if processors == 1 else f"CPUs 0 to {processors - 1}"
                what = f"the load {text} is bound to CPU {missing[0]}"
                raise UserError(f"{what}, and the guests have {there}: see --processors")


def run_guest_cells(cells: list[GuestCell], at_once: int | None, command: tuple[str, ...]) -> CellResults:
    """Measure the cells that the cache lacks. Print a line when a cell ends. Ctrl-C ends the program."""
    asked = run_request.RunRequest(command, "qemu", note=VIRTUAL_TIME)
    agents = {cell.system.machine.kernel.arch: cell.agent for cell in cells}
    infos = {
        arch: target_runner.describe_run(asked, architecture(arch).machines[0], agent) for arch, agent in agents.items()
    }
    measure = partial(guest_cell.measure_guest_cell, infos)
    jobs = at_once or len(os.sched_getaffinity(0))
    told = _progress_printer(len(cells), jobs)
    try:
        return cell_runner.run_missing_cells(cells, guest_cell.cell_store(), measure, jobs, told)
    except cell_runner.CellsInterrupted as interrupted:
        print_progress(f"rtproof: {interrupted.sentence}")
        raise click.exceptions.Exit(INTERRUPTED_CODE) from None


def matrix_cells(options: Mapping[str, Any]) -> list[GuestCell]:
    """The cells of kernels, preemption models and loads, each with each; UserError for an unknown name.

    Kernels are fetched and agents are built if need be. options: those of ``rtproof lab compare``, by name.
    """
    processors, setting = systems.chosen_processors(options), _cell_setting(options)
    systems.refuse_wrong_cpus(options["boots"], options["cpus"])
    loads = tuple(dict.fromkeys(parse_guest_load(text) for text in options["loads"]))
    # The agent for this machine is asked, because an agent for another machine cannot run here.
    listed = agent_prints(build_guest_agent(host_architecture().name), "list")
    known = [row[1] for row in build.listed_rows(listed, "load")]
    for name in (load_name(name) for load in loads for name in load.loads):
        if name not in known:
            raise UserError(unknown_name("load", name, ["idle", *known]))
    refuse_missing_cpus(loads, options["cpus"])
    build_agents(options["kernels"])
    kernels = named_kernels(list(dict.fromkeys(options["kernels"])), options["module"], options["probe"])
    found = systems.systems(
        kernels, list(dict.fromkeys(options["preempts"])), list(dict.fromkeys(options["boots"])), processors
    )
    for system in found:
        check_turns(system.machine)
    agents = agents_by_architecture(found)
    return [
        GuestCell(system, load, setting, agents[system.machine.kernel.arch], shift)
        for load in loads
        for system in found
        for shift in range(options["shifts"])
    ]


def _cell_setting(options: Mapping[str, Any]) -> CellSetting:
    """All options of the measurement but the modules."""
    further = {name: options[name] for name in ("method", "policy", "priority")}
    further["cpus"] = systems.measured_cpus(options["measured_cpus"], options["cpus"], options["policy"])
    more = tuple(word for name, value in further.items() if value for word in (f"--{name}", str(value)))
    period_ns, duration_ns, warmup_ns = (
        units.parse_duration(options[name]) for name in ("period", "duration", "warmup")
    )
    setup = tuple(options["setup"])
    return CellSetting(
        options["probe"], period_ns, duration_ns, warmup_ns, more, setup=setup, setup_must_work=bool(setup)
    )


def _progress_printer(total: int, jobs: int) -> Callable[[CellResult], None]:
    """A function that prints a line for each cell that ended, with an estimate of the time left.

    Those of the cache come first, so all that are left have to be measured. The command itself reports the failure of
    an only cell.
    """
    ended: list[CellResult] = []

    def tell(result: CellResult) -> None:
        ended.append(result)
        at, left = f"[{len(ended)}/{total}] {result.cell.name}", total - len(ended)
        measured_s = [each.cost.host_s for each in ended if each.fresh and each.cost]
        rest = ""
        if left and measured_s:
            left_s = math.ceil(left / jobs) * sum(measured_s) / len(measured_s)
            rest = f"; about {left_s:.0f} s left (estimate from n={len(measured_s)})"
        if result.reading and (cost := result.cost):
            how = f"{cost.host_s:.1f} s" if result.fresh else "cached"
            how += f", {cost.differing} of {cost.runs} runs differed" if cost.differing else ""
            how += ", without the guard of virtual time" if cost.unguarded else ""
            print_progress(f"{at}: max {value(result.reading.max_ns)} ({how}){rest}")
        elif total > 1:
            print_progress(f"{at}: failed: {result.failure}{rest}")

    return tell


def provenance(cells: list[GuestCell], command: tuple[str, ...]) -> Provenance:
    """How the cells were measured: the command, the versions, the agents."""
    agents = {cell.system.machine.kernel.arch: cell.agent for cell in cells}
    versions = {cell.system: emulator_version(cell.system.machine) for cell in cells}
    qemu = {system.machine.kernel.arch: version for system, version in versions.items()}
    if len(set(versions.values())) > len(qemu):  # systems of one architecture have different ones
        qemu = {system.name: version for system, version in versions.items()}
    digests = {arch: hashlib.sha256(agent.read_bytes()).hexdigest() for arch, agent in agents.items()}
    return Provenance(shlex.join(command), __version__, qemu, digests, toolchain_name())


def compare_in_guests(options: Mapping[str, Any], command: tuple[str, ...]) -> int:
    """Measure every cell, write the page, the table, the JSON and the run folders of the cells; print the result.

    The exit code. options: of ``rtproof lab compare``, by name. command: as typed.
    """
    folder = run_request.new_folder(options["output"], "lab")
    cells = matrix_cells(options)
    ran = run_guest_cells(cells, options["jobs"], command)
    found = compare_kernels(ran)
    if options["explain"]:  # the first cause of each spot's largest latency
        of_spots: dict[tuple[GuestSystem, GuestLoad], list[CellResult]] = {}
        for result in ran.results:
            of_spots.setdefault((result.cell.system, result.cell.load), []).append(result)
        results = [largest(of_spots[spot.system, spot.load]) for spot in found.spots if spot.usable]
        explanations, unexplained = explain_results(results, options["jobs"])
        found = replace(found, explanations=explanations, unexplained=unexplained)
    pages, making, as_json = kernel_comparison_page, provenance(cells, command), options["as_json"]
    title, encoded = pages.comparison_title(found), pages.encode_comparison(found, making)
    folder.mkdir(parents=True)
    sections = pages.comparison_sections
    write_whole(folder / COMPARISON_PAGE, report.render("html", title, sections(found, making, whole=True)))
    write_whole(folder / "table.md", report.render("markdown", title, sections(found, making, whole=False)))
    write_whole(folder / "result.json", encoded)
    for result in ran.results:
        if result.folder:
            shutil.copytree(result.folder, folder / "cells" / result.cell.slug)
    with fitted_to_terminal():
        shown = encoded if as_json else report.render("text", title, sections(found, None, whole=False))
        click.echo(shown, nl=False)
    click.echo(f"\npage: {folder / COMPARISON_PAGE}", err=as_json)
    return found.exit_code


def largest(results: Iterable[CellResult]) -> CellResult:
    """The cell with the largest latency, of those that were measured."""
    read = [(result.reading.max_ns, result) for result in results if result.reading]
    return max(read, key=lambda pair: pair[0])[1]


def explain_results(
    results: Sequence[CellResult], jobs: int | None
) -> tuple[tuple[CellExplanation, ...], tuple[str, ...]]:
    """Explain measured cells; a sentence for each that cannot be explained. Print a line when one ends."""
    number = itertools.count(1)

    def explain(result: CellResult) -> CellExplanation | str:
        assert result.folder
        return explain_cell(result.cell, result.folder)

    def told(result: CellResult, end: CellExplanation | str) -> None:
        how = end if isinstance(end, str) else "explained"
        print_progress(f"[{next(number)}/{len(results)}] {result.cell.name}: {how}")

    at_once = jobs or len(os.sched_getaffinity(0))
    ends = each_by_itself(explain, results, at_once, cell_runner.failure_sentence, told)
    failures = (f"{result.cell.name}: {end}" for result, end in zip(results, ends, strict=True) if isinstance(end, str))
    return tuple(end for end in ends if not isinstance(end, str)), tuple(failures)


def target_options_for_profile(target: str, options: dict[str, str], profile: Profile) -> dict[str, str]:
    """The options of a target, and what a profile's probes and loads need in a guest. The user's own options win."""
    if target != QEMU_TARGET:
        return options

    probe = _probe_of_module(profile)
    setup = {"setup": "\n".join(profile.guest.setup)} if profile.guest.setup else {}
    return setup | with_lab_kernel(target, options, probe, lambda kernel: guest_modules(kernel, profile))


def with_lab_kernel(
    target: str, options: dict[str, str], probe: str, more: Callable[[Kernel], list[str]] = lambda _: []
) -> dict[str, str]:
    """The options of a target with the kernel's name resolved, fetched if need be.

    The module ``rtproof`` is built for a kernel of the catalogue where it is to be inserted; the probe that needs it
    has it inserted without being asked. more: which modules of the kernel's own are wanted as well. UserError for a
    name that is neither a file nor in the catalogue.
    """
    name = options.get("kernel", "")
    if target != QEMU_TARGET or not name or Path(name).exists():
        return options

    kernel = kernel_catalogue.resolve_kernel(
        name, Path(options["modules"]) if "modules" in options else None, say=print_progress
    )
    found = {**options, "kernel": str(kernel.image)}
    if kernel.modules:
        found["modules"] = str(kernel.modules)
    usual = (*((kernel_catalogue.OUR_MODULE,) if systems.needs_own_module(probe) else ()), *more(kernel))
    words = options["insert"].split(",") if "insert" in options else usual
    own = (
        str(kernel_catalogue.module_for_kernel(name, say=print_progress))
        if kernel_catalogue.OUR_MODULE in words
        else ""
    )
    if words:
        found["insert"] = ",".join(own if word == kernel_catalogue.OUR_MODULE else word for word in words)
    return found


VETH_MODULE = "veth"
"""The kernel's module for the device that joins two network namespaces. Only the loads know which of them need it."""


def _probe_of_module(profile: Profile) -> str:
    """The probe of our module, if one of the profile needs it, or the stand-in for the article's hardware; else ""."""
    ways = [str(run_options(plan, way).get("probe", "timer")) for plan in profile.cells for way in plan.ways]
    needed = OUR_MODULE in profile.guest.modules or any(map(needs_own_module, ways))
    return systems.PROBE_OF_MODULE if needed else ""


def guest_modules(kernel: Kernel, profile: Profile) -> list[str]:
    """The modules that the profile wants in a guest and that come with the kernel."""
    return [name for name in (VETH_MODULE, *profile.guest.modules) if name != OUR_MODULE and has_module(kernel, name)]


def profile_kernels(names: Sequence[str], modules: tuple[Path, ...], profile: Profile) -> list[NamedKernel]:
    """Kernels by name, each once, with the modules that the profile needs. modules: ours for images of the user's."""
    build_agents(names)
    kernels = named_kernels(list(dict.fromkeys(names)), modules, _probe_of_module(profile))
    return [replace(each, modules=(*each.modules, *guest_modules(each.kernel, profile))) for each in kernels]


# One kernel under one load: its check against a limit for git bisect, and why its largest latency was so large.


ABOVE = 1
INVALID = 3


def check_kernel(options: Mapping[str, Any], command: tuple[str, ...]) -> int:
    """Measure the cell, say whether the limit holds; the exit code. TargetError if there is nothing to judge.

    options: as for ``matrix_cells``, of one kernel and one load, and the limit. command: as typed.
    """
    ran = run_guest_cells(matrix_cells(options), options["jobs"], command)
    return judge_kernel(compare_kernels(ran), options["limit"])


def judge_kernel(found: KernelComparison, limit_ns: int) -> int:
    """Say whether the limit holds; the exit code. TargetError if there is nothing to judge."""
    (spot,) = with_in_band_marks(found).spots
    if spot.failures:
        raise TargetError(spot.failures[0])
    for what in dict.fromkeys(doubt.what for reading in spot.readings for doubt in reading.invalid):
        click.echo(f"INVALID: {what}")
    for sentence in cokernel_sentences(found):
        click.echo(sentence)
    above = spot.max_ns > limit_ns
    click.echo(
        f"{spot.name}: the largest latency of {quantity(spot.count, 'activation')}{_where_measured(spot)} is "
        f"{value(spot.max_ns)}, {'above' if above else 'not above'} {limit_value(limit_ns)}"
    )
    if len(spot.cpus) > 1:
        parts = [(cpu, spot.on_cpu(cpu)) for cpu in spot.cpus]
        click.echo("; ".join(f"processor {cpu}: {value(part.max_ns)}" for cpu, part in parts if part.readings))
    for sentence in (VIRTUAL_TIME, *turns_sentences([spot.system.machine])):
        click.echo(sentence)
    return INVALID if found.invalid else ABOVE if above else 0


def explain_kernel(options: Mapping[str, Any], command: tuple[str, ...], *, as_json: bool) -> None:
    """Measure the cell, and print why the largest latency of its shifts was so large.

    options: as for ``check_kernel``, without a limit. command: as typed. TargetError if a shift was not measured.
    """
    cells = matrix_cells(options)
    found = explain_largest_shift(lambda: run_guest_cells(cells, options["jobs"], command).results)
    if as_json:
        click.echo(cell_explanation_page.encode_explanation(found, shlex.join(command)), nl=False)
    else:
        sections = cell_explanation_page.explanation_sections(found)
        with fitted_to_terminal():
            click.echo(report.render("text", f"rtproof lab explain: {found.cell}", sections), nl=False)


MOST_MEASURED = 3
"""So often a cell is measured whose record no run with the plugin repeats."""


def explain_largest_shift(measured: Callable[[], Sequence[CellResult]]) -> CellExplanation:
    """Why the largest latency of the shifts was so large. measured: measures those that the store lacks.

    A cell whose record no run with the plugin repeats is measured again. TargetError if that helps in none of
    MOST_MEASURED times, or if a cell was not measured.
    """
    replaced_ns: dict[GuestCell, list[int]] = {}
    while True:
        results = measured()
        if failed := next((each for each in results if each.failure), None):
            raise TargetError(f"{failed.cell.name}: {failed.failure}")
        result = largest(results)
        assert result.folder
        assert result.reading
        cell = result.cell
        try:
            found = explain_cell(cell, result.folder)
        except RecordDiffersError:
            latencies_ns = replaced_ns.setdefault(cell, [])
            latencies_ns.append(result.reading.max_ns)
            cell_store().remove(cell.key())
            if len(latencies_ns) == MOST_MEASURED:
                raise TargetError(
                    f"{cell.name}: measured {MOST_MEASURED} times, and no run with the plugin gave the same record, so "
                    f"nothing is explained; the largest latencies were {', '.join(map(value, latencies_ns))}"
                ) from None
            print_progress(f"{cell.name}: a run with the plugin gave another record, so it is measured again")
        else:
            return replace(found, replaced_ns=tuple(ns for each in replaced_ns.values() for ns in each))


def _where_measured(spot: SystemUnderLoad) -> str:
    """On which processors of a guest with several was measured; "" for a guest with one."""
    if spot.system.machine.cpus == 1 or not spot.cpus:
        return ""
    return f" on processor{'s' * (len(spot.cpus) > 1)} {format_cpus(spot.cpus)} of {spot.system.machine.cpus}"
