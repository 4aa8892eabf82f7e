# SPDX-License-Identifier: Apache-2.0
"""Does the audit find what is wrong in guests that boot with it, and nothing else?"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import audit_finds
from audit_finds import Tried
from audit_guests import collect_in
from audit_plants import REAL_PLANTS, RealPlant
from audit_systems import Difference, record_of_bytes

from rtproof.audit import judgement
from rtproof.audit.check import Audit
from rtproof.audit.facts import Facts
from rtproof.core.errors import TargetError

EVENTS = frozenset({"kern.dmesg.bugs", "clk.source", "clk.tsc", "con.spam", "mem.evid", "iso.irq.flood", "pm.thermal"})
"""Checks of what happened just then. In a guest on a busy host, more or less may happen at each boot."""
BOOTS = 3
"""So often a guest may boot until it lives long enough. Kernels sometimes panic in an emulator on a busy host."""


def measure(_: str) -> dict[str, Any]:
    """Each guest boots once as it is and once with each plant. TargetError if one never lives long enough."""
    before: dict[str, Audit] = {}
    tried = []
    for plant in REAL_PLANTS:
        name = f"{plant.guest.kernel} {' '.join(plant.guest.boot)}".strip()
        if name not in before:
            before[name] = _audit_of_guest(plant, planted=False)
        found = Difference.between(before[name], _audit_of_guest(plant, planted=True))
        happened = EVENTS - set(plant.expected)
        tried.append(Tried.of(plant.name, plant.expected, Difference(found.found - happened, found.lost - happened)))
        print(f"    {plant.name}: {tried[-1].wrong or 'right'}", flush=True)
    return audit_finds.numbers(tried)


def _audit_of_guest(plant: RealPlant, *, planted: bool) -> Audit:
    guest = plant.guest.with_more(plant.boot, plant.setup) if planted else plant.guest
    for left in reversed(range(BOOTS)):
        with tempfile.TemporaryDirectory(prefix="rtproof-audit-") as folder:
            try:
                record = record_of_bytes(collect_in(guest, Path(folder)))
            except TargetError as problem:
                print(f"    {plant.name}: {problem}", flush=True)
                if not left:
                    raise
                continue
            return judgement.audit(Facts(record, plant.request))
    raise AssertionError


PART = replace(
    audit_finds.PART,
    goal="each misconfiguration that guests boot with is found by its own check, and by no other",
    measure=measure,
    long="it boots a guest for each plant",
)
