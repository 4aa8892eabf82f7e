# SPDX-License-Identifier: Apache-2.0
"""The result of an audit as text, the most severe first."""

from collections.abc import Iterator

from rtproof.audit.audit_model import Audit, CheckResult, Outcome

_TITLES = {
    Outcome.FINDING: "Findings",
    Outcome.CONFLICTING: "Conflicting evidence",
    Outcome.UNKNOWN: "Unknown",
}


def audit_text(result: Audit) -> str:
    """All findings with their advice, then what is unknown, then how many are good or do not apply."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Audit) -> Iterator[str]:
    yield f"Audit of {result.machine}, {result.kernel}; purpose: {result.purpose}"
    for outcome, title in _TITLES.items():
        found = result.of(outcome)
        if found:
            yield ""
            yield f"{title} ({len(found)})"
            for one in found:
                yield from _result_lines(one)
    yield ""
    yield f"{len(result.of(Outcome.GOOD))} checks are good, {len(result.of(Outcome.NOT_APPLICABLE))} do not apply."


def _result_lines(one: CheckResult) -> Iterator[str]:
    yield f"  {one.severity.value:6} {one.check.id}: {one.sentence}"
    if one.outcome is Outcome.FINDING:
        yield f"         {one.check.advice}"
