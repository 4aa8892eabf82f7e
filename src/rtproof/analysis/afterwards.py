# SPDX-License-Identifier: Apache-2.0
"""A limit that was chosen when the data were there already: whoever sees them first can choose the outcome.

No test of it means anything. What still holds is said of the rank that the limit has among the values of the run, as if
the rank had been chosen beforehand and the length too (order statistics); episodes are taken for exchangeable.
"""

from collections.abc import Sequence
from dataclasses import replace

from rtproof.analysis import wording
from rtproof.analysis.honesty import FIXED
from rtproof.analysis.model import Analysis, Doubt, Requirement, Severity, State, Verdict
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.phrases import duration, percent, quantity, value
from rtproof.analysis.verdict import deciding

LABEL = "chosen after the fact"
WHAT = "the limit was chosen after the data, so the confidence of a verdict on it would mean nothing"
REMEDY = "measure again with the limit given to rtproof run"


STATED = (
    "that this limit was fixed before the run is what the user states (--fixed-beforehand): nothing in the run shows "
    "it, and the confidence means nothing if it was not"
)
STATED_REMEDY = "give the limit to rtproof run, which writes it down before the run begins"


def limits_of_the_record(analysis: Analysis, fixed: Sequence[Requirement]) -> Analysis:
    """The analysis of a record alone, whose limits the agent was given: the usual time stands for what is lacking."""
    limits = ", ".join(value(each.limit_ns) for each in fixed)
    often = duration(fixed[0].at_most_ns)
    what = (
        f"the agent was given {'the limit' if len(fixed) == 1 else 'the limits'} {limits} before the run, but not how "
        f"often that may be exceeded: at most once per {often} is the usual requirement"
    )
    doubt = Doubt("limit-of-record", Severity.WARNING, what, "measure with rtproof run, which writes both down")
    return replace(analysis, doubts=(*analysis.doubts, doubt))


def stated_by_the_user(analysis: Analysis, fixed: Sequence[Requirement] = ()) -> Analysis:
    """The analysis with its decisions, and beside each that rests on it the user's word that the limit came first."""
    doubt = Doubt("limit-stated", Severity.WARNING, STATED, STATED_REMEDY)
    verdicts = tuple(verdict if verdict.requirement in fixed else _stated(verdict) for verdict in analysis.verdicts)
    return replace(analysis, doubts=(*analysis.doubts, doubt), verdict=deciding(verdicts), verdicts=verdicts)


def _stated(verdict: Verdict) -> Verdict:
    """Right behind the reasons of the verdict."""
    labelled = [at for at, (label, _) in enumerate(verdict.sentences) if label]
    at = labelled[1] if len(labelled) > 1 else len(verdict.sentences)
    sentences = (*verdict.sentences[:at], ("STATED", STATED), *verdict.sentences[at:])
    return replace(verdict, reasons=(*verdict.reasons, STATED), sentences=sentences)


def chosen_after_the_data(analysis: Analysis, fixed: Sequence[Requirement] = ()) -> Analysis:
    """The analysis without a decision on the requirements that are not among those fixed before the run.

    Of a test nothing is left; a run that is INVALID stays so. A verdict in virtual time tests nothing: it tells what
    was seen, which is so whenever the limit was chosen.
    """
    if all(verdict.deterministic for verdict in analysis.verdicts):
        return analysis
    doubt = Doubt("limit-after-data", Severity.WARNING, WHAT, REMEDY)
    verdicts = tuple(
        verdict if verdict.requirement in fixed else _without_test(verdict) for verdict in analysis.verdicts
    )
    return replace(analysis, doubts=(*analysis.doubts, doubt), verdict=deciding(verdicts), verdicts=verdicts)


def _without_test(verdict: Verdict) -> Verdict:
    invalid = verdict.state is State.INVALID
    state = State.INVALID if invalid else State.UNDECIDED
    reasons = (*verdict.reasons, WHAT) if invalid else (WHAT,)
    return Verdict(
        state=state,
        requirement=verdict.requirement,
        reasons=reasons,
        sentences=_sentences(state, reasons, verdict),
        episodes=verdict.episodes,
        measured_ns=verdict.measured_ns,
        exceedances_observed=verdict.exceedances_observed,
        exceedances_schedule=verdict.exceedances_schedule,
        rate_high_fixed=verdict.rate_high_fixed,
        chosen_after=True,
    )


def _sentences(state: State, reasons: tuple[str, ...], verdict: Verdict) -> wording.Sentences:
    first, *others = reasons
    lines = [("VERDICT", f"{state.value} - {first}"), *(("", reason) for reason in others)]
    if verdict.requirement:
        lines.append(("LIMIT", f"{wording.limit(verdict.requirement)}; {LABEL}"))
    if verdict.requirement and verdict.rate_high_fixed:
        lines.append(("RANK", _rank(verdict.requirement, verdict, verdict.rate_high_fixed)))
    return (*lines, *wording.of_the_run(verdict.sentences))


def _rank(requirement: Requirement, verdict: Verdict, rate_high: float) -> str:
    n = len(verdict.episodes)
    seen = f"{quantity(n, 'episode')} above {value(requirement.limit_ns)} in {duration(verdict.measured_ns)}"
    bound = f"less often than once per {duration(SECOND_NS / rate_high)} ({percent(requirement.confidence)}, {FIXED})"
    return f"{seen}; had this been asked of number {n + 1} of this run's largest episodes, and not of a limit: {bound}"
