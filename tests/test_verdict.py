# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from rtproof.analysis.evidence import Evidence, Worst
from rtproof.analysis.model import Doubt, Episode, Requirement, Severity, State, Verdict
from rtproof.analysis.verdict import judge

HOUR = 3_600_000_000_000
LIMIT = Requirement(200_000, 24 * HOUR, 0.95)
WORST = Worst(150_000, 2, 3, 5, "2026-11-20 11:02:31.4 UTC")
CLEAN = Evidence((), 73 * HOUR, 73 * HOUR, True, (), 4, 1_000_000, 0, 1_000_000, WORST, 0, 0, "6.1.0-rt", "sched")
FORBIDDEN = ("worst case is", "guarantee", "safe")


def episodes(n: int) -> tuple[Episode, ...]:
    return tuple(Episode(100 * i, 100 * i, 231_000, (0,)) for i in range(n))


def text_of(verdict: Verdict) -> str:
    return "\n".join(f"{label:<10}{text}" for label, text in verdict.sentences)


@pytest.mark.parametrize(
    ("n", "hours", "state"),
    [
        (0, 71, State.UNDECIDED),
        (0, 72, State.PROVEN),
        (1, 72, State.UNDECIDED),
        (1, 113, State.UNDECIDED),
        (1, 114, State.PROVEN),
        (1, 2, State.UNDECIDED),
        (1, 1, State.REFUTED),
        (10, 60, State.REFUTED),
        (10, 150, State.UNDECIDED),
        (10, 407, State.UNDECIDED),
        (10, 408, State.PROVEN),
    ],
)
def test_the_bounds_decide(n: int, hours: int, state: State) -> None:
    """-ln .05 = 2.996 and chi2 / 2 = 4.744, 16.96 days; refuted before .0513 and 5.425 days."""
    evidence = replace(CLEAN, episodes=episodes(n), measured_ns=hours * HOUR, asked_duration_ns=hours * HOUR)
    assert judge(LIMIT, evidence).state is state


def test_proven_says_how_often_and_how_sure() -> None:
    verdict = judge(LIMIT, CLEAN)
    assert (verdict.state.exit_code, verdict.more_ns, verdict.rate_low) == (0, 0, 0)
    assert verdict.rate_high == pytest.approx(2.9957 / (73 * 3600), rel=1e-4)
    label, text = verdict.sentences[0]
    assert label == "VERDICT"
    assert text == (
        "PROVEN - 0 episodes above 200 us in 73 h (4 threads, any of which counts; 1,000,000 activations): "
        "less often than once per 24 h 22 min (95 %, for a length fixed before the run)"
    )
    assert ("LIMIT", "200 us, at most once per 24 h, confidence 95 %") in verdict.sentences


def test_undecided_says_how_much_longer_with_none_and_with_one_more_episode() -> None:
    evidence = replace(CLEAN, episodes=episodes(1), measured_ns=96 * HOUR, asked_duration_ns=96 * HOUR)
    verdict = judge(LIMIT, evidence)
    assert verdict.state.exit_code == 4
    assert (verdict.needed_ns or 0) / HOUR == pytest.approx(4.744 * 24, abs=0.01)
    assert verdict.more_ns == (verdict.needed_ns or 0) - 96 * HOUR
    assert (
        "",
        "PROVEN needs a run of 113 h 52 min in all with no further episode, or 151 h 06 min with one more, "
        "its length fixed before it starts",
    ) in verdict.sentences


@pytest.mark.parametrize(
    "early",
    [{"ended_as_asked": False}, {"asked_duration_ns": 80 * HOUR}, {"ended_as_asked": False, "asked_duration_ns": None}],
)
def test_a_run_that_ended_early_proves_nothing(early: dict[str, object]) -> None:
    verdict = judge(LIMIT, replace(CLEAN, **early))  # type: ignore[arg-type]
    assert verdict.state is State.UNDECIDED
    assert "the bound holds only for a length that was fixed beforehand" in verdict.reasons[0]


def test_a_run_that_ended_early_can_be_refuted() -> None:
    verdict = judge(LIMIT, replace(CLEAN, ended_as_asked=False, episodes=episodes(40)))
    assert (verdict.state, verdict.state.exit_code) == (State.REFUTED, 1)
    assert "more often than once per" in verdict.reasons[0]


def test_activations_of_which_nothing_is_known_keep_a_run_from_being_proven() -> None:
    verdict = judge(LIMIT, replace(CLEAN, lost=1))
    assert verdict.state is State.UNDECIDED
    assert verdict.reasons == ("1 activation left no value, and any of those may have exceeded the limit",)


def test_an_invalid_run_has_no_other_verdict() -> None:
    doubts = (
        Doubt("policy", Severity.INVALID, "policy fifo was asked for, but it was other", "run as root"),
        Doubt("guest", Severity.WARNING, "this is a virtual machine", "measure on the hardware"),
    )
    for requirement in (LIMIT, None):
        verdict = judge(requirement, replace(CLEAN, doubts=doubts, episodes=episodes(40)))
        assert (verdict.state, verdict.state.exit_code) == (State.INVALID, 3)
        assert verdict.reasons == ("policy fifo was asked for, but it was other",)
        assert verdict.sentences[0] == ("VERDICT", "INVALID - policy fifo was asked for, but it was other")


def test_without_a_limit_nothing_is_judged() -> None:
    verdict = judge(None, replace(CLEAN, exceedances_observed=None, exceedances_schedule=None))
    assert (verdict.state, verdict.state.exit_code, verdict.rate_high, verdict.more_ns) == (
        State.NOT_ASKED,
        0,
        None,
        None,
    )
    assert [label for label, _ in verdict.sentences] == ["VERDICT", "MAX", "", "", "UNSEEN", "VALID FOR"]


def test_nothing_measured() -> None:
    verdict = judge(LIMIT, replace(CLEAN, measured_ns=0, worst=None))
    assert (verdict.state, verdict.reasons) == (State.UNDECIDED, ("nothing was measured",))
    assert [label for label, _ in verdict.sentences] == ["VERDICT", "LIMIT", "VALID FOR"]


def test_the_largest_value_and_what_it_is_worth() -> None:
    text = text_of(judge(LIMIT, CLEAN))
    assert "150 us on thread 2 (cpu 3) at 2026-11-20 11:02:31.4 UTC, the largest of 1,000,000 activations" in text
    assert "a second, equally long run will exceed this with probability 50 %" in text
    assert "> 150 us: less often than once per 24 h 22 min (95 %, fixed-time)" in text
    assert "within the next 3 h 50 min it is exceeded with probability 5 %" in text
    assert "anything rarer than once per 24 h 22 min may be missing from this run" in text
    assert "this kernel (6.1.0-rt), boot, load (sched) and temperature only; 1 boot measured" in text


def test_missed_activations_are_told_in_both_views() -> None:
    evidence = replace(
        CLEAN, missed=400, obtained=1600, expected=2000, exceedances_observed=1, exceedances_schedule=400
    )
    text = text_of(judge(LIMIT, replace(evidence, episodes=episodes(1))))
    assert "400 activations of 2,000 due never ran" in text
    assert "1 of 1,600 activations that ran (observed), 400 of 2,000 that were due (schedule)" in text


@pytest.mark.parametrize("requirement", [LIMIT, None])
@pytest.mark.parametrize("n", [0, 1, 400])
@pytest.mark.parametrize("ended", [True, False])
def test_no_sentence_promises_anything(requirement: Requirement | None, n: int, ended: bool) -> None:
    evidence = replace(CLEAN, episodes=episodes(n), ended_as_asked=ended, missed=3, lost=n)
    verdict = judge(requirement, evidence)
    for text in (text_of(verdict), *verdict.reasons):
        assert not [word for word in FORBIDDEN if word in text.lower()]
