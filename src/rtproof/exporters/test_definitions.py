# SPDX-License-Identifier: Apache-2.0
"""The lines of ``result.txt`` that Linaro's test-definitions and KernelCI read: name, result, figure and unit.

As in their own cyclictest, a thread has t0-min-latency, t0-avg-latency and t0-max-latency. They say "pass" for each
figure; here a figure of a run that fails says "fail". (Format: test-definitions, automated/lib/sh-test-lib, report_pass
and add_metric.)
"""

from collections.abc import Iterator
from pathlib import Path

from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis

SUFFIX = ".result.txt"
OPTIONS: dict[str, str] = {}


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write a line for each limit, and four for each thread."""
    lines = list(_lines(analysis))
    return _columns.write_lines(analysis, path, lines, f"{len(lines)} results")


def _lines(analysis: Analysis) -> Iterator[str]:
    for verdict in _columns.asked(analysis):
        yield f"{_columns.limit_name(verdict)} {_columns.result_of(verdict)}"
    result = _columns.result_of_figures(analysis.verdict)
    for summary, ends_us in _columns.threads(analysis):
        for name, figure in ends_us.items():
            yield f"t{summary.series.thread}-{name.replace('mean', 'avg')}-latency {result} {figure:.3f} us"
        yield f"t{summary.series.thread}-missed {result} {summary.never_ran} activations"
