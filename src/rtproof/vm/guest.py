# SPDX-License-Identifier: Apache-2.0
"""Run a job in a guest and bring home what it leaves."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rtproof.files import refuse_existing
from rtproof.vm import job as jobs
from rtproof.vm.accelerator import choose
from rtproof.vm.ending import check_done, keeping_console
from rtproof.vm.job import Job
from rtproof.vm.machine import Machine
from rtproof.vm.places import scratch
from rtproof.vm.process import Guest, running
from rtproof.vm.snapshot import go_on, open_snapshot

__all__ = ["CONSOLE_LOG", "Job", "Outcome", "run_job", "started"]

CONSOLE_LOG = "console.log"


@dataclass(frozen=True)
class Outcome:
    """How a job ended. ``exit_code``: the negative number of the signal if one killed it; ``said``: on standard output

    and error; ``console``: log of the guest's kernel; ``host_seconds``: from QEMU's start to its end, without making
    the snapshot; ``virtual_seconds``: of the job, by the guest's clock.
    """

    exit_code: int
    said: str
    console: Path
    host_seconds: float
    virtual_seconds: float


def run_job(machine: Machine, job: Job, out: Path, timeout_s: float = 600) -> Outcome:
    """Run the job in a fresh guest; what it leaves in /out, and console.log, are in the folder ``out`` then.

    In virtual time the same machine and job leave the same bytes. TargetError, which names the console's log, if the
    guest does not come so far: time-out, panic, a module that does not load, no memory, no room on the disk.
    ``timeout_s``: for the boot, and again for the job.
    """
    out.mkdir(parents=True, exist_ok=True)
    with started(machine, job, out / CONSOLE_LOG, timeout_s) as guest:
        wait_until_over(guest, timeout_s)
        host_seconds = time.monotonic() - guest.begun
        letters = guest.mailbox.letters
        jobs.unpack(letters.results.getvalue(), out)
    code, nanoseconds = letters.end or (0, 0)
    said = letters.said.decode(errors="replace")
    return Outcome(code, said, out / CONSOLE_LOG, host_seconds, nanoseconds / 1e9)


@contextmanager
def started(machine: Machine, job: Job, log: Path, timeout_s: float) -> Iterator[Guest]:
    """A guest that has been given its job and runs; its console's log is left at ``log``, its end is the context's."""
    packed = jobs.pack(job)
    refuse_existing(log)
    with _ready(machine, log, timeout_s) as guest:
        guest.mailbox.give(packed)
        guest.monitor.command("cont")
        yield guest


@contextmanager
def _ready(machine: Machine, log: Path, timeout_s: float) -> Iterator[Guest]:
    if not machine.in_virtual_time:
        accelerator = choose(machine)
        with scratch() as folder, running(machine, folder, accelerator) as guest, keeping_console(guest, log):
            yield guest
        return
    state, said = open_snapshot(machine, machine.identity, log, timeout_s)
    with (
        state,
        scratch() as folder,
        running(machine, folder, incoming=state) as guest,
        keeping_console(guest, log, said),
    ):
        go_on(guest, state, timeout_s)
        yield guest


def wait_until_over(guest: Guest, timeout_s: float) -> None:
    """Wait for the guest's end; TargetError if it is not the end of a job that was done.

    A guest whose kernel knows the device for it stops instead of ending when it panics.
    """
    guest.monitor.happened("STOP", timeout_s)
    check_done(guest, timeout_s)
