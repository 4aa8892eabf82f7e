# SPDX-License-Identifier: Apache-2.0
"""Runs that made a verdict say what is not so: damaged files, very short runs, episodes that are not over."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import slow_verdict
from analysis_records import BEGIN, MS, SECOND, SERIES, block, record
from doubt_cases import FACTS, clean, facts
from msgspec import structs
from record_cases import chunks
from run_folders import INFO, latencies, write_run
from simulated_records import written

from rtproof import profiles
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment import stored_runs
from rtproof.experiment.profile_campaign import profile_requirements
from rtproof.experiment.stored_runs import read_run
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, State, Verdict
from rtproof.judge.claim import Decision, LateStretches, RefutingRule, decide, episode_course
from rtproof.judge.evidence import figures_of_limit, gather_evidence
from rtproof.judge.verdict import chosen_after_the_data, judge_requirement
from rtproof.judge.verdict_sentences import more_time_of_verdict, texts_under_labels
from rtproof.judge.watch import Watch
from rtproof.record import run_folder
from rtproof.record.chunks import CHUNK_HEADER, ChunkType
from rtproof.record.contents import End, EndReason, Event, Moment, Record, Seconds, SeriesTotals
from rtproof.record.reading import open_record
from rtproof.record.requirement import NO_LONGEST, Requirement
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.schema.published import analysis_dict
from rtproof.simulation.events import KnownTail
from rtproof.simulation.simulated_thread import SimulatedProcess, SimulationRequest
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.series import pooled, summarise

LIMIT = 500_000
MINUTELY = Requirement(LIMIT, 60 * SECOND)
LENGTH = 300_000


def measured(*late: tuple[int, int, int], threads: int = 1, ends: tuple[int, ...] = ()) -> Record:
    """Five minutes of 9 us; late: thread, first and last millisecond of 600 us; ends: when each thread stalls."""
    series = [replace(SERIES, id=number, thread=number) for number in range(threads)]
    values = [np.full(ends[number] if ends else LENGTH, 9_000) for number in range(threads)]
    for thread, first, last in late:
        values[thread][first : last + 1] = 600_000
    blocks = [block(one.tolist(), series=each) for one, each in zip(values, series, strict=True)]
    events = tuple(
        Event(LENGTH * MS, at, "stalled", f"the thread did not run any more; since_ns={one.size * MS}")
        for at, one in enumerate(values)
        if one.size < LENGTH
    )
    totals = tuple(SeriesTotals(each.series, each.values.size, 0, 0) for each in blocks)
    asked = {("duration_ns", Moment.ASKED): str(LENGTH * MS), ("cpu", Moment.START): None, ("cpu", Moment.END): None}
    end = End(LENGTH * MS, EndReason.AS_ASKED, "", totals)
    return record(blocks, series, facts=facts(asked), events=events, end=end, size=1000)


def analysed(made: Record, asked: Requirement = MINUTELY) -> Analysis:
    return analyse(made, asked, 1)


def short(*values: int) -> Record:
    changes = {("duration_ns", Moment.ASKED): str(len(values) * MS)}
    return record((block(list(values)),), (SERIES,), facts=facts({**FACTS, **changes}), size=1000)


def simulated(path: Path, threads: int) -> tuple[Record, list[bytes]]:
    """Five minutes in six parts, with exceedances in the first, and its chunks."""
    asked = SimulationRequest("", LENGTH * MS, 10 * MS, tuple(range(threads)))
    process = SimulatedProcess(3, "poisson", 1.5 / 60, KnownTail(LIMIT, 20_000))
    parts = [(at, 50, at) for at in range(0, 300, 50)]
    return written(path, process, asked, parts, EndReason.AS_ASKED), list(chunks(path))


def without(path: Path, parts: list[bytes], kind: ChunkType, *also: ChunkType) -> Record:
    """The record without the first chunk of a kind, and without all of others."""
    kinds = [CHUNK_HEADER.unpack(part[: CHUNK_HEADER.size])[2] for part in parts]
    gone = kinds.index(kind)
    path.write_bytes(b"".join(part for at, part in enumerate(parts) if at != gone and kinds[at] not in also))
    return open_record(path)


@pytest.mark.parametrize("also", [(), (ChunkType.END,)])
def test_a_thread_that_is_nowhere_described_makes_the_run_invalid(also: tuple[ChunkType, ...], tmp_path: Path) -> None:
    """It was PROVEN of the other thread alone, where both together were REFUTED."""
    _, parts = simulated(tmp_path / "whole.rtrec", 2)
    damaged = analysed(without(tmp_path / "damaged.rtrec", parts, ChunkType.SERIES, *also))
    assert damaged.verdict.state is State.INVALID
    assert any("what one thread measured can't be read" in each for each in damaged.verdict.reasons)


def test_exceedances_before_a_first_slice_that_is_gone_came_when_they_came(tmp_path: Path) -> None:
    """They counted as come at once, which refutes."""
    whole, parts = simulated(tmp_path / "whole.rtrec", 1)
    told = analysed(whole).verdict
    assert told.state is State.UNDECIDED
    assert told.episodes[0].begin_ns < 50 * SECOND
    damaged = analysed(without(tmp_path / "damaged.rtrec", parts, ChunkType.SUMMARY))
    assert "damage" in {doubt.code for doubt in damaged.doubts}
    assert (damaged.verdict.state, damaged.verdict.measured_ns) == (State.INVALID, told.measured_ns)
    assert len(damaged.verdict.episodes) == len(told.episodes)


BOUNDS = (
    *("tau", "log_e_proven", "log_e_refuted", "rate_low_per_s", "rate_high_per_s", "rate_high_fixed_per_s"),
    *("bunches_bound", "bunched", "decided_at_ns", "decided_with", "kind", "proven_at_ns", "proven_with"),
    *("refuted_at_latest_ns", "needed_ns", "more_ns", "needed_with_one_more_ns", "more_with_one_more_ns"),
    *("chance", "chance_with_one_more"),
)
"""The figures of a verdict that follow from a test."""


def test_a_run_that_is_invalid_has_no_bound() -> None:
    made = measured((0, 100_000, 100_000))
    invalid = replace(made, facts=(*facts({("policy", Moment.END): "other"}),))
    analysis = analysed(invalid)
    verdict = analysis.verdict
    assert verdict.state is State.INVALID
    assert {getattr(verdict, name) for name in BOUNDS} == {None}
    assert analysis_dict(analysis)["verdict"]["rate_high_per_s"] is None
    assert "events rarer" not in " ".join(texts_under_labels(verdict.sentences, "UNSEEN"))
    after = chosen_after_the_data(analysis).verdict
    assert after.state is State.INVALID
    assert after.rate_high_fixed_per_s is None
    assert len(verdict.episodes) == 1


def test_latencies_below_zero_are_no_stall() -> None:
    (said, *_) = texts_under_labels(analysed(short(*[-5_000] * 6_000)).verdict.sentences, "MAX")
    assert said.startswith("-5 us on thread 0")


def test_one_activation_is_not_a_second() -> None:
    verdict = analysed(short(900_000)).verdict
    assert verdict.state is State.REFUTED
    assert verdict.reasons[0].startswith("500 us was exceeded once in 1 ms (1 episode)")
    assert verdict.reasons[1].startswith("Episodes come more often than once")


def test_a_decision_within_the_first_second_says_when() -> None:
    verdict = analysed(short(900_000, *[9_000] * 5_999), Requirement(LIMIT, SECOND)).verdict
    assert verdict.reasons[1].startswith("1 episode in the first 3.51 ms shows more than one per 1.0 s")


def test_an_episode_that_is_not_over_was_not_shorter() -> None:
    """Proven before it began; it goes on at the end, or the thread never ran again."""
    for made in (measured((0, 290_000, LENGTH)), measured(threads=2, ends=(LENGTH, 290_000))):
        verdict = analysed(made).verdict
        assert verdict.state is State.PROVEN
        assert "in 5 min (1 episode of 9.9 s, not over)" in verdict.reasons[0]
        assert verdict.reasons[1].startswith("0 episodes in the first 3 min 29 s shows less than one per 1 min")
    often = analysed(measured((0, 299_000, LENGTH)), replace(MINUTELY, at_most_ns=40 * SECOND, gap_ns=2 * SECOND))
    assert often.verdict.state is State.PROVEN
    assert "shorter than" not in " ".join(often.verdict.reasons)


def test_what_lasted_just_too_long_lasted_more_than_was_asked() -> None:
    verdict = analysed(measured((0, 100_000, 115_000))).verdict
    assert verdict.kind == "duration"
    assert verdict.reasons[1] == "An episode above 500 us lasted more than 15.0 s; at most 15.0 s was asked"


def test_what_was_seen_comes_before_what_was_bet() -> None:
    """Late by turns from the start on, always: one episode within the first 0.2 s refutes, but 5 min were seen."""
    turns = [(at // 1_000 % 3, at, at) for at in range(0, LENGTH, 2_500)]
    verdict = analysed(measured(*turns, threads=3)).verdict
    assert (verdict.state, verdict.kind) == (State.REFUTED, "rate")
    assert "in 5 min (1 episode of 4 min 57 s, not over)" in verdict.reasons[0]
    assert verdict.reasons[1].startswith("An episode above 500 us lasted 4 min 57 s; at most 15.0 s was asked")
    assert verdict.reasons[2].startswith("1 episode in the first 211 ms shows more than one per 1 min")
    assert verdict.reasons[3].startswith(
        "A system that keeps this claim is called REFUTED in at most 5 % of runs, if episodes come independently"
    )


def test_a_watch_tells_that_seconds_hide_how_long_an_episode_was() -> None:
    """Late in 16 seconds: for 14 to 16 s, where 15 s may be. The record of such a run was REFUTED."""
    lines = []
    for seconds in (16, 15, 10):
        watch = Watch([replace(MINUTELY, longest_ns=15 * SECOND)])
        for second in range(700):
            if 100 <= second < 100 + seconds:
                watch.over(0, LIMIT, second, LIMIT + 1)
            watch.progress(0, (second + 1) * SECOND)
        assert watch.standings[0].decision.state is State.PROVEN
        lines += watch.lines()
    unless = [", unless an episode lasted longer than 15.0 s" in line for line in lines]
    assert unless == [True, True, False]


# Gaps that are too short: for the period, and for late times that are known to the second only.


def said_of(period_ns: int, *asked: Requirement) -> dict[str, str]:
    made = clean((block([9000] * 3000),), replace(SERIES, period_ns=period_ns))
    return {doubt.code: doubt.brief for doubt in analyse(made, asked, 1).doubts}


def test_a_record_with_a_gap_below_two_periods_is_doubted_for_each_limit() -> None:
    hourly, often = Requirement(500_000, 3_600 * SECOND_NS), Requirement(90_000, SECOND_NS)
    assert "gap-short" not in said_of(MS, hourly, often)
    assert "gap-short" not in said_of(25 * MS, hourly, often)
    assert said_of(26 * MS, hourly, often)["gap-short"].startswith("the gap of 50 ms is below 2 periods: ")
    assert "gap-short" in said_of(MS, replace(hourly, gap_ns=MS))


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
    slow = structs.replace(profile, cells=tuple(replace(cell, period_ns=50 * period_ns) for cell in profile.cells))
    assert 50 * period_ns > 25 * MS
    with pytest.raises(UserError, match=r"the cell unloaded of the profile akamina: the gap of 50ms is shorter than"):
        profile_requirements(slow, often)


def test_what_run_refuses_is_refused_of_a_stored_run_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = str(write_run(tmp_path / "run", latencies(1, 5_000)))
    short = ["--limit", "1ms", "--at-most", "1/s", "--gap", "1ms"]
    for words in (["show", stored], ["judge", stored], ["judge", stored, "--fixed-beforehand"]):
        assert main([*words, *short]) == 2
        told = capsys.readouterr()
        assert "the gap of 1ms is shorter than two periods (2ms)" in " ".join((told.err + told.out).split())
    assert main(["judge", stored, *short[:-1], "2ms", "--fixed-beforehand"]) == 0


EDITED = "run.json names other limits than the record"
NO_LIMITS = "only run.json names the limits"
NO_RATES = "only run.json names the limits' rates"


@pytest.mark.parametrize(
    ("of_file", "given", "states", "doubts"),
    [
        ([500_000], "500000", ["REFUTED"], [NO_RATES]),
        ([MS], "500000", ["EXCEEDED"], [EDITED]),
        ([MS, 500_000], "500000", ["REFUTED"], [EDITED]),
        ([], "500000", ["EXCEEDED"], [EDITED]),
        ([MS], "", ["NOT ASKED"], [EDITED]),
        ([], "", ["NOT ASKED"], []),
        ([MS], None, ["PROVEN"], [NO_LIMITS]),
        ([], None, ["NOT ASKED"], [NO_LIMITS]),
    ],
)
def test_the_record_decides_which_limits_the_run_was_given(
    of_file: list[int], given: str | None, states: list[str], doubts: list[str], tmp_path: Path
) -> None:
    """An edited run.json turned REFUTED into PROVEN."""
    asked = tuple(Requirement(each, SECOND_NS, longest_ns=NO_LONGEST) for each in of_file)
    values = latencies(1, 5_000)
    values[::500] = 600_000
    facts = {} if given is None else {"limits_ns": given}
    made = write_run(tmp_path / "run", values, info=msgspec.structs.replace(INFO, requirements=asked), facts=facts)
    analysis = read_run(made, workers=1).analysis
    assert [each.state.value for each in analysis.verdicts] == states
    assert [each.what for each in analysis.doubts] == doubts


def test_a_cell_of_a_guest_accuses_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept for campaigns with other limits, so its run.json names none: "find who changed it" was wrong."""
    made = write_run(tmp_path / "run", latencies(1, 5_000), facts={"limits_ns": "500000"})
    assert [each.what for each in read_run(made, workers=1).analysis.doubts] == [EDITED]
    monkeypatch.setattr(stored_runs, "virtual_time_clock", lambda _: "QEMU")
    analysis = read_run(made, workers=1).analysis
    assert ([each.state.value for each in analysis.verdicts], analysis.doubts) == (["HELD"], ())


@pytest.mark.parametrize(
    "edit", [{}, {"at_most_ns": 5 * SECOND_NS}, {"confidence": 0.5}, {"limit_ns": MS}, {"at_most_ns": 1, "gap_ns": 1}]
)
def test_the_record_decides_what_was_asked_of_each_limit(edit: dict[str, Any], tmp_path: Path) -> None:
    """A rate that was written into run.json turned EXCEEDED into PROVEN."""
    asked = Requirement(500_000)
    values = latencies(1, 5_000)
    values[::500] = 600_000
    facts = {"limits_ns": "500000", "claims": run_folder.claims_text([asked])}
    info = msgspec.structs.replace(INFO, requirements=(replace(asked, **edit),))
    run = write_run(tmp_path / "run", values, info=info, facts=facts)
    analysis = read_run(run, workers=1).analysis
    assert [each.state.value for each in analysis.verdicts] == ["EXCEEDED"]
    assert [each.what for each in analysis.doubts] == [EDITED] * bool(edit)
    (run / "run.json").unlink()
    assert [each.requirement for each in read_run(run, workers=1).analysis.verdicts] == [Requirement(500_000)]


def test_what_has_its_due_times_from_outside_is_not_refused_without_a_period() -> None:
    from click import UsageError

    from rtproof.cli.option_values import refuse_short_gaps

    own = (Requirement(1_000, 3_600 * SECOND_NS, gap_ns=MS),)
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
    assert watch.lines() == ["100 us, 1/4s: at least 1 episode so far; verdict at the end"], "no bar of a proof"


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
    assert not more_time_of_verdict(found)
    assert (found.more_ns, found.rate_high_per_s) == (None, None)
    wide = verdict_of(made, replace(asked, at_most_ns=20 * SECOND_NS, gap_ns=0, longest_ns=0))
    assert wide.requirement is not None
    assert (wide.state, wide.requirement.gap_ns) == (State.PROVEN, SECOND_NS)


# Runs without length or spread, and histograms without a value: no figure is "nan" or "inf", and JSON stays JSON.


DATA = Path(__file__).parent / "data" / "cyclictest"
NO_NUMBER = re.compile(r"\b(nan|inf)\b|\bNaN\b|\bInfinity\b")
RUNS: dict[str, tuple[list[int], int | None]] = {
    "one value": ([5_000], None),
    "one value in no time": ([5_000], 0),
    "no value": ([], None),
    "two of the same": ([5_000, 5_000], None),
    "all zero": ([0] * 1_000, None),
    "zero in no time": ([0, 0], 0),
    "all early": ([-5] * 1_000, None),
    "as long as can be written": ([2**62], None),
}


def write(folder: Path, values: list[int], length_ns: int | None) -> Path:
    run_folder.create_run_folder(folder)
    run_folder.write_run_info(folder, INFO)
    with RecordWriter(str(folder / run_folder.RECORD_NAME)) as writer:
        writer.begin(BEGIN)
        writer.series(SERIES)
        feed = SeriesWriter(writer, SERIES)
        if values:
            feed.add(np.array(values, np.int64))
        end_ns = len(values) * SERIES.period_ns if length_ns is None else length_ns
        writer.end(End(end_ns, EndReason.AS_ASKED, "", (feed.finish(),)))
    return folder


def no_constant(word: str) -> Any:
    pytest.fail(f"{word} is no JSON")


def check(path: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["show"],
        ["show", "--json", "--limit", "1ms"],
        ["judge", "--limit", "1ms", "--fixed-beforehand"],
        ["report", "--format", "text", "--output", "-"],
        ["history", "--no-report", "--json"],
        ["compare", "--against", str(other), "--although-different", "--no-report", "--json"],
    ):
        code = main([words[0], str(path), *words[1:]])
        out, err = capsys.readouterr()
        assert code in (0, 1, 2, 3, 4)
        assert "defect" not in out + err
        assert not NO_NUMBER.search(out), words
        if "json" in words or ("--json" in words and code != 2):
            json.loads(out, parse_constant=no_constant)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", RUNS)
def test_a_run_without_length_or_spread(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write(tmp_path / "run", *RUNS[name])
    check(run, write(tmp_path / "other", [4_000, 6_000], None), capsys)
    assert main(["show", str(run)]) != 2


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("form", ["bins", "cyclictest"])
def test_a_histogram_of_no_thread(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record"
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        writer.end(End(0, EndReason.AS_ASKED, "", ()))
    assert main(["export", str(path), "--format", form, "--output", "-"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"rtproof: {path} has no thread that can be read, so it has no histogram\n")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_histogram_without_a_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = re.sub(r"^(\d{6}) .*$", r"\1 000000\t000000", (DATA / "histogram.txt").read_text(), flags=re.MULTILINE)
    (tmp_path / "hist.txt").write_text(text)
    check(tmp_path / "hist.txt", write(tmp_path / "other", [4_000, 6_000], None), capsys)
    told = json.loads((DATA / "result.json").read_text())
    for thread in told["thread"].values():
        thread.update(cycles=0, min=0, max=0, avg=0, histogram={})
    told["end_time"] = told["start_time"]
    (tmp_path / "result.json").write_text(json.dumps(told))
    check(tmp_path / "result.json", DATA / "histogram.txt", capsys)


# Late times known to the second decide as exact ones do or later, never earlier; so does a watch of them.


LONGEST_S = 900


def some(rng: np.random.Generator) -> tuple[list[tuple[int, int]], int, Requirement, int]:
    """Late stretches, alone, in bursts and in long stops; the length in seconds; what is asked; how many limits."""
    length = int(rng.integers(30, LONGEST_S))
    at_most_s, confidence = int(rng.choice([20, 60, 110, 400])), float(rng.choice([0.8, 0.95, 0.99]))
    gap = max(at_most_s * SECOND_NS // int(rng.integers(10, 25)), SECOND_NS)
    spans: list[tuple[int, int]] = []
    for start in rng.integers(0, length * SECOND_NS, rng.poisson(rng.choice([0.3, 2.0, 8.0]))):
        for at in start + np.cumsum(rng.exponential(1.5 * gap, rng.choice([1, 1, 6, 30]))):
            beyond = int(rng.choice([1, 10**6, SECOND_NS - 1, 7 * SECOND_NS]))
            if at + beyond < length * SECOND_NS:
                spans.append((int(at), int(at) + beyond))
    return (
        sorted(spans),
        length,
        Requirement(LIMIT, at_most_s * SECOND_NS, confidence, gap),
        int(rng.choice([1, 2, 8])),
    )


def exactly(spans: list[tuple[int, int]]) -> LateStretches:
    return LateStretches.exact([begin for begin, _ in spans], [end for _, end in spans])


def by_second(spans: list[tuple[int, int]]) -> LateStretches:
    """As the agent tells: each second in which one was due, and how much longer than the limit the latest of it was."""
    beyond: dict[int, int] = {}
    for begin, end in spans:
        second = begin // SECOND_NS
        beyond[second] = max(beyond.get(second, 0), end - begin)
    return LateStretches.of_seconds(
        np.array(list(beyond), np.int64) * SECOND_NS, np.array(list(beyond.values()), np.int64)
    )


def not_earlier(rough: Decision, exact: Decision) -> None:
    if rough.proven_at_ns is not None and exact.refuted_at_ns is None:
        assert exact.proven_at_ns is not None
        assert rough.proven_at_ns >= exact.proven_at_ns
    if rough.refuted_at_ns is not None:
        assert exact.refuted_at_ns is not None
        assert rough.refuted_at_ns >= exact.refuted_at_ns


@pytest.mark.parametrize("seed", range(8))
def test_seconds_never_decide_earlier_than_exact_times(seed: int) -> None:
    """And exact times as the slow verdict does. Found out: with the refuting joins used for the duration."""
    rng = np.random.default_rng(seed)
    states: Counter[State] = Counter()
    for _ in range(60):
        spans, length, asked, limits = some(rng)
        alpha = (1 - asked.confidence) / limits
        exact = decide(asked, exactly(spans), length * SECOND_NS, alpha)
        rough = decide(asked, by_second(spans), length * SECOND_NS, alpha)
        not_earlier(rough, exact)
        assert (
            episode_course(by_second(spans), length * SECOND_NS, asked.gap_ns).live_ns
            <= episode_course(exactly(spans), length * SECOND_NS, asked.gap_ns).live_ns
        )
        slow = slow_verdict.decided(
            spans,
            length * SECOND_NS,
            slow_verdict.Asked(LIMIT, asked.at_most_ns, asked.gap_ns, asked.longest_ns, 1.0, alpha),
            whole=True,
        )
        assert (exact.state.value, exact.kind.value if exact.kind else "") == (slow.state, slow.why)
        assert exact.at_ns == (
            pytest.approx(slow.at_ns, abs=1e-6 * asked.at_most_ns) if slow.at_ns is not None else None
        )
        states[rough.state] += 1
    assert {State.PROVEN, State.REFUTED, State.UNDECIDED} == set(states)


@pytest.mark.parametrize("seed", range(4))
def test_the_watch_decides_as_seconds_do(seed: int) -> None:
    """At some moments while it goes on, it says what a record of so much would, or that a second later."""
    rng = np.random.default_rng((seed, 5))
    for _ in range(12):
        spans, length, asked, limits = some(rng)
        others = [replace(asked, limit_ns=LIMIT + 10**12 + other) for other in range(limits - 1)]
        watch = Watch([asked, *others])
        alpha = (1 - asked.confidence) / limits
        for second in range(length):
            for begin, end in spans:
                if begin // SECOND_NS == second:
                    watch.over(0, LIMIT, second, LIMIT + end - begin)
            for thread in range(3):
                watch.progress(thread, (second + 1) * SECOND_NS)
            if second % 60 == 59:
                past = [span for span in spans if span[0] < (second + 1) * SECOND_NS]
                told, exact = (
                    watch.standings[0].decision,
                    decide(asked, exactly(past), (second + 1) * SECOND_NS, alpha),
                )
                not_earlier(told, exact)
                if exact.proven_at_ns is not None and not past:
                    assert told.proven_at_ns is not None or second * SECOND_NS <= exact.proven_at_ns


def test_a_duration_needs_late_times_that_are_surely_joined() -> None:
    """Late seconds 4 s apart with a gap of 3 s may be joined or not: that refutes by neither rule too soon."""
    asked = Requirement(LIMIT, 60 * SECOND_NS)
    times = np.arange(300, 320, 4) * SECOND_NS
    rough = decide(asked, LateStretches.of_seconds(times), 400 * SECOND_NS, 0.05)
    assert rough.kind is not RefutingRule.DURATION
    inside = [int(at) + offset for at, offset in zip(times, (999_999_999, 0, 999_999_999, 0, 0), strict=True)]
    assert decide(asked, LateStretches.exact(inside, inside), 400 * SECOND_NS, 0.05).kind is not RefutingRule.DURATION
