# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel gives this user a thread with the policy SCHED_FIFO."""

import errno
import os
import resource
from collections.abc import Iterator

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import as_root, container_options

FEATURES = ("measure",)
NAME = "real-time policy"
BUDGETS = "/sys/fs/cgroup/cpu{group}/cpu.rt_runtime_us"
FOR_SHELL = "prlimit --pid $$ --rtprio=99 --memlock=unlimited"
"""It raises the limits of the shell in which it is typed, until that shell ends."""


def check(host: Host) -> Iterator[Finding]:
    """Try it in this process, and name the reason of a refusal."""
    error = host.attempts.real_time()
    if not error:
        yield Finding(NAME, FEATURES, State.OK, "The kernel gives this user threads with SCHED_FIFO.")
    elif error not in (errno.EPERM, errno.EACCES):
        meaning = f"The kernel refuses SCHED_FIFO ({os.strerror(error)}): only --policy other measures."
        yield Finding(NAME, FEATURES, State.MISSING, meaning)
    else:
        why, command = _why_not_permitted(host)
        meaning = f"The kernel refuses SCHED_FIFO, because {why}; --allow-unprivileged measures without it."
        yield Finding(NAME, FEATURES, State.MISSING, meaning, command)


def _why_not_permitted(host: Host) -> tuple[str, str]:
    """The reason, and the command that mends it."""
    may = (host.can("sys_nice") and not host.in_user_namespace) or _limit() != 0
    group = _group_without_budget(host)
    if may and group:
        file = BUDGETS.format(group=group)
        return f"the control group {group} has no budget for real-time threads", as_root(host, f"echo 950000 > {file}")
    if may:
        return "a filter of system calls (seccomp) or the kernel's policy forbids it to this process", ""
    if host.in_user_namespace:
        # The namespace's own container cannot raise the limit above that of the user who starts it.
        why = "CAP_SYS_NICE does not count in a user namespace and this process's limit RTPRIO is 0"
        return f"{why} (raise it for the user who starts this namespace)", ""
    if host.user == 0 or host.container:
        command = container_options(host, "--cap-add SYS_NICE --ulimit rtprio=99 --ulimit memlock=-1")
        return "this process lacks CAP_SYS_NICE and its limit RTPRIO is 0", command
    return "this user's limit RTPRIO is 0 and it lacks CAP_SYS_NICE", as_root(host, FOR_SHELL)


def _limit() -> int:
    return resource.getrlimit(resource.RLIMIT_RTPRIO)[0]


def _group_without_budget(host: Host) -> str:
    """The control group (version 1) of this process if it has no budget for real-time threads, else ""."""
    for line in host.text("/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if "cpu" in controllers.split(",") and host.text(BUDGETS.format(group=group)) == "0":
            return group
    return ""
