# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from rtproof.analysis import sequential
from rtproof.analysis.evidence import Evidence, Worst
from rtproof.analysis.model import Doubt, Episode, Requirement, Severity, State, Verdict
from rtproof.analysis.verdict import deciding, judge

HOUR = 3_600_000_000_000
LIMIT = Requirement(200_000, 24 * HOUR, 0.95)
WORST = Worst(150_000, 2, 3, 5, "2026-11-20 11:02:31.4 UTC")
CLEAN = Evidence((), 73 * HOUR, 73 * HOUR, True, (), 4, 1_000_000, 0, 1_000_000, WORST, 0, 0, "6.1.0-rt", "sched")
PROVEN = replace(CLEAN, measured_ns=90 * HOUR, asked_duration_ns=90 * HOUR)
FORBIDDEN = ("worst case is", "guarantee", "safe")


def episodes(n: int) -> tuple[Episode, ...]:
    return tuple(Episode(100 * i, 100 * i, 231_000, (0,)) for i in range(n))


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
    """3.482, 6.803 and 11.181 days; the early episodes come too late to refute."""
    later = tuple(Episode(12 * 3600 * i, 12 * 3600 * i, 231_000, (0,)) for i in range(1, n + 1))
    evidence = replace(CLEAN, episodes=later, measured_ns=hours * HOUR, asked_duration_ns=hours * HOUR)
    assert judge(LIMIT, evidence).state is state


def test_proven_says_how_often_and_how_sure() -> None:
    verdict = judge(LIMIT, PROVEN)
    assert (verdict.state.exit_code, verdict.more_ns, verdict.rate_low) == (0, 0, 0)
    assert verdict.rate_high == pytest.approx(3.4819 / (90 * 3600), rel=1e-4)
    assert verdict.sentences[:3] == (
        (
            "VERDICT",
            "PROVEN - 0 episodes above 200 us in 90 h (4 threads, any of which counts; 1,000,000 activations): "
            "less often than once per 25 h 50 min (95 %, valid at any stopping time)",
        ),
        ("", "decided after 83 h 34 min, with 0 episodes by then"),
        ("LIMIT", "200 us, at most once per 24 h, confidence 95 %"),
    )


def test_the_figures_of_the_test() -> None:
    verdict = judge(LIMIT, replace(PROVEN, measured_ns=48 * HOUR))
    assert (verdict.tau, verdict.decided_at_ns) == (2, None)
    assert verdict.alpha == pytest.approx(0.05)
    assert verdict.log_e_proven == pytest.approx(sequential.log_e_proven(0, 2))
    assert verdict.log_e_refuted == pytest.approx(sequential.log_e_refuted(0, 2))
    assert verdict.rate_high_fixed == pytest.approx(2.9957 / (48 * 3600), rel=1e-4)
    assert verdict.chance == pytest.approx((48 / 83.56) ** 0.5, rel=1e-3)
    assert (verdict.chance or 0) < (verdict.chance_with_one_more or 0) < 1


def test_undecided_says_how_much_longer_with_none_and_with_one_more_episode() -> None:
    evidence = replace(PROVEN, episodes=(Episode(40_000, 40_000, 231_000, (0,)),), measured_ns=96 * HOUR)
    verdict = judge(LIMIT, evidence)
    assert (verdict.state.exit_code, verdict.decided_with) == (4, None)
    assert (verdict.needed_ns or 0) / HOUR == pytest.approx(6.8027 * 24, abs=0.01)
    assert verdict.more_ns == (verdict.needed_ns or 0) - 96 * HOUR
    needed = "PROVEN in 67 h 16 min more if nothing exceeds 200 us, in 123 h 15 min if one more episode comes"
    assert dict(verdict.sentences)["NEEDED"] == needed
    assert "less often than once per 14 h 06 min (95 %, valid at any stopping time)" in verdict.reasons[0]
    assert "at a rate that fits the 1 episode so far: 45 %, 58 %" in text_of(verdict)


@pytest.mark.parametrize(
    "early",
    [{"ended_as_asked": False}, {"asked_duration_ns": 99 * HOUR}, {"ended_as_asked": False, "cut_off": True}],
)
def test_a_run_may_end_whenever_one_likes(early: dict[str, object]) -> None:
    """But the bound of the largest value is one for a fixed length, and says so."""
    verdict = judge(LIMIT, replace(PROVEN, **early))  # type: ignore[arg-type]
    assert verdict.state is State.PROVEN
    assert "fixed-time, had the length been fixed beforehand, which it was not" in text_of(verdict)
    assert "which it was not" not in text_of(judge(LIMIT, PROVEN))


def test_what_was_decided_first_stands() -> None:
    late = tuple(Episode(85 * 3600 + 100 * i, 85 * 3600 + 100 * i, 231_000, (0,)) for i in range(30))
    proven = judge(LIMIT, replace(PROVEN, episodes=late))
    assert (proven.state, proven.decided_with) == (State.PROVEN, 0)
    assert proven.decided_at_ns == sequential.needed_ns(0, 24 * HOUR, 0.05)
    text = text_of(proven)
    assert "0 episodes above 200 us in the first 83 h 33 min: less often than once per 24 h" in text
    assert "the run went on: 30 episodes above 200 us in 90 h" in text
    assert "all of it speaks against the claim: either the rate rose during the run" in text
    refuted = judge(LIMIT, replace(CLEAN, episodes=episodes(5), measured_ns=9000 * HOUR))
    assert (refuted.state, refuted.state.exit_code, refuted.decided_with) == (State.REFUTED, 1, 1)
    assert refuted.reasons[0] == (
        "1 episode above 200 us in the first 1.0 s: more often than once per 24 h (95 %, valid at any stopping time)"
    )
    assert refuted.reasons[2].startswith("all of it speaks for the claim: either the rate fell during the run")
    again = judge(LIMIT, replace(CLEAN, episodes=episodes(5), measured_ns=9 * HOUR))
    assert "5 episodes above 200 us in 9 h" in again.reasons[0]
    assert again.reasons[1:] == ("decided after 1.0 s, with 1 episode by then",)


def test_a_limit_that_is_exceeded_all_the_time_is_never_proven() -> None:
    endless = (Episode(400, 9000 * 3600, 231_000, (0,)),)
    verdict = judge(LIMIT, replace(CLEAN, episodes=endless, measured_ns=9000 * HOUR))
    assert (verdict.state, verdict.rate_high is not None) == (State.UNDECIDED, True)
    assert "1 episode above 200 us in 9,000 h" in verdict.reasons[0]
    assert ", 8,999 h 53 min of it within: less often than once per" in verdict.reasons[0]
    whole = judge(LIMIT, replace(CLEAN, episodes=(Episode(0, 9000 * 3600, 231_000, (0,)),), measured_ns=9000 * HOUR))
    assert whole.state is State.REFUTED
    assert (whole.rate_high, whole.rate_high_fixed, whole.chance, whole.chance_with_one_more) == (None, None, 0, 0)


def test_several_limits_share_the_probability_of_error() -> None:
    alone, both = judge(LIMIT, PROVEN), judge(LIMIT, PROVEN, 2)
    assert (alone.state, both.state) == (State.PROVEN, State.UNDECIDED)
    assert both.alpha == pytest.approx(0.025)
    assert (both.needed_ns or 0) == sequential.needed_ns(0, 24 * HOUR, 0.025)
    said = "one of 2 limits: each is tested at 97.5 %, so that all verdicts together are right with 95 %"
    assert said in text_of(both)


def test_of_several_verdicts_the_worst_decides() -> None:
    proven, undecided = judge(LIMIT, PROVEN), judge(LIMIT, CLEAN)
    refuted = judge(LIMIT, replace(CLEAN, episodes=episodes(40)))
    assert deciding([proven, undecided, refuted]) is refuted
    assert deciding([proven, undecided]) is undecided
    assert deciding([proven]) is proven


def test_activations_of_which_nothing_is_known_keep_a_run_from_being_proven() -> None:
    verdict = judge(LIMIT, replace(PROVEN, lost=1))
    assert verdict.state is State.UNDECIDED
    assert "NEEDED" not in dict(verdict.sentences)
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
    assert [label for label, _ in verdict.sentences] == ["VERDICT", "MAX", "", "", "UNSEEN", "", "VALID FOR"]


def test_nothing_measured() -> None:
    verdict = judge(LIMIT, replace(CLEAN, measured_ns=0, worst=None))
    assert (verdict.state, verdict.reasons) == (State.UNDECIDED, ("nothing was measured",))
    assert [label for label, _ in verdict.sentences] == ["VERDICT", "LIMIT", "", "VALID FOR"]


def test_lost_values_leave_no_upper_limit_and_no_way_to_a_proof() -> None:
    """Any of them may have been an episode, and the largest of all."""
    for n, at_most in ((0, 240 * HOUR), (1, 24 * HOUR), (1, 9999 * HOUR)):
        verdict = judge(replace(LIMIT, at_most_ns=at_most), replace(CLEAN, episodes=episodes(n), lost=7))
        assert (verdict.rate_high, verdict.rate_high_fixed, verdict.more_ns, verdict.chance) == (None,) * 4
        text = text_of(verdict)
        assert "less often" not in text.replace("anything", "")
        assert "PROVEN in" not in text
        assert "the largest of 999,993 activations with a value; 7 more left none, so that nothing follows" in text


def test_without_a_moment_free_of_episodes_nothing_is_bounded_from_above() -> None:
    text = text_of(
        judge(replace(LIMIT, at_most_ns=10**9), replace(CLEAN, episodes=(Episode(0, 73 * 3600, 231_000, (0,)),)))
    )
    assert (
        "73 h of it within: no upper limit of the rate can be given, as no time is left without an episode, and" in text
    )
    assert "chance to finish" not in text


def test_two_limits_of_the_rate_hold_each_by_itself() -> None:
    told = dict(judge(LIMIT, replace(CLEAN, episodes=episodes(2))).sentences)["RATE"]
    assert "the upper and the lower limit hold so each by itself, not both together" in told
    assert "RATE" not in dict(judge(LIMIT, CLEAN).sentences), "without an episode there is one limit only"


def test_an_invalid_run_has_no_limits_of_the_rate() -> None:
    broken = replace(CLEAN, episodes=episodes(2), doubts=(Doubt("load-died", Severity.INVALID, "it died", "mend it"),))
    verdict = judge(LIMIT, broken)
    assert dict(verdict.sentences)["RATE"].endswith("no limit of the rate holds for a run that is INVALID")
    assert "2 episodes above 200 us in 73 h" in dict(verdict.sentences)["RATE"]


def test_what_an_episode_is_stands_below_the_limit() -> None:
    lines = judge(replace(LIMIT, gap_ns=600 * 10**9), CLEAN).sentences
    told = "an episode is all that exceeds 200 us, on any thread, with no more than 10 min between"
    assert lines[[label for label, _ in lines].index("LIMIT") + 1] == ("", told)


def test_the_largest_value_and_what_it_is_worth() -> None:
    text = text_of(judge(LIMIT, CLEAN))
    assert "150 us on thread 2 (cpu 3) at 2026-11-20 11:02:31.4 UTC, the largest of 1,000,000 activations" in text
    assert "a second, equally long run will exceed this with a probability of at most 50 %, if it is alike" in text
    assert "> 150 us: less often than once per 24 h 22 min (95 %, fixed-time)" in text
    assert "within the next 3 h 50 min it is exceeded with a probability of at most 5 %" in text
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
