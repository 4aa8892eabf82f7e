# SPDX-License-Identifier: Apache-2.0
"""Checks of what the kernel gives this process: threads, memory, CPUs, traces, devices, folders, modules."""

import ctypes
import errno
import mmap
import os
import platform
import re
import resource
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from rtproof.agents import build
from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State, limited, missing, ok
from rtproof.doctor.host import Host, as_root, container_options, headers_command, own_command, user_name

FOR_SHELL = "prlimit --pid $$ --rtprio=99 --memlock=unlimited"
"""It raises the limits of the shell in which it is typed, until that shell ends."""


def real_time(host: Host) -> Finding:
    """Take SCHED_FIFO in this process, and name the reason of a refusal."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return ok("The kernel gives this user threads with SCHED_FIFO.")
    except PermissionError:
        why, command = _why_not_permitted(host)
        meaning = f"The kernel refuses SCHED_FIFO, because {why}; --allow-unprivileged measures without it."
        return missing(meaning, command)
    except OSError as error:
        return missing(f"The kernel refuses SCHED_FIFO ({error.strerror}): only --policy other measures.")


def _why_not_permitted(host: Host) -> tuple[str, str]:
    """The reason, and the command that mends it."""
    if resource.getrlimit(resource.RLIMIT_RTPRIO)[0] or (host.has_sys_nice and not host.in_user_namespace):
        group = next((name for controllers, name in host.control_groups if "cpu" in controllers), "")
        file = f"/sys/fs/cgroup/cpu{group}/cpu.rt_runtime_us"
        if group and host.text(file) == "0":
            why = f"the control group {group} has no budget for real-time threads"
            return why, as_root(host, f"echo 950000 > {file}")
        return "a filter of system calls (seccomp) or the kernel's policy forbids it to this process", ""
    if host.in_user_namespace:
        # The namespace's own container cannot raise the limit above that of the user who starts it.
        why = "CAP_SYS_NICE does not count in a user namespace and this process's limit RTPRIO is 0"
        return f"{why} (raise it for the user who starts this namespace)", ""
    if host.user == 0 or host.container:
        command = container_options(host, "--cap-add SYS_NICE --ulimit rtprio=99 --ulimit memlock=-1")
        return "this process lacks CAP_SYS_NICE and its limit RTPRIO is 0", command
    return "this user's limit RTPRIO is 0 and it lacks CAP_SYS_NICE", as_root(host, FOR_SHELL)


LOCKED_MIB = 16
"""As much as the agent locks for some threads (measured: 9 MiB with two)."""


def locked_memory(host: Host) -> Finding:
    """Lock as much memory as the agent needs, for an instant."""
    why = _why_not_locked(LOCKED_MIB << 20)
    if not why:
        return ok(f"The kernel lets this process lock {LOCKED_MIB} MiB of memory.")
    inside = host.user == 0 or host.container
    command = container_options(host, "--ulimit memlock=-1") if inside else as_root(host, FOR_SHELL)
    return limited(f"The kernel does not lock {LOCKED_MIB} MiB ({why}), so page faults add to latencies.", command)


def _why_not_locked(size: int) -> str:
    with mmap.mmap(-1, size) as memory:
        library = ctypes.CDLL(None, use_errno=True)
        place = ctypes.c_char.from_buffer(memory)
        failed = library.mlock(ctypes.byref(place), ctypes.c_size_t(size))
        why = os.strerror(ctypes.get_errno()) if failed else ""
        del place
    return why


def choice_of_cpus(host: Host) -> Finding:
    """Move this process to each CPU in turn."""
    try:
        online = units.parse_cpus(host.read("/sys/devices/system/cpu/online"))
    except (OSError, UserError):
        online = tuple(range(os.cpu_count() or 1))
    refused = []
    for cpu in online:
        try:
            os.sched_setaffinity(0, {cpu})
        except OSError:
            refused.append(cpu)
    if not refused:
        return ok(f"Threads may be bound to each CPU ({units.format_cpus(online)}).")
    which = units.format_cpus(refused)
    meaning = f"Threads may not be bound to the CPUs {which}, so latencies there cannot be measured."
    state = State.MISSING if len(refused) == len(online) else State.LIMITED
    return Finding(state, meaning, container_options(host, f"--cpuset-cpus {units.format_cpus(online)}"))


LATENCY_DEVICE = "/dev/cpu_dma_latency"


def idle_states(host: Host) -> Finding:
    """Open the device as the agent does. It holds nothing before a number is written."""
    try:
        os.close(os.open(host.path(LATENCY_DEVICE), os.O_WRONLY | os.O_CLOEXEC))
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        command = "" if gone or host.user == 0 else as_root(host, f"chmod a+rw {LATENCY_DEVICE}")
        if host.container:
            command = container_options(host, f"--device {LATENCY_DEVICE}")
        why = f"{LATENCY_DEVICE} cannot be opened ({error.strerror})"
        return limited(f"{why}: waking up from a deep idle state adds to latencies.", command)
    return ok(f"{LATENCY_DEVICE} can be opened, so CPUs stay awake while rtproof measures.")


TRACING = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
EVENTS = ("sched/sched_switch", "sched/sched_waking", "irq/irq_handler_entry", "timer/hrtimer_expire_entry")
CLONE_NEWNS, MS_REC, MS_SLAVE = 0x20000, 0x4000, 0x80000


def kernel_trace(host: Host) -> Finding:
    """Read the list of tracers as the agent does. Mount tracefs where it is not, for this process only."""
    place, error = _find_tracefs(host)
    if isinstance(error, FileNotFoundError) and _mount_tracefs():
        place, error = _find_tracefs(host)
    why = (error.strerror if error else None) or "it is not mounted"
    known = host.text("/proc/filesystems")
    if place and not os.access(host.path(f"{place}/trace_marker"), os.W_OK):
        meaning = "The kernel's trace can be read, but not be switched on: this needs root."
        return missing(meaning, own_command(host, "run --explain"))
    if place:
        lacking = [event for event in EVENTS if not host.path(f"{place}/events/{event}/id").exists()]
        if lacking:
            return limited(f"This kernel lacks the events {', '.join(lacking)}, so some causes stay unnamed.")
        return ok(f"The kernel's events can be recorded ({place}).")
    if known and "tracefs" not in known:
        return missing("This kernel has no tracefs (CONFIG_TRACING): nothing here can say why an activation was late.")
    if host.user and not host.container:
        meaning = f"A trace needs root ({why}): this user cannot record why an activation was late."
        return missing(meaning, own_command(host, "run --explain"))
    meaning = f"tracefs cannot be used ({why}), maybe because of a container or of kernel lockdown."
    return missing(meaning, container_options(host, "--privileged"))


def _find_tracefs(host: Host) -> tuple[str, OSError | None]:
    """The folder of tracefs, or why it cannot be used."""
    why: OSError | None = None
    for place in TRACING:
        try:
            host.read(f"{place}/available_tracers")
            return place, None
        except OSError as error:
            why = why or error
            if not isinstance(error, FileNotFoundError):
                return "", error
    return "", why


def _mount_tracefs() -> bool:
    """Mount tracefs for this process alone, as the agent does for its own. False if the kernel refuses."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        alone = library.unshare(CLONE_NEWNS) == 0 and library.mount(None, b"/", None, MS_REC | MS_SLAVE, None) == 0
    except AttributeError:
        return False
    return bool(alone and library.mount(b"nodev", TRACING[0].encode(), b"tracefs", 0, None) == 0)


def kernel_symbols(host: Host) -> Finding:
    """Look for an address that is not 0."""
    file = "/proc/kallsyms"
    try:
        text = host.read(file)
    except OSError as error:
        return limited(f"{file} cannot be read ({error.strerror}): explanations name no functions of the kernel.")
    if re.search(r"^0*[1-9a-f][0-9a-f]* ", text, re.MULTILINE):
        return ok("The kernel tells the addresses of its functions.")
    if host.text("/proc/sys/kernel/kptr_restrict") == "2":
        why, command = "from everybody (kptr_restrict is 2)", as_root(host, "sysctl kernel.kptr_restrict=0")
    else:
        why, command = "from a user who is not root", own_command(host, "run --explain")
    return limited(f"The kernel hides addresses {why}: explanations name no functions.", command)


PORTS = ("ttyUSB*", "ttyACM*", "ttyAMA*", "ttySC*", "ttymxc*")
"""Ports of adapters and of boards. Most PCs have files ttyS* without a port."""
PORT_GROUPS = ("dialout", "uucp", "tty")


def serial_ports(host: Host) -> Finding:
    """Ask for the right to open each port. Opening it would reset some boards."""
    ports = [f"/dev/{path.name}" for pattern in PORTS for path in host.path("/dev").glob(pattern)]
    refused = sorted(name for name in ports if not os.access(host.path(name), os.R_OK | os.W_OK))
    if ports and not refused:
        return ok(f"This user may open {', '.join(sorted(ports))}.")
    if not ports and (host.user == 0 or set(PORT_GROUPS[:2]) & host.own_groups):
        return ok("No serial adapter is plugged in; this user may open one.")
    group = next((each for each in PORT_GROUPS if each in host.groups.values()), PORT_GROUPS[0])
    meaning = "No serial adapter is plugged in, and this user is in no group that may open one."
    if refused:
        status, both = host.path(refused[0]).stat(), stat.S_IRGRP | stat.S_IWGRP
        group = host.groups.get(status.st_gid, "") if status.st_mode & both == both else ""
        meaning = f"This user may not open {', '.join(refused)}."
    return limited(meaning, as_root(host, f"usermod -aG {group} {user_name(host)}") if group else "")


RUN_MIB, LOADS_MIB, LAB_MIB = 64, 128, 512
"""Room for some runs, for the files of loads, and for a kernel, a QEMU and some guests."""
OTHER_CACHE = "export XDG_CACHE_HOME=/var/tmp/cache-of-$(id -u)"


def current_folder(_host: Host) -> Finding:
    """A run is kept in it."""
    try:
        return _room_in(Path.cwd(), RUN_MIB, "cd")
    except OSError as error:
        return missing(f"The current folder cannot be used ({error.strerror}), so no run can be kept in it.", "cd")


def cache_folder(_host: Host) -> Finding:
    """The lab keeps kernels and guests in it."""
    try:
        return _room_in(build.cache_dir().parent, LAB_MIB, OTHER_CACHE)
    except UserError as refusal:
        return missing(f"{refusal}.", OTHER_CACHE)


def temporary_folder(_host: Host) -> Finding:
    """Loads write to it."""
    place = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - the loads' own default
    return _room_in(Path(place), LOADS_MIB, "export TMPDIR=/var/tmp")


def _room_in(folder: Path, needed_mib: int, command: str) -> Finding:
    if refusal := why_not_writable(folder):
        return missing(f"Nothing can be written to {folder} ({refusal}).", command)
    free_mib = shutil.disk_usage(_first_seen(folder)).free >> 20
    if free_mib < needed_mib:
        return limited(f"{folder} has {free_mib} MiB of room, and {needed_mib} MiB are soon used.", command)
    return ok(f"{folder} can be written to and has {free_mib:,} MiB of room.")


def _first_seen(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there and that the user may see."""
    for each in (folder, *folder.parents):
        with suppress(OSError):
            if each.exists():
                return each
    return folder


def why_not_writable(folder: Path) -> str:
    """Why no file can be made in a folder or in the nearest one above it; "" if one can.

    The file has no name and is gone when it is closed. Some file systems have no such files.
    """
    folder = _first_seen(folder)
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.EISDIR):
            return error.strerror or "error"
        with suppress(OSError):
            if os.statvfs(folder).f_flag & os.ST_RDONLY:
                return "Read-only file system"
        return "" if os.access(folder, os.W_OK | os.X_OK) else "Permission denied"
    return ""


def kernel_module(host: Host) -> Finding:
    """Ask the agent whether it can use the module."""
    agent = build.built_agent()
    try:
        rows = build.listed_rows(build.agent_prints(agent, "list"), "method") if agent else []
    except UserError:
        rows = []
    why = next((build.missing_on_machine(row[-1]) for row in rows if row[1:3] == ["kernel", "task"]), None)
    if why == "":
        return ok("The module rtproof.ko is loaded and answers the agent.")
    meaning = (
        f"{why or 'the module rtproof.ko is not loaded'}. Its README says how it is built and signed.".capitalize()
    )
    return missing(meaning, headers_command(host, platform.release()))
