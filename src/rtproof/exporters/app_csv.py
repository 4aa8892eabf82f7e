# SPDX-License-Identifier: Apache-2.0
"""Loops of the probe app as article 3's program prints them: the comment, a line for each loop, then the statistics.

docs/simple-rt-app.md explains the columns. All times are in microseconds with three decimals and count from the origin
of the record. Loop time, sleep and slack are empty for a loop whose next one is not in the record. The last loop of a
thread is such a loop.
"""

from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.summary import loops
from rtproof.summary.loops import Loops
from rtproof.summary.recorded_facts import probe_options

SUFFIX = ".app.csv"
OPTIONS = {"comment": "the first line, in place of the comment that the run was given"}
FREE = ("comment",)
NEEDS = "a run of the probe app"
HEADER = (
    "thread,loop,target_us,top_us,top_error_us,work_start_us,work_end_us,work_duration_us,loop_time_us,slept,slack_us\n"
)
STATISTICS = "statistic,work_duration_us,loop_time_us,top_error_us\n"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write every loop, thread after thread, and then the statistics of all loops."""
    record = analysis.record
    if not loops.is_app(record):
        raise UserError(f"app-csv needs {NEEDS}, whose fields are {', '.join(loops.LOOP_FIELDS)}")
    _columns.require_samples(record, "app-csv")
    written = 0
    with _columns.new_file(path) as file:
        file.write(_comment(record, options.get("comment")) + HEADER)
        for piece in loops.application_loops(record):
            file.write(_lines(piece))
            written += piece.index.size
        file.write("\n" + _statistics(record))
    return f"{path}: {_columns.sample_note(analysis, 3 * written)}, three for each loop{_columns.mark_note(analysis)}"


def _comment(record: Record, given: str | None) -> str:
    """The comment as one cell that no spreadsheet takes for a formula."""
    untold = f"rtproof on {record.begin.machine} {record.begin.kernel_release}"
    said = given or probe_options(record).get("comment") or untold
    text = said.encode("ascii", "backslashreplace").decode().replace('"', '""')
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    safe = "; ".join((plain, *_columns.marks(record).values()))
    return f'"{" " if safe[:1] in tuple("=+-@") else ""}{safe}"\n'


def _lines(piece: Loops) -> str:
    times = (
        *(piece.target_ns, piece.top_ns, piece.error_ns, piece.start_ns, piece.end_ns, piece.work_ns),
        *(piece.loop_ns, piece.slack_ns),
    )
    columns = zip(
        piece.index.tolist(), piece.followed.tolist(), *(map(us, each.tolist()) for each in times), strict=True
    )
    return "".join(
        f"{piece.thread},{index},{','.join(six)},{_rest(loop, slack) if followed else ',,'}\n"
        for index, followed, *six, loop, slack in columns
    )


def _rest(loop: str, slack: str) -> str:
    return f"{loop},{0 if slack.startswith('-') or slack == '0.000' else 1},{slack}"


def us(ns: int) -> str:
    """Nanoseconds as microseconds with three decimals, exactly."""
    whole, rest = divmod(abs(ns), 1_000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03}"


def _statistics(record: Record) -> str:
    whole = loops.loops_of_all_threads(loops.loops_of_threads(record).values())
    rows = [
        [name, *(_cell(number(of)) for of in (whole.work, whole.loop, whole.error))]
        for name, number in loops.LOOP_STATISTICS
    ]
    rows.append(["count", *(str(of.count) for of in (whole.work, whole.loop, whole.error))])
    told = (whole.slack.count, whole.no_sleep, whole.slack.smallest)
    slept = f"loops_that_could_sleep,{told[0]}\nloops_without_sleep,{told[1]}\nsmallest_slack_us,{_cell(told[2])}\n"
    sums = f"sum_of_loop_times_us,{us(whole.loop.sum)}\nfirst_to_last_top_us,{us(whole.elapsed_ns)}\n"
    return STATISTICS + "".join(f"{','.join(row).replace(' ', '_')}\n" for row in rows) + slept + sums


def _cell(ns: float | None) -> str:
    if ns is None:
        return ""
    return us(ns) if isinstance(ns, int) else f"{ns / 1_000:.3f}"
