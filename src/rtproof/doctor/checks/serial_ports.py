# SPDX-License-Identifier: Apache-2.0
"""Whether this user may open serial ports, for boards that have nothing but a console."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import as_root, group_names, user_name

FEATURES = ("boards",)
PATTERNS = ("ttyUSB*", "ttyACM*", "ttyAMA*", "ttySC*", "ttymxc*")
"""Ports of adapters and of boards. Most PCs have files ttyS* without a port."""
GROUPS = ("dialout", "uucp", "tty")


def check(host: Host) -> Iterator[Finding]:
    """Ask for the right to open each port. Opening it would reset some boards."""
    name = "serial ports"
    devices = host.path("/dev")
    ports = sorted(path for pattern in PATTERNS for path in devices.glob(pattern))
    refused = [path for path in ports if not os.access(path, os.R_OK | os.W_OK)]
    if refused:
        group = _group_of(host, refused[0])
        meaning = f"This user may not open {', '.join(f'/dev/{path.name}' for path in refused)}."
        yield Finding(name, FEATURES, State.LIMITED, meaning, _join(host, group), needed=False)
    elif ports:
        names = ", ".join(f"/dev/{path.name}" for path in ports)
        yield Finding(name, FEATURES, State.OK, f"This user may open {names}.")
    elif host.user == 0 or set(GROUPS[:2]) & set(group_names(host)):
        yield Finding(name, FEATURES, State.OK, "No serial adapter is plugged in; this user may open one.")
    else:
        meaning = "No serial adapter is plugged in, and this user is in no group that may open one."
        group = next((each for each in GROUPS if _number(host, each)), GROUPS[0])
        yield Finding(name, FEATURES, State.LIMITED, meaning, _join(host, group), needed=False)


def _join(host: Host, group: str) -> str:
    return as_root(host, f"usermod -aG {group} {user_name(host)}") if group else ""


def _group_of(host: Host, port: Path) -> str:
    """The group that may open a port, "" if none may."""
    status = port.stat()
    if not status.st_mode & stat.S_IRGRP or not status.st_mode & stat.S_IWGRP:
        return ""
    names = (line.split(":") for line in host.text("/etc/group").splitlines())
    return next((each[0] for each in names if each[2:3] == [str(status.st_gid)]), "")


def _number(host: Host, group: str) -> str:
    lines = (line.split(":") for line in host.text("/etc/group").splitlines())
    return next((each[2] for each in lines if each[0] == group and len(each) > 2), "")
