# SPDX-License-Identifier: Apache-2.0
"""A published row is said to be loaded by tasks that always want to run, but hardly any task wanted to.

Only loads that keep a processor busy here are judged, by the names of their programs: stress as a plain word may mean
that of a network. A flood of packets or a load that pauses need not be a waiting task.
Of a measured run, the doubts about its loads say more than the load average: they know how much the loads did.
"""

import re
from collections.abc import Iterable, Sequence

from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.judge.doubts.rules.unequal_load import AVERAGES_NS, FORGETS
from rtproof.summary.summary_model import Doubt

ORDER = 56
CODE = "not-loaded"
REMEDY = "see why the load did no work"
DOUBTS: tuple[str, ...] = ()
FEWEST_TASKS = 0.5
"""One task that always wants to run gives 0.95 after three lengths of the average, and averages scatter by 0.2."""
BUSY = re.compile(
    r"\bstress(-ng|apptest)\b|\bstress(?=\s+-)|^\s*stress\s*$|\bhackbench\b|\bcpuburn\b|\bcores? busy\b"
    r"|\bbusy loops?\b|\bcompil(e|es|ing|ation)\b|\bmake -j"
    r"|\bburn(p\d|mmx)\b",
    re.IGNORECASE,
)
PAUSES = re.compile(
    r"--cpu-load|\s-l\s|--timeout|\s-t\s?\d|--backoff|\bsleep\b|\bidle\b|\b(not?|none) |\bwithout\b|\bremote"
    r"|\b(other|another|host|second) (machine|host|computer|PC)\b|\bon the host\b|\b(ended|finished|stopped)\b",
    re.IGNORECASE,
)


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        text = f"{claim.load} {claim.load_line}"
        busy = not claim.measured and not claim.said_idle and BUSY.search(text) and not PAUSES.search(text)
        average = _average(claim) if busy else None
        if average is not None and average < FEWEST_TASKS:
            what = f"the load average was {average:.2f} under load"
            detail = f"at the end of {claim.load or claim.load_line}: no task kept a processor busy"
            yield Doubt(CODE, WARNING, what, REMEDY, detail, (claim.name,))


def _average(claim: ResultClaim) -> float | None:
    """The longest load average that depends on the run alone; None if no average does."""
    if claim.span is None or len(claim.loadavg) != len(AVERAGES_NS):
        return None
    covered = [place for place, over_ns in enumerate(AVERAGES_NS) if FORGETS * over_ns <= claim.span.shortest_ns]
    return max(claim.loadavg[place] for place in covered) if covered else None
