# SPDX-License-Identifier: Apache-2.0
"""Run a job in a guest and bring its results to the host.

In virtual time a machine boots only once. Its state is saved in the cache, and every job starts from that state.
"""

import io
import os
import shlex
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from rtproof.core.errors import TargetError
from rtproof.core.files import refuse_existing, write_whole
from rtproof.vm.cache_folders import bound_cache, cache_locked, check_room, lab_cache, scratch_folder
from rtproof.vm.initramfs import read_file
from rtproof.vm.machine import Machine
from rtproof.vm.mailbox import GuestState
from rtproof.vm.qemu_process import Guest, check_done, keeping_console, running_guest

__all__ = ["CONSOLE_LOG", "Job", "JobOutcome", "run_job", "started_guest"]


# Save and load the state of a booted machine. The guest stops itself at an instant of its own clock, so the state is
# the same however often it is made. QEMU's migration saves and loads the state. Migration needs no disk image. It does
# not change the file, so any number of guests can start from it.


MOST_SNAPSHOT_BYTES = 4 << 30
"""Disk space for all snapshots together. If they need more, those that were not used for longest are removed."""

SILENT_CPU_S = 200
"""A boot that prints nothing for so much of the host's CPU time is given up."""
_STATE = "state"
_FASTEST = 1 << 40


def open_snapshot(machine: Machine, identity: str, log: Path, timeout_s: float) -> tuple[BinaryIO, bytes]:
    """The file with the state of the machine ready for a job, and its console's output up to that state.

    If the cache has none, the machine is booted. log: gets the console's output if that fails with a TargetError.
    """
    place = snapshot_folder() / f"{identity}.{_STATE}"
    console = place.with_suffix(".console")
    with cache_locked(place.with_suffix("")):
        if not (place.exists() and console.exists()):
            check_room(place.parent, machine.memory_mib, "a snapshot of the guest")
            _boot_and_save(machine, place, log, timeout_s)
        for path in (place, console):
            os.utime(path)
        state, said = place.open("rb"), console.read_bytes()
        bound_cache(place.parent, MOST_SNAPSHOT_BYTES)  # a guest that loads a removed snapshot has the file open
        return state, said


def wait_until_resumed(guest: Guest, state: BinaryIO, timeout_s: float) -> None:
    """Wait until the guest has loaded the state. If QEMU rejects the file, remove it and raise TargetError."""
    end = time.monotonic() + timeout_s
    try:
        while guest.monitor.command("query-status")["status"] == "inmigrate":
            if time.monotonic() > end:
                raise TargetError(f"it was not loaded within {timeout_s:g} s")
            time.sleep(0.005)
    except TargetError as error:
        Path(state.name).unlink(missing_ok=True)
        raise TargetError(
            f"the snapshot of the guest could not be loaded ({error}); it is removed now, so the next run boots again"
        ) from error


def snapshot_folder() -> Path:
    return lab_cache() / "snapshots"


def _boot_and_save(machine: Machine, place: Path, log: Path, timeout_s: float) -> None:
    with scratch_folder() as folder, running_guest(machine, folder) as guest:
        with keeping_console(guest, log):
            guest.mailbox.stop_when_ready()
            guest.monitor.command("cont")
            if not guest.wait_for_stop(timeout_s, SILENT_CPU_S) or guest.mailbox.state is not GuestState.READY:
                check_done(guest, timeout_s)
            guest.monitor.command("migrate-set-parameters", **{"max-bandwidth": _FASTEST})
            guest.monitor.command("migrate", uri=f"exec:cat > {_STATE}")
            status = ""
            while status not in ("completed", "failed", "cancelled"):
                time.sleep(0.01)
                status = guest.monitor.command("query-migrate").get("status", "")
            if status != "completed":
                raise TargetError(f"QEMU could not save the state of the guest ({status})")
        place.with_suffix(".console").write_bytes(log.read_bytes())
        (folder / _STATE).replace(place)
        log.unlink()


_SCRIPT = "rtproof/job.sh"


@dataclass(frozen=True)
class Job:
    """A job for a guest. ``script``: for BusyBox sh; the files that it leaves in /out are brought to the host.

    ``files``: pairs of a path in the guest and a file on this host.
    """

    script: str
    files: tuple[tuple[str, Path], ...] = ()


SOAKER_PLACE = "/rtproof/soaker"


def with_turns(job: Job, machine: Machine) -> Job:
    """The job as a machine whose processors take turns needs it: beside soakers, and told of the pace."""
    if not machine.takes_turns:
        return job
    told = f"export RTPROOF_PACE_US={machine.pace_us}\n"
    soaker = machine.soaker()
    if soaker is None:
        return replace(job, script=told + job.script)
    script = told + _beside_soakers(f"exec {SOAKER_PLACE} {machine.cpus} sh", job.script)
    return Job(script, (*job.files, (SOAKER_PLACE, soaker)))


_MOST_ARGUMENT_BYTES = 131_071
"""A longer argument is refused by Linux (MAX_ARG_STRLEN in include/uapi/linux/binfmts.h)."""


def _beside_soakers(start: str, script: str) -> str:
    """The lines that start a script with ``start``. A script that cannot be an argument is started from a file."""
    if len(script.encode()) <= _MOST_ARGUMENT_BYTES and not script.startswith(("-", "+")):
        return f"{start} -c {shlex.quote(script)}\n"
    end = "RTPROOF_END"
    while end in script:
        end += "_"
    return f"cat >/{_SCRIPT}.beside <<'{end}'\n{script}\n{end}\n{start} /{_SCRIPT}.beside\n"


def pack_job(job: Job) -> bytes:
    """The job as a tar archive. The same job gives the same bytes. Executable files stay executable."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add_file(tar, _SCRIPT, job.script.encode(), 0o755)
        for place, here in sorted(job.files):
            _add_file(tar, place.lstrip("/"), read_file(here), 0o755 if os.access(here, os.X_OK) else 0o644)
    return packed.getvalue()


def _add_file(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))


def unpack_results(archive: bytes, folder: Path) -> None:
    """Write the archive's regular files. TargetError if it is broken, UserError if one of the files exists."""
    for name, content in archive_files(archive).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, new=True)


def archive_files(archive: bytes) -> dict[str, bytes]:
    """The contents of an archive's regular files, by their names. TargetError if the archive is broken."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts:
                    raise TargetError(f"the guest's results have a file outside of their folder: {member.name}")
                if member.isfile() and (content := tar.extractfile(member)):
                    found[str(path)] = content.read()
    except tarfile.TarError as error:
        raise TargetError(f"the guest's results cannot be unpacked: {error}") from error
    return found


CONSOLE_LOG = "console.log"


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended. exit_code: of the job, or the negative number of the signal that killed it.

    said: its standard output and error. console: file with the output of the guest's kernel. host_seconds: from QEMU's
    start to its end, without the snapshot. virtual_seconds: by the guest's clock. guarded: the guard of virtual time
    was on.
    """

    exit_code: int
    said: str
    console: Path
    host_seconds: float
    virtual_seconds: float
    guarded: bool = True


def run_job(machine: Machine, job: Job, out: Path, timeout_s: float = 600, plugin: Sequence[str] = ()) -> JobOutcome:
    """Run the job in a fresh guest. The files that the job leaves in /out, and console.log, go to the folder ``out``.

    In virtual time the same machine and job leave the same bytes. TargetError, which names the console's log, if the
    job does not end. timeout_s: for the boot, and again for the job. plugin: arguments of QEMU that load one for the
    job.
    """
    out.mkdir(parents=True, exist_ok=True)
    with started_guest(machine, job, out / CONSOLE_LOG, timeout_s, plugin) as guest:
        wait_until_over(guest, timeout_s, machine.in_virtual_time)
        host_seconds = time.monotonic() - guest.begun
        mail, guarded = guest.mailbox, guest.guarded
        unpack_results(mail.results.getvalue(), out)
    code, nanoseconds = mail.end or (0, 0)
    said = mail.said.decode(errors="replace")
    return JobOutcome(code, said, out / CONSOLE_LOG, host_seconds, nanoseconds / 1e9, guarded)


@contextmanager
def started_guest(
    machine: Machine, job: Job, log: Path, timeout_s: float, plugin: Sequence[str] = ()
) -> Iterator[Guest]:
    """A running guest that has its job. It ends with the context, and the console's log is written to ``log``."""
    packed = pack_job(with_turns(job, machine))
    refuse_existing(log)
    state, said = None, b""
    if machine.in_virtual_time:
        state, said = open_snapshot(machine, machine.boot_identity, log, timeout_s)
    with (
        state or nullcontext(),
        scratch_folder() as folder,
        running_guest(machine, folder, incoming=state, plugin=plugin) as guest,
        keeping_console(guest, log, said),
    ):
        if state:
            wait_until_resumed(guest, state, timeout_s)
        guest.mailbox.give(packed)
        guest.monitor.command("cont")
        yield guest


def wait_until_over(guest: Guest, timeout_s: float, in_virtual_time: bool = False) -> None:
    """Wait until the guest stops. TargetError unless its job was done, or if its virtual time stands still."""
    guest.wait_for_stop(timeout_s, watch_clock=in_virtual_time)
    check_done(guest, timeout_s)
