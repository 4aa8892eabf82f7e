# SPDX-License-Identifier: Apache-2.0
"""Objections to result rows, published or measured: what the figures of a row say against themselves.

A row is a ``ResultClaim``; ``claim_of`` makes one of a run. ``rules`` has one file per rule. Each rule gets all rows
and can compare them. If a doubt about a run says the same as a rule, the objection cites the doubt.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import ModuleType

from rtproof.core import plugins
from rtproof.judge.objections import rules
from rtproof.judge.objections.result_row import (
    Figures,
    Objection,
    ResultBins,
    ResultClaim,
    RowKind,
    RowThread,
    ShareAtMost,
    Span,
    claim_of,
    row_of_import,
)
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.summary_model import Doubt, Severity

__all__ = [
    "Figures",
    "Objection",
    "ResultBins",
    "ResultClaim",
    "RowKind",
    "RowThread",
    "ShareAtMost",
    "Span",
    "claim_of",
    "contradicted",
    "contradictions",
    "objections",
]


CITED = {"throttling": ("throttled", "budget-stops", "clock-changed"), "own-link": ("link-load",)}
"""Objections without a rule, because no published row has such facts, and the doubts about a measured run they cite."""


def objections(claims: Sequence[ResultClaim]) -> tuple[Objection, ...]:
    """All objections to these rows. Rows of the same group are also compared with each other."""
    by_rules = [found for rule in plugins.load_plugins(rules) for found in _by(rule, claims)]
    return (*by_rules, *(found for code, doubts in CITED.items() for found in _cited(code, doubts, claims)))


def contradictions(row: ResultClaim) -> tuple[Doubt, ...]:
    """A doubt for each way in which the figures of a row cannot all be true. A run with one of them is INVALID."""
    return tuple(each.as_doubt for each in objections([row]) if each.severity is Severity.INVALID)


def contradicted(imported: ImportedHistogram) -> ImportedHistogram:
    """The file with the contradictions between its figures as faults, unless its importer found faults already."""
    found = () if imported.faults else contradictions(row_of_import(imported, "the file"))
    return replace(imported, faults=(*imported.faults, *(doubt.detail for doubt in found)))


def _by(rule: ModuleType, claims: Sequence[ResultClaim]) -> Iterator[Objection]:
    cited = list(_cited(rule.CODE, rule.DOUBTS, claims))
    yield from cited
    told = {name for objection in cited for name in objection.claims}
    others = [claim for claim in claims if claim.name not in told]
    severity = getattr(rule, "SEVERITY", Severity.WARNING)
    yield from (replace(found, remedy=rule.REMEDY, severity=severity) for found in rule.judge(others))


def _cited(code: str, doubts: Sequence[str], claims: Sequence[ResultClaim]) -> Iterator[Objection]:
    for claim in claims:
        for doubt in claim.doubts:
            if doubt.code in doubts:
                yield Objection(code, (claim.name,), doubt.what, doubt.detail, doubt.remedy, doubt.code)
