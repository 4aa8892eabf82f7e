# SPDX-License-Identifier: Apache-2.0
"""OpenMetrics, for the textfile collector of Prometheus' node_exporter: histogram, missed activations, verdicts.

Each thread has a histogram with bounds at 1, 2 and 5 times each power of ten. A value counts for a bound if it was
surely not larger. What was missed is in no bucket: it has a metric of its own. (Format:
https://prometheus.io/docs/specs/om/open_metrics_spec/)
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from rtproof.core.errors import UserError
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis, State
from rtproof.summary.summary_model import Summary

SUFFIX = ".prom"
HOLDS_COUNTS = True
OPTIONS = {"name": "what the metrics' names begin with (default rtproof)", "view": _columns.VIEW_HELP}
FREE = ("name",)
SMALLEST_NS = 1_000
"""The first bound: nobody judges a wake-up by less than a microsecond."""


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the whole file at once, because the collector may read it at any time."""
    name, view = options.get("name", "rtproof"), _columns.choice(options, "view", _columns.VIEWS)
    if not name.isidentifier() or not name.isascii():
        raise UserError(f"the option name={name} is no name of a metric: letters, digits and _")
    _columns.refuse_without_threads(analysis)
    columns = _columns.columns_of(analysis)
    if any(summary.series.unit != "ns" for _, summary in columns):
        raise UserError("its values are no times, and this format is for times")
    lines = (*_latencies(name, columns, view), *_counts(name, analysis), *_verdicts(name, analysis), "# EOF")
    told = f"{len(columns)} histograms, {view} view{_columns.summary_note(analysis)}"
    return _columns.write_lines(analysis, path, lines, told)


def bounds_ns(largest_ns: int) -> list[int]:
    """The bounds from a microsecond up to the first one that is not below the largest value."""
    found = [SMALLEST_NS]
    while found[-1] < largest_ns:
        last = found[-1]
        found.append(last * 5 // 2 if str(last)[0] == "2" else last * 2)
    return found


def _latencies(name: str, columns: list[tuple[str, Summary]], view: str) -> Iterator[str]:
    yield f"# HELP {name}_latency_seconds Latency of each activation."
    yield f"# TYPE {name}_latency_seconds histogram"
    yield f"# UNIT {name}_latency_seconds seconds"
    # All histograms have the same bounds, so that they can be added up.
    largest_ns = max(int(_columns.counts_of(summary, view).hi.max(initial=0)) for _, summary in columns)
    for _, summary in columns:
        counts, labels = _columns.counts_of(summary, view), _labels(summary)
        for bound_ns in bounds_ns(largest_ns):
            below = int(counts.n[: np.searchsorted(counts.hi, bound_ns, side="right")].sum())
            yield f'{name}_latency_seconds_bucket{{{labels},le="{bound_ns / 1e9!r}"}} {below}'
        yield f'{name}_latency_seconds_bucket{{{labels},le="+Inf"}} {counts.total}'
        yield f"{name}_latency_seconds_count{{{labels}}} {counts.total}"
        seen = summary.observed.sum + (summary.charged.sum if view == "schedule" else 0)
        yield f"{name}_latency_seconds_sum{{{labels}}} {seen / 1e9!r}"


def _labels(summary: Summary) -> str:
    series = summary.series
    return f'thread="{series.thread}",cpu="{series.cpu}",value="{_columns.plain(series.field)}"'


def _counts(name: str, analysis: Analysis) -> Iterator[str]:
    threads = analysis.summaries
    # A thread that never ran has no largest latency.
    largest = [(_labels(one), repr(one.observed.max / 1e9)) for one in threads if one.observed.count]
    yield from _gauge(f"{name}_max_latency_seconds", "Largest latency of an activation that ran.", largest)
    ran = [(_labels(one), one.obtained) for one in threads]
    yield from _gauge(f"{name}_activations", "Activations that ran.", ran)
    missed = [(_labels(one), one.never_ran) for one in threads]
    yield from _gauge(f"{name}_missed_activations", "Due times for which the thread did not run.", missed)
    measured = repr((analysis.verdict.measured_ns or 0) / 1e9)
    yield from _gauge(f"{name}_measured_seconds", "How long it was measured.", [("", measured)])
    yield from _gauge(f"{name}_doubts", "How many doubts about the figures there are.", [("", len(analysis.doubts))])


def _gauge(metric: str, help_text: str, rows: Iterable[tuple[str, object]]) -> Iterator[str]:
    """A metric with its labels and figures."""
    yield f"# HELP {metric} {help_text}"
    yield f"# TYPE {metric} gauge"
    yield from (f"{metric}{{{labels}}} {figure}" if labels else f"{metric} {figure}" for labels, figure in rows)


def _verdicts(name: str, analysis: Analysis) -> Iterator[str]:
    """A gauge for each limit and state: 1 for the state that it has, as in a set of states."""
    rows = [
        (
            f'limit="{_columns.limit_name(each).removeprefix("limit-")}",verdict="{state.value}"',
            int(state is each.state),
        )
        for each in _columns.asked(analysis)
        for state in State
        if state is not State.NOT_ASKED
    ]
    yield from _gauge(f"{name}_verdict", "1 for the verdict on a limit, 0 for the others.", rows)
