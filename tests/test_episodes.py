# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

from analysis_records import MS, SECOND, SERIES, array, block, record

from rtproof.analysis.episodes import episodes, lengths_ns, starts_ns
from rtproof.analysis.model import Episode, Requirement, Summary
from rtproof.analysis.scan import summarise
from rtproof.record import Event, Seconds

LIMIT = 500_000


def summary_of(thread: int, maxima: dict[int, int]) -> Summary:
    """A summary that holds nothing but per-second maxima."""
    (empty,) = summarise(record([], [replace(SERIES, id=thread, thread=thread)]))
    n = len(maxima)
    seconds = Seconds(array(*maxima), array(*[1000] * n), array(*[0] * n), array(*maxima.values()))
    return replace(empty, seconds=seconds)


def found(*summaries: Summary, events: tuple[Event, ...] = (), gap_s: int = 60) -> tuple[Episode, ...]:
    return episodes(summaries, events, Requirement(LIMIT, gap_ns=gap_s * SECOND), 4000 * SECOND)


def test_what_equals_the_limit_does_not_exceed_it() -> None:
    assert found(summary_of(0, {3: LIMIT, 4: LIMIT - 1})) == ()


def test_a_burst_is_one_episode_and_the_next_one_begins_after_the_gap() -> None:
    maxima = {10: LIMIT + 1, 11: LIMIT, 12: 900_000, 72: 600_000, 133: 700_000}
    assert found(summary_of(0, maxima)) == (Episode(10, 72, 900_000, (0,)), Episode(133, 133, 700_000, (0,)))
    assert len(found(summary_of(0, maxima), gap_s=1)) == 4


def test_threads_share_their_episodes() -> None:
    one, other = summary_of(0, {100: 900_000}), summary_of(3, {40: 600_000, 161: LIMIT})
    assert found(one, other) == (Episode(40, 100, 900_000, (0, 3)),)


def test_a_stall_reaches_until_the_thread_ran_again() -> None:
    """Late by 100 s at second 5: the activations missed behind it were late too, until second 104."""
    assert found(summary_of(0, {5: 100 * SECOND, 164: LIMIT + 1})) == (Episode(5, 164, 100 * SECOND, (0,)),)
    assert len(found(summary_of(0, {5: 100 * SECOND, 166: LIMIT + 1}))) == 2


def test_a_thread_that_never_ran_again() -> None:
    event = Event(4000 * SECOND, 2, "stalled", f"the thread did not run any more; since_ns={1000 * SECOND}")
    assert found(summary_of(0, {}), events=(event,)) == (Episode(1000, 4000, 3000 * SECOND, (2,)),)
    just_now = replace(event, text=f"since_ns={4000 * SECOND - LIMIT}")
    assert found(events=(just_now, replace(event, kind="kernel"), replace(event, text="since when is not known"))) == ()


def test_seconds_are_those_of_the_due_time() -> None:
    (summary,) = summarise(record([block([9] * 999 + [700_000], first_index=2000)]))
    assert episodes((summary,), (), Requirement(LIMIT), 3 * SECOND) == (Episode(2, 2, 700_000, (0,)),)
    assert summary.span_ns == 1000 * MS


def test_starts_and_lengths_in_measured_time() -> None:
    some = (Episode(0, 0, 1, (0,)), Episode(100, 101, 1, (0,)))
    assert starts_ns(some, 300 * MS) == [0, 100 * SECOND - 300 * MS]
    assert lengths_ns(some) == [0, 2 * SECOND]
