# SPDX-License-Identifier: Apache-2.0
"""How often the first cause is right in an application: a program makes itself late in guests in virtual time."""

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import disturbed_guests
import own_doings
from disturbances import NO_FAULT_EVENTS
from disturbed_guests import SYSTEMS
from own_doings import Doing, Told
from part import Bound, Details, Figure, Part, percent, quantile

from rtproof.explain.causes import Cause

NAMES = ("6.1-none", "6.1-full", "6.1-rt", "6.12-full", "6.12-rt", "6.1-rt-arm64")


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


def sums(kinds: Mapping[str, Details]) -> dict[str, Any]:
    """Over the kinds that made the program late: what takes long on one machine may not on another."""
    some = [kind for kind in kinds.values() if kind.get("late")]
    late, right, left_open = (sum(kind[key] for kind in some) for key in ("late", "right", "open"))
    errors_us = [error for kind in some for error in kind["errors_us"]]
    return {
        "kinds_of_applications": len(some), "late": late, "right": right, "open": left_open,
        "right_percent": percent(right, late),
        "right_of_worst_kind_percent": min((100 * kind["right"] / kind["late"] for kind in some), default=None),
        "wrong": late - right - left_open,
        "wrong_percent": percent(late - right - left_open, late),
        "timed": len(errors_us),
        "error_median_us": quantile(errors_us, 0.5),
        "error_p95_us": quantile(errors_us, 0.95),
        "error_max_us": max(errors_us, default=None),
    }  # fmt: skip


def measure(name: str) -> dict[str, Any]:
    """One system in a guest; prints a line for each kind. UserError if the guest fails."""
    system = SYSTEMS[name]
    doings = own_doings.doings_on(system.kernel)
    script = disturbed_guests.choice_of_model(system) + own_doings.script(doings)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "out"
        files = {"/victim": disturbed_guests.victim(system.architecture)}
        disturbed_guests.run_in_guest(system, script, files, folder)
        no_faults = system.also_right >= NO_FAULT_EVENTS
        kinds = {doing.kind: described(own_doings.read_doing(doing, folder), doing, no_faults) for doing in doings}
    for kind, one in kinds.items():
        error_us = quantile(one["errors_us"], 0.95)
        error = f", error {error_us:.1f} us (95 %)" if error_us is not None else ""
        said = "".join(f"; {words} {count}" for words, count in one["other_first_causes"].items())
        print(f"    {kind:14} {one['right']:3} of {one['late']:3}{error}{said}", flush=True)
    return {**sums(kinds), "kinds": kinds}


def row(name: str, one: Details) -> list[str]:
    """The system's row; docs/explain-measured.md has the sums."""
    errors = ", ".join(f"{one[f'error_{which}_us'] or 0:.1f}" for which in ("median", "p95", "max"))
    counts = " | ".join(f"{one[key]:,}" for key in ("kinds_of_applications", "late", "right", "open", "wrong"))
    return [f"| {name} | {counts} | {errors} us |"]


PART = Part(
    goal="of what applications do to themselves in guests the first cause is right in 97 %, wrong in at most 1 %",
    items=lambda: NAMES,
    measure=measure,
    figures=(
        Figure("kinds_of_applications", "kinds of applications", bound=Bound(30), of="late"),
        Figure("right_percent", "first cause right", "%", Bound(97), "late"),
        Figure("right_of_worst_kind_percent", "the same of the worst kind", "%", Bound(90)),
        Figure("wrong_percent", "first cause wrong", "%", Bound(most=1), "late"),
        Figure("error_p95_us", "|error| of its length, 95 %", "us", Bound(most=10), "timed"),
        Figure("error_max_us", "the same, largest", "us", of="timed"),
    ),
    head="| system | kinds | late | right | open | wrong | error: median, 95 %, largest |",
    rows=row,
)
