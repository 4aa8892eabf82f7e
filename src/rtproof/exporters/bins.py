# SPDX-License-Identifier: Apache-2.0
"""A histogram with bins of one width as CSV, a column for each thread; what lies off the scale has its own rows.

Where activations have several values, there is a column for each field of each thread.
"""

from collections.abc import Iterator
from pathlib import Path

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.exporters._columns import (
    VIEW_HELP,
    bins_within,
    columns_of,
    counts_of,
    mark_lines,
    mark_note,
    new_file,
    refuse_without_threads,
    signed_duration,
    summary_note,
    view_option,
)
from rtproof.judge.analysis_model import Analysis
from rtproof.summary.counts import FixedBins
from rtproof.summary.summary_model import Summary

SUFFIX = ".bins.csv"
HOLDS_COUNTS = True
OPTIONS = {
    "width": "width of a bin, a duration (default 2us)",
    "count": "number of bins (default 2500)",
    "start": "lower edge of the first bin, a duration that may be negative (default 0)",
    "view": VIEW_HELP,
    "field": "of this field of every activation only, such as irq (default: of all)",
}


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the row below the scale, the bins [from, to), and the row above the scale."""
    refuse_without_threads(analysis)
    width_ns = units.parse_duration(options.get("width", "2us"))
    if width_ns == 0:
        raise UserError("the option width=0 makes no bins: give a duration longer than 0")
    start_ns = signed_duration(options.get("start", "0"))
    count = bins_within(analysis, options, "count", 2500, (start_ns, width_ns))
    if start_ns + width_ns * count > units.LONGEST_NS:
        raise UserError("the bins would reach beyond 292 years: give a smaller width or count")
    view = view_option(options)
    columns = _columns(analysis, options.get("field", ""))
    bins = [counts_of(summary, view).fixed_bins(start_ns, width_ns, count) for _, summary in columns]
    with new_file(path) as file:
        file.write(mark_lines(analysis.run_record))
        file.write(",".join(["from_ns", "to_ns", *(name for name, _ in columns)]) + "\n")
        file.writelines(_rows(bins))
    notes = summary_note(analysis) + mark_note(analysis)
    return f"{path}: {count} bins of {units.format_duration(width_ns)}, {view} view{notes}"


def _columns(analysis: Analysis, field: str) -> list[tuple[str, Summary]]:
    found = columns_of(analysis)
    fields = dict.fromkeys(summary.series.field for _, summary in found)
    if field and field not in fields:
        raise UserError(f"the option field={field} is none of: {', '.join(fields)}")
    return [(name, summary) for name, summary in found if field in ("", summary.series.field)]


def _rows(bins: list[FixedBins]) -> Iterator[str]:
    start, width, count = bins[0].start, bins[0].width, bins[0].counts.size
    yield _row("", start, [part.below for part in bins])
    columns = zip(*(part.counts.tolist() for part in bins), strict=True)
    for number, counts in enumerate(columns):
        yield _row(start + number * width, start + (number + 1) * width, list(counts))
    yield _row(start + count * width, "", [part.above for part in bins])


def _row(low: int | str, high: int | str, counts: list[int]) -> str:
    return ",".join(map(str, (low, high, *counts))) + "\n"
