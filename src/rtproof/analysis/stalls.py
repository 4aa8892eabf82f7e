# SPDX-License-Identifier: Apache-2.0
"""What no sample tells of the end of a run: due times of a thread that never ran again, and values lost there."""

from collections.abc import Iterable
from dataclasses import replace

from rtproof.analysis.asked import asked_duration_ns
from rtproof.analysis.episodes import stalled_since_ns
from rtproof.analysis.model import Summary
from rtproof.record import Record


def to_the_end(record: Record, every: Iterable[Summary]) -> tuple[Summary, ...]:
    """The summaries of all series, with what the events and the totals of END say of each. Needs END."""
    end = record.end
    if end is None:
        return tuple(every)
    lost = {total.series: total.lost for total in end.totals}
    since = {e.thread: at for e in record.events if (at := stalled_since_ns(e)) is not None}
    return tuple(_stalled(record, _lost(one, lost), since.get(one.series.thread)) for one in every)


def _lost(summary: Summary, lost: dict[int, int]) -> Summary:
    """Values lost behind the last one that was kept have no due time in the record."""
    more = lost.get(summary.series.id, 0) - summary.lost
    return replace(summary, lost=summary.lost + more, expected=summary.expected + more) if more > 0 else summary


def _stalled(record: Record, summary: Summary, since_ns: int | None) -> Summary:
    """The due times from ``since_ns`` until the run was to end, or ended before. Off the grid one is known."""
    if since_ns is None or record.end is None or record.end.time_ns <= since_ns:
        return summary
    last_ns = min(record.end.time_ns, asked_duration_ns(record) or record.end.time_ns) - 1
    on_grid = summary.series.on_grid and summary.series.period_ns > 0
    count = max((last_ns - since_ns) // summary.series.period_ns + 1, 0) if on_grid else 1
    return replace(summary, stalled=count, stalled_ns=record.end.time_ns - since_ns if count else 0)
