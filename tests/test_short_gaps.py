# SPDX-License-Identifier: Apache-2.0
"""Gaps that are too short: for the period, and for late times that are known to the second only."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import SERIES, block, record
from doubt_cases import clean

from rtproof import profiles
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment.profile_setup import profile_requirements
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement, State, Verdict
from rtproof.judge.claim import LateStretches, episode_course
from rtproof.judge.evidence import figures_of_limit, gather_evidence
from rtproof.judge.verdict import judge_requirement
from rtproof.judge.watch import Watch
from rtproof.record.contents import Record, Seconds
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.series import pooled, summarise

MS = 1_000_000


def said_of(period_ns: int, *asked: Requirement) -> dict[str, str]:
    made = clean((block([9000] * 3000),), replace(SERIES, period_ns=period_ns))
    return {doubt.code: f"{doubt.what}; {doubt.remedy}" for doubt in analyse(made, asked, 1).doubts}


def test_a_record_with_a_gap_below_two_periods_is_doubted_for_each_limit() -> None:
    hourly, often = Requirement(500_000), Requirement(90_000, SECOND_NS)
    assert "gap-short" not in said_of(MS, hourly, often)
    assert "gap-short" not in said_of(25 * MS, hourly, often)
    assert said_of(26 * MS, hourly, often)["gap-short"] == (
        "the gap of 50 ms is shorter than two periods (52 ms): each late activation counts as an episode of its own; "
        "ask for once per 1.1 s or seldomer before the next run"
    )
    own = replace(hourly, gap_ns=MS)
    assert "fix a --gap of 2 ms or more" in said_of(MS, own)["gap-short"]


def test_a_series_by_turns_is_refused_by_the_period_of_a_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--limit", "1us", "--at-most", "1/s", "--output", str(tmp_path / "run")]
    assert main([*words, "--abba", "--period 1ms", "--period 50ms"]) == 2
    assert "the gap of 50ms is shorter than two periods (100ms)" in " ".join(capsys.readouterr().err.split())
    assert main([*words, "--repeat", "2", "--period", "50ms"]) == 2
    assert "the gap of 50ms is shorter than two periods (100ms)" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_cells_of_a_profile_are_held_to_their_own_period() -> None:
    profile = profiles.load("akamina")
    often = (Requirement(500_000, SECOND_NS),)
    period_ns = profile.cells[0].period_ns
    assert profile_requirements(profile, often) == often
    slow = replace(profile, cells=tuple(replace(cell, period_ns=50 * period_ns) for cell in profile.cells))
    assert 50 * period_ns > 25 * MS
    with pytest.raises(UserError, match=r"the cell unloaded of the profile akamina: the gap of 50ms is shorter than"):
        profile_requirements(slow, often)


def test_what_has_its_due_times_from_outside_is_not_refused_without_a_period() -> None:
    from click import UsageError

    from rtproof.cli.option_values import refuse_short_gaps

    own = (Requirement(1_000, gap_ns=MS),)
    refuse_short_gaps(own, {"probe": "gpio:in=gpiochip0/1", "period": None})
    for options in ({"probe": "gpio:in=gpiochip0/1", "period": "1ms"}, {"probe": "timer", "period": None}, {}):
        with pytest.raises(UsageError, match="the gap of 1ms is shorter than two periods"):
            refuse_short_gaps(own, options)


def test_times_to_the_second_prove_nothing_with_a_shorter_gap_and_the_verdict_says_why() -> None:
    asked = Requirement(100_000, 4 * SECOND_NS)
    assert asked.gap_ns == 200 * MS
    rough = LateStretches.of_seconds([3 * SECOND_NS])
    found = figures_of_limit(asked, episode_course(rough, 4000 * SECOND_NS, asked.gap_ns), 1)
    assert found.decision.state is State.UNDECIDED
    assert (found.vague_from_ns, found.provable) == (3 * SECOND_NS, False)
    exact = LateStretches.exact([3 * SECOND_NS], [3 * SECOND_NS + 1000])
    same = figures_of_limit(asked, episode_course(exact, 4000 * SECOND_NS, asked.gap_ns), 1)
    assert (same.decision.state, same.vague_from_ns) == (State.PROVEN, None)
    wide = replace(asked, at_most_ns=20 * SECOND_NS, gap_ns=SECOND_NS)
    assert figures_of_limit(wide, episode_course(rough, 4000 * SECOND_NS, SECOND_NS), 1).decision.state is State.PROVEN


def test_a_watch_says_that_the_end_decides_where_seconds_are_too_coarse() -> None:
    watch = Watch([Requirement(100_000, 4 * SECOND_NS)])
    watch.over(0, 100_000, 3, 110_000)
    for second in (1, 9):
        watch.progress(0, second * SECOND_NS)
    (line,) = watch.lines()
    assert line == "100 us, 1/4s: 1 episode; a gap below 1 s can't be told by the second, so the end of the run decides"


def seconds_only(length_s: int, late: int) -> Record:
    """What a record without samples keeps of a limit that nobody had fixed: the largest value of each second."""
    series = replace(SERIES, period_ns=10 * MS, has_samples=False)
    whole = record([], [series])
    assert whole.end is not None
    largest = np.where(np.arange(length_s) == late, 700_000, 9_000)
    each = np.full(length_s, 100)
    told = Seconds(np.arange(length_s), each, np.zeros_like(each), largest)
    return replace(whole, seconds={series.id: told}, end=replace(whole.end, time_ns=length_s * SECOND_NS))


def verdict_of(made: Record, asked: Requirement) -> Verdict:
    """Without doubts: these records hold what is judged, and nothing else."""
    summaries = summarise(made)
    return judge_requirement(asked, gather_evidence(made, asked, summaries, pooled(summaries), ()))


def test_the_verdict_on_times_to_the_second_says_what_keeps_it_from_a_proof() -> None:
    made, asked = seconds_only(4000, 3), Requirement(100_000, 4 * SECOND_NS)
    found = verdict_of(made, asked)
    assert found.state is State.UNDECIDED
    assert found.reasons[1:] == (
        "From 3.0 s on the late times are known only to the second, but the gap is 200 ms",
        "A second may hold several such episodes, so no longer run of this kind is PROVEN",
        "Fix a gap of 1 s or more before a new run, or record every sample",
    )
    assert "NEEDED" not in {label for label, _ in found.sentences}
    assert (found.more_ns, found.rate_high) == (None, None)
    wide = verdict_of(made, replace(asked, at_most_ns=20 * SECOND_NS, gap_ns=0, longest_ns=0))
    assert wide.requirement is not None
    assert (wide.state, wide.requirement.gap_ns) == (State.PROVEN, SECOND_NS)
