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
    VIEWS,
    bins_within,
    choice,
    columns_of,
    counts_of,
    refuse_without_threads,
    summary_note,
    write_lines,
)
from rtproof.judge.analysis_model import Analysis
from rtproof.summary.counts import FixedBins

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
    start = options.get("start", "0")
    start_ns = units.parse_duration("0ns" if start == "0" else start.removeprefix("-"))
    start_ns = -start_ns if start.startswith("-") else start_ns
    count = bins_within(analysis, options, "count", 2500, (start_ns, width_ns))
    if start_ns + width_ns * count > units.LONGEST_NS:
        raise UserError("the bins would reach beyond 292 years: give a smaller width or count")
    view = choice(options, "view", VIEWS)
    found, field = columns_of(analysis), options.get("field", "")
    fields = dict.fromkeys(summary.series.field for _, summary in found)
    if field and field not in fields:
        raise UserError(f"the option field={field} is none of: {', '.join(fields)}")
    columns = {name: counts_of(one, view) for name, one in found if field in ("", one.series.field)}
    bins = [counts.fixed_bins(start_ns, width_ns, count) for counts in columns.values()]
    lines = (",".join(["from_ns", "to_ns", *columns]), *_rows(bins))
    told = f"{count} bins of {units.format_duration(width_ns)}, {view} view{summary_note(analysis)}"
    return write_lines(analysis, path, lines, told)


def _rows(bins: list[FixedBins]) -> Iterator[str]:
    start, width, count = bins[0].start, bins[0].width, bins[0].counts.size
    yield f",{start},{','.join(str(part.below) for part in bins)}"
    columns = zip(*(part.counts.tolist() for part in bins), strict=True)
    for number, counts in enumerate(columns):
        yield f"{start + number * width},{start + (number + 1) * width},{','.join(map(str, counts))}"
    yield f"{start + count * width},,{','.join(str(part.above) for part in bins)}"
