# SPDX-License-Identifier: Apache-2.0
"""Rows are compared, but their systems were not equally loaded. Then the load may cause the difference.

Counted loads differ if one did less than half of another's work. A different kernel costs a load less than that. For
the load average, the rule takes the longest one that depends on the run alone. An average forgets 95 % of what came
before in three times its length. Averages scatter: that of a minute by about 0.2, for tasks that come and go and are
sampled every 5 s. So two averages differ only if one is larger by more than a whole task, and by more than half.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.summary.summary_model import Doubt

ORDER = 50
CODE = "unequal-load"
REMEDY = "load all of them alike"
DOUBTS: tuple[str, ...] = ()
TASKS, RATIO = 1.0, 1.5
WORK_RATIO = 2.0
AVERAGES_NS = (60_000_000_000, 300_000_000_000, 900_000_000_000)
"""The lengths of the kernel's three load averages."""
FORGETS = 3


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    groups: dict[str, list[ResultClaim]] = defaultdict(list)
    for claim in claims:
        if claim.group:
            groups[claim.group].append(claim)
    for same in groups.values():
        yield from _names(same)
        yield from _work(same)
        yield from _averages(same)


def _names(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    measured = [claim for claim in claims if claim.measured]
    if len({frozenset(claim.loads) for claim in measured}) > 1:
        told = "; ".join(f"{claim.name}: {', '.join(sorted(claim.loads)) or 'none'}" for claim in measured)
        yield _objection(measured, "not the same loads ran", told)


def _work(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    for load in sorted({load for claim in claims for load in claim.loads}):
        rates = {claim.name: rate for claim in claims if (rate := claim.loads.get(load)) is not None}
        if len(rates) > 1 and max(rates.values()) > WORK_RATIO * min(rates.values()):
            told = "; ".join(f"{name}: {rate:,.4g}/s" for name, rate in rates.items())
            yield _objection(
                [claim for claim in claims if claim.name in rates], "a load did unequal work", f"{load}: {told}"
            )


def _averages(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    known = [claim for claim in claims if len(claim.loadavg) == len(AVERAGES_NS)]
    place = _place(known)
    if len(known) < 2 or place is None:
        return
    values = [claim.loadavg[place] for claim in known]
    if max(values) - min(values) > TASKS and max(values) > RATIO * min(values):
        minutes = AVERAGES_NS[place] // AVERAGES_NS[0]
        told = "; ".join(f"{claim.name}: {claim.loadavg[place]:.2f}" for claim in known)
        yield _objection(known, f"the load average of {minutes} min differs", told)


def _place(claims: Sequence[ResultClaim]) -> int | None:
    """The index of the longest average that no run was too short for; None if all runs were too short.

    Without any stated length it is the shortest average.
    """
    shortest = min((claim.span.shortest_ns for claim in claims if claim.span), default=FORGETS * AVERAGES_NS[0])
    return max((place for place, covers in enumerate(AVERAGES_NS) if FORGETS * covers <= shortest), default=None)


def _objection(claims: Sequence[ResultClaim], what: str, detail: str) -> Doubt:
    return Doubt(CODE, WARNING, what, REMEDY, detail, tuple(claim.name for claim in claims))
