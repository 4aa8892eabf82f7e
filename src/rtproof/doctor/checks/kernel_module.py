# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel module is loaded, and if not, whether it can be built and loaded."""

import platform
import re
import shutil
from collections.abc import Iterator

from rtproof.agents import build
from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import as_root, headers_command, packages

FEATURES = ("kernel-module",)
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def check(host: Host) -> Iterator[Finding]:
    """Ask the agent whether it can use the module; look for headers, a compiler, DKMS and what keeps modules out."""
    missing = _missing_to_agent()
    if missing == "":
        yield Finding("module rtproof.ko", FEATURES, State.OK, "The module rtproof.ko is loaded and answers the agent.")
        return
    headers = list(_headers(host))
    yield from headers
    yield from _dkms(host)
    yield from _barriers(host)
    able = all(each.state is State.OK for each in headers)
    meaning = f"{missing or 'the module rtproof.ko is not loaded'}.".capitalize()
    command = as_root(host, "dkms install FOLDER-OF-KMOD && modprobe rtproof") if able else ""
    yield Finding("module rtproof.ko", FEATURES, State.MISSING, meaning, command)


def _missing_to_agent() -> str | None:
    """What the agent lacks for the module; "" if it can use it, None if there is no agent to ask."""

    agent = build.built_agent()
    if agent is None:
        return None
    try:
        rows = build.listed_rows(build.agent_prints(agent, "list"), "method")
    except UserError:
        return None
    return next((build.missing_on_machine(row[-1]) for row in rows if row[1:3] == ["kernel", "task"]), None)


def _headers(host: Host) -> Iterator[Finding]:
    release = platform.release()
    folder = f"/lib/modules/{release}/build"
    if host.path(f"{folder}/Makefile").exists():
        yield Finding("kernel headers", FEATURES, State.OK, f"The headers of {release} are in {folder}.")
    else:
        command = headers_command(host, release)
        meaning = f"The headers of the kernel {release} are not in {folder}, so no module can be built for it."
        meaning += " If you built this kernel yourself, they are in the folder of its build."
        yield Finding("kernel headers", FEATURES, State.MISSING, meaning, command)
    lacking = [name for name in ("make", "gcc") if not shutil.which(name)]
    if lacking:
        command = packages(host, "compiler", "make")
        meaning = f"Without {' and '.join(lacking)} no module can be built."
        yield Finding("module build tools", FEATURES, State.MISSING, meaning, command)


def _dkms(host: Host) -> Iterator[Finding]:
    answer = host.ask("dkms", "--version")
    if answer.fault:
        meaning = f"dkms {answer.fault}, so the module must be built again by hand for each new kernel."
        command = "" if answer.path else packages(host, "dkms")
        yield Finding("dkms", FEATURES, State.LIMITED, meaning, command, needed=False)
    else:
        yield Finding("dkms", FEATURES, State.OK, f"{answer.line or 'dkms'} builds the module for each new kernel.")


def _barriers(host: Host) -> Iterator[Finding]:
    """What keeps modules out that nobody has signed, and users who may load none."""
    why = _why_signed_only(host)
    if why:
        meaning = f"The kernel may refuse a module that nobody has signed, because {why}."
        command = as_root(host, "mokutil --import /var/lib/dkms/mok.pub")
        yield Finding("signed modules", FEATURES, State.LIMITED, meaning, command, needed=False)
    if not host.can("sys_module"):
        meaning = "This process may not load a module (CAP_SYS_MODULE): load it on the machine itself, as root."
        yield Finding("right to load modules", FEATURES, State.LIMITED, meaning, needed=False)


def _why_signed_only(host: Host) -> str:
    lockdown = re.search(r"\[(\w+)\]", host.text("/sys/kernel/security/lockdown"))
    if lockdown and lockdown[1] != "none":
        return f"kernel lockdown is {one_line(lockdown[1], 40)}"
    return "secure boot is on" if _secure_boot(host) else ""


def _secure_boot(host: Host) -> bool:
    """Whether the firmware checks signatures. The variable has four bytes of attributes before its value."""
    try:
        return host.path(SECURE_BOOT).read_bytes()[4:5] == b"\1"
    except OSError:
        return False
