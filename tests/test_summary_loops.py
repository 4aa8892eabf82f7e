# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, block, end, fact, record
from app_cases import APP, TABLE, US, app_record, whole
from doubt_cases import clean
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from stage_records import KERNEL, fields_of, staged

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Block, End, EndReason, Event, Record, SeriesTotals
from rtproof.record.requirement import Requirement
from rtproof.summary import per_second
from rtproof.summary.fields import series_by_field, stage_switches
from rtproof.summary.loops import (
    LOOP_FIELDS,
    ApplicationLoops,
    CycleTerms,
    cycle_points,
    cycle_sentences,
    loop_cycles,
    loops_of_all_threads,
    loops_of_threads,
    most_cycles_out_of_band,
    relation_holds,
)
from rtproof.summary.summary_model import Cycles, Stall, Switch

PERIOD = 10 * MS
LOOP = replace(SERIES, probe="kernel", method="loop", field="task", period_ns=PERIOD, loop=True)


def cycles_of(lengths: list[int], terms: CycleTerms | None = None, options: str = "") -> Cycles:
    """Of a loop whose cycles are so long. options: of the probe, as the record has them."""
    late = (np.cumsum([0, *lengths]) - PERIOD * np.arange(len(lengths) + 1)).tolist()
    facts = (fact("probe_options", options),) if options else ()
    return loop_cycles(record([block(late, series=LOOP)], [LOOP], facts=facts), terms)


def test_cycles_are_counted_against_the_band_of_article_2() -> None:
    found = cycles_of([10 * MS, 8 * MS, 8 * MS - 1, 12 * MS, 12 * MS + 1], CycleTerms(0))
    assert (found.counted, found.short, found.long, found.out_of_band) == (5, 1, 1, 2)
    assert (found.min_ns, found.max_ns) == (8 * MS - 1, 12 * MS + 1)


def test_the_first_thousand_are_ignored_and_of_a_short_run_a_tenth() -> None:
    long = cycles_of([PERIOD * 3] * 1_000 + [PERIOD] * 11_019)
    assert (long.ignored, long.counted, long.out_of_band) == (1_000, 11_019, 0)
    short = cycles_of([PERIOD * 3] * 20 + [PERIOD] * 180)
    assert (short.ignored, short.counted, short.long) == (20, 180, 0)
    assert cycles_of([PERIOD] * 200, CycleTerms(5)).ignored == 5


def test_a_long_cycle_directly_before_a_short_one_is_a_catch_up_pair() -> None:
    found = cycles_of([PERIOD, 19 * MS, MS, PERIOD, 19 * MS, PERIOD, MS], CycleTerms(0))
    assert found.catch_up_pairs == 1
    again = cycles_of([19 * MS, MS] * 50, CycleTerms(0))
    assert (again.catch_up_pairs, again.short, again.long) == (50, 50, 50)
    assert again.correlation == pytest.approx(-1, abs=0.03)


def test_none_out_of_band_is_no_proof_that_there_are_none() -> None:
    found = cycles_of([PERIOD] * 12_019)
    assert most_cycles_out_of_band(found) == pytest.approx(2.72e-4, rel=0.01)
    assert "a share of up to 0.00027 possible, which is one every 36.7 s" in cycle_sentences(found)


def test_the_cycles_that_are_drawn_are_those_that_count() -> None:
    ran = block([100 * MS, 0, *[5_000, 7_000, 4 * MS, 1_000] * 600], {2: 1}, series=LOOP)
    found, (drawn,) = loop_cycles(record([ran], [LOOP])), cycle_points(record([ran], [LOOP])).values()
    at, low, high = drawn.points
    assert (low.min(), high.max()) == (found.min_ns, found.max_ns)
    assert found.ignored <= at[0] + drawn.width
    assert at.size <= 1_000


def test_of_a_record_a_cycle_reaches_from_one_run_to_the_next() -> None:
    ran = block([5_000, 7_000, 4 * MS, 1_000, 2_000], {2: 1}, series=LOOP)
    found = loop_cycles(record([ran], [LOOP]), CycleTerms(0))
    assert (found.counted, found.period_ns) == (4, PERIOD)
    assert (found.min_ns, found.max_ns) == (10_001_000, 20 * MS + 1_000 - 4 * MS)
    assert (found.short, found.long) == (0, 2)


@given(st.lists(st.integers(-3_000_000, 40_000_000), min_size=2, max_size=60), st.integers(1, 7), st.integers(1, 20))
def test_the_pieces_of_a_record_make_no_difference(late: list[int], size: int, longest: int) -> None:
    """Neither blocks nor the stretches to which they are joined."""
    pieces = [block(late[at : at + size], first_index=at, series=LOOP) for at in range(0, len(late), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_second, "LONGEST", longest)
        found = loop_cycles(record(pieces, [LOOP]), CycleTerms(3))
    times = [at * PERIOD + value for at, value in enumerate(late)]
    lengths = [b - a for a, b in pairwise(times)]
    kept = lengths[3:]
    assert found.counted == len(kept)
    assert (found.min_ns, found.max_ns) == (min(kept, default=None), max(kept, default=None))
    assert found.short == sum(length < 8 * MS for length in kept)
    assert found.long == sum(length > 12 * MS for length in kept)
    assert found.catch_up_pairs == sum(a > 12 * MS and b < 8 * MS for a, b in pairwise(kept))


def test_a_loop_that_stood_still_and_went_on_stalled() -> None:
    late = [0] * 100 + [2_000 * MS] + [1_990 * MS - 10 * MS * at for at in range(199)] + [0] * 10
    found = loop_cycles(record([block(late, series=LOOP)], [LOOP]))
    assert found.stalls == (Stall(0, 99 * PERIOD, 2_010 * MS, over=True),)
    assert found.long == 1


def test_a_loop_that_never_ran_again_stalled_until_the_end() -> None:
    ran = [block([0] * 100, series=LOOP)]
    stop = replace(end(ran), time_ns=60 * SECOND)
    told = Event(59 * SECOND, 0, "stalled", f"the thread did not run any more; since_ns={SECOND}")
    assert loop_cycles(record(ran, [LOOP], end=stop, events=(told,))).stalls == (
        Stall(0, SECOND, 59 * SECOND, over=False),
    )
    untold = loop_cycles(record(ran, [LOOP], end=stop))
    assert untold.stalls == (Stall(0, 990 * MS, 60 * SECOND - 990 * MS, over=False),)
    asked = loop_cycles(record(ran, [LOOP], end=stop, facts=(fact("duration_ns", SECOND),)))
    assert asked.stalls == ()
    for samples, stalls in (("100", ()), ("6000", untold.stalls)):
        assert loop_cycles(record(ran, [LOOP], end=stop, facts=(fact("samples", samples),))).stalls == stalls
    lost = End(60 * SECOND, EndReason.AS_ASKED, "", (SeriesTotals(0, 100, 0, 5_900),))
    assert loop_cycles(record(ran, [LOOP], end=lost)).stalls == ()


def test_the_band_that_was_asked_for_may_go_farther_to_one_side() -> None:
    lengths = [9 * MS, 9 * MS - 1, 15 * MS, 15 * MS + 1, PERIOD]
    found = cycles_of(lengths, options="ignore=0,low=9ms,high=.015s")
    assert (found.low_ns, found.high_ns, found.short, found.long) == (9 * MS, 15 * MS, 1, 1)
    assert (found.counted, found.catch_up_pairs) == (5, 0)
    one_side = cycles_of(lengths, options="ignore=0,high=15ms")
    assert (one_side.low_ns, one_side.high_ns, one_side.short) == (8 * MS, 15 * MS, 0)


PERIOD_US = 5_000


def of(made: Record) -> ApplicationLoops:
    return loops_of_all_threads(loops_of_threads(made).values())


def test_times_of_a_loop_are_told_from_its_target() -> None:
    loops = whole(app_record(TABLE))
    assert loops.target_ns.tolist() == [0, 5 * MS, 10 * MS, 15 * MS, 20 * MS]
    assert (loops.error_ns // US).tolist() == [40, 1_311, 38, 41, 300]
    assert (loops.work_ns // US).tolist() == [1_000, 780, 852, 900, 15_890]
    assert loops.followed.tolist() == [True] * 4 + [False]


def test_slack_is_from_the_end_of_the_work_to_the_next_target() -> None:
    late = [(0, 0, 4_999), (0, 0, 5_000), (1, 1, 5_001), (2, 2, 3)]
    found = of(app_record(late))
    assert (whole(app_record(late)).slack_ns[:3] // US).tolist() == [1, 0, -1]
    assert (found.slack.min, found.slack.count, found.no_sleep) == (-US, 3, 2)


def test_loop_times_add_up_to_what_passed() -> None:
    made = app_record(TABLE, [(7, 8, 9)] * 4)
    assert {thread: (each.elapsed_ns // US, each.apart) for thread, each in loops_of_threads(made).items()} == {
        0: (4 * PERIOD_US + 260, 0),
        1: (3 * PERIOD_US, 0),
    }
    assert of(made).elapsed_ns == of(made).loop.sum


def test_loops_that_are_not_all_known_do_not_add_up() -> None:
    found = of(app_record(TABLE, gaps={1: 3}))
    assert (found.loop.count, found.apart) == (3, 1)
    assert not relation_holds(found.loop.count, found.loop.sum, found.elapsed_ns)


@pytest.mark.parametrize(
    ("off_ns", "holds"), [(0, True), (3_000, True), (-3_000, True), (3_001, False), (-3_001, False)]
)
def test_the_relation_allows_a_microsecond_for_each_loop(off_ns: int, holds: bool) -> None:
    assert relation_holds(3, 15 * MS + off_ns, 15 * MS) is holds


@given(
    st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 50), st.integers(0, 9_000)), min_size=1, max_size=60),
    st.integers(1, 7),
    st.sets(st.integers(1, 59), max_size=6),
)
def test_pieces_and_holes_change_no_loop(drawn: list[tuple[int, int, int]], longest: int, holes: set[int]) -> None:
    """Whatever the lengths of stretches and blocks, and wherever the record lacks activations."""
    rows = [(top, top + wait, top + wait + work) for top, wait, work in drawn]
    starts = sorted({0, *(hole for hole in holes if hole < len(rows))})
    blocks = []
    for at, series in enumerate(fields_of(APP, 0, LOOP_FIELDS)):
        for number, (start, stop) in enumerate(zip(starts, [*starts[1:], len(rows)], strict=True)):
            blocks.append(block([US * row[at] for row in rows[start:stop]], None, start + 2 * number, series))
    made = record(sorted(blocks, key=lambda each: each.first_index), fields_of(APP, 0, LOOP_FIELDS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_second, "LONGEST", longest)
        loops = whole(made)
    index = [at + 2 * sum(start <= at for start in starts[1:]) for at in range(len(rows))]
    tops = [PERIOD_US * number + row[0] for number, row in zip(index, rows, strict=True)]
    assert loops.index.tolist() == index
    assert (loops.top_ns // US).tolist() == tops
    followed = [after - before == 1 for before, after in pairwise(index)]
    assert loops.followed.tolist() == [*followed, False]
    expected = [b - a if near else 0 for a, b, near in zip(tops, tops[1:], followed, strict=False)]
    assert (loops.loop_ns // US).tolist() == [*expected, 0]


# A thread that never ran again, and values lost behind the last one kept, are in every table.


RAN = 910
END_NS = 10 * SECOND
ASKED_NS = 8 * SECOND


def stalled(thread: int = 0, threads: int = 1) -> Record:
    """Ran for 910 ms; was to run for 8 s; the agent gave up at 10 s."""
    series = [replace(SERIES, id=number, thread=number) for number in range(threads)]
    blocks = [block([9_000, 11_000] * (RAN // 2 if one.thread == thread else 4_000), series=one) for one in series]
    totals = tuple(SeriesTotals(b.series, b.values.size, 0, 0) for b in blocks)
    return record(
        blocks,
        series,
        facts=(fact("duration_ns", ASKED_NS),),
        events=(Event(END_NS, thread, "stalled", f"the thread did not run any more; since_ns={RAN * MS}"),),
        end=End(END_NS, EndReason.AS_ASKED, "", totals),
    )


def analysed(made: Record) -> Analysis:
    return analyse(made, Requirement(500_000, 60 * SECOND), 1)


def test_every_due_time_until_the_end_that_was_asked_counts() -> None:
    summary = analysed(stalled()).pooled
    assert (summary.due, summary.obtained, summary.never_ran) == (8_000, RAN, 8_000 - RAN)
    assert summary.stalled_ns == END_NS - RAN * MS


def test_what_was_surely_above_a_limit_counts_in_the_schedule() -> None:
    """Of 7,090 due times, one each ms until 8 s, the last was 2.001 s late when the agent gave up."""
    assert analysed(stalled()).verdict.exceedances_schedule == 7_090
    summary = analysed(stalled()).summaries[0]
    for limit_ns in (0, 2 * SECOND, 3 * SECOND, 9_089 * MS, 9_090 * MS, 9_091 * MS):
        late = [END_NS - (RAN + n) * MS for n in range(7_090)]
        assert summary.stalled_above(limit_ns) == sum(one > limit_ns for one in late)


def test_values_lost_at_the_end_count_as_lost() -> None:
    """The record has no due time behind the last value; the totals of the agent have these activations."""
    made = clean()
    assert made.end
    (total,) = made.end.totals
    lost = replace(made, end=replace(made.end, totals=(structs.replace(total, lost=7),)))
    found = analysed(lost)
    assert (found.pooled.lost, found.pooled.due) == (7, total.obtained + 7)
    assert "lost" in [doubt.code for doubt in found.doubts]
    assert "totals" not in [doubt.code for doubt in found.doubts]


def of_switches(made: Record) -> tuple[Switch, ...]:
    return stage_switches(made, series_by_field(made))


def test_the_difference_is_taken_activation_by_activation() -> None:
    (found,) = of_switches(staged({"irq": [1_000, 5_000, 2_000], "task": [4_000, 9_000, 2_500]}))
    assert (found.earlier, found.later) == ("irq", "task")
    assert (found.moments.count, found.moments.min, found.moments.max, found.moments.sum) == (3, 500, 4_000, 7_500)
    assert found.counts.lo.tolist() == [500, 3_000, 4_000]
    assert (found.backwards, found.unpaired) == (0, 0)


@given(st.data())
def test_partners_are_found_by_their_activation_whatever_is_missing(data: st.DataObject) -> None:
    earlier, later = fields_of(KERNEL, 0, ("irq", "task"))
    size = data.draw(st.integers(1, 40))
    kept = [data.draw(st.lists(st.integers(0, size - 1), unique=True).map(sorted)) for _ in range(2)]
    blocks: list[Block] = []
    for series, some, factor in ((earlier, kept[0], 1), (later, kept[1], 3)):
        for run in _runs(some, data.draw(st.integers(1, 9))):
            blocks.append(block([factor * at for at in run], first_index=run[0], series=series))
    (found,) = of_switches(record(blocks, (earlier, later)))
    both = sorted(set(kept[0]) & set(kept[1]))
    assert np.repeat(found.counts.lo, found.counts.n).tolist() == [2 * at for at in both]
    assert found.unpaired == len(kept[0]) + len(kept[1]) - 2 * len(both)


def _runs(places: list[int], most: int) -> list[list[int]]:
    """Runs of neighbours, none longer than ``most``."""
    found: list[list[int]] = []
    for at in places:
        if found and at == found[-1][-1] + 1 and len(found[-1]) < most:
            found[-1].append(at)
        else:
            found.append([at])
    return found
