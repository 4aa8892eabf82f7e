# SPDX-License-Identifier: Apache-2.0
"""``make bench-audit``: does the audit find what is wrong, and nothing else?

    python bench/audit.py [--real]

Each plant of tests/audit_plants.py is one wrong setting in the stored facts of a system. The audit must complain of it
by its own id, of nothing else, and must not lose what it knew. With --real the same settings are made in guests that
boot with them. The result is a table in build/bench-audit.json: for each check how often it was found and missed, and
how often it complained of what was not planted. The exit code is 1 if one was missed or was false.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from audit_guests import collect_in
from audit_plants import PLANTS, REAL_PLANTS, SYSTEMS, Plant, RealPlant
from audit_systems import BAD, Difference, record_of_bytes, stored_names, stored_record

from rtproof.audit import check_file, judgement
from rtproof.audit.audit_model import Audit
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest, Facts
from rtproof.core.errors import RtproofError, TargetError

EVENTS = frozenset({"kern.dmesg.bugs", "clk.source", "clk.tsc", "con.spam", "mem.evid", "iso.irq.flood", "pm.thermal"})
"""Checks of what happened just then. In a guest on a busy host, more or less may happen at each boot."""
BOOTS = 3
"""So often a guest may boot until it lives long enough. Kernels sometimes panic in an emulator on a busy host."""
RESULT = Path(__file__).parent.parent / "build" / "bench-audit.json"


@dataclass(frozen=True)
class Tried:
    """What came of a plant. found, missed: of what should find it. false: other complaints. lost: as in Difference."""

    name: str
    system: str
    expected: frozenset[str]
    found: frozenset[str]
    missed: frozenset[str]
    false: frozenset[str]
    lost: frozenset[str]

    @classmethod
    def of(cls, name: str, system: str, expected: Iterable[str], difference: Difference) -> "Tried":
        wanted = frozenset(expected)
        found = difference.found
        return cls(name, system, wanted, found & wanted, wanted - found, found - wanted, difference.lost - wanted)

    @property
    def right(self) -> bool:
        return not (self.missed or self.false or self.lost)

    def row(self) -> dict[str, Any]:
        """For the JSON."""
        sets = {name: sorted(getattr(self, name)) for name in ("expected", "found", "missed", "false", "lost")}
        return {"name": self.name, "system": self.system, **sets}


@cache
def _base_audit(system: str, request: AuditRequest) -> Audit:
    return SYSTEMS[system].audit((), request)


def try_plant(plant: Plant) -> Tried:
    """Judge a stored system with and without the plant."""
    system = SYSTEMS[plant.system]
    request = plant.request or system.request
    difference = Difference.between(_base_audit(plant.system, request), system.audit(plant.edits, request))
    return Tried.of(plant.name, plant.system, plant.expected, difference)


def try_real(plants: Iterable[RealPlant]) -> list[Tried]:
    """The same in guests, each of which boots once as it is and once with each plant."""
    before: dict[str, Audit] = {}
    tried = []
    for plant in plants:
        name = f"{plant.guest.kernel} {' '.join(plant.guest.boot)}".strip()
        try:
            if name not in before:
                before[name] = _audit_of_guest(plant, planted=False)
            found = Difference.between(before[name], _audit_of_guest(plant, planted=True))
        except RtproofError as problem:
            print(f"{plant.name}: {problem}", file=sys.stderr)
            continue
        happened = EVENTS - set(plant.expected)
        difference = Difference(found.found - happened, found.lost - happened)
        tried.append(Tried.of(plant.name, name, plant.expected, difference))
        print(_line(tried[-1]), flush=True)
    return tried


def _audit_of_guest(plant: RealPlant, *, planted: bool) -> Audit:
    guest = plant.guest.with_more(plant.boot, plant.setup) if planted else plant.guest
    for left in reversed(range(BOOTS)):
        with tempfile.TemporaryDirectory(prefix="rtproof-audit-") as folder:
            try:
                record = record_of_bytes(collect_in(guest, Path(folder)))
            except TargetError as problem:
                print(f"{plant.name}: {problem}", file=sys.stderr)
                if not left:
                    raise
                continue
            return judgement.audit(Facts(record, plant.request))
    raise AssertionError


def table(tried: Iterable[Tried]) -> dict[str, dict[str, int]]:
    """For each check: how often it was found, was missed, and complained or fell silent without reason."""
    counts: dict[str, Counter[str]] = {check.id: Counter() for check in check_file.all_checks()}
    for each in tried:
        for kind in ("found", "missed", "false"):
            for name in getattr(each, kind):
                counts.setdefault(name, Counter())[kind] += 1
        for name in each.lost:
            counts.setdefault(name, Counter())["false"] += 1
    return {name: {kind: found[kind] for kind in ("found", "missed", "false")} for name, found in counts.items()}


def without_plant() -> list[str]:
    """Checks that no plant of the stored facts is found by."""
    planted = {name for plant in PLANTS for name in plant.expected}
    return [check.id for check in check_file.all_checks() if check.id not in planted]


def outcomes_of_systems() -> dict[str, Any]:
    """For each stored system how many checks came out how, and the findings above low."""
    found = {}
    for name in (*stored_names(), *SYSTEMS):
        system = SYSTEMS.get(name)
        audit = system.audit() if system else judgement.audit(Facts(stored_record(name)))
        counts = Counter(result.outcome.value for result in audit.results)
        found[name] = {"outcomes": dict(counts), "above_low": _above_low(audit)}
    return found


def _above_low(audit: Audit) -> Mapping[str, str]:
    return {
        result.check.id: f"{result.severity.value}: {result.sentence}"
        for outcome in BAD
        for result in audit.of(outcome)
        if result.severity.rank < Severity.LOW.rank
    }


def _line(tried: Tried) -> str:
    said = "right" if tried.right else "WRONG"
    wrong = [f"{kind} {', '.join(sorted(getattr(tried, kind)))}" for kind in ("missed", "false", "lost")]
    return f"{said} {tried.name} ({', '.join(sorted(tried.expected))}) " + "; ".join(
        each for each in wrong if not each.endswith(" ")
    )


def main(arguments: list[str]) -> int:
    """Try all plants and write the table; 1 if something was missed, false or lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", action="store_true", help="plant them in guests, too")
    parser.add_argument("--only", default="", metavar="TEXT", help="only plants whose name contains this")
    asked = parser.parse_args(arguments)
    stored = [try_plant(plant) for plant in PLANTS if asked.only in plant.name]
    for each in stored:
        if not each.right:
            print(_line(each), flush=True)
    real = try_real([plant for plant in REAL_PLANTS if asked.only in plant.name]) if asked.real else []
    every = [*stored, *real]
    rows = table(every)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(
        json.dumps(
            {
                "checks": rows,
                "plants": [each.row() for each in stored],
                "plants_in_guests": [each.row() for each in real],
                "without_plant": without_plant(),
                "systems": outcomes_of_systems(),
            },
            indent=1,
        )
        + "\n"
    )
    print(f"{'check':24} {'found':>5} {'missed':>6} {'false':>5}")
    for name, row in rows.items():
        print(f"{name:24} {row['found']:5} {row['missed']:6} {row['false']:5}")
    wrong = sum(not each.right for each in every)
    print(f"{len(stored)} plants in stored facts, {len(real)} in guests, {wrong} not as they should be")
    print(f"checks without a plant: {', '.join(without_plant()) or 'none'}; everything is in {RESULT}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
