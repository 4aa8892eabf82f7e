# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel's events can be recorded, from which rtproof explains a late activation."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import container_options, own_command

FEATURES = ("explain",)
NAME = "kernel trace"
PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
EVENTS = ("sched/sched_switch", "sched/sched_waking", "irq/irq_handler_entry", "timer/hrtimer_expire_entry")
CLONE_NEWNS, MS_REC, MS_SLAVE = 0x20000, 0x4000, 0x80000


def check(host: Host) -> Iterator[Finding]:
    """Read the list of tracers as the agent does. Mount tracefs where it is not, for this process only."""
    place, error = _find(host)
    if not place and isinstance(error, FileNotFoundError) and _mount():
        place, error = _find(host)
    if place:
        yield from _of_place(host, place)
        return
    known = host.text("/proc/filesystems")
    if known and "tracefs" not in known:
        meaning = "This kernel has no tracefs (CONFIG_TRACING): nothing here can say why an activation was late."
        yield Finding(NAME, FEATURES, State.MISSING, meaning)
        return
    if host.user and not host.container:
        meaning = f"A trace needs root ({_strerror(error)}): this user cannot record why an activation was late."
        yield Finding(NAME, FEATURES, State.MISSING, meaning, own_command(host, "run --explain"))
        return
    meaning = f"tracefs cannot be used ({_strerror(error)}), maybe because of a container or of kernel lockdown."
    options = "--privileged" if host.container else ""
    yield Finding(NAME, FEATURES, State.MISSING, meaning, container_options(host, options))


def _strerror(error: OSError | None) -> str:
    return (error.strerror if error else None) or "it is not mounted"


def _find(host: Host) -> tuple[str, OSError | None]:
    """The folder of tracefs, or why it cannot be used."""
    why: OSError | None = None
    for place in PLACES:
        try:
            host.read(f"{place}/available_tracers")
        except FileNotFoundError as error:
            why = why or error
        except OSError as error:
            return "", error
        else:
            return place, None
    return "", why


def _mount() -> bool:
    """Mount tracefs for this process alone, as the agent does for its own. False if the kernel refuses."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        alone = library.unshare(CLONE_NEWNS) == 0 and library.mount(None, b"/", None, MS_REC | MS_SLAVE, None) == 0
    except AttributeError:
        return False
    return bool(alone and library.mount(b"nodev", PLACES[0].encode(), b"tracefs", 0, None) == 0)


def _of_place(host: Host, place: str) -> Iterator[Finding]:
    missing = [event for event in EVENTS if not host.path(f"{place}/events/{event}/id").exists()]
    if not os.access(host.path(f"{place}/trace_marker"), os.W_OK):
        meaning = "The kernel's trace can be read, but not be switched on: this needs root."
        yield Finding(NAME, FEATURES, State.MISSING, meaning, own_command(host, "run --explain"))
    elif missing:
        meaning = f"This kernel lacks the events {', '.join(missing)}, so some causes stay unnamed."
        yield Finding(NAME, FEATURES, State.LIMITED, meaning, needed=False)
    else:
        yield Finding(NAME, FEATURES, State.OK, f"The kernel's events can be recorded ({Path(place)}).")
