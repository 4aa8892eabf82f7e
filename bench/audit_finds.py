# SPDX-License-Identifier: Apache-2.0
"""Does the audit find what is wrong in stored facts, and nothing else?

Each plant of tests/audit_plants.py is one wrong setting in the stored facts of a system. The audit must complain of it
by its own id, of nothing else, and must not lose what it knew.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from audit_plants import PLANTS, SYSTEMS, Plant
from audit_systems import Difference
from part import Bound, Details, Figure, Part, percent

from rtproof.audit import check_file
from rtproof.audit.check import Audit
from rtproof.audit.facts import AuditRequest


@dataclass(frozen=True)
class Tried:
    """What came of a plant. found, missed: of what should find it. false: other complaints. lost: as in Difference."""

    name: str
    found: frozenset[str]
    missed: frozenset[str]
    false: frozenset[str]
    lost: frozenset[str]

    @classmethod
    def of(cls, name: str, expected: Iterable[str], difference: Difference) -> "Tried":
        wanted, found = frozenset(expected), difference.found
        return cls(name, found & wanted, wanted - found, found - wanted, difference.lost - wanted)

    @property
    def wrong(self) -> str:
        """What is not as it should be; "" if all is."""
        kinds = (("missed", self.missed), ("false", self.false), ("lost", self.lost))
        return "; ".join(f"{kind} {', '.join(sorted(names))}" for kind, names in kinds if names)


@cache
def _base_audit(system: str, request: AuditRequest) -> Audit:
    return SYSTEMS[system].audit((), request)


def try_plant(plant: Plant) -> Tried:
    """Judge a stored system with and without the plant."""
    system = SYSTEMS[plant.system]
    request = plant.request or system.request
    difference = Difference.between(_base_audit(plant.system, request), system.audit(plant.edits, request))
    return Tried.of(plant.name, plant.expected, difference)


def numbers(tried: Sequence[Tried]) -> dict[str, Any]:
    """How many plants are right, and for each check how often it was found, missed, or false, in this order."""
    wrong = [each for each in tried if each.wrong]
    for each in wrong:
        print(f"    {each.name}: {each.wrong}", flush=True)
    kinds = (
        Counter(name for each in tried for name in each.found),
        Counter(name for each in tried for name in each.missed),
        Counter(name for each in tried for name in (*each.false, *each.lost)),
    )
    checks = {check.id: [kind[check.id] for kind in kinds] for check in check_file.all_checks()}
    return {
        "plants": len(tried),
        "right_percent": percent(len(tried) - len(wrong), len(tried)),
        "checks_without_a_plant": sum(not any(counts) for counts in checks.values()),
        "checks": checks,
        "wrong": {each.name: each.wrong for each in wrong},
    }


def rows(_: str, one: Details) -> list[str]:
    return [f"| {name} | {' | '.join(map(str, counts))} |" for name, counts in one["checks"].items()]


PART = Part(
    goal="each planted misconfiguration is found by its own check, and by no other",
    measure=lambda _: numbers([try_plant(plant) for plant in PLANTS]),
    figures=(
        Figure("right_percent", "plants that are found, and nothing else", "%", Bound(100), "plants"),
        Figure("checks_without_a_plant", "checks that no plant is found by"),
    ),
    head="| check | found | missed | false |",
    rows=rows,
)
