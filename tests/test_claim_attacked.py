# SPDX-License-Identifier: Apache-2.0
"""Runs that made a verdict say what is not so: damaged files, very short runs, episodes that are not over."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, block, record
from doubt_cases import FACTS, facts
from record_cases import chunks
from simulated_records import written

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement, State
from rtproof.judge.verdict import BOUND_KEYS, chosen_after_the_data
from rtproof.judge.verdict_sentences import texts_under_labels
from rtproof.judge.watch import Watch
from rtproof.record.chunks import CHUNK_HEADER, ChunkType
from rtproof.record.contents import End, EndReason, Event, Moment, Record, SeriesTotals
from rtproof.record.reading import open_record
from rtproof.schema.analysis_json import analysis_dict
from rtproof.simulation.events import KnownTail
from rtproof.simulation.simulated_thread import SimulatedProcess, SimulationRequest

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
    assert any("what one thread measured can't be read at all" in each for each in damaged.verdict.reasons)


def test_exceedances_before_a_first_slice_that_is_gone_came_when_they_came(tmp_path: Path) -> None:
    """They counted as come at once, which refutes."""
    whole, parts = simulated(tmp_path / "whole.rtrec", 1)
    told = analysed(whole).verdict
    assert told.state is State.UNDECIDED
    assert told.episodes[0].begin_ns < 50 * SECOND
    damaged = analysed(without(tmp_path / "damaged.rtrec", parts, ChunkType.SUMMARY))
    assert "damage" in {doubt.code for doubt in damaged.doubts}
    assert (damaged.verdict.state, damaged.verdict.measured_ns) == (told.state, told.measured_ns)
    assert len(damaged.verdict.episodes) == len(told.episodes)


def test_a_run_that_is_invalid_has_no_bound() -> None:
    made = measured((0, 100_000, 100_000))
    invalid = replace(made, facts=(*facts({("policy", Moment.END): "other"}),))
    analysis = analysed(invalid)
    verdict = analysis.verdict
    assert verdict.state is State.INVALID
    assert {getattr(verdict, name) for name in BOUND_KEYS} == {None}
    assert analysis_dict(analysis)["verdict"]["rate_high_per_s"] is None
    assert "anything rarer" not in " ".join(texts_under_labels(verdict.sentences, "UNSEEN"))
    after = chosen_after_the_data(analysis).verdict
    assert after.state is State.INVALID
    assert "RANK" not in {label for label, _ in after.sentences}
    assert len(verdict.episodes) == 1


def test_latencies_below_zero_are_no_stall() -> None:
    (said, *_) = texts_under_labels(analysed(short(*[-5_000] * 6_000)).verdict.sentences, "MAX")
    assert said.startswith("-5 us on thread 0")


def test_one_activation_is_not_a_second() -> None:
    verdict = analysed(short(900_000)).verdict
    assert verdict.state is State.REFUTED
    assert verdict.reasons[0].startswith("Exceeded in 1 episode in 1 ms (1 thread; 1 activation): more often than once")


def test_a_decision_within_the_first_second_says_when() -> None:
    verdict = analysed(short(900_000, *[9_000] * 5_999), Requirement(LIMIT, SECOND)).verdict
    assert verdict.reasons[0].startswith("Exceeded in 1 episode in the first 3.51 ms: more often than once per 1.0 s")


def test_an_episode_that_is_not_over_was_not_shorter() -> None:
    """Proven before it began; it goes on at the end, or the thread never ran again."""
    for made in (measured((0, 290_000, LENGTH)), measured(threads=2, ends=(LENGTH, 290_000))):
        verdict = analysed(made).verdict
        assert verdict.state is State.PROVEN
        assert verdict.reasons[0].startswith("Not exceeded in the first 3 min 29 s: less often than once per 1 min")
        assert verdict.reasons[1].startswith("The run went on: exceeded in 1 episode of 9.9 s, not over, in 5 min")
    often = analysed(measured((0, 299_000, LENGTH)), replace(MINUTELY, at_most_ns=40 * SECOND, gap_ns=2 * SECOND))
    assert often.verdict.state is State.PROVEN
    assert "shorter than" not in " ".join(often.verdict.reasons)


def test_what_lasted_just_too_long_lasted_more_than_was_asked() -> None:
    verdict = analysed(measured((0, 100_000, 115_000))).verdict
    assert verdict.kind == "duration"
    assert verdict.reasons[0] == "Above 500 us without 3.0 s of quiet for more than 15.0 s; at most 15.0 s was asked"


def test_what_was_seen_comes_before_what_was_bet() -> None:
    """Late by turns from the start on, always: one episode within the first 0.2 s refutes, but 5 min were seen."""
    turns = [(at // 1_000 % 3, at, at) for at in range(0, LENGTH, 2_500)]
    verdict = analysed(measured(*turns, threads=3)).verdict
    assert (verdict.state, verdict.kind) == (State.REFUTED, "rate")
    assert verdict.reasons[0].startswith("Above 500 us without 3.0 s of quiet for 4 min 57 s; at most 15.0 s was asked")
    assert verdict.reasons[1].startswith("Exceeded in 1 episode of 4 min 57 s, not over, in 5 min")
    assert verdict.reasons[2].startswith("Exceeded in 1 episode in the first 211 ms: more often than once per 1 min")
    assert verdict.reasons[3].startswith("Wrong in at most 5 % of runs, if episodes come independently")


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
    unless = [", unless the record shows an episode longer than 15.0 s" in line for line in lines]
    assert unless == [True, True, False]
