# SPDX-License-Identifier: Apache-2.0
"""Article 2's four scenarios, each on its kernel, and the check of one kernel against a limit for git bisect."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from rtproof import profiles, report
from rtproof.core.errors import TargetError, UserError
from rtproof.core.phrases import limit_value, quantity, value
from rtproof.core.units import format_cpus
from rtproof.experiment import guest_campaign, guest_runner
from rtproof.experiment.guest_campaign import CampaignPart, GuestCampaignRequest
from rtproof.lab import systems
from rtproof.lab.cell_explanation import CellExplanation, RecordDiffersError, explain_cell
from rtproof.lab.cell_runner import CellResult, compare_kernels
from rtproof.lab.guest_cell import GuestCell, opened_cell_store
from rtproof.lab.kernel_comparison import (
    VIRTUAL_TIME,
    KernelComparison,
    SystemUnderLoad,
    cokernel_sentences,
    turns_sentences,
    with_in_band_marks,
)
from rtproof.lab.systems import NamedKernel
from rtproof.profiles import Profile
from rtproof.report.pages import cell_explanation_page
from rtproof.report.text_table import fitted_to_terminal
from rtproof.summary import loops

PLAIN_CELLS = ("other--idle", "other--stress")
"""Cells without a real-time policy, on the plain kernel. The article had PREEMPT_RT here too."""
RT_CELLS = ("fifo--stress", "fifo--stress-flood")
"""Cells with one, on PREEMPT_RT."""


@dataclass(frozen=True)
class ScenarioKernels:
    """Names of the kernels without and with PREEMPT_RT. preempt: model of the plain one; modules: for own images."""

    plain: str
    rt: str
    preempt: str
    modules: tuple[Path, ...]


def run_scenarios(kernels: ScenarioKernels, counted: int, asked: GuestCampaignRequest) -> int:
    """Run every scenario and publish the campaign; the exit code. counted: cycles to count in each scenario.

    UserError for a kernel that is not what its place needs.
    """
    whole = profiles.load("ten-ms").shortened(samples=in_all(counted))
    plain, rt = (
        guest_runner.profile_kernels([name], kernels.modules, whole)[0] for name in (kernels.plain, kernels.rt)
    )
    _refuse_other_kernels(plain, rt)
    parts = [
        CampaignPart(_with_cells(whole, *PLAIN_CELLS), systems.systems([plain], [kernels.preempt])),
        CampaignPart(_with_cells(whole, *RT_CELLS), systems.systems([rt], [])),
    ]
    return guest_campaign.run_guest_campaign(_with_cells(whole, *PLAIN_CELLS, *RT_CELLS), parts, asked)


def in_all(counted: int) -> int:
    """How many cycles a run has to have so that so many are counted.

    The first cycles are not counted; of a short run that is a tenth.
    """
    return counted + min(loops.IGNORE, -(-counted // (loops.SHORT_RUN - 1)))


def _with_cells(profile: Profile, *keys: str) -> Profile:
    return replace(profile, cells=tuple(map(profile.cell, keys)))


def _refuse_other_kernels(plain: NamedKernel, rt: NamedKernel) -> None:
    if systems.is_rt(plain.kernel) or not systems.is_rt(rt.kernel):
        wrong = plain if systems.is_rt(plain.kernel) else rt
        raise UserError(f"{wrong.name} is {'' if wrong is plain else 'not '}built with PREEMPT_RT: give another kernel")


ABOVE = 1
INVALID = 3


def check_kernel(wanted: guest_runner.MatrixRequest, limit_ns: int, command: tuple[str, ...]) -> int:
    """Measure the cell, say whether the limit holds; the exit code. TargetError if there is nothing to judge.

    wanted: of one kernel and one load. command: as typed.
    """
    matrix = guest_runner.kernel_matrix(wanted)
    ran = guest_runner.run_guest_cells(matrix.cells(), wanted.options["jobs"], command)
    return judge_kernel(compare_kernels(matrix, ran), limit_ns)


def judge_kernel(found: KernelComparison, limit_ns: int) -> int:
    """Say whether the limit holds; the exit code. TargetError if there is nothing to judge."""
    (spot,) = with_in_band_marks(found).spots
    if spot.failures:
        raise TargetError(spot.failures[0])
    for what in _why_invalid(spot):
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


def explain_kernel(wanted: guest_runner.MatrixRequest, command: tuple[str, ...], *, as_json: bool) -> None:
    """Measure the cell, and print why the largest latency of its shifts was so large.

    wanted: of one kernel and one load. command: as typed. TargetError if a shift was not measured.
    """
    cells = guest_runner.kernel_matrix(wanted).cells()
    found = explain_largest_shift(lambda: guest_runner.run_guest_cells(cells, wanted.options["jobs"], command).results)
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
    MOST_MEASURED times.
    """
    replaced_ns: dict[GuestCell, list[int]] = {}
    while True:
        result = largest_shift(measured())
        assert result.kept
        assert result.reading
        cell = result.cell
        try:
            found = explain_cell(cell, result.kept.folder)
        except RecordDiffersError:
            latencies_ns = replaced_ns.setdefault(cell, [])
            latencies_ns.append(result.reading.max_ns)
            with opened_cell_store() as store:
                store.remove(cell.key())
            if len(latencies_ns) == MOST_MEASURED:
                raise TargetError(
                    f"{cell.name}: measured {MOST_MEASURED} times, and no run with the plugin gave the same record, so "
                    f"nothing is explained; the largest latencies were {', '.join(map(value, latencies_ns))}"
                ) from None
            guest_runner.print_progress(
                f"{cell.name}: a run with the plugin gave another record, so it is measured again"
            )
        else:
            return replace(found, replaced_ns=tuple(ns for each in replaced_ns.values() for ns in each))


def largest_shift(results: Sequence[CellResult]) -> CellResult:
    """The cell with the largest latency. TargetError if one of the cells was not measured."""
    for result in results:
        if result.failure:
            raise TargetError(f"{result.cell.name}: {result.failure}")
    read = [(result.reading.max_ns, result) for result in results if result.reading and result.kept]
    return max(read, key=lambda pair: pair[0])[1]


def _where_measured(spot: SystemUnderLoad) -> str:
    """On which processors of a guest with several was measured; "" for a guest with one."""
    if spot.system.machine.cpus == 1 or not spot.cpus:
        return ""
    return f" on processor{'s' * (len(spot.cpus) > 1)} {format_cpus(spot.cpus)} of {spot.system.machine.cpus}"


def _why_invalid(spot: SystemUnderLoad) -> list[str]:
    return list(dict.fromkeys(doubt.what for reading in spot.readings for doubt in reading.invalid))
