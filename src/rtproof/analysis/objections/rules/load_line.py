# SPDX-License-Identifier: Apache-2.0
"""The load that was claimed cannot have been there, or nothing shows that it was."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rtproof.analysis.objections import shell
from rtproof.analysis.objections.claim import Claim, Objection

ORDER = 40
CODE = "load-unproven"
DOUBTS = ("load-died", "load-idle", "load-paused", "load-late", "load-part-idle", "load-slight", "load-unproven")


def judge(claims: Sequence[Claim]) -> Iterable[Objection]:
    """Rows whose lines have the same fault share one objection."""
    faulty: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        fault = shell.fault(claim.load_line) if claim.load_line else None
        if fault:
            faulty[fault].append(claim)
    for fault, same in faulty.items():
        what = (
            f"the line that was to make the load is no shell command ({fault}), so nothing shows that there was any: "
            f"{same[0].load_line}"
        )
        yield Objection(CODE, tuple(claim.name for claim in same), what)
