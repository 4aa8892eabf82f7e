# SPDX-License-Identifier: Apache-2.0
"""Records with several values per activation: which series belong together, and which one a limit judges.

Each field of each thread is a series of its own. The last field is the deepest stage: the whole reaction, which a limit
judges and of which everything is said that is said of a record with one field.
"""

from collections import defaultdict

from rtproof.analysis.model import Analysis, Summary
from rtproof.record import Record, Series

Fields = tuple[tuple[Series, ...], ...]


def by_field(record: Record) -> Fields:
    """Per field in order, the series of all threads.

    A thread of which the record lacks a field is not there, so that no other field is ever taken for the one judged.
    """
    threads: dict[int, list[Series]] = defaultdict(list)
    for series in record.series:
        threads[series.thread].append(series)
    whole = max(threads.values(), key=len, default=[])
    places = {series.field: place for place, series in enumerate(whole)} if len(whole) > 1 else {}
    return tuple(
        tuple(series for series in record.series if places.get(series.field, 0) == place) for place in range(len(whole))
    )


def judged(record: Record) -> tuple[Series, ...]:
    """The last field of every thread."""
    return by_field(record)[-1] if record.series else ()


def of_field(summaries: tuple[Summary, ...], field: tuple[Series, ...]) -> tuple[Summary, ...]:
    """The summaries of one field's series."""
    ids = {series.id for series in field}
    return tuple(summary for summary in summaries if summary.series.id in ids)


def several_stages(analysis: Analysis) -> tuple[Summary, ...]:
    """The summaries of all fields in order; nothing where there is one only, of which everything else tells."""
    return analysis.stages if len(analysis.stages) > 1 else ()
