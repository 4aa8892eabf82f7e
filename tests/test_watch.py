# SPDX-License-Identifier: Apache-2.0
"""Whatever the watch decides while a run goes on, the record says afterwards, perhaps some seconds earlier."""

from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import SECOND, block, end, fact, record
from simulated_records import written

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State
from rtproof.judge.verdict import ended_when_decided
from rtproof.judge.watch import Watch, progress_lines, still_needed_ns
from rtproof.record.activations import TOLD_APART_NS, Activations
from rtproof.record.contents import EndReason, Record
from rtproof.record.requirement import Requirement
from rtproof.simulation import simulated_thread
from rtproof.simulation.events import KnownTail
from rtproof.simulation.simulated_thread import SECOND_NS, SimulatedProcess, SimulationRequest
from rtproof.statistics import needed_ns as needed_by_one

MINUTE_NS = 60 * SECOND_NS
LIMIT = 100_000
ONE = Requirement(LIMIT, MINUTE_NS, gap_ns=2 * SECOND_NS)


def watched(requirements: tuple[Requirement, ...], late: list[Activations], length_s: int) -> tuple[Watch, int]:
    """What a watch says of threads that were late, and the second that it ended the run with."""
    watch = Watch(requirements)
    limits = {each.limit_ns for each in requirements}
    for second in range(length_s):
        done = False
        for thread, one in enumerate(late):
            inside = one.due_ns // SECOND_NS == second
            worst = int(one.value[inside].max()) if inside.any() else 0
            for limit in limits:
                if worst > limit:
                    watch.over(thread, limit, second, worst)
            done = watch.progress(thread, (second + 1) * SECOND_NS)
        if done:
            return watch, second + 1
    return watch, length_s


def played_to(path: Path, process: SimulatedProcess, asked: SimulationRequest, end_s: int) -> Record:
    return written(path, process, asked, [(0, end_s, 1)], EndReason.INTERRUPTED)


@pytest.mark.parametrize(
    ("kind", "rate", "likely"),
    [
        ("poisson", 0.1, State.PROVEN),
        ("poisson", 1.0, State.UNDECIDED),
        ("poisson", 4.0, State.REFUTED),
        ("burst5", 0.05, State.PROVEN),
        ("burst5", 1.0, State.REFUTED),
    ],
)
def test_the_record_agrees(kind: str, rate: float, likely: State, tmp_path: Path) -> None:
    """Over seeds and numbers of threads, at rates below, at and above the one that is claimed."""
    ends = set()
    for seed in range(1, 6):
        asked = SimulationRequest("", 1200 * SECOND_NS, 10_000_000, tuple(range(1 + seed % 3)))
        process = SimulatedProcess(seed, kind, rate / 60, KnownTail(LIMIT, 20_000))
        requirements = (ONE, replace(ONE, limit_ns=LIMIT + 20_000))[: 1 + seed % 2]
        watch, end_s = watched(
            requirements, simulated_thread.late_activations(process, asked, simulated_thread.series_of(asked)), 1200
        )
        analysis = analyse(played_to(tmp_path / f"{seed}", process, asked, end_s), requirements)
        for standing, verdict in zip(watch.standings, analysis.verdicts, strict=True):
            if standing.decision.at_ns is not None:
                assert verdict.state is standing.decision.state
                assert verdict.decided_at_ns is not None
                assert verdict.decided_at_ns <= standing.decision.at_ns
            assert len(verdict.episodes) <= standing.episodes
            assert (verdict.live_ns or 0) >= standing.live_ns
        if watch.decided:
            assert analysis.verdict.state in (State.PROVEN, State.REFUTED)
        ends.add(analysis.verdict.state)
    assert likely in ends


def progress_to(watch: Watch, seconds: int, threads: int = 1, lost: int = 0) -> bool:
    return [watch.progress(thread, at * SECOND_NS, lost) for at in range(seconds + 1) for thread in range(threads)][-1]


def test_without_an_episode_it_ends_in_the_second_in_which_it_is_proven() -> None:
    needed = needed_by_one(0, MINUTE_NS, 0.05)
    watch = Watch([ONE])
    whole = -(-needed // SECOND_NS)
    assert not progress_to(watch, whole)
    assert progress_to(watch, whole + 1), "a second later, as the record may begin later"
    (standing,) = watch.standings
    assert (standing.decision.state, standing.decision.at_ns) == (State.PROVEN, needed + SECOND_NS)


def test_one_refuted_limit_ends_it_and_one_proven_of_two_does_not() -> None:
    both = (ONE, replace(ONE, limit_ns=2 * LIMIT, at_most_ns=10 * MINUTE_NS))
    watch = Watch(both)
    assert not progress_to(watch, 400)
    assert [one.decision.state for one in watch.standings] == [State.PROVEN, State.UNDECIDED]
    watch = Watch(both)
    for second in (0, 5, 10):
        watch.over(0, 2 * LIMIT, second, 3 * LIMIT)
    assert progress_to(watch, 12)
    assert [one.decision.state for one in watch.standings] == [State.UNDECIDED, State.REFUTED]


def test_a_proof_falls_in_quiet_time_only_and_the_same_episode_does_not_open_it() -> None:
    """In the gap behind an exceedance nothing is proven, however long ago the bet would have been won."""
    watch = Watch([ONE])
    watch.over(0, LIMIT, 208, 2 * LIMIT)
    assert not progress_to(watch, 212)
    watch = Watch([replace(ONE, gap_ns=6 * SECOND_NS), replace(ONE, limit_ns=2 * LIMIT, at_most_ns=10 * MINUTE_NS)])
    watch.over(0, LIMIT, 100, 2 * LIMIT)
    progress_to(watch, 600)
    assert watch.standings[0].decision.state is State.PROVEN
    watch.over(0, LIMIT, 601, 2 * LIMIT)
    assert not progress_to(watch, 603)
    assert watch.standings[0].decision.state is State.PROVEN


def test_above_the_limit_without_end_is_refuted_by_its_length() -> None:
    watch = Watch([ONE])
    for second in range(40, 60):
        watch.over(0, LIMIT, second, 2 * LIMIT)
    assert not progress_to(watch, 50)
    assert watch.lines()[:1] == [
        "100 us, 1/min: 1 episode; above 100 us now, for 9.0 s; REFUTED in 6.0 s if it goes on"
    ]
    assert progress_to(watch, 60)
    (standing,) = watch.standings
    # late by 41 s at the latest, and still after 56 s, which is known when that second is over
    assert (standing.decision.state, standing.decision.at_ns) == (State.REFUTED, 57 * SECOND_NS)


def test_nothing_is_known_before_every_thread_has_told_of_it() -> None:
    watch = Watch([ONE])
    assert not watch.progress(0, 1000 * SECOND_NS)
    assert watch.standings[0].measured_ns == 0
    assert not watch.progress(1, 100 * SECOND_NS)
    watch.over(1, LIMIT, 150, 2 * LIMIT)
    assert not watch.progress(0, 2000 * SECOND_NS)
    assert (watch.standings[0].measured_ns, watch.standings[0].episodes) == (100 * SECOND_NS, 0)
    assert watch.standings[0].decision.state is State.UNDECIDED
    assert not watch.progress(1, 200 * SECOND_NS)
    assert watch.standings[0].episodes == 1


def test_a_part_of_a_second_does_not_count() -> None:
    watch = Watch([replace(ONE, at_most_ns=SECOND_NS)])
    for due_ns in (0, 4_900_000_000):
        assert not watch.progress(0, due_ns)
    assert watch.progress(0, 5_000_000_000)


def test_seconds_within_the_gap_are_one_episode_on_any_thread_and_in_any_order() -> None:
    watch = Watch([ONE])
    for thread, second in ((0, 10), (1, 9), (1, 11), (0, 15), (0, 15)):
        watch.over(thread, LIMIT, second, 2 * LIMIT)
    progress_to(watch, 11, threads=2)
    assert watch.standings[0].episodes == 1
    for thread in (0, 1):
        watch.progress(thread, 30 * SECOND_NS)
    assert watch.standings[0].episodes == 2


def test_an_exceedance_of_seconds_reaches_as_far_as_it_is_late() -> None:
    watch = Watch([ONE])
    watch.over(0, LIMIT, 10, 5 * SECOND_NS + LIMIT)
    watch.over(0, LIMIT, 16, 2 * LIMIT)
    progress_to(watch, 20)
    assert watch.standings[0].episodes == 1
    watch.over(0, LIMIT, 24, 2 * LIMIT)
    progress_to(watch, 30)
    assert watch.standings[0].episodes == 2


def test_with_lost_values_nothing_is_proven() -> None:
    watch = Watch([ONE])
    assert not progress_to(watch, 1000, lost=1)
    assert (
        watch.lines()[0] == "100 us, 1/min: 0 episodes so far; it cannot be PROVEN any more, because values were lost"
    )


def test_lines_say_how_much_longer_now_and_after_one_more_and_the_chance() -> None:
    watch = Watch([ONE, replace(ONE, limit_ns=2 * LIMIT, at_most_ns=10 * MINUTE_NS)])
    first, second = watch.lines()
    assert first == "200 us, 1/10min: 42 min 19 s without an exceedance"
    assert second == "100 us, 1/min: 4 min 14 s without an exceedance"
    watch.over(0, LIMIT, 100, 2 * LIMIT)
    progress_to(watch, 200)
    first, first_way, second, second_way = watch.lines()
    assert first == "200 us, 1/10min: 0 episodes so far; 39 min more without an exceedance"
    assert second == "100 us, 1/min: 1 episode so far; 4 min 23 s more without an exceedance"
    assert progress_lines(watch.standings[0]) == [second, second_way]
    assert first_way == "  PROVEN ············ 7 %"
    assert second_way == "  PROVEN █████······· 42 %"


def test_a_watch_of_a_fixed_length_ends_nothing() -> None:
    watch = Watch([ONE], ends_run=False)
    assert not progress_to(watch, 300)
    assert watch.decided


def test_several_limits_need_more_each() -> None:
    assert still_needed_ns([ONE], 0) == needed_by_one(0, MINUTE_NS, 0.05)
    assert (
        still_needed_ns([ONE, replace(ONE, limit_ns=1)], 2)
        == needed_by_one(2, MINUTE_NS, (1 - 0.95) / 2) + 2 * ONE.gap_ns
    )


SHORT = replace(ONE, longest_ns=20 * SECOND_NS)
STOOD_S = 30


def one_stands(watch: Watch, until_s: int, from_s: int = 0) -> bool:
    """Two threads that tell twice a second; the second one waits for its due time of second 30 from then on."""
    done = False
    for half in range(2 * from_s + 1, 2 * until_s + 1):
        now = half * SECOND_NS // 2
        done = watch.progress(0, now, 0, now) | watch.progress(1, min(now, STOOD_S * SECOND_NS), 0, now)
    return done


def test_a_thread_that_stands_is_late_and_the_clock_of_the_others_goes_on() -> None:
    watch = Watch([SHORT])
    assert not one_stands(watch, STOOD_S + 15)
    (standing,) = watch.standings
    assert (standing.episodes, standing.decision.state) == (1, State.UNDECIDED)
    assert STOOD_S * SECOND_NS < standing.measured_ns <= (STOOD_S + 15) * SECOND_NS
    assert "above 100 us now, for 14" in watch.lines()[0]
    assert one_stands(watch, STOOD_S + 23, STOOD_S + 15)
    (standing,) = watch.standings
    assert standing.decision.state is State.REFUTED
    assert standing.decision.at_ns == (STOOD_S + 20) * SECOND_NS, "the length that was asked for, and no second more"


def test_a_thread_that_stood_and_goes_on_is_one_episode() -> None:
    watch = Watch([SHORT])
    one_stands(watch, STOOD_S + 5)
    watch.over(1, LIMIT, STOOD_S, 5 * SECOND_NS)
    for second in range(STOOD_S + 6, STOOD_S + 60):
        now = second * SECOND_NS
        assert not watch.progress(0, now, 0, now) | watch.progress(1, now, 0, now)
    (standing,) = watch.standings
    assert (standing.episodes, standing.measured_ns) == (1, (STOOD_S + 59) * SECOND_NS)
    assert standing.course.open_since_ns is None


def told_exactly(requirement: Requirement, late: Activations, length_s: int) -> Watch:
    """A watch of a run of one thread whose late times the agent tells one by one."""
    watch = Watch([requirement])
    watch.progress(0, 0)
    for second in range(length_s):
        here = late.due_ns // SECOND_NS == second
        for due, value in zip(late.due_ns[here].tolist(), late.value[here].tolist(), strict=True):
            if value > requirement.limit_ns:
                watch.over(0, requirement.limit_ns, second, value, (due, due + value - requirement.limit_ns, 1))
        if watch.progress(0, (second + 1) * SECOND_NS):
            break
    return watch


@pytest.mark.parametrize(("rate", "likely"), [(0.2, State.PROVEN), (4.0, State.REFUTED)])
def test_a_rate_per_second_is_decided_live_as_the_record_decides_it(rate: float, likely: State, tmp_path: Path) -> None:
    """Also after an exceedance, and with as many episodes: the late times are exact, however short the gap is."""
    ends = []
    for seed in range(1, 6):
        asked = SimulationRequest("", 60 * SECOND_NS, 1_000_000, (0,))
        process = SimulatedProcess(seed, "poisson", rate, KnownTail(LIMIT, 20_000))
        requirement = Requirement(LIMIT, SECOND_NS)
        (late,) = simulated_thread.late_activations(process, asked, simulated_thread.series_of(asked))
        watch = told_exactly(requirement, late, 60)
        (standing,) = watch.standings
        assert watch.decided
        end_s = standing.measured_ns // SECOND_NS
        verdict = analyse(played_to(tmp_path / f"{seed}", process, asked, end_s), [requirement]).verdict
        assert (verdict.state, len(verdict.episodes)) == (standing.decision.state, standing.episodes)
        ends.append(verdict.state)
    assert likely in ends
    assert max(len(verdict.episodes), standing.episodes) > 0


def test_exact_late_times_are_joined_by_the_gap_and_no_more(tmp_path: Path) -> None:
    half = Requirement(LIMIT, 10 * SECOND_NS)  # a gap of 500 ms
    watch = Watch([half])
    for due_ms in (900, 1300, 1801):
        due_ns = due_ms * 1_000_000
        watch.over(0, LIMIT, due_ns // SECOND_NS, LIMIT + 1000, (due_ns, due_ns + 1000, 1))
    progress_to(watch, 3)
    assert watch.standings[0].episodes == 2
    watch.over(0, LIMIT, 1, LIMIT + 200_000_000, (1_300_000_000, 1_500_000_000, 2))
    progress_to(watch, 4)
    assert watch.standings[0].episodes == 1, "a stretch that is told again, with a later end"


def test_a_gap_shorter_than_the_agent_tells_apart_is_left_to_the_end() -> None:
    watch = Watch([Requirement(LIMIT, SECOND_NS, gap_ns=TOLD_APART_NS - 1)])
    watch.over(0, LIMIT, 2, 2 * LIMIT, (2 * SECOND_NS, 2 * SECOND_NS + LIMIT, 2))
    progress_to(watch, 20)
    assert watch.lines()[0].endswith(" at least 1 episode so far; verdict at the end")
    single = Watch([Requirement(LIMIT, SECOND_NS, gap_ns=TOLD_APART_NS - 1)])
    single.over(0, LIMIT, 2, 2 * LIMIT, (2 * SECOND_NS, 2 * SECOND_NS + LIMIT, 1))
    progress_to(single, 3)
    assert " 1 episode so far; " in single.lines()[0], "one activation is one episode"


def test_a_stretch_that_is_told_again_is_counted_once() -> None:
    watch = Watch([Requirement(LIMIT)])
    for thread, begin_ns, count in ((0, 7, 1), (1, 7, 5), (0, 7, 3), (0, 1_000_000_007, 2)):
        watch.over(thread, LIMIT, begin_ns // SECOND_NS, 2 * LIMIT, (begin_ns, begin_ns + LIMIT, count))
    assert watch.lines() == ["100 us: EXCEEDED 10 times; the largest is 200 us"]


def test_very_many_exact_late_times_are_as_few_episodes() -> None:
    watch = Watch([ONE])
    for at in range(9000):
        due_ns = 100 * SECOND_NS + at * 1_000_000
        watch.over(0, LIMIT, due_ns // SECOND_NS, LIMIT + 1, (due_ns, due_ns + 1, 1))
    progress_to(watch, 200)
    assert watch.standings[0].episodes == 1
    assert watch.standings[0].live_ns == (100 - 1 + 200 - 109 - 2) * SECOND_NS + 1_000_000 - 1


def test_a_run_that_will_be_invalid_ends_and_decides_nothing() -> None:
    watch = Watch([ONE, Requirement(LIMIT)])
    watch.over(0, LIMIT, 0, 2 * LIMIT)
    watch.invalid("the threads run without real time")
    assert watch.progress(0, 0)
    assert watch.lines() == ["INVALID: the threads run without real time"]


def test_a_run_with_loads_is_not_ended_before_they_can_be_seen_to_work() -> None:
    watch = Watch([Requirement(LIMIT)], least_ns=3 * SECOND_NS)
    watch.over(0, LIMIT, 0, 2 * LIMIT)
    assert not progress_to(watch, 2)
    assert watch.decided
    assert watch.progress(0, 3 * SECOND_NS)


def test_what_stands_is_not_late_for_a_longer_limit() -> None:
    watch = Watch([SHORT, replace(SHORT, limit_ns=60 * SECOND_NS)])
    one_stands(watch, STOOD_S + 15)
    assert [one.episodes for one in watch.standings] == [0, 0], "what comes of the longer limit is not known yet"
    one_stands(watch, STOOD_S + 61 + 15, STOOD_S + 15)
    assert [one.episodes for one in watch.standings] == [1, 1]


def test_who_waits_for_something_outside_does_not_stand() -> None:
    watch = Watch([SHORT], from_outside=True)
    assert not one_stands(watch, STOOD_S + 60)
    assert (watch.standings[0].episodes, watch.standings[0].measured_ns) == (0, STOOD_S * SECOND_NS)


def test_who_tells_no_due_times_does_not_stand() -> None:
    watch = Watch([SHORT])
    for second in range(1, 100):
        assert not watch.progress(0, 0, 0, second * SECOND_NS)
    assert watch.standings[0].episodes == 0


BLOCKS = (block([9000] * 5000),)


def codes(at_most_ns: int, reason: EndReason) -> tuple[State, set[str]]:
    made = record(BLOCKS, end=end(BLOCKS, reason), facts=(fact("duration_ns", 100 * SECOND),))
    analysis = ended_when_decided(analyse(made, Requirement(500_000, at_most_ns)))
    return analysis.verdict.state, {doubt.code for doubt in analysis.doubts}


def test_a_decided_run_was_stopped_as_asked() -> None:
    state, doubts = codes(SECOND, EndReason.INTERRUPTED)
    assert state is State.PROVEN
    assert "ended-early" not in doubts


def test_an_undecided_one_was_not_and_other_ends_stay_what_they_are() -> None:
    assert codes(100 * SECOND, EndReason.INTERRUPTED) == (State.UNDECIDED, {"ended-early"})
    state, doubts = codes(SECOND, EndReason.NO_SPACE)
    assert state is State.PROVEN
    assert "ended-early" in doubts
