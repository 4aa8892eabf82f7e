# SPDX-License-Identifier: Apache-2.0
"""Which CPUs a measuring thread may be bound to, and whether a control group takes time away from it."""

import os
from collections.abc import Iterator, Sequence

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import container_options

FEATURES = ("measure",)
ONLINE = "/sys/devices/system/cpu/online"


def check(host: Host) -> Iterator[Finding]:
    """Move this process to each CPU in turn, and read the quota of its control group."""
    yield _choice(host)
    quota = _quota(host)
    if quota:
        meaning = f"A control group gives this process {quota} of CPU time; the pauses look like latencies."
        yield Finding("CPU time", FEATURES, State.LIMITED, meaning, container_options(host, "--cpus 0"), needed=False)


def _choice(host: Host) -> Finding:
    try:
        online = units.parse_cpus(host.read(ONLINE))
    except (OSError, UserError):
        online = tuple(range(os.cpu_count() or 1))
    refused = [cpu for cpu in online if host.attempts.cpu(cpu)]
    if not refused:
        return Finding("choice of CPUs", FEATURES, State.OK, f"Threads may be bound to each CPU ({_list(online)}).")
    meaning = f"Threads may not be bound to the CPUs {_list(refused)}, so latencies there cannot be measured."
    state = State.MISSING if len(refused) == len(online) else State.LIMITED
    command = container_options(host, f"--cpuset-cpus {_list(online)}")
    return Finding("choice of CPUs", FEATURES, state, meaning, command)


def _list(cpus: Sequence[int]) -> str:
    """The numbers as the kernel lists them, such as 0-2,5."""
    parts: list[list[int]] = []
    for cpu in cpus:
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)


def _quota(host: Host) -> str:
    """How much time a control group (version 2) gives this process, such as "50 ms in each 100 ms"; "" if all."""
    for line in host.text("/proc/self/cgroup").splitlines():
        if line.startswith("0::"):
            words = host.text(f"/sys/fs/cgroup{line[3:].rstrip('/')}/cpu.max").split()
            if len(words) == 2 and all(word.isdecimal() for word in words):
                return one_line(f"{int(words[0]) / 1000:g} ms in each {int(words[1]) / 1000:g} ms", 60)
    return ""
