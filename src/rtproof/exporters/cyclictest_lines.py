# SPDX-License-Identifier: Apache-2.0
"""The lines that cyclictest prints, one for each thread or with -v one for each value, for scripts that read them.

Figures are whole microseconds, or nanoseconds as with its option -N; "Act" is the last value. (Format: rt-tests,
src/cyclictest/cyclictest.c, print_stat.)
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Moment
from rtproof.summary.recorded_facts import fact_number

SUFFIX = ".cyclictest.txt"
OPTIONS = {
    "unit": _columns.TIME_UNIT_HELP,
    "values": "of each so many values print the largest, as with cyclictest -v -o; 0 (default): no value",
    "smi": _columns.SMI_HELP,
}


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the observed view, which is the only one that cyclictest knows."""
    _columns.refuse_without_threads(analysis)
    _columns.require_samples(analysis.record, "the last value of each thread")
    unit_ns, smis = _columns.time_unit_ns(options), _columns.smis_of(analysis, options)
    reduced_by = 0 if options.get("values", "0") == "0" else _columns.whole_number(options, "values", 1)
    lines = _values(analysis, unit_ns, reduced_by) if reduced_by else _lines(analysis, unit_ns, smis)
    return _columns.write_lines(analysis, path, lines, f"{len(analysis.summaries)} threads")


def _values(analysis: Analysis, unit_ns: int, reduced_by: int) -> Iterator[str]:
    """Thread, number of the cycle and value, of each ``reduced_by`` values the first of the largest."""
    for number, summary in enumerate(analysis.summaries):
        blocks = [block.values for block in analysis.record.blocks(summary.series.id)]
        values = np.concatenate([*blocks, np.zeros(0, np.int64)])
        groups = np.maximum(values[: values.size // reduced_by * reduced_by], 0).reshape(-1, reduced_by) // unit_ns
        cycles = groups.argmax(1) + np.arange(len(groups)) * reduced_by
        for cycle, value in zip(cycles.tolist(), groups.max(1).tolist(), strict=True):
            yield f"{number:8}:{cycle:8}:{value:8}"


def _lines(analysis: Analysis, unit_ns: int, smis: list[int]) -> Iterator[str]:
    width = 5 if unit_ns > 1 else 8
    for number, summary in enumerate(analysis.summaries):
        thread, seen = summary.series.thread, summary.observed
        last_ns = analysis.record.last_value(summary.series.id) or 0
        mean_ns = 0 if seen.mean is None else seen.mean
        low, last, mean, high = (int(each / unit_ns) for each in (seen.min, last_ns, mean_ns, seen.max))
        # A thread without a priority has told none.
        told = (fact_number(analysis.record, key, Moment.START, thread) for key in ("tid", "priority"))
        tid, priority = (number or 0 for number in told)
        yield (
            f"T:{number:2} ({tid:5}) P:{priority:2} I:{summary.series.period_ns // 1_000} C:{seen.count:7} "
            f"Min:{low:7} Act:{last:{width}} Avg:{mean:{width}} Max:{high:8}"
            + (f" SMI:{smis[number]:8}" if smis else "")
        )
