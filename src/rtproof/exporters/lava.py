# SPDX-License-Identifier: Apache-2.0
"""LAVA's test signals: print them in a test shell, and LAVA stores verdicts and figures of the run.

Each limit is a test case. HELD and PROVEN pass, EXCEEDED and REFUTED fail. UNDECIDED fails if the limit was exceeded,
else it is skipped. INVALID is unknown. The figures of each thread are measurements. A measurement passes, because it
was made, unless the run is INVALID or the test fails. (Format: LAVA, lava-test-case.)
"""

from collections.abc import Iterator
from pathlib import Path

from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis

SUFFIX = ".lava.txt"
OPTIONS: dict[str, str] = {}


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write a line for each limit, and four for each thread."""
    lines = list(_lines(analysis))
    signals = (f"<LAVA_SIGNAL_TESTCASE {line}>" for line in lines)
    return _columns.write_lines(analysis, path, signals, f"{len(lines)} test cases")


def _lines(analysis: Analysis) -> Iterator[str]:
    for verdict in _columns.asked(analysis):
        yield f"TEST_CASE_ID={_columns.limit_name(verdict)} RESULT={_columns.result_of(verdict)}"
    result = _columns.result_of_figures(analysis.verdict)
    for summary, ends_us in _columns.threads(analysis):
        case = f"TEST_CASE_ID=t{summary.series.thread}"
        for name, figure in ends_us.items():
            yield f"{case}-{name}-latency RESULT={result} UNITS=us MEASUREMENT={figure:.3f}"
        yield f"{case}-missed RESULT={result} UNITS=activations MEASUREMENT={summary.never_ran}"
