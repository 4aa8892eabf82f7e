# SPDX-License-Identifier: Apache-2.0
"""How often the first cause is right: a kernel module disturbs a CPU in known ways, in guests in virtual time."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import disturbed_guests
from disturbances import Answer, confusion
from disturbed_guests import SYSTEMS, Disturbed
from part import Bound, Details, Figure, Part, quantile

LEAST_OF_A_KIND = 15
RIGHT_PERCENT, RIGHT_OF_KIND_PERCENT, ERROR_US, UNEXPLAINED_PERCENT = 99.0, 95.0, 5.0, 1.0


def figures(found: Disturbed) -> dict[str, Any]:
    """The numbers of a system that goals judge."""
    kinds = [found.of_kind(kind) for kind in found.kinds]
    errors_us = [abs(each.error_ns) / 1000 for each in found.met if each.right]
    return {
        "disturbances": len(found.truth),
        "late": len(found.met),
        "least_of_a_kind": min(map(len, kinds)),
        "right": sum(each.right for each in found.met),
        "right_percent": _right_percent(found.met),
        "right_of_worst_kind_percent": min(map(_right_percent, kinds)),
        "error_median_us": quantile(errors_us, 0.5),
        "error_p95_us": quantile(errors_us, 0.95),
        "error_max_us": max(errors_us, default=None),
        "unexplained_percent": 100 * found.unexplained,
        "late_alone": len(found.alone),
        "named_without_cause": sum(each.truth.kind in found.system.never_late for each in found.met),
    }


FIGURES = (
    Figure("late", "disturbed activations that were late", of="disturbances"),
    Figure("least_of_a_kind", "of the rarest kind", bound=Bound(LEAST_OF_A_KIND), of="late"),
    Figure("right_percent", "first cause right", "%", Bound(RIGHT_PERCENT), "late"),
    Figure("right_of_worst_kind_percent", "the same of the worst kind", "%", Bound(RIGHT_OF_KIND_PERCENT)),
    Figure("error_median_us", "|error| of its length, median", "us", of="right"),
    Figure("error_p95_us", "the same, 95 %", "us", Bound(most=ERROR_US), "right"),
    Figure("error_max_us", "the same, largest", "us", of="right"),
    Figure("unexplained_percent", "late time that is unexplained", "%", Bound(most=UNEXPLAINED_PERCENT), "late"),
    Figure("late_alone", "late although nothing disturbed"),
    Figure("named_without_cause", "named though this kernel preempts it", bound=Bound(0, 0), of="late"),
)


def _right_percent(answers: Sequence[Answer]) -> float:
    return 100 * sum(each.right for each in answers) / len(answers) if answers else 0.0


def kind_lines(found: Disturbed) -> list[str]:
    """A line for each kind: how often anybody was late, the causes that came first, and the error of its length."""
    lines, why = [], dict(found.system.not_made)
    for kind, causes in confusion(found.met).items():
        late = found.of_kind(kind)
        error_us = quantile((abs(each.error_ns) / 1000 for each in late if each.right), 0.95)
        said = ", ".join(f"{cause} {count}" for cause, count in causes.most_common()) or why.get(kind, "nobody late")
        error = f", error {error_us:.1f} us (95 %)" if error_us is not None else ""
        lines.append(f"{kind:17} {len(late):4}  {said}{error}")
    return lines


def measure(name: str) -> dict[str, Any]:
    """One system in a guest; prints a line for each kind."""
    system = SYSTEMS[name]
    with tempfile.TemporaryDirectory() as folder:
        found = disturbed_guests.measure(system, Path(folder) / "out")
        begin, kinds = found.record.begin, kind_lines(found)
        print(*(f"    {line}" for line in kinds), sep="\n", flush=True)
        return {
            "release": begin.kernel_release,
            "version": begin.kernel_version,
            "agent": begin.agent_version,
            "qemu": disturbed_guests.emulator(system),
            **figures(found),
            "name_right": sum(each.right and each.name_right for each in found.met),
            "causes_of_late_alone": [each.first.words() for each in found.alone],
            "outside_of_the_trace": found.explanation.outside,
            "kinds": kinds,
        }


def row(name: str, one: Details) -> list[str]:
    """The system's row of the table."""
    errors = ", ".join(f"{one[f'error_{which}_us']:.1f}" for which in ("median", "p95", "max"))
    cells = (
        *(name, one["release"], one["late"], one["right"], f"{one['right_of_worst_kind_percent']:.0f} %"),
        *(f"{errors} us", f"{one['unexplained_percent']:.2f} %"),
    )
    return [f"| {' | '.join(map(str, cells))} |"]


PART = Part(
    goal="the first cause of known disturbances is right in 99 %, and in 95 % of each kind",
    items=lambda: list(SYSTEMS),
    measure=measure,
    figures=FIGURES,
    head="| system | kernel | late | right | worst kind | error: median, 95 %, largest | unexplained |",
    rows=row,
)
