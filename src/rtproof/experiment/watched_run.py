# SPDX-License-Identifier: Apache-2.0
"""Watch a run that another process makes, and list the runs that go on on this machine."""

import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from rtproof.core.errors import UserError
from rtproof.core.phrases import limit_value, value
from rtproof.core.printable import clean
from rtproof.experiment import printed_runs, run_request, stored_runs
from rtproof.record import run_folder
from rtproof.run import running_records
from rtproof.run.live_view import LiveView, can_redraw, clock_text
from rtproof.run.running_records import QUIET_S, RecordFollower

LOOK_S = 1.0
"""Time between two looks at the record."""


def list_running() -> int:
    """Print the runs that go on on this machine, one a line; the exit code."""
    found = running_records.running_records()
    for record, pid in found.items():
        run = record.parent if record.name == run_folder.RECORD_NAME else record
        click.echo(clean(f"{run}  (process {pid})"))
    if not found:
        click.echo("no run on this machine", err=True)
    return 0


def watch(run: Path, sleep: Callable[[float], None] = time.sleep) -> int:
    """Show a run until it ends, and then its result; the exit code is the verdict's.

    run: a run folder or a record. sleep: waits for a number of seconds. UserError if there is no such run, or if its
    agent is gone and left nothing.
    """
    if not run.exists():
        raise UserError(f"{run} is no run folder and no record")
    try:
        ended = _follow(run, sleep)
    except KeyboardInterrupt:
        again = f"rtproof watch {shlex.quote(str(run))}"
        click.echo(f"\nrtproof: {clean(f'no longer watched; the run goes on: {again}')}", err=True)
        return run_request.INTERRUPTED_CODE
    result = stored_runs.read_run(run)
    page = stored_runs.path_beside(run, ".html")
    printed_runs.print_summary(
        result, page if page.exists() else None, f"rtproof show {shlex.quote(str(run))}", new_page=False
    )
    if not ended:
        click.echo("rtproof: the agent was killed; what it measured until then is judged", err=True)
    return result.exit_code


def _follow(run: Path, sleep: Callable[[float], None]) -> bool:
    """Draw the run until it has ended; whether the record has its end."""
    record = run / run_folder.RECORD_NAME if run.is_dir() else run
    if not _await_beginning(record, sleep):
        run_folder.open_run(run)
    follower = RecordFollower(record)
    follower.read()
    while not follower.asked("checkpoint_ns") and running_records.writer_of(record) is not None:
        sleep(LOOK_S)
        follower.read()
    if follower.begin is None:
        return True  # Reading it as a run says what it is instead.
    samples, length_ns = follower.asked_number("samples"), follower.asked_number("duration_ns")
    goal = f"{samples:,} activations" if samples else clock_text(length_ns) if length_ns else "no given length"
    goal += " at most" * (follower.asked("until_decided") == "yes")
    view = LiveView(sys.stderr, goal, can_redraw(sys.stderr), more=partial(_exceeded, follower), length_ns=length_ns)
    while follower.end is None and (running_records.writer_of(record) or follower.quiet_s() <= QUIET_S):
        view.show(follower.threads(), follower.maxima())
        sleep(LOOK_S)
        follower.read()
    view.show(follower.threads(), follower.maxima(), last=True)
    return follower.end is not None


def _exceeded(follower: RecordFollower) -> list[str]:
    """The limits that a latency has exceeded. The verdict comes when the run has ended."""
    worst_ns = max((row.max_ns for row in follower.threads().values()), default=0)
    limits_ns = [limit_ns for limit_ns in dict.fromkeys(follower.limits_ns) if worst_ns > limit_ns]
    return [f"{limit_value(limit_ns)} is exceeded: the largest latency is {value(worst_ns)}" for limit_ns in limits_ns]


def _await_beginning(record: Path, sleep: Callable[[float], None]) -> bool:
    """Wait while an agent warms up and has not written anything yet; whether there is a record to read."""
    while not (record.exists() and record.stat().st_size):
        if running_records.writer_of(record) is None:
            return record.exists()
        sleep(LOOK_S)
    return True
