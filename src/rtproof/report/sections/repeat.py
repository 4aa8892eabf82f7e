# SPDX-License-Identifier: Apache-2.0
"""The record behind the report: whether it is whole, how to read it, and the command that measures again."""

import shlex
from pathlib import PurePath

from rtproof.analysis.model import Analysis
from rtproof.analysis.phrases import instant
from rtproof.record import EndReason, Record
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text

REASONS = {
    EndReason.AS_ASKED: "as asked",
    EndReason.INTERRUPTED: "interrupted by the user",
    EndReason.NO_SPACE: "no space left",
    EndReason.HOST_GONE: "the host went away",
    EndReason.LOAD_DIED: "a load died",
    EndReason.GUARD: "ended by the guard",
    EndReason.ERROR: "an error",
}


def render(analysis: Analysis) -> list[Block]:
    record = analysis.record
    return [Table("The record", ("what", "value"), tuple(_record(record))), *_repeat(record), *_read(record)]


def _record(record: Record) -> list[tuple[str, str]]:
    begin = record.begin
    return [
        ("file", f"{PurePath(record.path).name or 'none'}, {figures.count(record.size)} bytes"),
        ("run", begin.run_id.hex()),
        ("measuring began", f"{instant(begin.origin_realtime_ns, 0)} UTC by the target's clock"),
        ("agent", f"version {begin.agent_version}"),
        ("ended", _ended(record)),
        *(("damage", damage.sentence) for damage in record.damage),
    ]


def _ended(record: Record) -> str:
    if record.end is None:
        return "cut off: the record has no end, everything up to its last whole chunk was used"
    text = f" ({record.end.text})" if record.end.text else ""
    return f"{REASONS[record.end.reason]}{text}, {record.end.time_ns / figures.NS_PER_S:,.3f} s after measuring began"


def _repeat(record: Record) -> list[Text]:
    command, args = record.fact("host.command"), record.fact("args")
    blocks = []
    if command:
        blocks += [Text(("To repeat the run:",)), Text((command,), "code")]
    if args:
        blocks += [Text(("What the agent was started with on the target:",)), Text((f"rtproof-agent {args}",), "code")]
    return blocks


def _read(record: Record) -> list[Text]:
    run = shlex.quote(record.path) if record.path else "RUN"
    commands = (f"rtproof show {run}", f"rtproof report {run}", f"rtproof export {run} --help")
    return [Text(("To read the record again:",)), Text(commands, "code")]
