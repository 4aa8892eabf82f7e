# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, block, end, fact, record
from app_cases import APP, TABLE, US, app_record, whole
from doubt_cases import clean
from hypothesis import given
from hypothesis import strategies as st
from stage_records import KERNEL, fields_of, staged

from rtproof import report
from rtproof.compare.run_metrics import figures_of
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement
from rtproof.lab.kernel_comparison import reading_of_analysis
from rtproof.record.contents import Block, End, EndReason, Event, Record, SeriesTotals
from rtproof.report.blocks import Text
from rtproof.report.pages.campaign_table import METRICS, largest_latency_text
from rtproof.report.sections.distribution import ccdf_section, cumulative_section, histogram_section
from rtproof.report.sections.numbers import percentiles_section
from rtproof.report.sections.timeline import timeline_section
from rtproof.schema.encoder import Json, encode
from rtproof.schema.published import MOMENTS, analysis_dict
from rtproof.summary import loops, per_second
from rtproof.summary.fields import series_by_field, stage_switches
from rtproof.summary.loops import (
    LOOP_FIELDS,
    ApplicationLoops,
    CycleTerms,
    Wakes,
    cycle_sentences,
    is_app,
    loop_cycles,
    loops_of_all_threads,
    loops_of_threads,
    most_cycles_out_of_band,
    relation_holds,
)
from rtproof.summary.summary_model import NO_MOMENTS, Cycles, Stall, Switch

PERIOD = 10 * MS
LOOP = replace(SERIES, probe="kernel", method="loop", field="task", period_ns=PERIOD, loop=True)


def wakes(lengths: list[int], period_ns: int = PERIOD) -> Wakes:
    return Wakes(period_ns, np.cumsum([0, *lengths], dtype=np.int64))


def test_cycles_are_counted_against_the_band_of_article_2() -> None:
    found = loop_cycles(wakes([10 * MS, 8 * MS, 8 * MS - 1, 12 * MS, 12 * MS + 1]), CycleTerms(0))
    assert (found.counted, found.short, found.long, found.out_of_band) == (5, 1, 1, 2)
    assert (found.min_ns, found.max_ns) == (8 * MS - 1, 12 * MS + 1)


def test_the_first_thousand_are_ignored_and_of_a_short_run_a_tenth() -> None:
    long = loop_cycles(wakes([PERIOD * 3] * 1_000 + [PERIOD] * 11_019))
    assert (long.ignored, long.counted, long.out_of_band) == (1_000, 11_019, 0)
    short = loop_cycles(wakes([PERIOD * 3] * 20 + [PERIOD] * 180))
    assert (short.ignored, short.counted, short.long) == (20, 180, 0)
    assert loop_cycles(wakes([PERIOD] * 200), CycleTerms(5)).ignored == 5


def test_a_long_cycle_directly_before_a_short_one_is_a_catch_up_pair() -> None:
    found = loop_cycles(wakes([PERIOD, 19 * MS, MS, PERIOD, 19 * MS, PERIOD, MS]), CycleTerms(0))
    assert found.catch_up_pairs == 1
    again = loop_cycles(wakes([19 * MS, MS] * 50), CycleTerms(0))
    assert (again.catch_up_pairs, again.short, again.long) == (50, 50, 50)
    assert again.correlation == pytest.approx(-1, abs=0.03)


def test_nothing_is_known_of_no_cycle() -> None:
    for times in ([], [5]):
        found = loop_cycles(Wakes(PERIOD, np.array(times, np.int64)))
        assert (found.counted, found.min_ns, found.max_ns, found.stalls) == (0, None, None, ())
        assert most_cycles_out_of_band(found) is None
        assert "nothing is known" in cycle_sentences(found)


def test_none_out_of_band_is_no_proof_that_there_are_none() -> None:
    found = loop_cycles(wakes([PERIOD] * 12_019))
    assert most_cycles_out_of_band(found) == pytest.approx(2.72e-4, rel=0.01)
    assert "a share of up to 0.00027 possible, which is one every 36.7 s" in cycle_sentences(found)


def test_of_a_record_a_cycle_reaches_from_one_run_to_the_next() -> None:
    ran = block([5_000, 7_000, 4 * MS, 1_000, 2_000], {2: 1}, series=LOOP)
    found = loop_cycles(record([ran], [LOOP]), CycleTerms(0))
    assert (found.counted, found.period_ns) == (4, PERIOD)
    assert (found.min_ns, found.max_ns) == (10_001_000, 20 * MS + 1_000 - 4 * MS)
    assert (found.short, found.long) == (0, 2)


def test_no_cycle_leads_over_a_hole_in_the_record() -> None:
    blocks = [block([1_000] * 3, series=LOOP), block([2_000] * 3, first_index=50, series=LOOP)]
    found = loop_cycles(record(blocks, [LOOP]), CycleTerms(0))
    assert (found.counted, found.out_of_band, found.stalls) == (4, 0, ())


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


def test_threads_are_counted_each_for_itself_and_added_up() -> None:
    other = replace(LOOP, id=1, thread=1)
    found = loop_cycles(record([block([0] * 21, series=LOOP), block([0] * 11, series=other)], [LOOP, other]))
    assert (found.counted, found.ignored) == (18 + 9, 2 + 1)


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


def test_a_loop_that_never_ran_at_all_stalled_from_the_start() -> None:
    told = Event(9 * SECOND, 0, "stalled", "the thread did not run any more; since_ns=0")
    found = loop_cycles(record([], [LOOP], end=None, events=(told,)))
    assert (found.counted, found.stalls) == (0, (Stall(0, 0, 9 * SECOND, over=False),))


def test_a_record_without_samples_has_no_cycles() -> None:
    found = loop_cycles(record([], [replace(LOOP, has_samples=False)]))
    assert (found.counted, found.ignored) == (0, 0)


def loop_with(options: str, lengths: list[int]) -> Cycles:
    late = (np.cumsum([0, *lengths]) - PERIOD * np.arange(len(lengths) + 1)).tolist()
    return loop_cycles(record([block(late, series=LOOP)], [LOOP], facts=(fact("probe_options", options),)))


def test_the_band_that_was_asked_for_may_go_farther_to_one_side() -> None:
    lengths = [9 * MS, 9 * MS - 1, 15 * MS, 15 * MS + 1, PERIOD]
    found = loop_with("ignore=0,low=9ms,high=.015s", lengths)
    assert (found.low_ns, found.high_ns, found.short, found.long) == (9 * MS, 15 * MS, 1, 1)
    assert (found.counted, found.catch_up_pairs) == (5, 0)
    one_side = loop_with("ignore=0,high=15ms", lengths)
    assert (one_side.low_ns, one_side.high_ns, one_side.short) == (8 * MS, 15 * MS, 0)


def test_as_many_are_ignored_as_were_asked_for_in_a_short_run_too() -> None:
    assert [loop_with(f"ignore={n}", [PERIOD] * 50).counted for n in (0, 7, 50, 99)] == [50, 43, 0, 0]
    assert loop_with("", [PERIOD] * 50).counted == 45


def test_options_that_damage_left_are_none() -> None:
    found = loop_with("ignore=many,low=5,high=", [PERIOD] * 50)
    assert (found.low_ns, found.high_ns, found.ignored) == (8 * MS, 12 * MS, 5)


PERIOD_US = 5_000


def of(made: Record) -> ApplicationLoops:
    return loops_of_all_threads(loops_of_threads(made).values())


def test_times_of_a_loop_are_told_from_its_target() -> None:
    loops = whole(app_record(TABLE))
    assert loops.target_ns.tolist() == [0, 5 * MS, 10 * MS, 15 * MS, 20 * MS]
    assert (loops.error_ns // US).tolist() == [40, 1_311, 38, 41, 300]
    assert (loops.work_ns // US).tolist() == [1_000, 780, 852, 900, 15_890]
    assert loops.followed.tolist() == [True] * 4 + [False]


def test_a_late_top_makes_one_loop_longer_and_the_next_shorter() -> None:
    """Article 3's own relation: 6271 - 5000 is 5000 - 3727, to a microsecond or two."""
    loops = whole(app_record(TABLE))
    assert (loops.loop_ns[:2] // US).tolist() == [PERIOD_US + 1_271, PERIOD_US - 1_273]


def test_slack_is_from_the_end_of_the_work_to_the_next_target() -> None:
    late = [(0, 0, 4_999), (0, 0, 5_000), (1, 1, 5_001), (2, 2, 3)]
    found = of(app_record(late))
    assert (whole(app_record(late)).slack_ns[:3] // US).tolist() == [1, 0, -1]
    assert (found.slack.min, found.slack.count, found.no_sleep) == (-US, 3, 2)


def test_moments_are_those_of_the_columns() -> None:
    found, loops = of(app_record(TABLE)), whole(app_record(TABLE))
    assert (found.work.count, found.loop.count, found.error.count) == (5, 4, 5)
    assert (found.work.min, found.work.max) == (780 * US, 15_890 * US)
    assert found.loop.deviation == pytest.approx(np.std(loops.loop_ns[:4], ddof=1))
    assert found.error.mean == pytest.approx(np.mean(loops.error_ns))


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


def test_the_fields_make_it_an_app_whatever_the_probe_is_called() -> None:
    assert is_app(app_record(TABLE))
    assert is_app(staged({"top": [1], "start": [2], "end": [3]}))
    assert not is_app(staged({"irq": [1], "task": [2]}))
    assert not is_app(staged({"start": [1], "top": [2], "end": [3]}))
    assert not is_app(record([]))


def test_a_thread_that_lacks_a_field_is_left_out() -> None:
    made = app_record(TABLE, TABLE)
    without = replace(made, series=tuple(each for each in made.series if (each.thread, each.field) != (0, "start")))
    assert list(loops_of_threads(without)) == [1]


def test_one_loop_is_followed_by_none() -> None:
    found = of(app_record(TABLE[:1]))
    assert (found.work.count, found.loop.count, found.slack.count, found.elapsed_ns, found.apart) == (1, 0, 0, 0, 0)


def test_nothing_at_all_is_an_app_without_loops() -> None:
    series = fields_of(APP, 0, LOOP_FIELDS)
    assert loops_of_threads(record([], series)) == {}
    assert loops_of_all_threads([]) == ApplicationLoops()


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


# The application's loops in the JSON form; test_result_json.py holds the keys to their page.


def app_dict(made: Record) -> Json | None:
    found: Json | None = analysis_dict(analyse(made))["app"]
    return found


def test_the_table_of_article_3_is_in_it_for_all_threads_and_for_each() -> None:
    found = app_dict(app_record(TABLE, [(7, 8, 9)] * 4))
    assert found is not None
    first, second = found["threads"]
    assert (first["thread"], first["work"]["min_ns"], first["work"]["max_ns"]) == (0, 780 * US, 15_890 * US)
    assert (first["loop"]["values_count"], first["loop"]["max_ns"]) == (4, 6_271 * US)
    assert (second["thread"], second["error"]["mean_ns"], second["no_sleep_count"]) == (1, 7 * US, 0)
    assert first["loops_sum_ns"] == first["elapsed_ns"] == 20_260 * US
    assert found["work"]["values_count"] == 9
    assert (found["elapsed_ns"], found["holes_count"]) == (first["elapsed_ns"] + second["elapsed_ns"], 0)


def test_a_hole_is_counted_and_loops_without_sleep_are() -> None:
    found = app_dict(app_record([(0, 0, 4_999), (0, 0, 5_000), (1, 1, 5_001), (2, 2, 3)], gaps={2: 1}))
    assert found is not None
    assert (found["holes_count"], found["slack"]["values_count"], found["no_sleep_count"]) == (1, 2, 1)
    assert found["loops_sum_ns"] != found["elapsed_ns"]


def test_other_probes_and_summaries_have_none() -> None:
    made = app_record(TABLE)
    kept = replace(made, series=tuple(replace(each, has_samples=False) for each in made.series))
    assert [app_dict(each) for each in (record([]), record([], [SERIES]), kept)] == [None, None, None]


def test_of_no_loop_everything_is_unknown_and_still_json() -> None:
    found = app_dict(record([], fields_of(APP, 0, loops.LOOP_FIELDS)))
    assert found is not None
    assert json.loads(json.dumps(found, allow_nan=False))["work"] == encode(NO_MOMENTS, MOMENTS)
    assert (found["work"]["min_ns"], found["work"]["mean_ns"], found["threads"]) == (None, None, [])


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
    return analyse(made, Requirement.usual(500_000, 60 * SECOND), 1)


def page(analysis: Analysis) -> str:
    return report.render("markdown", "a title", report.compose(analysis)).decode()


def test_every_due_time_until_the_end_that_was_asked_counts() -> None:
    summary = analysed(stalled()).pooled
    assert (summary.due, summary.obtained, summary.never_ran) == (8_000, RAN, 8_000 - RAN)
    assert summary.stalled_ns == END_NS - RAN * MS


def test_the_tables_of_a_report_have_it() -> None:
    shown = page(analysed(stalled()))
    assert "| thread 0 | 2 | 8,000 | 910 | 7,090 | 0 |" in shown
    assert "at least 9,090" in shown or "at least 9.09" in shown
    assert "No activation was missed" not in shown


@pytest.mark.parametrize("threads", [1, 2])
def test_what_holds_only_those_that_ran_says_so(threads: int) -> None:
    analysis = analysed(stalled(0, threads))
    told = "Not in here: 7,090 due times at the end of the run, for which their thread did not run. The latency"
    sections = (percentiles_section, histogram_section, ccdf_section, cumulative_section, timeline_section)
    for section in sections:
        first = section(analysis)[0]
        assert isinstance(first, Text), section.__name__
        assert first.paragraphs[0].startswith(told), section.__name__
        assert not any("Not in here" in str(block) for block in section(analysed(clean()))), section.__name__


def test_the_largest_is_at_least_the_stall() -> None:
    for made, thread in ((stalled(), 0), (stalled(1, 2), 1)):
        (said,) = [text for label, text in analysed(made).verdict.sentences if label == "MAX"]
        assert said.startswith(f"at least 9,090 ms on thread {thread}, which never ran again; of the activations")


def test_the_json_has_it() -> None:
    pooled = analysis_dict(analysed(stalled()))["pooled"]
    assert (pooled["expected_count"], pooled["missed_count"], pooled["stalled_count"]) == (8_000, 7_090, 7_090)
    assert pooled["stalled_least_ns"] == END_NS - RAN * MS
    assert analysis_dict(analysed(clean()))["pooled"]["stalled_least_ns"] is None


def test_what_was_surely_above_a_limit_counts_in_the_schedule() -> None:
    """Of 7,090 due times, one each ms until 8 s, the last was 2.001 s late when the agent gave up."""
    assert analysed(stalled()).verdict.exceedances_schedule == 7_090
    summary = analysed(stalled()).summaries[0]
    for limit_ns in (0, 2 * SECOND, 3 * SECOND, 9_089 * MS, 9_090 * MS, 9_091 * MS):
        late = [END_NS - (RAN + n) * MS for n in range(7_090)]
        assert summary.stalled_above(limit_ns) == sum(one > limit_ns for one in late)


@pytest.mark.parametrize("name", ["max", "longest"])
def test_profiles_comparisons_and_the_lab_have_it(name: str) -> None:
    found = analysed(stalled())
    assert largest_latency_text(found.pooled).startswith("at least 9,090,000")
    assert METRICS[name].heading == "max [us]"
    assert figures_of(found).missed == 7_090
    assert (reading_of_analysis(found).missed, reading_of_analysis(found).max_ns) == (7_090, END_NS - RAN * MS)


def test_values_lost_at_the_end_count_as_lost() -> None:
    """The record has no due time behind the last value; the totals of the agent have these activations."""
    made = clean()
    assert made.end
    (total,) = made.end.totals
    lost = replace(made, end=replace(made.end, totals=(replace(total, lost=7),)))
    found = analysed(lost)
    assert (found.pooled.lost, found.pooled.due) == (7, total.obtained + 7)
    assert "lost" in [doubt.code for doubt in found.doubts]
    assert "totals" not in [doubt.code for doubt in found.doubts]


def test_a_run_that_ended_before_its_stall_has_none() -> None:
    made = stalled()
    assert made.end
    early = replace(made, end=replace(made.end, time_ns=RAN * MS))
    assert analysed(early).pooled.stalled == 0
    assert analysed(replace(made, end=None)).pooled.stalled == 0


def of_switches(made: Record) -> tuple[Switch, ...]:
    return stage_switches(made, series_by_field(made))


def test_the_difference_is_taken_activation_by_activation() -> None:
    (found,) = of_switches(staged({"irq": [1_000, 5_000, 2_000], "task": [4_000, 9_000, 2_500]}))
    assert (found.earlier, found.later) == ("irq", "task")
    assert (found.moments.count, found.moments.min, found.moments.max, found.moments.sum) == (3, 500, 4_000, 7_500)
    assert found.counts.lo.tolist() == [500, 3_000, 4_000]
    assert (found.backwards, found.unpaired) == (0, 0)


def test_three_stages_have_two_differences() -> None:
    found = of_switches(staged({"irq": [1], "thread": [3], "user": [8]}))
    assert [(each.earlier, each.later, each.moments.max) for each in found] == [
        ("irq", "thread", 2),
        ("thread", "user", 5),
    ]


def test_threads_are_added_up() -> None:
    (found,) = of_switches(staged({"irq": [1, 2], "task": [5, 6]}, {"irq": [10], "task": [11]}))
    assert (found.moments.count, found.moments.min, found.moments.max) == (3, 1, 4)


def test_a_later_stage_that_came_first_is_counted() -> None:
    (found,) = of_switches(staged({"irq": [5, 5, 5_000_000], "task": [5, 4, 1]}))
    assert (found.backwards, found.moments.min) == (2, -4_999_999)


def test_one_field_has_no_differences_and_neither_has_a_summary() -> None:
    assert of_switches(staged({"latency": [1, 2]})) == ()
    made = staged({"irq": [1], "task": [2]})
    bare = replace(made, series=tuple(replace(each, has_samples=False) for each in made.series))
    assert of_switches(bare) == ()


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


def test_long_series_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_second, "LONGEST", 7)
    earlier, later = fields_of(KERNEL, 0, ("irq", "task"))
    blocks = [block(range(at, at + 5), first_index=at, series=earlier) for at in range(0, 100, 5)]
    blocks += [block(range(at + 9, at + 13), first_index=at, series=later) for at in range(0, 100, 4)]
    (found,) = of_switches(record(blocks, (earlier, later)))
    assert (found.moments.count, found.moments.min, found.moments.max, found.unpaired) == (100, 9, 9, 0)
