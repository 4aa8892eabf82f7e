# SPDX-License-Identifier: Apache-2.0
"""Late times of records: exact where single activations are known, else to the second; and their verdicts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import BEGIN, MS, SECOND, SERIES, array, block, record
from msgspec import structs
from numpy.typing import ArrayLike

from rtproof.judge import episodes
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Episode, State, Verdict
from rtproof.judge.claim import episode_course
from rtproof.judge.episodes import LateTimes, episodes_of_course, late_times, level_clusters
from rtproof.judge.evidence import gather_evidence
from rtproof.judge.verdict import judge_requirement
from rtproof.record.activations import count_above, number_activations
from rtproof.record.contents import End, EndReason, Event, Int64Array, Level, Record, Seconds, Series
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.summary.series import pooled, summarise
from rtproof.summary.summary_model import Summary

LIMIT = 500_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
NO = array()


def summary_of(thread: int, maxima: dict[int, int]) -> Summary:
    """A summary that holds nothing but per-second maxima."""
    (empty,) = summarise(record([], [replace(SERIES, id=thread, thread=thread)]))
    n = len(maxima)
    seconds = Seconds(array(*maxima), array(*[1000] * n), array(*[0] * n), array(*maxima.values()))
    return replace(empty, seconds=seconds)


def times_of(*summaries: Summary, events: tuple[Event, ...] = (), asked: Requirement | None = None) -> LateTimes:
    until_ns = 4000 * SECOND
    return late_times(record([], events=events), summaries, asked or Requirement(LIMIT), range(until_ns), until_ns)


def found(*summaries: Summary, events: tuple[Event, ...] = (), gap_s: int = 60) -> tuple[Episode, ...]:
    asked = Requirement(LIMIT, HOUR, gap_ns=gap_s * SECOND)
    times = times_of(*summaries, events=events, asked=asked)
    return episodes_of_course(times, episode_course(times.late, 4000 * SECOND, asked.gap_ns), 0)


def told(*some: Episode) -> list[tuple[int, int, int, tuple[int, ...]]]:
    return [(each.first_second, each.last_second, each.worst_ns, each.threads) for each in some]


def test_what_equals_the_limit_does_not_exceed_it() -> None:
    assert found(summary_of(0, {3: LIMIT, 4: LIMIT - 1})) == ()


def test_seconds_are_one_episode_only_if_they_are_surely_within_the_gap() -> None:
    """62 s from the begin of one to the end of the other may be more than a minute between the two."""
    maxima = {10: LIMIT + 1, 11: LIMIT, 12: 900_000, 71: 600_000, 132: 700_000}
    assert told(*found(summary_of(0, maxima))) == [(10, 72, 900_000, (0,)), (132, 133, 700_000, (0,))]
    assert len(found(summary_of(0, {12: 900_000, 72: 600_000}))) == 2
    assert len(found(summary_of(0, maxima), gap_s=1)) == 4


def test_threads_share_their_episodes() -> None:
    one, other = summary_of(0, {98: 900_000}), summary_of(3, {40: 600_000, 161: LIMIT})
    assert told(*found(one, other)) == [(40, 99, 900_000, (0, 3))]


def test_an_exceedance_of_minutes_reaches_until_the_thread_ran_again() -> None:
    """Late by 100 s at second 5: the activations missed behind it were late too, until second 104."""
    both = found(summary_of(0, {5: 100 * SECOND, 163: LIMIT + 1}))
    assert told(*both) == [(5, 164, 100 * SECOND, (0,))]
    assert len(found(summary_of(0, {5: 100 * SECOND, 166: LIMIT + 1}))) == 2
    assert times_of(summary_of(0, {5: 100 * SECOND})).late_seconds == 100


def test_a_thread_that_never_ran_again() -> None:
    event = Event(4000 * SECOND, 2, "stalled", f"the thread did not run any more; since_ns={1000 * SECOND}")
    (whole,) = found(summary_of(0, {}), events=(event,))
    assert (whole.begin_ns, whole.end_ns) == (1000 * SECOND, 4000 * SECOND - LIMIT)
    assert (whole.worst_ns, whole.threads) == (3000 * SECOND, (2,))
    just_now = structs.replace(event, text=f"since_ns={4000 * SECOND - LIMIT}")
    assert (
        found(
            events=(
                just_now,
                structs.replace(event, kind="kernel"),
                structs.replace(event, text="since when is not known"),
            )
        )
        == ()
    )


def judged(made: Record, asked: Requirement) -> tuple[Episode, ...]:
    return analyse(made, asked, 1).verdict.episodes


def with_list(made: Record, due: list[int], above: list[int], *, ended: bool = False, ran: list[int]) -> Record:
    """The record with what the agent knew to be above the limit; ran: so many in each second."""
    second = np.arange(len(ran))
    level = Level(
        0, LIMIT, False, 0, 0.0, 0, second, array(*ran), array(*[0] * len(ran)), NO, array(*due), array(*above), ended
    )
    return replace(made, levels={SERIES.id: (level,)})


def late_at(*at: int, length: int = 5000, value: int = 700_000) -> Record:
    """Activations of 1 ms; at: which of them were late."""
    values = np.full(length, 9_000)
    values[list(at)] = value
    return record([block([int(each) for each in values])])


SHORT = Requirement(LIMIT, 20 * SECOND, gap_ns=500 * MS)


def test_the_list_of_exceedances_gives_exact_times() -> None:
    made = with_list(late_at(100, 650, 2000), [100 * MS, 650 * MS, 2000 * MS], [700_000] * 3, ran=[2, 0, 1])
    assert [(each.begin_ns, each.end_ns) for each in judged(made, SHORT)] == [
        (100 * MS, 100 * MS + 200_000),
        (650 * MS, 650 * MS + 200_000),
        (2000 * MS, 2000 * MS + 200_000),
    ]


def test_behind_the_end_of_a_full_list_seconds_are_late() -> None:
    made = with_list(late_at(100, 650, 2000), [100 * MS], [700_000], ended=True, ran=[2, 0, 1])
    spans = [
        (each.begin_ns, each.end_ns) for each in judged(made, replace(SHORT, gap_ns=SECOND, longest_ns=2 * SECOND))
    ]
    assert spans == [(0, SECOND + 200_000), (2 * SECOND, 3 * SECOND + 200_000)]


def test_without_a_list_the_largest_values_give_exact_times_and_else_the_samples_do() -> None:
    few, many = late_at(100, 650, 2000), late_at(*range(0, 5000, 20))
    assert [each.begin_ns for each in judged(few, SHORT)] == [100 * MS, 650 * MS, 2000 * MS]
    close = Requirement(LIMIT, 20 * SECOND, gap_ns=19 * MS)
    assert [each.begin_ns for each in judged(many, close)] == [at * MS for at in range(0, 5000, 20)]


def test_of_many_blocks_only_those_with_something_late_are_read() -> None:
    blocks = [block([9_000] * 999 + [700_000 if n % 3 == 1 else 9_000], first_index=1000 * n) for n in range(12)]
    made = record(blocks)
    read: list[int] = []

    def reading(refs):  # type: ignore[no-untyped-def]
        read.extend(ref.offset for ref in refs)
        return made.read_blocks(refs)

    (summary,) = summarise(made)
    bare = replace(summary, top=structs.replace(summary.top, value=NO, due_ns=NO, index=NO))
    times = late_times(replace(made, read_blocks=reading), [bare], SHORT, range(12 * SECOND), 12 * SECOND)
    assert times.late.begin_lo.tolist() == [(1000 * n + 999) * MS for n in (1, 4, 7, 10)]
    assert set(read) <= {0, 1, 3, 4, 6, 7, 9, 10}


def test_missed_activations_behind_a_late_one_are_late_too() -> None:
    made = record([block([9_000] * 100 + [50_200_000] + [9_000] * 849, {100: 50})])
    (episode,) = judged(made, SHORT)
    assert (episode.begin_ns, episode.end_ns) == (100 * MS, 100 * MS + 50_200_000 - LIMIT)


# What was seen to go wrong before the claim had this definition


def verdict_of(made: Record, asked: Requirement) -> Verdict:
    """Without doubts: these records hold what is judged, and nothing else."""
    summaries = summarise(made)
    return judge_requirement(asked, gather_evidence(made, asked, summaries, pooled(summaries), ()))


def recorded(due_ns: tuple[int, ...], length_ns: int, value: int = 700_000) -> Record:
    """No samples: what the agent keeps of a limit that was fixed before, and the seconds."""
    series = replace(SERIES, period_ns=10 * MS, has_samples=False)
    seconds = np.arange(length_ns // SECOND)
    due = np.array(sorted(due_ns), np.int64) // (10 * MS) * 10 * MS
    ran = np.bincount(due // SECOND, minlength=seconds.size)
    largest = np.where(ran > 0, value, 9_000)
    level = Level(
        0, LIMIT, False, 0, 0.0, 0, seconds, ran, np.zeros_like(ran), NO, due, np.full(due.size, value), False
    )
    whole = record([], [series])
    assert whole.end is not None
    each = np.full(seconds.size, 100)
    return replace(
        whole,
        seconds={series.id: Seconds(seconds, each, np.zeros_like(each), largest)},
        levels={series.id: (level,)},
        end=replace(whole.end, time_ns=length_ns),
    )


def test_very_many_exceedances_are_judged_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are joined within the gap first, which changes nothing but the work."""
    values = np.where(np.arange(4_000) % 40 < 20, 900_000, 9_000)
    asked = Requirement(500_000, SECOND, gap_ns=5 * MS)
    found = [verdict_of(record([block(values.tolist())]), asked)]
    monkeypatch.setattr(episodes, "_AT_ONCE", 8)
    found.append(verdict_of(record([block(values.tolist())]), asked))
    assert found[0].episodes
    assert (found[0].state, found[0].episodes, found[0].reasons) == (
        found[1].state,
        found[1].episodes,
        found[1].reasons,
    )


def test_above_the_limit_in_76_of_95_seconds_is_refuted() -> None:
    """Seen UNDECIDED. From 15 s on, so that the start does not refute."""
    due = tuple(second * SECOND for second in range(15, 91))
    verdict = verdict_of(recorded(due, 95 * SECOND), Requirement(LIMIT, MINUTE))
    assert (verdict.state, verdict.kind, verdict.late_seconds) == (State.REFUTED, "duration", 76)


@pytest.mark.parametrize(("apart_ms", "together"), [(60_000, True), (60_200, False), (60_500, False), (61_500, False)])
def test_pairs_a_little_beyond_the_gap_are_two(apart_ms: int, together: bool) -> None:
    """Seen as one, by rounding to seconds."""
    due = (2 * HOUR + 100 * MS, 2 * HOUR + 100 * MS + apart_ms * MS)
    assert len(judged(recorded(due, 3 * HOUR), Requirement(LIMIT, HOUR))) == (1 if together else 2)


def test_a_record_that_was_cut_off_counts_while_every_thread_is_known() -> None:
    """An episode that is open at the cut can be refuted by what was late, not by what may have been."""
    due = tuple(range(100 * SECOND, 110 * SECOND, 10 * MS))
    cut = replace(recorded(due, 110 * SECOND), end=None)
    verdict = verdict_of(cut, Requirement(LIMIT, MINUTE))
    assert verdict.kind != "duration"
    longer = tuple(range(100 * SECOND, 117 * SECOND, 10 * MS))
    cut = replace(recorded(longer, 117 * SECOND), end=None)
    assert verdict_of(cut, Requirement(LIMIT, MINUTE)).kind == "duration"


def test_a_record_that_was_cut_off_proves_nothing() -> None:
    """What came behind the cut may have refuted, or made the run INVALID."""
    whole = recorded((), HOUR)
    assert verdict_of(whole, Requirement(LIMIT, MINUTE)).state is State.PROVEN
    cut = verdict_of(replace(whole, end=None), Requirement(LIMIT, MINUTE))
    assert (cut.state, cut.rate_high_per_s) == (State.UNDECIDED, None)
    assert "The record was cut off, so its last values are missing" in cut.reasons


# Counts above levels: those that come alone and those that come in bursts.


BARE = replace(SERIES, has_samples=False)
LIMIT_CLUSTERS = 100_000


def analysed(path: Path, values: Int64Array, *series: Series, gaps: tuple[ArrayLike, ArrayLike] = ((), ())) -> Analysis:
    with RecordWriter(path) as writer:
        writer.begin(replace(BEGIN, minor=2))
        for one in series or (BARE,):
            writer.series(one)
        totals = []
        for one in series or (BARE,):
            feed = SeriesWriter(writer, one, limits_ns=(LIMIT_CLUSTERS,))
            feed.add(values, *gaps)
            totals.append(feed.finish())
        writer.end(End(values.size * MS, EndReason.AS_ASKED, "", tuple(totals)))
    return analyse(open_record(path))


def test_counted_by_hand(tmp_path: Path) -> None:
    """Four above in the first second, two in the third, of five."""
    values = np.full(5_000, 10_000)
    values[[0, 5, 6, 999, 2_000, 2_999]] = LIMIT_CLUSTERS + 1
    (found,) = level_clusters(analysed(tmp_path / "a", values))
    assert (found.level.value, found.seconds, found.ran, found.missed, found.hit) == (LIMIT_CLUSTERS, 5, 6, 0, 2)
    assert found.size == 3.0
    assert found.dispersion == pytest.approx(np.var([4, 0, 2, 0, 0], ddof=1) / np.mean([4, 0, 2, 0, 0]))


def test_missed_ones_are_counted_apart(tmp_path: Path) -> None:
    values = np.full(3_000, 10_000)
    values[500] = 4 * MS + LIMIT_CLUSTERS + 1
    (found,) = level_clusters(analysed(tmp_path / "a", values, gaps=(array(500), array(4))))
    assert (found.ran, found.missed, found.hit, found.size, found.dispersion) == (1, 4, 1, 1.0, None)


def test_learned_levels_count_from_the_second_minute_on(tmp_path: Path) -> None:
    values = np.random.default_rng(2).gamma(4.0, 5_000.0, 100_000).astype(np.int64)
    series, totals = [BARE, replace(BARE, id=1, thread=1)], []
    with RecordWriter(tmp_path / "a") as writer:
        writer.begin(replace(BEGIN, minor=2))
        for one in series:
            writer.series(one)
            levels = [
                Level(number, value, True, 60 * SECOND, share, 60_000, series=one.id)
                for number, (value, share) in enumerate(((65_000, 0.001), (78_000, 0.0001)), 1)
            ]
            feed = SeriesWriter(writer, one, limits_ns=(LIMIT_CLUSTERS,))
            feed.add(values)
            totals.append(feed.finish())
            some = number_activations(one, 0, one.first_due_ns, values, 0 * values)
            for level in levels:
                writer.level(level)
            writer.above(one.id, count_above(one, some, levels))
        writer.end(End(values.size * MS, EndReason.AS_ASKED, "", tuple(totals)))
    found = level_clusters(analyse(open_record(tmp_path / "a")))
    assert [(each.series.thread, each.level.share) for each in found] == [
        (thread, share) for thread in (0, 1) for share in (0, 0.001, 0.0001)
    ]
    assert [each.seconds for each in found[:3]] == [100, 40, 40]
    assert found[1].level.since_ns == 60 * SECOND
    assert 10 < found[1].ran < 120
