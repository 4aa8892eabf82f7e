# SPDX-License-Identifier: Apache-2.0
"""Whether ``lab explain`` names the thread of control on CPU 0 that made the measured CPU 1 late, and no one else.

Each plant is a line of the setup: a static key that the shell changes again and again by a sysctl, and two kinds of the
module rtproof_disturb. The twin is the same cell without the line. In a guest of two processors, in virtual time.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from part import Bound, Details, Figure, Part, percent

from rtproof.core.errors import RtproofError, TargetError
from rtproof.experiment import guest_runner
from rtproof.lab import kernel_catalogue
from rtproof.lab.cell_explanation import CellExplanation, explain_cell
from rtproof.lab.guest_cell import GuestCell
from rtproof.report.pages.cell_explanation_page import first_cause, first_sentence

SYSTEMS = {"6.1-full": ("debian-6.1", "full"), "6.1-rt": ("debian-6.1-rt", ""), "6.12-full": ("debian-6.12", "full")}
SHIFTS = 4
MODULE = "rtproof_disturb"
SCHEDSTATS = "/proc/sys/kernel/sched_schedstats"
PLANTS = {
    "static-key": (
        f"(while :; do echo 1 >{SCHEDSTATS}; echo 0 >{SCHEDSTATS}; done) & taskset -p 1 $!",
        "text_poke_bp_batch < static_key_",
    ),
    "stop-machine": (f"insmod /{MODULE}.ko period_ms=7 only=stop-machine", "stop_machine < disturb"),
    "call-function": (f"insmod /{MODULE}.ko period_ms=7 only=call-function", "disturb"),
    "twin": ("", ""),
}
"""The line of the setup, and how the functions of the sender begin."""
OPTIONS = {
    "period": "1ms", "duration": "100ms", "warmup": "100ms", "probe": "timer", "module": (), "shifts": SHIFTS,
    "jobs": 1, "cpus": 2, "measured_cpus": "1", "pace_us": None, "soakers": None, "qemu": None, "method": None,
    "policy": None, "priority": None,
}  # fmt: skip


def planted_cells(system: str, plant: str) -> list[GuestCell]:
    """The shifts of a cell with a plant."""
    kernel, model = SYSTEMS[system]
    line, _ = PLANTS[plant]
    asked = {"kernels": [kernel], "preempts": [model] if model else [], "boots": [""], "loads": ["idle"]}
    cells = guest_runner.matrix_cells({**OPTIONS, **asked, "setup": (line,) if line else ()})
    if MODULE not in line:
        return cells
    files = ((f"/{MODULE}.ko", kernel_catalogue.module_for_kernel(kernel, MODULE)),)
    return [
        replace(cell, system=replace(cell.system, machine=replace(cell.system.machine, files=files))) for cell in cells
    ]


def measure(name: str) -> dict[str, Any]:
    """All plants on one system, each in SHIFTS cells. A cell that cannot be explained says why."""
    plants: dict[str, list[dict[str, Any]]] = {plant: [] for plant in PLANTS}
    for plant, told in plants.items():
        for result in guest_runner.run_guest_cells(planted_cells(name, plant), 1, ("make", "bench-explain")).results:
            if result.folder is None:
                raise TargetError(f"{result.cell.name}: {result.failure}")
            told.append(described(result.cell, result.folder, plant))
            print(f"    {plant}: {told[-1]}", flush=True)
    return {**{plant: named_percent(told) for plant, told in plants.items()}, "plants": plants}


def named_percent(cells: Sequence[Details]) -> float | None:
    told = [cell for cell in cells if "sentence" in cell]
    return percent(sum(cell["named"] for cell in told), len(told))


def described(cell: GuestCell, folder: Path, plant: str) -> dict[str, Any]:
    """One cell: what is said, and what was said when no request was known."""
    try:
        found = explain_cell(cell, folder)
    except RtproofError as error:
        return {"not_explained": str(error)}
    return {
        "latency_ns": found.latency_ns,
        "before": first_cause(replace(found, requests=())),
        "first_cause": first_cause(found),
        "sentence": first_sentence(found),
        "named": is_named(found, plant),
    }


def is_named(found: CellExplanation, plant: str) -> bool:
    """Whether the first sentence names the sender of the plant; of the twin, the sender of any plant."""
    sentence = first_sentence(found)
    begins = [begin for _, begin in PLANTS.values() if begin]
    wanted = [PLANTS[plant][1]] if PLANTS[plant][1] else begins
    return any(f"caused by CPU 0: {begin}" in sentence for begin in wanted)


def rows(name: str, one: Details) -> list[str]:
    """A row for each plant, with what is said of its first cell."""
    found = []
    for plant, cells in one["plants"].items():
        told = [cell for cell in cells if "sentence" in cell]
        first = told[0] if told else {"before": "-", "sentence": cells[0]["not_explained"]}
        named = sum(cell["named"] for cell in told)
        found.append(f"| {name} | {plant} | {len(told)} | {named} | {first['before']} | {first['sentence']} |")
    return found


PART = Part(
    goal="lab explain names the sender on the other CPU in each cell, and none where nothing was planted",
    items=lambda: list(SYSTEMS),
    measure=measure,
    figures=[
        Figure(plant, f"{plant}: sender named", "%", Bound(0, 0) if plant == "twin" else Bound(100, 100))
        for plant in PLANTS
    ],
    head="| system | plant on CPU 0 | cells | named | of before | now |",
    rows=rows,
)
