# SPDX-License-Identifier: Apache-2.0
"""Get the facts of a system for an audit, from a target or from a file that holds them; judge them, and print that."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from rtproof.audit import judgement, presets, setup_list
from rtproof.audit.check import Audit, Severity
from rtproof.audit.facts import AuditRequest, Facts
from rtproof.audit.setup_list import PresetResult
from rtproof.core import files
from rtproof.core.errors import AGENT_SAYS, NoRecordError, TargetError, UserError
from rtproof.core.processes import ended_by_signals
from rtproof.core.scratch import scratch_folder
from rtproof.core.units import format_cpus, parse_cpus, whole_number
from rtproof.experiment import target_runs
from rtproof.experiment.target_runner import agent_of
from rtproof.record import file_kinds, reading
from rtproof.record.contents import Record
from rtproof.record.run_folder import RECORD_NAME
from rtproof.report.pages.audit_page import SCREEN, audit_text, preset_text
from rtproof.report.text_table import SCREEN_WIDTH, fitted_to_terminal
from rtproof.run import session
from rtproof.targets import LastingTarget, Target

FORGET_AFTER = "15min"
"""How long a board keeps the facts if this host is killed or cut off: nobody takes them up later."""


def collect(
    target: str = "local",
    target_options: tuple[tuple[str, str], ...] = (),
    pid: int | None = None,
    keep: Path | None = None,
    agent: Path | None = None,
) -> Record:
    """Collect the facts of a target. UserError or TargetError says why there are none.

    pid: the application that the audit is about. keep: where the file stays, or None.
    """
    if keep:
        refuse_output(keep)
    with ended_by_signals(), scratch_folder() as folder:
        file = folder / RECORD_NAME
        with target_runs.open_named_target(target, target_options) as opened:
            record = collect_on(opened, agent or agent_of(opened), file, ("--pid", str(pid)) if pid else ())
        if keep:  # Only whole facts get the name that the user gave.
            try:
                files.write_whole(keep, file.read_bytes(), new=True)
            except OSError as problem:
                raise UserError(f"cannot write {keep}: {problem.strerror}") from None
        return record


def refuse_output(path: Path) -> None:
    """UserError if no new file can be made there, so that nobody learns it after the facts were collected."""
    if path == files.STANDARD_OUTPUT:
        raise UserError("- is not taken here: the output of the audit goes there; give the name of a new file")
    files.refuse_existing(path)
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent}")


def collect_on(target: Target, agent: Path, file: Path, more: Sequence[str] = ()) -> Record:
    """Collect the facts of an open target into a file. UserError or TargetError says why there are none."""
    _collect_into(target, agent, file, more)
    if not file.exists():
        raise TargetError("the agent wrote no facts")
    record = read_facts(file)
    if record.end is None:
        raise TargetError("what came from the target ends before its end: it was cut off")
    return record


def _collect_into(target: Target, agent: Path, file: Path, more: Sequence[str]) -> None:
    remote = target.place(file)
    forget = ("--forget", FORGET_AFTER) if isinstance(target, LastingTarget) else ()
    arguments = (target.push(agent), "facts", "-o", remote, *more, *forget)
    said = ""
    process = None
    try:
        process = target.start(arguments)
        for line in process.lines():
            said = line.removeprefix(AGENT_SAYS)
        code = process.wait()
    except BaseException:
        # End the agent there, if it can be reached. Nobody may know whether it was started.
        with suppress(TargetError, UserError):
            if process is None and isinstance(target, LastingTarget):
                process = target.take_up(target.where(arguments))
            if process:
                process.kill()
                for _ in process.lines():
                    pass
        _clear(target, remote, file)
        raise
    if code:
        _clear(target, remote, file)
        how = f"the agent was ended by signal {-code}" if code < 0 else f"the agent ended with exit code {code}"
        older = "this agent is older than the audit, and collects no facts" if "unknown command" in said else ""
        raise (UserError if code == session.REFUSED else TargetError)(older or said or how)
    target.pull(remote, file)


def _clear(target: Target, remote: str, file: Path) -> None:
    """A board keeps what an agent left until it was fetched."""
    with suppress(TargetError, UserError):
        target.pull(remote, file.with_name("left.rtrec"))


def read_facts(path: Path) -> Record:
    """The record in a file of facts, a record of a run, or a run folder. UserError says what it is, if it is none."""
    file = path / RECORD_NAME if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise UserError(f"the folder {path} is no run: it has no {RECORD_NAME}")
    files.refuse_what_waits(file)
    try:
        return reading.open_record(file)
    except NoRecordError as problem:
        what = file_kinds.advice(file) or problem
        raise UserError(f"{what}; an audit needs a file of facts, a run folder or a record") from None


CPU_LISTS = ("/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/online")


def audit_of(record: Record, purpose: str, cpus: str | None = None) -> Audit:
    """Judge the facts in a record. purpose: a name that --for takes. cpus: those that shall be isolated, or None.

    UserError for a CPU that the machine does not have.
    """
    return judgement.audit(_facts_of(record, purpose, cpus))


def _facts_of(record: Record, purpose: str, cpus: str | None) -> Facts:
    """The facts, with what the user asks about them. UserError for a CPU that the machine does not have."""
    pid = whole_number(record.fact("pid") or "")
    isolated = frozenset(parse_cpus(cpus)) if cpus else None
    facts = Facts(record, AuditRequest(isolated, pid, setup_list.purpose_of(purpose)))
    there = next((found for path in CPU_LISTS if (found := facts.cpus(path))), None)
    missing = (facts.request.cpus or frozenset()) - (there or frozenset())
    if there and missing:
        named, known = (format_cpus(some) for some in (missing, there))
        raise UserError(f"--cpus: the machine has no CPU {named}: it has {known}")
    return facts


def print_audit(
    result: Audit, fail_on: Severity, preset: PresetResult | None, *, full: bool = False, verbose: bool = False
) -> None:
    """Print the result as text, and the setup list of an article beside the system, both on one screen if not full."""
    with fitted_to_terminal(SCREEN_WIDTH):
        beside = "" if preset is None else preset_text(preset, short=not (full or verbose))
        below = f"\n{beside}" if beside else ""
        screen = SCREEN - below.count("\n")
        click.echo(audit_text(result, fail_on, full=full, verbose=verbose, screen=screen) + below, nl=False)


def preset_of(record: Record, name: str, cpus: str | None = None) -> PresetResult | None:
    """The setup list of an article beside the system; None for a purpose, which has no list."""
    if name not in presets.preset_names():
        return None
    return setup_list.judge_preset(_facts_of(record, name, cpus), setup_list.read_preset(name))
