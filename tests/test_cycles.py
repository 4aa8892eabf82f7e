# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, block, end, fact, record
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record.contents import End, EndReason, Event, SeriesTotals
from rtproof.summary import per_second
from rtproof.summary.loops import CycleTerms, Wakes, cycle_sentences, loop_cycles, most_cycles_out_of_band
from rtproof.summary.summary_model import Cycles, Stall

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
