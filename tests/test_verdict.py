# SPDX-License-Identifier: Apache-2.0

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from analysis_records import MS, SECOND, block
from doubt_cases import clean, facts
from stage_records import VIRTUAL

from rtproof import report, statistics
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, State, Verdict
from rtproof.judge.claim import LateStretches, episode_course
from rtproof.judge.episodes import LateTimes
from rtproof.judge.episodes import episodes_of_course as episodes_of
from rtproof.judge.evidence import Evidence, WorstActivation
from rtproof.judge.verdict import chosen_after_the_data, deciding_verdict, judge_requirement
from rtproof.judge.verdict_sentences import more_time_of_verdict
from rtproof.record.contents import Moment, Record
from rtproof.record.requirement import Requirement
from rtproof.schema.published import analysis_dict
from rtproof.summary.summary_model import Doubt, Severity

HOUR = 3600 * SECOND
LIMIT = Requirement(200_000, 24 * HOUR, 0.95)
WORST = WorstActivation(150_000, 2, 3, 5, "2026-11-20 11:02:31.4 UTC")
CLEAN = Evidence((), 73 * HOUR, 73 * HOUR, True, (), 1_000_000, 0, 1_000_000, WORST, 0, 0, "6.1.0-rt", "sched")
PROVEN = replace(CLEAN, measured_ns=90 * HOUR, asked_duration_ns=90 * HOUR)
FORBIDDEN = ("worst case is", "guarantee", "safe")


def with_late(evidence: Evidence, *times_s: float | tuple[float, float], requirement: Requirement = LIMIT) -> Evidence:
    """The evidence with late times: instants, or pairs of begin and end."""
    pairs = [each if isinstance(each, tuple) else (each, each) for each in times_s]
    begin, end = (np.array([round(pair[at] * SECOND) for pair in pairs], np.int64) for at in (0, 1))
    seconds, told = 0, -1
    for first, last in sorted((int(first), int(last)) for first, last in pairs):
        seconds, told = seconds + max(last - max(first - 1, told), 0), max(last, told)
    times = LateTimes(
        LateStretches.exact(begin, end), np.full(begin.size, 231_000), np.zeros(begin.size, np.int64), seconds
    )
    found = episodes_of(times, episode_course(times.late, evidence.measured_ns, requirement.gap_ns), 0)
    return replace(evidence, times=times, episodes=found)


def early(n: int) -> tuple[float, ...]:
    """Two minutes apart, from the start on."""
    return tuple(120.0 * number for number in range(n))


def text_of(verdict: Verdict) -> str:
    return "\n".join(f"{label:<10}{text}" for label, text in verdict.sentences)


@pytest.mark.parametrize(
    ("n", "hours", "state"),
    [
        (0, 83, State.UNDECIDED),
        (0, 84, State.PROVEN),
        (1, 84, State.UNDECIDED),
        (1, 163, State.UNDECIDED),
        (1, 164, State.PROVEN),
        (3, 268, State.UNDECIDED),
        (3, 269, State.PROVEN),
    ],
)
def test_the_bets_decide(n: int, hours: int, state: State) -> None:
    """3.482, 6.803 and 11.181 days; the episodes come too late to refute."""
    later = [60 * 3600 * number for number in range(1, n + 1)]
    evidence = replace(CLEAN, measured_ns=hours * HOUR, asked_duration_ns=hours * HOUR)
    assert judge_requirement(LIMIT, with_late(evidence, *later)).state is state


def test_proven_says_how_often_and_how_sure() -> None:
    verdict = judge_requirement(LIMIT, PROVEN)
    assert (verdict.state.exit_code, verdict.more_ns, verdict.rate_low_per_s) == (0, 0, 0)
    assert verdict.rate_high_per_s == pytest.approx(3.4819 / (90 * 3600), rel=1e-4)
    assert verdict.decided_at_ns == statistics.needed_ns(0, 24 * HOUR, 0.05)


def test_refuted_by_rate() -> None:
    hourly = Requirement(500_000, HOUR)
    times = [n * 600 for n in range(1, 8)]
    verdict = judge_requirement(
        hourly, with_late(replace(CLEAN, measured_ns=4260 * SECOND), *times, requirement=hourly)
    )
    assert (verdict.state, verdict.kind) == (State.REFUTED, "rate")
    assert "in 1 h 11 min (7 episodes)" in verdict.reasons[0]
    assert "more often than once per 42 min 03 s (95 %)" in verdict.reasons[1]
    assert not [reason for reason in verdict.reasons if "bunches" in reason]
    bunched = [3000 + 61 * n for n in range(6)]
    flagged = judge_requirement(
        hourly, with_late(replace(CLEAN, measured_ns=3600 * SECOND), *bunched, requirement=hourly)
    )
    assert [reason for reason in flagged.reasons if "bunches" in reason]


def test_a_refutation_after_a_proof_tells_of_both() -> None:
    hourly = Requirement(500_000, HOUR)
    verdict = judge_requirement(
        hourly, with_late(replace(CLEAN, measured_ns=9 * HOUR), (20_000, 30_000), requirement=hourly)
    )
    assert (verdict.state, verdict.kind, verdict.proven_with) == (State.REFUTED, "duration", 0)
    assert "The first 3 h 29 min alone would have been PROVEN" in verdict.reasons
    assert verdict.decided_at_ns == 20_600 * SECOND


def test_a_withheld_proof_says_what_to_fix_before_a_new_run() -> None:
    hourly = Requirement(500_000, HOUR)
    starts = [3600 * hour + 90.0 * part for hour in (2, 10, 16) for part in range(3)]
    evidence = replace(CLEAN, measured_ns=30 * HOUR)
    verdict = judge_requirement(hourly, with_late(evidence, *starts, requirement=hourly))
    assert (verdict.state, verdict.withheld, verdict.bunched, verdict.more_ns) == (State.UNDECIDED, True, True, None)
    assert "Fix a larger --gap or --bunches before a new run, or measure longer" in verdict.reasons


def test_the_figures_of_the_test() -> None:
    verdict = judge_requirement(LIMIT, replace(PROVEN, measured_ns=48 * HOUR))
    assert (verdict.tau, verdict.decided_at_ns) == (2, None)
    assert verdict.alpha == pytest.approx(0.05)
    assert verdict.log_e_proven == pytest.approx(statistics.log_e_proven(0, 2))
    assert verdict.log_e_refuted == pytest.approx(statistics.log_e_refuted(0, 2))
    assert verdict.rate_high_fixed_per_s == pytest.approx(2.9957 / (48 * 3600), rel=1e-4)
    assert verdict.chance == pytest.approx((48 / 83.56) ** 0.5, rel=1e-3)
    assert (verdict.chance or 0) < (verdict.chance_with_one_more or 0) < 1


def test_undecided_says_how_much_longer_with_none_and_with_one_more_episode() -> None:
    verdict = judge_requirement(LIMIT, with_late(replace(PROVEN, measured_ns=96 * HOUR), 40_000))
    assert (verdict.state.exit_code, verdict.decided_with) == (4, None)
    assert (verdict.needed_ns or 0) / HOUR == pytest.approx(6.8027 * 24 + 1 / 60, abs=0.01)
    assert verdict.more_ns == (verdict.needed_ns or 0) - 96 * HOUR
    assert "67 h 17 min more" in more_time_of_verdict(verdict)
    assert "123 h 17 min more" in more_time_of_verdict(verdict)
    assert "less often than once per 14 h 06 min" in dict(verdict.sentences)["RATE"]


@pytest.mark.parametrize("early", [{"ended_as_asked": False}, {"asked_duration_ns": 99 * HOUR}])
def test_a_run_may_end_whenever_one_likes(early: dict[str, object]) -> None:
    """But the bound of the largest value is one for a fixed length, and says so."""
    verdict = judge_requirement(LIMIT, replace(PROVEN, **early))  # type: ignore[arg-type]
    assert verdict.state is State.PROVEN
    said = "this holds only if the length of the run was fixed beforehand"
    assert said in text_of(verdict)
    assert said not in text_of(judge_requirement(LIMIT, PROVEN))


def test_a_record_that_was_cut_off_proves_nothing() -> None:
    """What came behind the cut may have been above the limit."""
    verdict = judge_requirement(LIMIT, replace(PROVEN, ended_as_asked=False, cut_off=True))
    assert verdict.state is State.UNDECIDED


def test_what_was_decided_first_stands() -> None:
    """Unless a refutation comes later."""
    late = [85 * 3600 + 1000.0 * n for n in range(3)]
    proven = judge_requirement(LIMIT, with_late(PROVEN, *late))
    assert (proven.state, proven.decided_with) == (State.PROVEN, 0)
    assert proven.decided_at_ns == statistics.needed_ns(0, 24 * HOUR, 0.05)
    refuted = judge_requirement(LIMIT, with_late(replace(CLEAN, measured_ns=9000 * HOUR), *early(5)))
    assert (refuted.state, refuted.state.exit_code, refuted.decided_with) == (State.REFUTED, 1, 1)
    assert "1 episode in the first" in text_of(refuted)


def test_a_limit_that_is_exceeded_all_the_time_is_refuted() -> None:
    verdict = judge_requirement(LIMIT, with_late(replace(CLEAN, measured_ns=9000 * HOUR), (400, 9000 * 3600)))
    assert (verdict.state, verdict.rate_high_per_s is not None) == (State.REFUTED, True)
    assert "(1 episode of 8,999 h 53 min, not over)" in verdict.reasons[0]
    whole = judge_requirement(LIMIT, with_late(replace(CLEAN, measured_ns=9 * HOUR), (0, 9 * 3600)))
    assert (whole.state, whole.kind) == (State.REFUTED, "rate")
    assert (whole.rate_high_per_s, whole.rate_high_fixed_per_s, whole.chance, whole.chance_with_one_more) == (
        None,
        None,
        0,
        0,
    )


def test_several_limits_share_the_probability_of_error() -> None:
    alone, both = judge_requirement(LIMIT, PROVEN), judge_requirement(LIMIT, PROVEN, 2)
    assert (alone.state, both.state) == (State.PROVEN, State.UNDECIDED)
    assert both.alpha == pytest.approx(0.025)
    assert (both.needed_ns or 0) == statistics.needed_ns(0, 24 * HOUR, 0.025)


def test_of_several_verdicts_the_worst_decides() -> None:
    proven, undecided = judge_requirement(LIMIT, PROVEN), judge_requirement(LIMIT, CLEAN)
    refuted = judge_requirement(LIMIT, with_late(CLEAN, *early(40)))
    assert deciding_verdict([proven, undecided, refuted]) is refuted
    assert deciding_verdict([proven, undecided]) is undecided
    assert deciding_verdict([proven]) is proven


def test_an_invalid_run_has_no_other_verdict() -> None:
    doubts = (
        Doubt("policy", Severity.INVALID, "policy fifo was asked for, but it was other", "run as root"),
        Doubt("guest", Severity.WARNING, "this is a virtual machine", "measure on the hardware"),
    )
    for requirement in (LIMIT, None):
        verdict = judge_requirement(requirement, with_late(replace(CLEAN, doubts=doubts), *early(40)))
        assert (verdict.state, verdict.state.exit_code) == (State.INVALID, 3)
        assert verdict.reasons[0] == "policy fifo was asked for, but it was other"
        assert len(verdict.reasons) == 2, "the second says what was seen"


def test_without_a_limit_nothing_is_judged() -> None:
    verdict = judge_requirement(None, replace(CLEAN, exceedances_observed=None, exceedances_schedule=None))
    assert (verdict.state, verdict.state.exit_code, verdict.rate_high_per_s, verdict.more_ns) == (
        State.NOT_ASKED,
        0,
        None,
        None,
    )


def test_lost_values_leave_no_upper_limit_and_no_way_to_a_proof() -> None:
    """Any of them may have been an episode, and the largest of all."""
    for n, at_most in ((0, 240 * HOUR), (1, 24 * HOUR), (1, 9999 * HOUR)):
        verdict = judge_requirement(replace(LIMIT, at_most_ns=at_most), with_late(replace(CLEAN, lost=7), *early(n)))
        assert (verdict.rate_high_per_s, verdict.rate_high_fixed_per_s, verdict.more_ns, verdict.chance) == (None,) * 4
        text = text_of(verdict)
        assert "less often" not in text.replace("anything", "")
        assert "PROVEN in" not in text
        assert "the largest of 999,993 activations with a value; 7 more left none, so that nothing follows" in text


@pytest.mark.parametrize("requirement", [LIMIT, None])
@pytest.mark.parametrize("n", [0, 1, 400])
@pytest.mark.parametrize("ended", [True, False])
def test_no_sentence_promises_anything(requirement: Requirement | None, n: int, ended: bool) -> None:
    evidence = with_late(replace(CLEAN, ended_as_asked=ended, missed=3, lost=n), *early(n))
    verdict = judge_requirement(requirement, evidence)
    for text in (text_of(verdict), *verdict.reasons):
        assert not [word for word in FORBIDDEN if word in text.lower()]


# In virtual time a verdict tells what was seen: it is never PROVEN, and nothing has a probability or an interval.


LIMIT_DETERMINISTIC = Requirement(500_000, 60 * SECOND)
PROBABLE = re.compile(r"\bprobab|\bchance\b|\d ?% (sure|confidence|interval)|\(95 %|confidence 95|PROVEN (in|after)")


def virtual(*late: int, seconds: int = 6) -> Record:
    """So many seconds of a millisecond each in virtual time; late: those above the limit."""
    values = np.full(seconds * 1_000, 9_000)
    values[list(late)] = 900_000
    changes = {("duration_ns", Moment.ASKED): str(seconds * 1_000 * MS)}
    return clean((block(values.tolist()),), facts=(*facts(changes), VIRTUAL))


def judged(*late: int, requirement: Requirement | tuple[Requirement, ...] = LIMIT_DETERMINISTIC) -> Analysis:
    return analyse(virtual(*late), requirement, 1)


def texts(analysis: Analysis) -> str:
    """What the text and the JSON say of it, but for the sentence that says that nothing has a probability."""
    said = report.render("text", report.title(analysis), report.compose(analysis)).decode()
    return " ".join(f"{said} {json.dumps(analysis_dict(analysis))}".split()).replace("nothing has a probability", "")


def test_a_limit_that_nothing_exceeded_is_not_proven_however_long_the_run() -> None:
    """The same record with a clock that shows time is PROVEN, which this test would see."""
    easy = Requirement(500_000, SECOND)
    found = judged(requirement=easy).verdict
    assert (found.state, found.state.exit_code) == (State.UNDECIDED, 4)
    record = virtual()
    real = replace(record, facts=tuple(each for each in record.facts if each.key != "virtual_time"))
    assert analyse(real, easy, 1).verdict.state is State.PROVEN


@pytest.mark.parametrize("late", [(3_000,), (1_000, 3_000, 5_000), tuple(range(0, 6_000, 7))])
def test_what_was_seen_more_often_than_asked_is_refuted_as_a_fact(late: tuple[int, ...]) -> None:
    found = judged(*late).verdict
    assert (found.state, found.state.exit_code) == (State.REFUTED, 1)
    assert ("once" if len(late) == 1 else f"{len(late):,} times") in found.reasons[0]


def test_exceeded_no_more_often_than_asked_is_undecided() -> None:
    found = judged(3_000, requirement=Requirement(500_000, 6 * SECOND)).verdict
    assert found.state is State.UNDECIDED


def test_an_episode_longer_than_asked_is_refuted_however_seldom() -> None:
    late = tuple(range(0, 5_000, 100))
    found = judged(*late, requirement=Requirement(500_000, 5 * SECOND, gap_ns=SECOND, longest_ns=SECOND)).verdict
    assert found.state is State.REFUTED
    assert "at least 3.0 s" in found.reasons[1]


@pytest.mark.parametrize("late", [(), (3_000,), (1_000, 3_000)])
def test_no_output_has_a_probability_or_an_interval(late: tuple[int, ...]) -> None:
    said = texts(judged(*late))
    assert "of virtual time" in said
    assert [found[0] for found in PROBABLE.finditer(said)] == []


def test_as_json_whatever_needs_a_probability_is_null() -> None:
    given = analysis_dict(judged())
    assert given["verdict"]["deterministic"] is True
    unknown = "alpha_ratio rate_low_per_s rate_high_per_s rate_high_fixed_per_s chance_ratio needed_ns"
    for key in unknown.split():
        assert given["verdict"][key] is None, key
    assert given["forecast"] is None
    found = list(_quantiles(given))
    assert len(found) > 10
    assert {each["confidence_ratio"] for each in found} == {None}
    assert {each["low_ns"] for each in found} | {each["high_ns"] for each in found} == {None}
    assert any(each["value_ns"] for each in found)


def _quantiles(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        if "share_ratio" in found and "values_count" in found and "confidence_ratio" in found:
            yield found
        found = list(found.values())
    for each in found if isinstance(found, list) else ():
        yield from _quantiles(each)


def test_a_limit_chosen_afterwards_is_judged_too_since_nothing_is_tested() -> None:
    for late, state in (((), State.UNDECIDED), ((3_000,), State.REFUTED)):
        found = chosen_after_the_data(judged(*late))
        assert found.verdict.state is state
        assert "limit-after-data" not in {doubt.code for doubt in found.doubts}


def test_without_a_limit_nothing_is_asked_and_nothing_said_of_other_runs() -> None:
    found = analyse(virtual(3_000), None, 1)
    assert found.verdict.state is State.NOT_ASKED
    assert {label for label, _ in found.verdict.sentences}.isdisjoint({"UNSEEN", "FORECAST", "RATE"})
