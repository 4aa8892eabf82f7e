# SPDX-License-Identifier: Apache-2.0
"""A wake-up is late by many periods, but the row shows neither late nor missing activations behind it.

While a wake-up is late by N periods, N more activations come due. Those that run afterwards are late too, the last of
them least. So M of them are above the smallest latency by M/2 periods on average. Nothing is earlier than the smallest
latency. Those that never ran are missing from the number that the length has room for.
"""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import value
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, counted, of_parts
from rtproof.summary.summary_model import Doubt

ORDER = 65
CODE = "backlog"
REMEDY = "measure again"
DOUBTS: tuple[str, ...] = ()


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        yield from of_parts(Doubt(CODE, WARNING, "", REMEDY), claim, _alone(claim))


def _alone(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    for each, count, due in counted(claim):
        if each.max_ns is None or each.mean_ns is None or each.min_ns is None or not each.period_ns:
            continue
        above_ns = each.max_ns - each.min_ns - each.step("max") - each.step("min")
        behind = int(above_ns // each.period_ns) - max(due.most - count, 0) - 1
        least_ns = each.min_ns - each.step("min") + each.period_ns * behind**2 / 2 / max(count, 1)
        if behind > 0 and least_ns > each.mean_ns + each.step("mean"):
            yield (
                each,
                f"its largest value {value(round(each.max_ns))} spans {behind:,} periods, and no sample of these is "
                f"missing; they were late too, so the mean would be {value(round(least_ns))} or more",
            )
