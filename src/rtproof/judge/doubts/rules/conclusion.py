# SPDX-License-Identifier: Apache-2.0
"""All values of a row stay below a limit, or not all do, as the author concludes, and the row's figures contradict."""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import percent, value
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, of_parts
from rtproof.summary.summary_model import Doubt

ORDER = 72
CODE = "conclusion"
REMEDY = "conclude what they allow"
DOUBTS: tuple[str, ...] = ()


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        found = ((each, says) for each in claim.figures if (says := contradiction(each)))
        yield from of_parts(Doubt(CODE, WARNING, "its figures contradict its conclusion", REMEDY), claim, found)


def contradiction(each: Figures) -> str:
    """How the figures contradict the conclusion about a limit; "" if they do not, or if there is none."""
    reached, name = max(_reached(each), default=(0.0, ""))
    if each.said_below_ns is not None and name and reached >= each.said_below_ns:
        return f"all values are said to stay below {_shown(each.said_below_ns)}, and {name}"
    most = _most(each)
    if each.said_beyond_ns is not None and most is not None and most < each.said_beyond_ns:
        return f"not all values are said to stay below {_shown(each.said_beyond_ns)}, and all are below {_shown(most)}"
    return ""


def _reached(each: Figures) -> Iterator[tuple[float, str]]:
    """Values that the largest one surely reaches, with the figure that says so."""
    if each.max_ns is not None:
        step = 0 if each.at_least else each.step("max")
        yield each.max_ns - step, f"its maximum is {'more than ' * each.at_least}{_shown(each.max_ns)}"
    for point in (*each.percentiles, *each.curve):
        if point.share + point.share_step < 1:
            told = f"{percent(1 - point.share)} of them are above {_shown(point.value_ns)}"
            yield point.value_ns - point.value_step_ns, told
    if each.beyond and each.beyond_from_ns is not None:
        yield each.beyond_from_ns, f"{each.beyond:,} lie beyond its bins, which end at {_shown(each.beyond_from_ns)}"
    if each.counts is not None and each.counts.n.size:
        start_ns = int(each.counts.lo[-1])
        yield start_ns, f"its last filled bin begins at {_shown(start_ns)}"


def _most(each: Figures) -> float | None:
    """What the largest value surely does not exceed."""
    if each.max_ns is not None and not each.at_least:
        return each.max_ns + each.step("max")
    counts = each.counts
    return None if counts is None or not counts.n.size or each.beyond != 0 else int(counts.hi[-1]) + 1


def _shown(ns: float) -> str:
    return value(round(ns))
