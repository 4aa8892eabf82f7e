# SPDX-License-Identifier: Apache-2.0
"""Boot a machine once and start every job from there: the state of the stopped machine is a file of the cache.

The guest stops itself at an instant of its own clock, so the state is the same however often it is made. QEMU's
migration saves and loads the state. It needs no disk image and leaves the file as it is, for any number of guests.
"""

import os
import time
from pathlib import Path
from typing import BinaryIO

from rtproof.core.errors import TargetError
from rtproof.vm.cache_folders import check_room, lab_cache, lock_held, scratch_folder
from rtproof.vm.machine import Machine
from rtproof.vm.mailbox import GuestState
from rtproof.vm.qemu_process import Guest, check_done, keeping_console, running_guest

MOST_SNAPSHOT_BYTES = 4 << 30
"""What all snapshots may take together; those not used for longest go first."""

_STATE = "state"
_FASTEST = 1 << 40


def open_snapshot(machine: Machine, identity: str, log: Path, timeout_s: float) -> tuple[BinaryIO, bytes]:
    """The machine's state when it is ready for a job, and what its console said until then; booted if need be.

    ``log``: gets the console if it does not boot. TargetError then, and if there is no room for the file.
    """
    place = snapshot_folder() / f"{identity}.{_STATE}"
    console = place.with_suffix(".console")
    place.parent.mkdir(parents=True, exist_ok=True)
    with lock_held(place.with_suffix(".lock")):
        if not place.exists():
            check_room(place.parent, machine.memory_mib, "a snapshot of the guest")
            _make(machine, place, console, log, timeout_s)
            _forget_oldest(place)
        os.utime(place)
        return place.open("rb"), console.read_bytes()


def wait_until_resumed(guest: Guest, state: BinaryIO, timeout_s: float) -> None:
    """Wait until the guest has the state; a file that QEMU does not take is removed, and TargetError says so."""
    try:
        guest.wait_until_loaded(timeout_s)
    except TargetError as error:
        Path(state.name).unlink(missing_ok=True)
        raise TargetError(
            f"the snapshot of the guest could not be loaded ({error}); it is removed now, so the next run boots again"
        ) from error


def snapshot_folder() -> Path:
    """Where snapshots are kept."""
    return lab_cache() / "snapshots"


def _make(machine: Machine, place: Path, console: Path, log: Path, timeout_s: float) -> None:
    with scratch_folder() as folder, running_guest(machine, folder) as guest:
        with keeping_console(guest, log):
            _boot(guest, timeout_s)
            _save(guest)
        console.write_bytes(log.read_bytes())
        (folder / _STATE).replace(place)
        log.unlink()


def _boot(guest: Guest, timeout_s: float) -> None:
    guest.mailbox.stop_when_ready()
    guest.monitor.command("cont")
    if not guest.monitor.happened("STOP", timeout_s) or guest.mailbox.state is not GuestState.READY:
        check_done(guest, timeout_s)


def _save(guest: Guest) -> None:
    guest.monitor.command("migrate-set-parameters", **{"max-bandwidth": _FASTEST})
    guest.monitor.command("migrate", uri=f"exec:cat > {_STATE}")
    while (status := guest.monitor.command("query-migrate").get("status")) not in ("completed", "failed", "cancelled"):
        time.sleep(0.01)
    if status != "completed":
        raise TargetError(f"QEMU could not save the state of the guest ({status})")


def _forget_oldest(newest: Path) -> None:
    """Remove what is beyond the bound. A guest that goes on from a removed one has it open and is not disturbed."""
    states = sorted(newest.parent.glob(f"*.{_STATE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = newest.stat().st_size
    for state in states:
        if state == newest:
            continue
        total += state.stat().st_size
        if total > MOST_SNAPSHOT_BYTES:
            for ending in (f".{_STATE}", ".console"):
                state.with_suffix(ending).unlink(missing_ok=True)
