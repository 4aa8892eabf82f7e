# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab ten-ms``: article 2's loop of 10 ms, its four scenarios in one command."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import laboratory, types
from rtproof.cli.laboratory import JOBS, OUTPUT
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.lab.cells import Cell
    from rtproof.lab.systems import Named

PLAIN = "debian-6.1"
RT = "debian-6.1-rt"
CYCLES = 11_000


@click.command("ten-ms")
@laboratory.given(
    click.option(
        "--plain", default=PLAIN, metavar="NAME|IMAGE", help=f"The kernel without PREEMPT_RT (default {PLAIN})."
    ),
    click.option("--rt", default=RT, metavar="NAME|IMAGE", help=f"The kernel with PREEMPT_RT (default {RT})."),
    click.option(
        "--preempt",
        default="none",
        type=click.Choice(["none", "voluntary", "full"]),
        help="Preemption model of the plain kernel (default none).",
    ),
    click.option(
        "--cycles",
        "counted",
        type=types.count(10_000_000),
        default=CYCLES,
        metavar="N",
        help=f"Cycles to count in each scenario (default {CYCLES}, as in the article).",
    ),
    click.option("--module", type=laboratory.PATH, multiple=True, metavar="FILE", help="rtproof.ko for own images."),
    JOBS,
    *OUTPUT,
)
@click.pass_context
def command(ctx: click.Context, /, output: Path | None, as_json: bool, jobs: int | None, **values: Any) -> None:
    """Repeat article 2's measurement: a loop of 10 ms in a kernel task.

    Four scenarios in virtual time: the plain kernel idle and under stress, PREEMPT_RT under stress, and under stress
    and a flood of packets; the lengths of the cycles beside the article's. A loop that stands still is STALLED. As long
    as in the article a scenario under stress takes some minutes of a core; --cycles 1000 gives a first impression.

    Exit codes: 0; 2 if a scenario failed; 3 if one did not measure what was asked.
    """
    from rtproof.lab import ten_ms, ten_ms_page

    folder = laboratory.new_folder(output, "ten-ms")
    typed = ctx.obj or ("rtproof", "lab", "ten-ms")
    kernels = laboratory.named([values["plain"], values["rt"]], values["module"], "kernel")
    cells = _cells(kernels, values["preempt"], values["counted"])
    laboratory.say(
        f"{len(cells)} scenarios of {_length(cells[0])} in virtual time; one under load takes 2 to 5 times that"
    )
    ran = laboratory.run(cells, jobs, typed)
    found = ten_ms.found(ran)
    making = laboratory.making(cells, typed)
    page = ten_ms_page.page_sections(found, ran, making)
    document = laboratory.Document(
        ten_ms_page.TITLE, page, page, ten_ms_page.sections(found), ten_ms_page.encode(found, making)
    )
    laboratory.publish(document, ran, folder, as_json)
    ctx.exit(ten_ms.exit_code(found))


def _cells(kernels: "list[Named]", preempt: str, counted: int) -> "list[Cell]":
    from rtproof.lab import systems, ten_ms

    plain, rt = kernels
    if systems.is_rt(plain.kernel) or not systems.is_rt(rt.kernel):
        wrong = plain if systems.is_rt(plain.kernel) else rt
        raise UserError(f"{wrong.name} is {'' if wrong is plain else 'not '}built with PREEMPT_RT: give another kernel")
    (without,) = systems.systems([plain], [preempt])
    (realtime,) = systems.systems([rt], [])
    agents = laboratory.agents([without, realtime])
    chosen = [realtime if scenario.rt else without for scenario in ten_ms.SCENARIOS]
    return [
        ten_ms.cell(scenario, system, agents[system.machine.kernel.arch], counted)
        for scenario, system in zip(ten_ms.SCENARIOS, chosen, strict=True)
    ]


def _length(cell: "Cell") -> str:
    from rtproof.analysis.phrases import duration

    return duration(cell.setting.virtual_ns(0))
