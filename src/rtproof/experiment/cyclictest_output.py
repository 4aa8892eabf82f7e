# SPDX-License-Identifier: Apache-2.0
"""What ``rtproof cyclictest`` prints and writes: the texts of cyclictest, in its order, from a run of our own.

(Format: rt-tests 2.6, what its cyclictest prints.)
"""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from rtproof.core import files
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.experiment import exported_files, printed_runs, stored_runs
from rtproof.experiment.run_request import RunRequest, program_name
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.verdict_sentences import claim_answer
from rtproof.record.contents import Moment
from rtproof.run.session import AgentOutcome
from rtproof.summary import recorded_facts

STANDARD_OUTPUT = Path("-")
HELD = re.compile(r"(/dev/cpu_dma_latency) held at (\d+) us")
"""The agent's fact."""


@dataclass(frozen=True)
class CyclictestOutput:
    """What was asked of the output.

    command: for the result, as typed. bins: of the histogram; 0: the lines of each thread. total: of all threads, too.
    histfile, json_file: new files, or None. unit: "us" or "ns". values: print the largest of each so many; 0: none.
    broken: a latency may have ended the run. spike: print each latency above it; 0: none. smi: print SMIs.
    """

    command: str
    bins: int = 0
    total: bool = False
    histfile: Path | None = None
    json_file: Path | None = None
    unit: str = "us"
    quiet: bool = False
    values: int = 0
    broken: bool = False
    spike: int = 0
    most_spikes: int = 1_024
    smi: bool = False

    def refuse_existing_files(self) -> None:
        """UserError if a file exists, cannot be made in its folder, or is asked for twice."""
        paths = (None if self.json_file == STANDARD_OUTPUT else self.json_file, self.histfile)
        if all(paths) and len({os.path.realpath(path) for path in paths if path}) == 1:
            raise UserError(f"--json and --histfile name one file: {self.histfile}")
        for path in paths:
            if path:
                files.refuse_existing(path)
                if not path.absolute().parent.is_dir():
                    raise UserError(f"cannot write {path}: its folder does not exist")

    def print_run(self, asked: RunRequest, folder: Path, outcome: AgentOutcome) -> int:
        """Print and write what cyclictest does of a run; the exit code."""
        report = stored_runs.report_path(folder, printed_runs.HTML) if asked.report else None
        result = stored_runs.read_run(folder)
        for text in self._texts(result.analysis):
            click.echo(text, nl=False)
        missed, verdict = quantity(result.analysis.pooled.never_ran, "missed cycle"), result.analysis.verdict
        click.echo(f"rtproof: {missed}; {verdict.state.value}: {claim_answer(verdict)}", err=True)
        click.echo(f"rtproof: all of it: {program_name()} show {shlex.quote(str(folder))} --all", err=True)
        if report:
            stored_runs.write_new_file(report, result.report(printed_runs.HTML))
        printed_runs.report_agent_failure(outcome, result.analysis)
        return result.exit_code

    def _texts(self, analysis: Analysis) -> Iterator[str]:
        """The parts of the output, in cyclictest's order."""
        smi = {"smi": "1"} if self.smi else {}
        if self.values:
            yield f"Max CPUs = {os.sysconf('SC_NPROCESSORS_CONF')}\nOnline CPUs = {os.cpu_count()}\n"
        if held := HELD.fullmatch(analysis.record.fact("dma_latency", Moment.START) or ""):
            yield f"# {held[1]} set to {held[2]}us\n"
        if self.values:
            every = (summary.series for summary in analysis.summaries)
            yield "".join(f"Thread {each.thread} Interval: {each.period_ns // 1_000}\n" for each in every)
            yield self._exported(analysis, "cyclictest-lines", None, {"values": str(self.values), **smi})
        elif not self.quiet:
            policy = analysis.record.fact("policy") or ""
            both = policy if policy in ("fifo", "rr") else f"{policy}/other"
            averages = ""
            with suppress(OSError):
                averages = Path("/proc/loadavg").read_text(encoding="ascii").strip()
            yield f"policy: {both}: loadavg: {averages}\n\n{self._exported(analysis, 'cyclictest-lines', None, smi)}"
        if self.json_file:
            asked = {"bins": str(self.bins), "command": self.command}
            yield self._exported(analysis, "cyclictest-json", self.json_file, asked)
        if self.quiet and not self.bins:
            yield self._exported(analysis, "cyclictest-lines", None, smi)
        unit_ns = _columns.TIME_UNITS_NS[self.unit]
        if self.spike:
            yield _spikes(analysis, self.spike * unit_ns, self.most_spikes, unit_ns)
        if self.bins:
            asked = {"bins": str(self.bins), "total": "1" if self.total else "0", **smi}
            yield self._exported(analysis, "cyclictest", self.histfile, asked)
        if self.broken:
            yield from _break_lines(analysis, unit_ns)

    def _exported(self, analysis: Analysis, name: str, path: Path | None, options: dict[str, str]) -> str:
        """What a format of text writes; "" if that goes to a file."""
        given = {"unit": self.unit, **options}
        if path is None or path == STANDARD_OUTPUT:
            return exported_files.exported_text(name, analysis, given)
        exported_files.write_export(name, path, analysis, given)
        return ""


def _spikes(analysis: Analysis, above_ns: int, most: int, unit_ns: int) -> str:
    """A line for each latency above a value, in the order of their times, and how many there were."""
    origin_ns = analysis.record.begin.origin_monotonic_ns
    found: list[tuple[int, int, int]] = []
    for series, activations in _columns.all_columns(analysis.record):
        late = activations.value > above_ns
        times = origin_ns + activations.due_ns[late] + activations.value[late]
        found += zip(times.tolist(), [series.thread] * times.size, activations.value[late].tolist(), strict=True)
    if not found:
        return ""
    lines = [
        f"T:{thread:2} Spike:{value_ns // unit_ns:8}: TS: {time_ns // 1_000:12}\n"
        for time_ns, thread, value_ns in sorted(found)[:most]
    ]
    return "\n" + "".join(lines) + f"spikes = {len(found)}\n\n"


def _break_lines(analysis: Analysis, unit_ns: int) -> Iterator[str]:
    """The threads, and the one whose latency ended the run."""
    tids = [
        recorded_facts.fact_number(analysis.record, "tid", Moment.START, s.series.thread) or 0
        for s in analysis.summaries
    ]
    yield "# Thread Ids:" + "".join(f" {tid:05}" for tid in tids) + "\n"
    for event in analysis.record.events:
        if event.kind == "limit":
            at = [s.series.thread for s in analysis.summaries].index(event.thread)
            yield f"# Break thread: {tids[at]}\n# Break value: {analysis.summaries[at].observed.max // unit_ns}\n"
            return
