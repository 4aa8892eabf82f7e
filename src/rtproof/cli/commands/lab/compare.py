# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab compare``: kernels, preemption models and loads, each with each."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import lab_options, shell_completion
from rtproof.cli.lab_options import LAB_MEASUREMENT_OPTIONS, LAB_OUTPUT_OPTIONS, LAB_RUN_OPTIONS
from rtproof.experiment import run_request

if TYPE_CHECKING:
    from rtproof.experiment import guest_runner
    from rtproof.lab.cell_runner import KernelMatrix
    from rtproof.lab.kernel_comparison import KernelComparison
    from rtproof.lab.kernel_comparison_page import Provenance


KERNELS = ("debian-6.1-rt", "debian-6.1")
LOADS = ("idle", "mmap", "net")
PREEMPTS = ("none", "full")


@click.command("compare")
@lab_options.with_options(
    click.option(
        "--kernel",
        "kernels",
        multiple=True,
        default=KERNELS,
        metavar="NAME|IMAGE",
        help=f"{lab_options.KERNEL_HELP} Repeatable (default {', '.join(KERNELS)}).",
    ),
    click.option(
        "--preempt",
        "preempts",
        multiple=True,
        default=PREEMPTS,
        type=click.Choice(["none", "voluntary", "full", "lazy"]),
        help="Preemption model, for the kernels that have it; repeatable (default none, full).",
    ),
    click.option(
        "--load",
        "loads",
        multiple=True,
        default=LOADS,
        metavar="NAME",
        shell_complete=shell_completion.complete_loads,
        help=f"{lab_options.LOAD_HELP} Repeatable (default {', '.join(LOADS)}).",
    ),
    click.option(
        "--boot",
        "boots",
        multiple=True,
        metavar="'ARG ...'",
        help=f"{lab_options.BOOT_HELP} Repeated: systems of each.",
    ),
    *LAB_MEASUREMENT_OPTIONS,
    *LAB_RUN_OPTIONS,
    *LAB_OUTPUT_OPTIONS,
)
@click.pass_context
def command(ctx: click.Context, /, output: Path | None, as_json: bool, jobs: int | None, **values: Any) -> None:
    """Compare kernels under loads, in virtual time.

    Boots every kernel with every preemption model once and measures it under every load, in as many guests at once as
    there are CPUs. The figures are instructions, the same on every machine: they rank kernels and find regressions,
    they do not sign off hardware. Finished cells are kept and not run again, also after Ctrl-C.

    A PREEMPT_RT kernel before 6.12 has one model and is one column; 6.12 knows full and lazy, other kernels none,
    voluntary and full. A kernel that has none of the models asked for is booted as it comes.

    Exit codes: 0; 2 if a cell failed; 3 if one did not measure what was asked.

    \b
    rtproof lab compare --kernel debian-6.12-rt --kernel debian-6.12 --preempt none --load mmap --load dd+net
    """
    from rtproof.experiment import guest_runner
    from rtproof.lab.cell_runner import compare_kernels

    folder = run_request.new_folder(output, "lab")
    typed = ctx.obj or ("rtproof", "lab", "compare")
    matrix = _matrix(values)
    cells = matrix.cells()
    ran = guest_runner.run_guest_cells(cells, jobs, typed)
    found = compare_kernels(matrix, ran)
    guest_runner.publish_comparison(_document(found, guest_runner.provenance(cells, typed)), ran, folder, as_json)
    ctx.exit(found.exit_code)


def _matrix(values: dict[str, Any]) -> "KernelMatrix":
    from rtproof.experiment import guest_runner
    from rtproof.lab import systems
    from rtproof.lab.cell_runner import KernelMatrix
    from rtproof.lab.guest_cell import parse_guest_load

    loads = tuple(dict.fromkeys(parse_guest_load(text) for text in values["loads"]))
    guest_runner.refuse_unknown_loads([name for load in loads for name in load.loads])
    kernels = guest_runner.named_kernels(list(dict.fromkeys(values["kernels"])), values["module"], values["probe"])
    found = systems.systems(kernels, list(dict.fromkeys(values["preempts"])), list(dict.fromkeys(values["boots"])))
    return KernelMatrix(
        found,
        loads,
        lab_options.take_cell_setting(values),
        values["shifts"],
        guest_runner.agents_by_architecture(found),
    )


def _document(found: "KernelComparison", making: "Provenance") -> "guest_runner.ComparisonDocument":
    from rtproof.experiment import guest_runner
    from rtproof.lab import kernel_comparison_page

    return guest_runner.ComparisonDocument(
        kernel_comparison_page.comparison_title(found),
        kernel_comparison_page.page_sections(found, making),
        kernel_comparison_page.readme_sections(found, making),
        kernel_comparison_page.terminal_sections(found),
        kernel_comparison_page.encode_comparison(found, making),
    )
