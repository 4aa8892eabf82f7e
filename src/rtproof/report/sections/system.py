# SPDX-License-Identifier: Apache-2.0
"""Sections on the system: the machine and kernel that were measured, and all threads of the target."""

import re
from collections.abc import Sequence
from dataclasses import replace

from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Moment, Record
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import UNKNOWN, table_of
from rtproof.summary import recorded_facts
from rtproof.summary.measured_kernel import LINUX, PreemptionModel, kernel_config, mode_switches, preemption_model
from rtproof.summary.system_facts import system_facts, troubles
from rtproof.summary.target_threads import TargetThread, target_threads

LONGEST = 600
_SET = {"y": "built in", "m": "a module", "n": "left out"}


def system_section(analysis: Analysis) -> list[Block]:
    """The machine and kernel that were measured, as they describe themselves."""
    record = analysis.record
    begin = record.begin
    cpuinfo = recorded_facts.file_text(record, "/proc/cpuinfo") or ""
    processor = dict.fromkeys(re.findall(r"(?m)^(model name|Hardware|machine)\s*:(.*)$", cpuinfo))
    host = [(fact.key.removeprefix("host."), fact.value) for fact in record.facts if fact.key.startswith("host.")]
    rows = (
        ("machine", begin.machine),
        ("kernel", f"{begin.kernel_release} {begin.kernel_version}"),
        *((name, text.strip()) for name, text in processor),
        *((name, text) for name, text in host if name != "command"),
    )
    return [
        Table("Machine and kernel", ("what", "as it says"), rows),
        *_preemption(preemption_model(record)),
        *_told(record),
    ]


def _preemption(model: PreemptionModel) -> list[Block]:
    core = replace(model.core, value="none") if model.core.value == LINUX else model.core
    told = (("built for", model.built), ("in effect", model.effective), ("kernel beside Linux", core))
    rows = [(what, said.value or UNKNOWN, said.confidence.value, "; ".join(said.evidence)) for what, said in told]
    blocks: list[Block] = [Table("Preemption model", ("what", "model", "how sure", "what says so"), tuple(rows))]
    return [*blocks, Text(model.disagreements, "doubt")] if model.disagreements else blocks


def _told(record: Record) -> list[Block]:
    config = kernel_config(record)
    named = config.named().items() if config else ()
    options = tuple((f"CONFIG_{option}", _SET.get(value, value)) for option, value in named)
    by, log = f", by {config.path}" if config else "", tuple((line,) for line in troubles(record))
    found = (
        table_of(
            "What the target reports of its system",
            system_facts(record),
            ("what", lambda fact: fact.what),
            ("as it says", lambda fact: fact.says),
            ("where", lambda fact: fact.source),
            numeric=(),
        ),
        table_of(
            "Mode switches that Xenomai counted (EVL: in-band switches)",
            mode_switches(record).items(),
            ("process", lambda each: each[0]),
            ("at the start", lambda each: each[1][0]),
            ("at the end", lambda each: each[1][1]),
        ),
        Table("The kernel's log before the run", ("line",), log, row_headers=False, folded=True),
        Table(f"The kernel's configuration{by}: what articles tell to look at", ("option", "is"), options, folded=True),
        Table("Settings of the kernel", ("file", "content"), tuple(_settings(record))),
    )
    return [table for table in found if table.rows]


def _settings(record: Record) -> list[tuple[str, str]]:
    """The path and content of each file that has only one line. A file read twice appears once."""
    read = [(file.path, file.content.strip()) for file in record.files if file.errno == 0]
    paths = dict.fromkeys(p for p, text in read if p.startswith("/") and b"\n" not in text and len(text) <= LONGEST)
    found = []
    for path in paths:
        texts = [recorded_facts.file_text(record, path, when) for when in (Moment.START, Moment.END)]
        different = dict.fromkeys(text.strip() or "(empty)" for text in texts if text is not None)
        found.append((path, "; at the end: ".join(different)))
    return found


def threads_section(analysis: Analysis) -> list[Block]:
    """All threads of the target with their policies, as ``ps -eLfc`` shows them: which ones could delay others."""
    every = target_threads(analysis.record)
    urgent = sorted((t for t in every if t.real_time), key=lambda t: (t.policy != "DLN", -(t.priority or 0), t.id))
    return [
        Text((_count(every, urgent),)),
        _table("Threads with a real-time policy, the most urgent first", urgent, folded=False),
        _table("All threads at the start of the run, loads and this tool included", every, folded=True),
    ]


def _count(every: tuple[TargetThread, ...], urgent: list[TargetThread]) -> str:
    handlers = [thread for thread in every if thread.interrupt]
    levels = sorted({thread.priority for thread in handlers if thread.priority}, reverse=True)
    words = f"{len(every):,} threads, {len(urgent):,} of them with a real-time policy; "
    if not handlers:
        return f"{words}no interrupt has a thread of its own."
    return (
        f"{words}{len(handlers):,} are handlers of interrupts, with priority {', '.join(map(str, levels)) or 'none'}."
    )


def _table(caption: str, rows: Sequence[TargetThread], *, folded: bool) -> Table:
    return table_of(
        caption,
        rows,
        ("PID", lambda thread: str(thread.process)),
        ("TID", lambda thread: str(thread.id)),
        ("class", lambda thread: thread.policy),
        ("priority", lambda thread: "-" if thread.priority is None else str(thread.priority)),
        ("nice", lambda thread: "-" if thread.nice is None else str(thread.nice)),
        ("CPU", lambda thread: str(thread.cpu)),
        ("name", lambda thread: f"[{thread.name}]" if thread.of_kernel else thread.name),
        numeric=(0, 1, 3, 4, 5),
        folded=folded,
    )
