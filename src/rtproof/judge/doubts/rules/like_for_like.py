# SPDX-License-Identifier: Apache-2.0
"""Published rows are compared, but were not measured under the same conditions.

The conditions are those of ``rtproof compare``: load, period, policy, priority and method have to agree, and the
maximum of a longer run has seen rarer events. What a row does not tell is no reason. What the article varies on purpose
is none either: the row names it. Runs of a campaign share one plan, so this rule leaves measured rows alone.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import duration, percent, value
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.judge.doubts.rules.command import known_method, known_policy
from rtproof.summary.summary_model import Doubt

ORDER = 52
CODE = "unlike"
REMEDY = "compare like with like"
DOUBTS: tuple[str, ...] = ()
LONGER = 1.5
"""A run that is longer by this factor or more has seen clearly rarer events."""
CONFIDENCE = 0.95
CONDITIONS = ("load", "policy", "priority", "method", "period", "length")


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    groups: dict[str, list[ResultClaim]] = defaultdict(list)
    for claim in claims:
        if claim.group and not claim.measured:
            groups[claim.group].append(claim)
    for same in groups.values():
        varies = {name for claim in same for name in claim.varies}
        for name in CONDITIONS:
            if name not in varies:
                yield from _lengths(same) if name == "length" else _texts(name, same)


def _texts(name: str, claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    told = [(claim, text) for claim in claims if (text := _text(name, claim))]
    if len({_same_word(name, text) for _, text in told}) > 1:
        yield _objection([claim for claim, _ in told], name, [text for _, text in told])


def _same_word(name: str, text: str) -> str:
    """One word for all spellings of a condition."""
    known = {"policy": known_policy, "method": known_method}.get(name)
    return (known and known(text)) or " ".join(text.casefold().split())


def _text(name: str, claim: ResultClaim) -> str:
    if name == "period":
        periods = sorted({each.period_ns for each in claim.figures if each.period_ns})
        return ", ".join(value(period) for period in periods)
    if name == "priority":
        return "" if claim.priority is None else str(claim.priority)
    return str({"load": claim.load, "policy": claim.policy, "method": claim.method}[name])


def _lengths(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    """Runs of unequal length whose maxima are compared."""
    told = [
        (claim, claim.span)
        for claim in claims
        if claim.span is not None and any(each.max_ns is not None for each in claim.figures)
    ]
    if told and max(span.shortest_ns for _, span in told) >= LONGER * min(span.longest_ns for _, span in told):
        lengths = [duration(span.told_ns) for _, span in told]
        bound = duration(min(span.told_ns for _, span in told) / -math.log(1 - CONFIDENCE), up=True)
        lacks = f"the shortest may lack what comes less often than once per {bound} ({percent(CONFIDENCE)})"
        yield _objection([claim for claim, _ in told], "length", lengths, f"; {lacks}: compare equal times")


def _objection(claims: Sequence[ResultClaim], name: str, texts: Sequence[str], tail: str = "") -> Doubt:
    names = tuple(claim.name for claim in claims)
    told = "; ".join(f"{claim}: {text}" for claim, text in zip(names, texts, strict=True))
    return Doubt(CODE, WARNING, f"the {name} of rows that are compared differs", REMEDY, f"{told}{tail}", names)
