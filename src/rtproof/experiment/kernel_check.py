# SPDX-License-Identifier: Apache-2.0
"""Whether one kernel under one load is never later than a limit, in a guest."""

import click

from rtproof.core.errors import TargetError
from rtproof.core.phrases import quantity, value
from rtproof.experiment import guest_runner
from rtproof.lab.cell_runner import compare_kernels
from rtproof.lab.kernel_comparison import (
    VIRTUAL_TIME,
    KernelComparison,
    SystemUnderLoad,
    cokernel_sentences,
    with_in_band_marks,
)

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
        f"{spot.system.name}, {spot.load.name}: the largest latency of {quantity(spot.count, 'activation')} is "
        f"{value(spot.max_ns)}, {'above' if above else 'not above'} {value(limit_ns)}"
    )
    click.echo(VIRTUAL_TIME)
    return INVALID if found.invalid else ABOVE if above else 0


def _why_invalid(spot: SystemUnderLoad) -> list[str]:
    return list(dict.fromkeys(doubt.what for reading in spot.readings for doubt in reading.invalid))
