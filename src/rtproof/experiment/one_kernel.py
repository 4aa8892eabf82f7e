# SPDX-License-Identifier: Apache-2.0
"""One kernel under one load: its check against a limit for git bisect, and why its largest latency was so large."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from rtproof import report
from rtproof.core.errors import TargetError
from rtproof.core.phrases import limit_value, quantity, value
from rtproof.core.units import format_cpus
from rtproof.experiment import guest_runner
from rtproof.lab.cell_explanation import CellExplanation, RecordDiffersError, explain_cell
from rtproof.lab.cell_runner import CellResult, compare_kernels
from rtproof.lab.guest_cell import GuestCell, cell_store
from rtproof.lab.kernel_comparison import (
    VIRTUAL_TIME,
    KernelComparison,
    SystemUnderLoad,
    cokernel_sentences,
    turns_sentences,
    with_in_band_marks,
)
from rtproof.report.pages import cell_explanation_page
from rtproof.report.text_table import fitted_to_terminal

ABOVE = 1
INVALID = 3


def check_kernel(options: Mapping[str, Any], command: tuple[str, ...]) -> int:
    """Measure the cell, say whether the limit holds; the exit code. TargetError if there is nothing to judge.

    options: as for ``guest_runner.matrix_cells``, of one kernel and one load, and the limit. command: as typed.
    """
    ran = guest_runner.run_guest_cells(guest_runner.matrix_cells(options), options["jobs"], command)
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
    cells = guest_runner.matrix_cells(options)
    found = explain_largest_shift(lambda: guest_runner.run_guest_cells(cells, options["jobs"], command).results)
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
        result = guest_runner.largest(results)
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
            guest_runner.print_progress(
                f"{cell.name}: a run with the plugin gave another record, so it is measured again"
            )
        else:
            return replace(found, replaced_ns=tuple(ns for each in replaced_ns.values() for ns in each))


def _where_measured(spot: SystemUnderLoad) -> str:
    """On which processors of a guest with several was measured; "" for a guest with one."""
    if spot.system.machine.cpus == 1 or not spot.cpus:
        return ""
    return f" on processor{'s' * (len(spot.cpus) > 1)} {format_cpus(spot.cpus)} of {spot.system.machine.cpus}"
