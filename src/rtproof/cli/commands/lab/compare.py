# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab compare``: kernels, preemption models and loads, each with each."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import complete, laboratory
from rtproof.cli.laboratory import MEASURING, OUTPUT, RUNNING

if TYPE_CHECKING:
    from rtproof.lab.comparison import Comparison
    from rtproof.lab.matrix import Matrix
    from rtproof.lab.page import Making

KERNELS = ("debian-6.1-rt", "debian-6.1")
LOADS = ("idle", "mmap", "net")
PREEMPTS = ("none", "full")


@click.command("compare")
@laboratory.given(
    click.option(
        "--kernel",
        "kernels",
        multiple=True,
        default=KERNELS,
        metavar="NAME|IMAGE",
        help=f"{laboratory.KERNEL_HELP} Repeatable (default {', '.join(KERNELS)}).",
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
        shell_complete=complete.loads,
        help=f"{laboratory.LOAD_HELP} Repeatable (default {', '.join(LOADS)}).",
    ),
    click.option(
        "--boot", "boots", multiple=True, metavar="'ARG ...'", help=f"{laboratory.BOOT_HELP} Repeated: systems of each."
    ),
    *MEASURING,
    *RUNNING,
    *OUTPUT,
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
    from rtproof.lab.matrix import comparison

    folder = laboratory.new_folder(output, "lab")
    typed = ctx.obj or ("rtproof", "lab", "compare")
    matrix = _matrix(values)
    cells = matrix.cells()
    ran = laboratory.run(cells, jobs, typed)
    found = comparison(matrix, ran)
    laboratory.publish(_document(found, laboratory.making(cells, typed)), ran, folder, as_json)
    ctx.exit(found.exit_code)


def _matrix(values: dict[str, Any]) -> "Matrix":
    from rtproof.lab import systems
    from rtproof.lab.cells import parse_load
    from rtproof.lab.matrix import Matrix

    loads = tuple(dict.fromkeys(parse_load(text) for text in values["loads"]))
    laboratory.refuse_unknown_loads([name for load in loads for name in load.loads])
    kernels = laboratory.named(list(dict.fromkeys(values["kernels"])), values["module"], values["probe"])
    found = systems.systems(kernels, list(dict.fromkeys(values["preempts"])), list(dict.fromkeys(values["boots"])))
    return Matrix(found, loads, laboratory.setting(values), values["shifts"], laboratory.agents(found))


def _document(found: "Comparison", making: "Making") -> laboratory.Document:
    from rtproof.lab import as_json, page, table

    return laboratory.Document(
        table.title(found),
        page.sections(found, making),
        page.short_sections(found, making),
        table.sections(found),
        as_json.encode(found, making),
    )
