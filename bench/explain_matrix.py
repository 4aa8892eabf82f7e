# SPDX-License-Identifier: Apache-2.0
"""How often the first cause is right: a kernel module disturbs a CPU in known ways, in guests in virtual time."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import disturbed_guests
from disturbances import Answer, confusion, quantile_of
from disturbed_guests import Disturbed
from explain_parts import Bound, Details, Figure, Items, Part

LEAST_OF_A_KIND = 15
RIGHT_PERCENT, RIGHT_OF_KIND_PERCENT, ERROR_US, UNEXPLAINED_PERCENT = 99.0, 95.0, 5.0, 1.0


def figures(found: Disturbed) -> dict[str, float]:
    """The numbers of a system that goals judge."""
    kinds = [found.of_kind(kind) for kind in found.kinds]
    errors_ns = [abs(each.error_ns) for each in found.met if each.right] or [0]
    return {
        "late": len(found.met),
        "least_of_a_kind": min(map(len, kinds)),
        "right_percent": _right_percent(found.met),
        "right_of_worst_kind_percent": min(map(_right_percent, kinds)),
        "error_median_us": quantile_of(errors_ns, 0.5) / 1000,
        "error_p95_us": quantile_of(errors_ns, 0.95) / 1000,
        "error_max_us": max(errors_ns) / 1000,
        "unexplained_percent": 100 * found.unexplained,
        "late_alone": len(found.alone),
        "named_without_cause": sum(each.truth.kind in found.system.never_late for each in found.met),
    }


def _right_percent(answers: Sequence[Answer]) -> float:
    return 100 * sum(each.right for each in answers) / len(answers) if answers else 0.0


def described(found: Disturbed) -> dict[str, Any]:
    """All that the file says of a system."""
    begin = found.record.begin
    return {
        "kernel": found.system.kernel,
        "release": begin.kernel_release,
        "version": begin.kernel_version,
        "preemption": found.system.model,
        "agent": begin.agent_version,
        "qemu": disturbed_guests.emulator(found.system),
        "limit_us": disturbed_guests.LIMIT_NS / 1000,
        "disturbances": len(found.truth),
        **figures(found),
        "name_right": sum(each.right and each.name_right for each in found.met),
        "causes_of_late_alone": [each.first.words() for each in found.alone],
        "outside_of_the_trace": found.explanation.outside,
        "also_right": sorted([kind, cause.value] for kind, cause in found.system.also_right),
        "kinds": described_kinds(found),
    }


def described_kinds(found: Disturbed) -> dict[str, dict[str, Any]]:
    """What the file says of each kind. how: guest, or why it is otherwise."""
    why, table = dict(found.system.not_made), confusion(found.met)
    kinds: dict[str, dict[str, Any]] = {}
    for kind, causes in table.items():
        some = found.of_kind(kind)
        errors_ns = [abs(each.error_ns) for each in some if each.right]
        kinds[kind] = {
            "how": why.get(kind, "guest"),
            "makes_late": kind in found.kinds,
            "disturbances": sum(each.kind == kind for each in found.truth),
            "late": len(some),
            "right_percent": _right_percent(some) if some else None,
            "error_us": {
                "median": quantile_of(errors_ns, 0.5) / 1000,
                "p95": quantile_of(errors_ns, 0.95) / 1000,
                "max": max(errors_ns) / 1000,
            }
            if errors_ns
            else None,
            "first_causes": dict(causes),
        }
    return kinds


def confusion_lines(found: Disturbed) -> list[str]:
    """A line for each kind: how often, and which causes came first."""
    lines = [f"{found.system.name}: {found.record.begin.kernel_release}, {len(found.met)} late of {len(found.truth)}"]
    for kind, one in described_kinds(found).items():
        causes = sorted(one["first_causes"].items(), key=lambda item: -item[1])
        said = ", ".join(f"{cause} {count}" for cause, count in causes) or "nobody late"
        how = "" if one["how"] == "guest" else f"  ({one['how']})"
        error = f", error {one['error_us']['p95']:.1f} us (95 %)" if one["error_us"] else ""
        lines.append(f"  {kind:17} {one['late']:4}  {said}{error}{how}")
    return lines


def measure(name: str) -> dict[str, Any]:
    """One system in a guest; prints its confusion."""
    (system,) = disturbed_guests.chosen_systems([name])
    with tempfile.TemporaryDirectory() as folder:
        found = disturbed_guests.measure(system, Path(folder) / "out")
        print(*confusion_lines(found), sep="\n", flush=True)
        return described(found)


TABLE_HEAD = """\
| system | kernel | late | right | worst kind | error: median, 95 %, largest | unexplained |
|---|---|---:|---:|---:|---|---:|"""


def table_row(name: str, one: Details) -> str:
    """The system's row of the table in docs/explain.md."""
    errors = ", ".join(f"{one[f'error_{which}_us']:.1f}" for which in ("median", "p95", "max"))
    right = round(one["late"] * one["right_percent"] / 100)
    return (
        f"| {name} | {one['release']} | {one['late']} | {right} | {one['right_of_worst_kind_percent']:.0f} % "
        f"| {errors} us | {one['unexplained_percent']:.2f} % |"
    )


def part_figures(items: Items) -> list[Figure]:
    """The numbers of each system, with what is asked of them."""
    return [figure for name, one in items.items() for figure in _figures_of(name, one)]


def _figures_of(name: str, one: Details) -> list[Figure]:
    late, right = one["late"], round(one["late"] * one["right_percent"] / 100)
    made = [kind for kind in one["kinds"].values() if kind["how"] == "guest"]
    worst = min((kind for kind in made if kind["makes_late"]), key=lambda kind: kind["right_percent"] or 0)
    preempted = sum(kind["disturbances"] for kind in made if not kind["makes_late"])
    rows: tuple[tuple[str, str, str, int, Bound | None], ...] = (
        ("late", "disturbed activations that were late", "", one["disturbances"], None),
        ("least_of_a_kind", "of the rarest kind", "", late, Bound(LEAST_OF_A_KIND)),
        ("right_percent", "first cause right", "%", late, Bound(RIGHT_PERCENT, 100)),
        ("right_of_worst_kind_percent", "the same of the worst kind", "%", worst["late"], Bound(RIGHT_OF_KIND_PERCENT)),
        ("error_median_us", "|error| of its length, median", "us", right, None),
        ("error_p95_us", "the same, 95 %", "us", right, Bound(most=ERROR_US)),
        ("error_max_us", "the same, largest", "us", right, None),
        ("unexplained_percent", "late time that is unexplained", "%", late, Bound(most=UNEXPLAINED_PERCENT)),
        ("late_alone", "late although nothing disturbed", "", late + one["late_alone"], None),
        ("named_without_cause", "named though this kernel preempts it", "", preempted, Bound(0, 0)),
    )  # fmt: skip
    return [Figure(name, words, one[key], unit, n, bound) for key, words, unit, n, bound in rows]


PART = Part(
    asked="1: the first cause of known disturbances, in guests in virtual time",
    items=lambda: [system.name for system in disturbed_guests.SYSTEMS],
    measure=measure,
    figures=part_figures,
    lines=lambda items: ["", TABLE_HEAD, *(table_row(name, one) for name, one in items.items())],
)
