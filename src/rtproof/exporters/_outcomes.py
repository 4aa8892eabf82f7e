# SPDX-License-Identifier: Apache-2.0
"""What the formats of test services share: whether a run passed, and the figures of each thread in microseconds."""

from collections.abc import Iterator

from rtproof.core.errors import UserError
from rtproof.core.printable import clean
from rtproof.core.units import format_duration
from rtproof.exporters import _columns
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, Outcome, Verdict
from rtproof.summary.summary_model import Summary


def result_of(verdict: Verdict) -> str:
    """The word that test services use. They have none for a test that measured something else."""
    outcome = Outcome.UNKNOWN if verdict.outcome is Outcome.INVALID else verdict.outcome
    return str(outcome.value)


def result_of_figures(verdict: Verdict) -> str:
    """The word beside a measured figure: it was measured, so it is never skipped."""
    measured = verdict.outcome in (Outcome.SKIPPED, Outcome.UNKNOWN)
    return str(Outcome.PASSED.value) if measured else result_of(verdict)


def asked(analysis: Analysis) -> tuple[Verdict, ...]:
    """The verdict on each limit, in the order in which the limits were given; empty without a limit."""
    return tuple(verdict for verdict in analysis.verdicts or (analysis.verdict,) if verdict.requirement is not None)


def limit_name(verdict: Verdict) -> str:
    """A short name of a limit for services that allow no spaces: "limit-500us", or "limit-500us-per-1h"."""
    asked = verdict.requirement
    if asked is None:
        return "no-limit"
    limit = f"limit-{format_duration(asked.limit_ns)}"
    return limit if asked.plain else f"{limit}-per-{format_duration(asked.at_most_ns)}"


def answer(verdict: Verdict) -> str:
    """The fact in a sentence of ASCII, and what it shows."""
    said = f"{verdict_sentences.claim_answer(verdict)} {verdict_sentences.short_answer(verdict)}".strip()
    return clean(said).encode("ascii", "replace").decode()


def threads(analysis: Analysis) -> Iterator[tuple[Summary, dict[str, float]]]:
    """Each thread, and minimum, mean and maximum of its activations that ran, in us; {} if it never ran.

    UserError if they are no times.
    """
    _columns.refuse_without_threads(analysis)
    for summary in analysis.summaries:
        seen = summary.observed
        if summary.series.unit != "ns":
            raise UserError(f"its values are in {summary.series.unit}, and this format is for times")
        ends = {"min": seen.min / 1_000, "mean": (seen.mean or 0) / 1_000, "max": seen.max / 1_000}
        yield summary, ends if seen.count else {}
