# SPDX-License-Identifier: Apache-2.0
"""OpenMetrics, for the textfile collector of Prometheus' node_exporter: histogram, missed activations, verdicts.

Each thread has a histogram with bounds at 1, 2 and 5 times each power of ten. A value counts for a bound if it was
surely not larger. What was missed is in no bucket: it has a metric of its own. (Format:
https://prometheus.io/docs/specs/om/open_metrics_spec/)
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rtproof.core.errors import UserError
from rtproof.exporters import _columns, _outcomes
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
    name, view = options.get("name", "rtproof"), _columns.view_option(options)
    if not name.isidentifier() or not name.isascii():
        raise UserError(f"the option name={name} is no name of a metric: letters, digits and _")
    _columns.refuse_without_threads(analysis)
    columns = _columns.columns_of(analysis)
    if any(summary.series.unit != "ns" for _, summary in columns):
        raise UserError("its values are no times, and this format is for times")
    with _columns.new_file(path) as file:
        file.write(_columns.mark_lines(analysis.run_record))
        file.writelines(f"{line}\n" for line in _latencies(name, columns, view))
        file.writelines(f"{line}\n" for line in _counts(name, analysis))
        file.writelines(f"{line}\n" for line in _verdicts(name, analysis))
        file.write("# EOF\n")
    return (
        f"{path}: {len(columns)} histograms, {view} view{_columns.summary_note(analysis)}{_columns.mark_note(analysis)}"
    )


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
    for metric, help_text, figure in (
        ("max_latency_seconds", "Largest latency of an activation that ran.", lambda s: repr(s.observed.max / 1e9)),
        ("activations", "Activations that ran.", lambda s: s.obtained),
        ("missed_activations", "Due times for which the thread did not run.", lambda s: s.never_ran),
    ):
        yield f"# HELP {name}_{metric} {help_text}"
        yield f"# TYPE {name}_{metric} gauge"
        for summary in analysis.summaries:
            # A thread that never ran has no largest latency.
            if summary.observed.count or metric != "max_latency_seconds":
                yield f"{name}_{metric}{{{_labels(summary)}}} {figure(summary)}"
    yield f"# HELP {name}_measured_seconds How long it was measured."
    yield f"# TYPE {name}_measured_seconds gauge"
    yield f"{name}_measured_seconds {(analysis.verdict.measured_ns or 0) / 1e9!r}"
    yield f"# HELP {name}_doubts How many doubts about the figures there are."
    yield f"# TYPE {name}_doubts gauge"
    yield f"{name}_doubts {len(analysis.doubts)}"


def _verdicts(name: str, analysis: Analysis) -> Iterator[str]:
    """A gauge for each limit and state: 1 for the state that it has, as in a set of states."""
    yield f"# HELP {name}_verdict 1 for the verdict on a limit, 0 for the others."
    yield f"# TYPE {name}_verdict gauge"
    for verdict in _outcomes.asked(analysis):
        limit = _outcomes.limit_name(verdict).removeprefix("limit-")
        for state in State:
            if state is not State.NOT_ASKED:
                yield f'{name}_verdict{{limit="{limit}",verdict="{state.value}"}} {int(state is verdict.state)}'
