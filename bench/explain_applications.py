# SPDX-License-Identifier: Apache-2.0
"""How often the first cause is right in an application: a program makes itself late in guests in virtual time."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import disturbed_guests
import own_doings
from disturbances import NO_FAULT_EVENTS
from disturbed_guests import System
from explain_parts import Bound, Details, Figure, Items, Part, percent, quantile
from own_doings import Doing, Told

from rtproof.agents.build import build_agent
from rtproof.core.errors import UserError
from rtproof.explain.causes import Cause
from rtproof.vm.guest import Job, run_job

RIGHT_PERCENT, RIGHT_OF_KIND_PERCENT, WRONG_PERCENT, ERROR_US = 97.0, 90.0, 1.0, 10.0
PATIENCE_S = 3600
NAMES = ("6.1-none", "6.1-full", "6.1-rt", "6.12-full", "6.12-rt", "6.1-rt-arm64")


def measured(system: System, folder: Path) -> dict[Doing, list[Told]]:
    """Each kind's times of which the program was late. UserError if the guest fails."""
    files = (
        ("/agent", build_agent(system.architecture)),
        ("/victim", disturbed_guests.victim(system.architecture)),
    )
    doings = own_doings.doings_on(system.kernel)
    job = Job(disturbed_guests.choice_of_model(system) + own_doings.script(doings), files)
    outcome = run_job(disturbed_guests.machine_of(system), job, folder, PATIENCE_S)
    if outcome.exit_code:
        raise UserError(f"the guest of {system.name} failed: {outcome.said.strip()[-300:]}")
    return {doing: own_doings.read_doing(doing, folder) for doing in doings}


def described(found: list[Told], doing: Doing, no_faults: bool) -> dict[str, Any]:
    """What the file says of a kind. open: the first cause is one of several, and the right one is among them.

    no_faults: the kernel has no events for page faults, so that own code is told as "own code, or a page fault".
    """
    own = no_faults and doing.cause is Cause.PAGE_FAULT
    right = [each for each in found if each.is_right(doing)]
    others = [each for each in found if not each.is_right(doing)]
    errors_us = [abs(each.error_ns) / 1000 for each in right] if doing.timed else []
    return {
        "late": len(found),
        "right": len(right),
        "open": sum(each.leaves_open(doing) or (own and each.budget.first.cause is Cause.OWN_CODE) for each in others),
        "errors_us": [round(error, 3) for error in errors_us],
        "other_first_causes": dict(Counter(each.budget.first.words() for each in others).most_common(5)),
    }


def measure(name: str) -> dict[str, Any]:
    """One system in a guest; prints a line for each kind."""
    (system,) = disturbed_guests.chosen_systems([name])
    with tempfile.TemporaryDirectory() as folder:
        found = measured(system, Path(folder) / "out")
        no_faults = system.also_right >= NO_FAULT_EVENTS
        kinds = {doing.kind: described(told, doing, no_faults) for doing, told in found.items()}
    for kind, one in kinds.items():
        error_us = quantile(one["errors_us"], 0.95)
        error = f", error {error_us:.1f} us (95 %)" if error_us is not None else ""
        said = "".join(f"; {words} {count}" for words, count in one["other_first_causes"].items())
        print(f"  {kind:14} {one['right']:3} of {one['late']:3}{error}{said}", flush=True)
    return {"kernel": system.kernel, "preemption": system.model, "kinds": kinds}


def part_figures(items: Items) -> list[Figure]:
    """The numbers of each system, with what is asked of them."""
    return [figure for name, one in items.items() for figure in _figures_of(name, one)]


def _late_kinds(one: Details) -> list[Details]:
    """The kinds that made the program late: what takes long on one machine may not on another."""
    return [kind for kind in one["kinds"].values() if kind["late"]]


def _figures_of(name: str, one: Details) -> list[Figure]:
    kinds = _late_kinds(one)
    late, right, left_open = (sum(kind[key] for kind in kinds) for key in ("late", "right", "open"))
    errors_us = [error for kind in kinds for error in kind["errors_us"]]
    worst = min(kinds, key=lambda kind: kind["right"] / kind["late"], default={"right": 0, "late": 0})
    wrong = late - right - left_open
    rows: tuple[tuple[str, float | None, str, int, Bound | None], ...] = (
        ("kinds of applications", len(kinds), "", late, Bound(30)),
        ("first cause right", percent(right, late), "%", late, Bound(RIGHT_PERCENT)),
        ("the same of the worst kind", percent(worst["right"], worst["late"]), "%", worst["late"],
         Bound(RIGHT_OF_KIND_PERCENT)),
        ("first cause wrong", percent(wrong, late), "%", late, Bound(most=WRONG_PERCENT)),
        ("|error| of its length, 95 %", quantile(errors_us, 0.95), "us", len(errors_us), Bound(most=ERROR_US)),
        ("the same, largest", max(errors_us, default=None), "us", len(errors_us), None),
    )  # fmt: skip
    return [Figure(name, words, value, unit, n, bound) for words, value, unit, n, bound in rows]


TABLE_HEAD = """\
| system | kinds | late | right | open | wrong | error: median, 95 %, largest |
|---|---:|---:|---:|---:|---:|---|"""


def table_row(name: str, one: Details) -> str:
    """The system's row of the table in docs/explain.md."""
    kinds = _late_kinds(one)
    late, right, left_open = (sum(kind[key] for kind in kinds) for key in ("late", "right", "open"))
    errors_us = [error for kind in kinds for error in kind["errors_us"]]
    errors = ", ".join(f"{quantile(errors_us, share) or 0:.1f}" for share in (0.5, 0.95, 1))
    return f"| {name} | {len(kinds)} | {late:,} | {right:,} | {left_open} | {late - right - left_open} | {errors} us |"


PART = Part(
    asked="1: the first cause of what applications do to themselves, in guests in virtual time",
    items=lambda: NAMES,
    measure=measure,
    figures=part_figures,
    lines=lambda items: ["", TABLE_HEAD, *(table_row(name, one) for name, one in items.items())],
)
