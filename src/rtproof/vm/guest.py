# SPDX-License-Identifier: Apache-2.0
"""Run a job in a guest and bring home what it leaves."""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rtproof.errors import TargetError
from rtproof.files import refuse_existing
from rtproof.vm import job as jobs
from rtproof.vm.job import Job
from rtproof.vm.machine import Machine
from rtproof.vm.mailbox import State
from rtproof.vm.places import scratch
from rtproof.vm.process import Guest, running

__all__ = ["Job", "Outcome", "run_job"]

CONSOLE_LOG = "console.log"
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")


@dataclass(frozen=True)
class Outcome:
    """How a job ended. ``exit_code``: the negative number of the signal if one killed it; ``said``: on standard output

    and error; ``console``: log of the guest's kernel; ``host_seconds``: from QEMU's start to its end;
    ``virtual_seconds``: of the job, by the guest's clock.
    """

    exit_code: int
    said: str
    console: Path
    host_seconds: float
    virtual_seconds: float


def run_job(machine: Machine, job: Job, out: Path, timeout_s: float = 600) -> Outcome:
    """Run the job in a fresh guest; what it leaves in /out, and console.log, are in the folder ``out`` then.

    In virtual time the same machine and job leave the same bytes. TargetError, which names the console log, if the
    guest does not come so far: time-out, panic, a module that does not load, no memory.
    """
    packed = jobs.pack(job)
    out.mkdir(parents=True, exist_ok=True)
    refuse_existing(out / CONSOLE_LOG)
    begin = time.monotonic()
    with scratch() as folder, running(machine, folder) as guest, keeping_console(guest, out / CONSOLE_LOG):
        guest.mailbox.give(packed)
        guest.monitor.command("cont")
        if not guest.wait(timeout_s):
            raise TargetError(_why_late(guest, timeout_s))
        guest.mailbox.feed()
        check(guest)
        host_seconds = time.monotonic() - begin
        letters = guest.mailbox.letters
        jobs.unpack(letters.results.getvalue(), out)
    assert letters.end is not None
    code, nanoseconds = letters.end
    said = letters.said.decode(errors="replace")
    return Outcome(code, said, out / CONSOLE_LOG, host_seconds, nanoseconds / 1e9)


@contextmanager
def keeping_console(guest: Guest, log: Path) -> Iterator[None]:
    """Leave the console's log outside of the scratch folder, and name it in every TargetError."""
    try:
        yield
    except TargetError as error:
        raise TargetError(f"{error}; the console's log is {log}") from error
    finally:
        shutil.copyfile(guest.console, log)


def check(guest: Guest) -> None:
    """TargetError in one sentence if the guest has ended without doing all it should."""
    letters = guest.mailbox.letters
    if letters.failure:
        raise TargetError(f"the guest says: {' '.join(letters.failure.split())}")
    if letters.end and letters.complete:
        return
    panic = _PANIC.search(guest.console.read_text(errors="replace"))
    if panic:
        raise TargetError(f"the guest's kernel panicked ({panic[1].strip()})")
    if guest.mailbox.state is State.NOTHING:
        raise TargetError(f"QEMU ended before the guest said anything{_because(guest)}")
    raise TargetError(f"the guest ended in the middle of its job{_because(guest)}")


def _because(guest: Guest) -> str:
    return f" ({guest.complaint.splitlines()[-1]})" if guest.complaint else ""


def _why_late(guest: Guest, timeout_s: float) -> str:
    if guest.mailbox.state is State.NOTHING:
        return f"the guest did not say a word within {timeout_s:g} s: does this kernel boot on this machine?"
    return f"the guest's job was not done within {timeout_s:g} s"
