# SPDX-License-Identifier: Apache-2.0
"""``make bench-explain``: how often the first cause is right; writes build/bench-explain.json.

    python bench/explain.py [SYSTEM...]

A kernel module disturbs a CPU in known ways, in guests in virtual time. Names of systems choose some of them; the
others keep what an earlier measurement wrote.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import disturbed_guests
from constructed_streams import constructed_answers
from disturbances import Answer, confusion, quantile_of
from disturbed_guests import Disturbed, System
from goals import Goal, show

from rtproof.core.errors import RtproofError
from rtproof.explain import budget

PLACE = Path(__file__).parent.parent / "build" / "bench-explain.json"
LEAST_OF_A_KIND = 15
RIGHT_PERCENT, RIGHT_OF_KIND_PERCENT, ERROR_US, UNEXPLAINED_PERCENT = 99.0, 95.0, 5.0, 1.0


def goals_of(name: str) -> tuple[Goal, ...]:
    """The goals of one system."""
    return (
        Goal(f"{name}.late", f"{name}: disturbed activations that were late"),
        Goal(f"{name}.least_of_a_kind", "  of the rarest kind", f"at least {LEAST_OF_A_KIND}", (LEAST_OF_A_KIND, 1e9)),
        Goal(f"{name}.right_percent", "  first cause right, %", f"at least {RIGHT_PERCENT:g}", (RIGHT_PERCENT, 100)),
        Goal(
            f"{name}.right_of_worst_kind_percent", "  the same of the worst kind, %",
            f"at least {RIGHT_OF_KIND_PERCENT:g}", (RIGHT_OF_KIND_PERCENT, 100),
        ),
        Goal(f"{name}.error_median_us", "  |error| of its length, median, us"),
        Goal(f"{name}.error_p95_us", "  the same, 95 %, us", f"at most {ERROR_US:g}", (0, ERROR_US)),
        Goal(f"{name}.error_max_us", "  the same, largest, us"),
        Goal(
            f"{name}.unexplained_percent", "  late time that is unexplained, %",
            f"at most {UNEXPLAINED_PERCENT:g}", (0, UNEXPLAINED_PERCENT),
        ),
        Goal(
            f"{name}.constructed_right_percent", "  kinds as constructed streams, right, %",
            f"at least {RIGHT_OF_KIND_PERCENT:g}", (RIGHT_OF_KIND_PERCENT, 100),
        ),
        Goal(f"{name}.late_alone", "  late although nothing disturbed"),
        Goal(f"{name}.named_without_cause", "  named though this kernel preempts it", "none", (0, 0)),
    )  # fmt: skip


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
        "constructed_right_percent": min(_right_percent(some) for some in constructed(found.system).values()),
        "late_alone": len(found.alone),
        "named_without_cause": sum(each.truth.kind in found.system.never_late for each in found.met),
    }


def constructed(system: System) -> dict[str, list[Answer]]:
    """The answers to streams of the kinds that a guest cannot make."""
    preempts = system.model in ("full", "rt")
    rules = budget.System(preempts=preempts, real_time=system.model == "rt")
    return {kind: constructed_answers(kind, rules) for kind in system.constructed}


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
    streams, why = constructed(found.system), dict(found.system.not_made)
    table = confusion([*found.met, *(each for some in streams.values() for each in some)])
    kinds: dict[str, dict[str, Any]] = {}
    for kind, causes in table.items():
        some = streams.get(kind) or found.of_kind(kind)
        errors_ns = [abs(each.error_ns) for each in some if each.right]
        kinds[kind] = {
            "how": why.get(kind, "guest"),
            "makes_late": kind in (*found.kinds, *streams),
            "disturbances": len(some) if kind in streams else sum(each.kind == kind for each in found.truth),
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
        lines.append(f"  {kind:14} {one['late']:4}  {said}{error}{how}")
    return lines


def measure(system: System) -> dict[str, Any]:
    """One system in a guest; prints its confusion."""
    with tempfile.TemporaryDirectory() as folder:
        found = disturbed_guests.measure(system, Path(folder) / "out")
        print(*confusion_lines(found), sep="\n", flush=True)
        return described(found)


TABLE_HEAD = """\
| system | kernel | late | right | worst kind | error: median, 95 %, largest | unexplained |
|---|---|---:|---:|---:|---|---:|"""


def table_row(name: str, one: dict[str, Any]) -> str:
    """The system's row of the table in docs/explain.md."""
    errors = ", ".join(f"{one[f'error_{which}_us']:.1f}" for which in ("median", "p95", "max"))
    right = round(one["late"] * one["right_percent"] / 100)
    return (
        f"| {name} | {one['release']} | {one['late']} | {right} | {one['right_of_worst_kind_percent']:.0f} % "
        f"| {errors} us | {one['unexplained_percent']:.2f} % |"
    )


def kept() -> dict[str, dict[str, Any]]:
    """The systems in the file of an earlier measurement."""
    try:
        return dict(json.loads(PLACE.read_text())["systems"])
    except (OSError, ValueError, KeyError):
        return {}


def main(arguments: list[str]) -> int:
    """Exit code 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", help=f"of {', '.join(each.name for each in disturbed_guests.SYSTEMS)}")
    asked = parser.parse_args(arguments)
    try:
        chosen = disturbed_guests.chosen_systems(asked.systems)
    except RtproofError as error:
        print(error, file=sys.stderr)
        return 2
    systems = kept() if asked.systems else {}
    results: dict[str, float] = {}
    for system in chosen:
        systems[system.name] = measured_or_why_not(system)
        write(systems)
        results |= {f"{system.name}.{key}": value for key, value in systems[system.name].items()}
    fine = show([goal for system in chosen for goal in goals_of(system.name)], results)
    rows = (table_row(name, one) for name, one in systems.items() if "failed" not in one)
    print("", TABLE_HEAD, *rows, f"\n{PLACE}", sep="\n")
    return 0 if fine else 1


def measured_or_why_not(system: System) -> dict[str, Any]:
    """What the file says of a system. If its guest fails, the goals of the others can still be judged."""
    try:
        return measure(system)
    except RtproofError as error:
        print(f"{system.name}: {error}", file=sys.stderr)
        return {"kernel": system.kernel, "failed": str(error)}


def write(systems: dict[str, dict[str, Any]]) -> None:
    PLACE.parent.mkdir(exist_ok=True)
    PLACE.write_text(json.dumps({"systems": systems}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
