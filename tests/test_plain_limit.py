# SPDX-License-Identifier: Apache-2.0
"""A limit that is never to be exceeded: one late activation decides, and HELD says how much it shows."""

import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from analysis_records import MS, SECOND, block, end, record
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from stage_records import VIRTUAL

from rtproof.cli.main import main
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Outcome, State, Verdict
from rtproof.judge.planning import LengthPlan, held_after_ns, plan_lengths
from rtproof.judge.verdict import chosen_after_the_data
from rtproof.judge.watch import LEAD_NS, Watch
from rtproof.record.contents import Damage, EndReason, Event
from rtproof.record.requirement import Requirement
from rtproof.record.run_folder import open_run

LIMIT = 100_000
PLAIN = Requirement(LIMIT)
HOUR = 3600 * SECOND


@given(
    st.lists(st.integers(0, 2 * LIMIT), min_size=1, max_size=40),
    st.dictionaries(st.integers(0, 39), st.integers(1, 3), max_size=3),
)
def test_one_late_activation_decides_whether_it_ran_or_not(values: list[int], gaps: dict[int, int]) -> None:
    gaps = {at: missed for at, missed in gaps.items() if at < len(values)}
    values = [value + gaps.get(at, 0) * MS for at, value in enumerate(values)]
    late = [value - j * MS for at, value in enumerate(values) for j in range(gaps.get(at, 0) + 1)]
    found = analyse(record([block(values, gaps)]), PLAIN, 1).verdict
    exceeded = sum(value > LIMIT for value in late)
    assert found.state is (State.EXCEEDED if exceeded else State.HELD)
    assert (found.exceeded_count, found.largest_ns) == (exceeded, max(late))
    assert (found.episodes, found.exceeded, found.state.exit_code) == ((), exceeded > 0, int(exceeded > 0))
    assert (found.shown_rate_per_s is None) is (exceeded > 0)


@given(st.integers(2, 200), st.floats(0.5, 0.999))
def test_held_shows_the_rate_at_which_so_long_a_run_without_one_is_rare(length: int, confidence: float) -> None:
    found = analyse(record([block([10] * length)]), Requirement(LIMIT, confidence=confidence), 1).verdict
    assert found.shown_rate_per_s is not None
    expected = found.shown_rate_per_s * (found.measured_ns or 0) / SECOND
    assert math.exp(-expected) == pytest.approx(1 - confidence)
    assert found.needed_ns == held_after_ns(Requirement(LIMIT, confidence=confidence))


def test_the_fact_stands_first_with_its_number() -> None:
    found = analyse(record([block([10, LIMIT, LIMIT + 500, 20, *[30] * 7])]), PLAIN, 1).verdict
    assert found.reasons == ("100 us was exceeded once in 11 ms; the largest was 100.5 us, at 2 ms on CPU 2",)
    every = analyse(record([block([LIMIT + 1] * 3)]), PLAIN, 1).verdict
    assert every.reasons[0].startswith("All 3 activations in 3 ms were above 100 us; the largest was 100.001 us")
    held = analyse(record([block([10] * 3001)]), PLAIN, 1).verdict
    assert held.reasons == (
        "100 us was not exceeded in 3.0 s; the largest of 3,001 activations was 0.01 us",
        "This rules out exceedances more often than once per 1.0 s (95 %), if conditions stay as they were; "
        "rarer ones may come",
        "To rule out more than one per 1 h, measure 3 h",
    )
    enough = analyse(record([block([10] * 3001)]), replace(PLAIN, shows_ns=SECOND), 1).verdict
    assert enough.reasons == held.reasons[:2]


def test_a_thread_that_never_ran_again_exceeds_the_limit() -> None:
    blocks, stood = [block([10] * 5)], Event(90 * SECOND, 0, "stalled", "since_ns=5000000")
    whole = record(blocks, events=(stood,), end=replace(end(blocks), time_ns=90 * SECOND))
    found = analyse(whole, PLAIN, 1).verdict
    assert (found.state, found.largest_ns) == (State.EXCEEDED, 90 * SECOND - 5 * MS)
    assert found.reasons[0].endswith("; thread 0 stood for the last 89.995 s of the run")
    torn = analyse(replace(whole, end=None), PLAIN, 1).verdict
    assert (torn.state, torn.exceeded_count) == (State.EXCEEDED, 1), "the event alone shows it"
    assert torn.reasons[0].endswith("; a thread stood for at least 89.995 s")
    never = Event(90 * SECOND, 0, "stalled", "since_ns=0")
    absent = analyse(replace(whole, events=(never,), end=None), PLAIN, 1).verdict
    assert absent.reasons[0].endswith("; a thread stood for at least 90 s")


def test_what_is_missing_may_have_been_late() -> None:
    """A part that cannot be read may hold the only trace of a stall, or the reason why the run is INVALID."""
    made = record([block([10] * 3001)])
    hole = Damage(7, 9, "9 bytes are no valid chunk")
    torn = analyse(replace(made, damage=(structs.replace(hole, lost=True),)), PLAIN, 1).verdict
    assert torn.state is State.INVALID
    assert torn.reasons[0] == "bytes 7 to 15 can't be read"
    assert analyse(replace(made, damage=(hole,)), PLAIN, 1).verdict.state is State.HELD, "all chunks are there"
    stood = Event(3 * SECOND, 0, "stalled", "since_ns=2000000000")
    ended = replace(end([block([10] * 2000)]), time_ns=3 * SECOND)
    still = record([block([10] * 2000)], events=(stood,), end=ended)
    found = analyse(still, Requirement(2 * SECOND), 1).verdict
    assert found.state is State.UNDECIDED
    assert found.reasons[0] == "Thread 0 still stood at the end, for 1 s so far"
    assert analyse(still, Requirement(SECOND // 2), 1).verdict.state is State.EXCEEDED
    short = analyse(record([block([10] * 3)]), Requirement(SECOND), 1).verdict
    assert short.state is State.UNDECIDED
    assert short.reasons[0].endswith("which is no longer than the limit of 1 s")


def test_a_record_that_was_cut_off_holds_nothing() -> None:
    """What was late in its last seconds may be in the part that was not written."""
    found = analyse(record([block([10] * 3001)], end=None), PLAIN, 1).verdict
    assert (found.state, found.outcome, found.shown_rate_per_s) == (State.UNDECIDED, Outcome.SKIPPED, None)
    assert found.reasons == (
        "The record was cut off, so its last values are missing; until then, 100 us was not exceeded in 3.0 s; the "
        "largest of 3,001 activations was 0.01 us",
    )
    assert analyse(record([block([10, LIMIT + 1])], end=None), PLAIN, 1).verdict.state is State.EXCEEDED


def test_after_a_lost_value_nothing_holds_but_an_exceedance_does() -> None:
    def judged(first: int) -> Verdict:
        blocks = [block([first, *[10] * 3999]), block([10] * 4, first_index=4003)]
        ended = end(blocks)
        totals = (structs.replace(ended.totals[0], lost=3),)
        return analyse(record(blocks, end=replace(ended, time_ns=4007 * MS, totals=totals)), PLAIN, 1).verdict

    found = judged(10)
    assert (found.state, found.outcome, found.shown_rate_per_s) == (State.UNDECIDED, Outcome.SKIPPED, None)
    assert found.reasons == (
        "3 values were lost, and any of them may have been above 100 us; the largest of 4,004 activations was 0.01 us",
    )
    assert judged(LIMIT + 1).state is State.EXCEEDED


def test_invalid_prevails_and_then_says_whether_the_limit_was_exceeded() -> None:
    blocks = [block([10, LIMIT + 1, 10])]
    failed = record(blocks, end=end(blocks, EndReason.LOAD_DIED, "load 0"))
    found = analyse(failed, PLAIN, 1).verdict
    assert (found.state, found.outcome, found.exceeded) == (State.INVALID, Outcome.INVALID, True)
    assert found.reasons[1].startswith("100 us was exceeded once in ")
    calm = [block([10] * 3)]
    quiet = analyse(record(calm, end=end(calm, EndReason.LOAD_DIED, "load 0")), PLAIN, 1).verdict
    assert quiet.reasons[1].startswith("100 us was not exceeded in 3 ms")


def test_virtual_time_has_no_rate() -> None:
    found = analyse(record([block([10] * 3001)], facts=(VIRTUAL,)), PLAIN, 1).verdict
    assert (found.state, found.deterministic, found.shown_rate_per_s, found.alpha) == (State.HELD, True, None, None)
    assert found.reasons[0].startswith("100 us was not exceeded in 3.0 s of virtual time")


def test_each_limit_holds_by_itself_and_the_run_is_exceeded_if_one_is() -> None:
    rated = Requirement(LIMIT, HOUR)
    made = record([block([10, LIMIT + 1] * 1500)])
    several = analyse(made, (Requirement(MS), PLAIN, rated), 1)
    assert [verdict.state for verdict in several.verdicts] == [State.HELD, State.EXCEEDED, State.REFUTED]
    assert several.verdict.state is State.EXCEEDED
    assert [verdict.alpha for verdict in several.verdicts] == pytest.approx([0.05] * 3)


def test_a_limit_chosen_afterwards_is_judged_all_the_same() -> None:
    made = analyse(record([block([10, LIMIT + 1])]), (PLAIN, Requirement(LIMIT, HOUR)), 1)
    later = chosen_after_the_data(made)
    assert [verdict.state for verdict in later.verdicts] == [State.EXCEEDED, State.UNDECIDED]
    assert later.verdicts[0] == made.verdicts[0]
    alone = analyse(record([block([10])]), PLAIN, 1)
    assert chosen_after_the_data(alone) == alone


@pytest.mark.parametrize(
    ("state", "count", "outcome"),
    [
        (State.HELD, 0, Outcome.PASSED),
        (State.PROVEN, 1, Outcome.PASSED),
        (State.EXCEEDED, 1, Outcome.FAILED),
        (State.REFUTED, 9, Outcome.FAILED),
        (State.UNDECIDED, 0, Outcome.SKIPPED),
        (State.UNDECIDED, None, Outcome.SKIPPED),
        (State.UNDECIDED, 1, Outcome.FAILED),
        (State.INVALID, 0, Outcome.INVALID),
        (State.INVALID, 1, Outcome.INVALID),
        (State.NOT_ASKED, None, Outcome.UNKNOWN),
    ],
)
def test_an_exceeded_limit_is_never_skipped(state: State, count: int | None, outcome: Outcome) -> None:
    assert Verdict(state, None, (), (), (), 0, count, count).outcome is outcome


def test_the_watch_ends_at_the_first_exceedance_or_when_enough_is_shown() -> None:
    watch = Watch((PLAIN,))
    assert not watch.progress(0, SECOND)
    assert not watch.progress(0, 2 * SECOND)
    watch.over(0, LIMIT, 2, LIMIT + 5)
    assert watch.progress(0, 2 * SECOND + 5 * MS), "the second need not be over"
    assert watch.lines() == ["100 us: EXCEEDED, in 1 second so far; the largest is 100.005 us"]
    calm = Watch((replace(PLAIN, shows_ns=10 * SECOND),))
    needed_s = (held_after_ns(calm._of[0].requirement) + LEAD_NS) // SECOND + 1
    ends = [second for second in range(1, 60) if calm.progress(0, second * SECOND)]
    assert ends[0] == needed_s
    lost = Watch((replace(PLAIN, shows_ns=10 * SECOND),))
    assert not any(lost.progress(0, second * SECOND, lost=1) for second in range(1, 60))
    assert lost.lines() == ["100 us: not exceeded so far, but values were lost"]


def test_what_ends_a_run_of_both_kinds() -> None:
    watch = Watch((PLAIN, Requirement(MS, HOUR)))
    for second in range(4 * 3600):
        if watch.progress(0, second * SECOND):
            break
    assert second == pytest.approx(3.4819 * 3600, abs=5), "the limit with a rate takes longer"
    watch.over(0, LIMIT, second, LIMIT + 1)
    assert watch.decided


def test_the_plan_says_how_long() -> None:
    def plan(exceeded: int, measured_ns: int) -> LengthPlan:
        return plan_lengths([PLAIN], (exceeded, measured_ns))[0]

    assert plan(0, HOUR).needs[0].more_ns == held_after_ns(PLAIN) - HOUR
    assert (plan(1, HOUR).already, plan(0, 3 * HOUR).already) == (State.EXCEEDED, State.HELD)


@pytest.fixture
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


SIMULATED = ("run", "--no-report", "--target", "simulated", "--limit", "100us", "--json")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object], str]:
    code = main([*SIMULATED, *words])
    out, err = capsys.readouterr()
    return code, json.loads(out)["verdict"], err


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_run_ends_at_its_first_exceedance(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, err = run(capsys, "--until-decided", "--target-option", "episodes=20/h", "-o", "r")
    assert (code, said["state"]) == (1, "EXCEEDED")
    made = open_run("r")
    assert made.info is not None
    assert (made.info.requirements[0].at_most_ns, made.info.requirements[0].shows_ns) == (0, HOUR)
    assert made.record.end is not None
    assert 0 <= made.record.end.time_ns - int(str(said["decided_at_ns"])) <= 5 * SECOND
    assert (
        "100 us EXCEEDED, or HELD after 3 h, which rules out exceedances more often than once per 1 h; for 3 h at most"
        in err
    )
    assert main(["judge", "r", "--junit", "j.xml"]) == 1
    suites = ET.parse("j.xml").getroot()
    assert (suites.get("failures"), suites[0].get("skipped")) == ("1", "0")


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_run_without_an_exceedance_ends_when_it_shows_what_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    never = ("--target-option", "episodes=0/h")
    code, said, _ = run(capsys, "--until-decided", "--shows", "1/min", *never, "-o", "r")
    assert (code, said["state"]) == (0, "HELD")
    assert float(str(said["shown_rate_per_s"])) <= 1 / 60
    length = open_run("r").record.end
    assert length is not None
    assert length.time_ns <= 200 * SECOND
    bare = Path("r/run.rtrec").rename("bare.rtrec")
    assert main(["show", str(bare), "--json"]) == 0, "a record alone holds its limits, and they are plain"
    assert main(["judge", str(bare), "--limit", "1us"]) == 1
    capsys.readouterr()
    assert run(capsys, "--at-most", "never", "--duration", "1s", *never, "-o", "s")[0] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--gap", "1s"), "--gap needs --at-most"),
        (("--longest", "1s"), "--longest needs --at-most"),
        (("--bunches", "2"), "--bunches needs --at-most"),
        (("--at-most", "1/h", "--shows", "1/d"), "--shows is for a limit without --at-most"),
        (("--shows", "never"), "is not a rate"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SIMULATED, *words]) == 2
    assert sentence in capsys.readouterr().err
