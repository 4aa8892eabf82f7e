# SPDX-License-Identifier: Apache-2.0
"""All rules over all claims, in the order of the rules and then of the claims."""

from collections.abc import Iterator, Sequence
from types import ModuleType

from rtproof import plugins
from rtproof.analysis.objections import rules
from rtproof.analysis.objections.claim import Claim, Objection


def objections(claims: Sequence[Claim]) -> tuple[Objection, ...]:
    """Everything that speaks against these rows; those of one group are also held against each other."""
    return tuple(found for rule in plugins.load_all(rules) for found in _by(rule, claims))


def _by(rule: ModuleType, claims: Sequence[Claim]) -> Iterator[Objection]:
    cited = [
        Objection(rule.CODE, (claim.name,), f"{claim.name}: {doubt.what}", doubt.code)
        for claim in claims
        for doubt in claim.doubts
        if doubt.code in rule.DOUBTS
    ]
    yield from cited
    told = {name for objection in cited for name in objection.claims}
    yield from rule.judge([claim for claim in claims if claim.name not in told])
