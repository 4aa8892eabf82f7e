# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from analysis_records import MS, SERIES, block, record
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.summary.moments import moments_of_counts
from rtproof.summary.series import pooled, summarise
from rtproof.summary.summary_model import Summary

OTHER = replace(SERIES, id=1, thread=5, cpu=3)
VALUES = st.lists(st.integers(0, 10 * MS), min_size=1, max_size=50)


def summaries(a: list[int], b: list[int]) -> tuple[Summary, ...]:
    return summarise(record([block(a), block(b, series=OTHER)], [SERIES, OTHER]))


@settings(deadline=None)
@given(VALUES, VALUES)
def test_all_threads_together_are_all_their_values(a: list[int], b: list[int]) -> None:
    whole = pooled(summaries(a, b))
    assert whole.observed_counts.total == len(a) + len(b)
    assert whole.observed == moments_of_counts(whole.observed_counts)
    assert whole.top.value.tolist() == sorted(a + b, reverse=True)[:100]
    assert whole.span_ns == max(len(a), len(b)) * MS
    assert (whole.expected, whole.lag.pairs) == (len(a) + len(b), len(a) + len(b) - 2)
    assert whole.seconds.obtained.tolist() == [len(a) + len(b)]
    assert whole.seconds.max.tolist() == [max(a + b)]


def test_threads_with_periods_of_their_own_have_a_common_rate() -> None:
    faster, slower = summaries([1], [2])
    slower = replace(slower, series=replace(slower.series, period_ns=3 * MS))
    assert pooled((faster, faster)).series.period_ns == MS
    assert pooled((faster, slower)).series.period_ns == 1_500_000
    assert pooled((faster, replace(slower, series=replace(slower.series, period_ns=0)))).series.period_ns == MS


def test_the_largest_values_say_whose_they_are() -> None:
    whole = pooled(summaries([10, 30, 30], [20, 40, 30]))
    assert whole.top.value.tolist() == [40, 30, 30, 30, 20, 10]
    assert whole.top.series is not None
    assert whole.top.series.tolist() == [1, 0, 0, 1, 1, 0]
    assert whole.threads == (0, 5)
    assert whole.series.cpu == -1


def test_no_thread_at_all() -> None:
    whole = pooled(())
    assert (whole.threads, whole.expected, whole.observed.count, whole.exact) == ((), 0, 0, False)
    assert whole.top.value.size == 0
