# SPDX-License-Identifier: Apache-2.0
"""All threads together: any thread's exceedance is the system's."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import harmonic_mean

from rtproof.analysis import blockcounts, lag, moments, persecond, tops
from rtproof.analysis.counts import EMPTY, merge
from rtproof.analysis.model import NO_LAG, NO_MOMENTS, Summary
from rtproof.record import Series

_NOTHING = Series(0, 0, -1, False, False, 0, 0, "", "", "latency", "ns")


def pooled(summaries: tuple[Summary, ...]) -> Summary:
    """Counts and sums added, per-second maxima over all threads; the span is the longest of them."""
    if not summaries:
        return _nothing()
    return Summary(
        series=replace(
            summaries[0].series,
            thread=0,
            cpu=-1,
            has_samples=all(s.series.has_samples for s in summaries),
            period_ns=_period_ns([s.series.period_ns for s in summaries]),
        ),
        threads=tuple(sorted({thread for s in summaries for thread in s.threads})),
        expected=sum(s.expected for s in summaries),
        missed=sum(s.missed for s in summaries),
        lost=sum(s.lost for s in summaries),
        span_ns=max(s.span_ns for s in summaries),
        observed=moments.merge(s.observed for s in summaries),
        charged=moments.merge(s.charged for s in summaries),
        observed_counts=merge(s.observed_counts for s in summaries),
        schedule_counts=merge(s.schedule_counts for s in summaries),
        lag=lag.merge(s.lag for s in summaries),
        seconds=persecond.merge(s.seconds for s in summaries),
        top=tops.of_series({s.series.id: s.top for s in summaries}),
        exact=all(s.exact for s in summaries),
        first_due_ns=min((s.first_due_ns for s in summaries if s.first_due_ns is not None), default=None),
        unbinned=sum(s.unbinned for s in summaries),
        stalled=sum(s.stalled for s in summaries),
        stalled_ns=max(s.stalled_ns for s in summaries),
        blocks=blockcounts.merge(s.blocks for s in summaries),
    )


def _period_ns(of_threads: Sequence[int]) -> int:
    """That of each thread, or the one with which as many threads would have as many activations together."""
    if len(set(of_threads)) == 1 or not all(of_threads):
        return of_threads[0]
    return round(harmonic_mean(of_threads))


def _nothing() -> Summary:
    """A record that was cut off before it named a thread."""
    none = NO_MOMENTS
    return Summary(_NOTHING, (), 0, 0, 0, 0, none, none, EMPTY, EMPTY, NO_LAG, persecond.NONE, tops.NONE, exact=False)
