# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab compare``: kernels, preemption models and loads, each with each."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof import files
from rtproof.cli import complete, laboratory
from rtproof.cli.laboratory import MEASURING, PATH, RUNNING

if TYPE_CHECKING:
    from rtproof.lab.comparison import Comparison
    from rtproof.lab.matrix import Matrix, Result
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
    click.option("--output", type=PATH, metavar="FOLDER", help="New folder for all of it (default runs/TIME-lab)."),
    click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON."),
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
    folder = output or Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-lab"
    files.refuse_existing(folder)
    typed = ctx.obj or ("rtproof", "lab", "compare")
    matrix = _matrix(values)
    comparison, results = laboratory.run(matrix, laboratory.jobs(jobs), typed)
    _tell(folder, comparison, results, laboratory.making(matrix, typed), as_json)
    ctx.exit(comparison.exit_code)


def _matrix(values: dict[str, Any]) -> "Matrix":
    from rtproof.lab import systems
    from rtproof.lab.cells import parse_load
    from rtproof.lab.matrix import Matrix

    loads = tuple(dict.fromkeys(parse_load(text) for text in values["loads"]))
    laboratory.refuse_unknown_loads([name for load in loads for name in load.loads])
    kernels = laboratory.named(list(dict.fromkeys(values["kernels"])), values["module"], values["probe"])
    found = systems.systems(kernels, list(dict.fromkeys(values["preempts"])), list(dict.fromkeys(values["boots"])))
    return Matrix(found, loads, laboratory.setting(values), values["shifts"], laboratory.agents(found))


def _tell(folder: Path, comparison: "Comparison", results: "list[Result]", making: "Making", as_json: bool) -> None:
    """Write the page, the tables and the run folders, and print the result."""
    from rtproof import report
    from rtproof.lab import page, table
    from rtproof.lab.as_json import encode

    title = table.title(comparison)
    folder.mkdir(parents=True)
    (folder / "page.html").write_bytes(report.render("html", title, page.sections(comparison, making)))
    (folder / "table.md").write_bytes(report.render("markdown", title, page.short_sections(comparison, making)))
    (folder / "comparison.json").write_bytes(encode(comparison, making))
    for result in results:
        if result.kept:
            shutil.copytree(result.kept.folder, folder / "cells" / result.cell.slug)
    text = report.render("text", title, table.sections(comparison))
    click.echo(encode(comparison, making) if as_json else text, nl=False)
    click.echo(f"\npage: {folder / 'page.html'}", err=as_json)
