# SPDX-License-Identifier: Apache-2.0
"""Evidence: which interrupts and softirqs came during the run, and how many on the CPUs that were measured."""

from rtproof.analysis.model import Analysis
from rtproof.report import figures, procfs
from rtproof.report.blocks import Block, Table, Text

SHOWN = 15
FILES = {"/proc/interrupts": "Interrupts", "/proc/softirqs": "Softirqs"}


def render(analysis: Analysis) -> list[Block]:
    return [_block(analysis, path, what) for path, what in FILES.items()]


def _block(analysis: Analysis, path: str, what: str) -> Block:
    rises = procfs.rises(analysis.record, path)
    if rises is None:
        return Text((f"{what}: the record does not have {path} of both start and end.",))
    if not rises:
        return Text((f"{what}: none rose between start and end.",))
    header = ("name", "during the run", "per second", "on measured CPUs", "what")
    rows = tuple(_row(analysis, rise) for rise in rises[:SHOWN])
    left_out = f", the {SHOWN} most frequent of {len(rises)}" if len(rises) > SHOWN else ""
    return Table(f"{what} that rose between start and end ({path}){left_out}", header, rows, (1, 2, 3))


def _row(analysis: Analysis, rise: procfs.Rise) -> tuple[str, ...]:
    seconds = analysis.pooled.span_ns / figures.NS_PER_S
    rate = figures.number(rise.total / seconds, 3) if seconds else figures.UNKNOWN
    return rise.label, figures.count(rise.total), rate, _on_measured(analysis, rise), rise.words


def _on_measured(analysis: Analysis, rise: procfs.Rise) -> str:
    """Unknown where the count is not per CPU, or the measuring threads were not bound to CPUs."""
    bound = {summary.series.cpu for summary in analysis.summaries}
    if procfs.WHOLE_MACHINE in rise.per_cpu or min(bound, default=-1) < 0:
        return figures.UNKNOWN
    return figures.count(sum(n for cpu, n in rise.per_cpu.items() if cpu in bound))
