# SPDX-License-Identifier: Apache-2.0
"""Facts of systems that do not exist, for tests of the audit."""

import errno
from collections.abc import Mapping

from rtproof.audit import check_file, judgement
from rtproof.audit.check import CheckResult
from rtproof.audit.facts import AuditRequest, Facts
from rtproof.record.contents import WHOLE_RUN, Begin, Fact, Moment, Record, SystemFile

MOUNTS = (
    "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n"
    "tracefs /sys/kernel/tracing tracefs rw 0 0\nsecurityfs /sys/kernel/security securityfs rw 0 0\n"
    "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
)
SEEN = {"/proc/mounts": MOUNTS, "/proc/cmdline": "root=/dev/sda1 quiet\n", "/proc/self/status": "Name:\tagent\n"}
"""What every system shows; a case replaces what it needs."""


def made_facts(
    files: Mapping[str, str | int] | None = None,
    *,
    end: Mapping[str, str | int] | None = None,
    request: AuditRequest | None = None,
    kernel: tuple[str, str] = ("6.12.0", "#1 SMP PREEMPT_RT"),
    machine: str = "x86_64",
) -> Facts:
    """Facts of a system. files: text by path, or a number of an error, at the start; end: the same at the end.

    kernel: release and version.
    """
    stored = [_file(Moment.START, path, content) for path, content in {**SEEN, **(files or {})}.items()] + [
        _file(Moment.END, path, content) for path, content in (end or {}).items()
    ]
    asked = request or AuditRequest()
    pid = (Fact(0, WHOLE_RUN, Moment.ASKED, "pid", str(asked.pid)),) if asked.pid else ()
    begin = Begin(1, 7, bytes(16), 0, 0, "0.1.0", machine, *kernel)
    record = Record(
        "facts.rtrec", 0, begin, pid, tuple(stored), (), (), {}, {}, (), (), None, (), (), lambda _: iter(())
    )  # fmt: skip
    return Facts(record, asked)


def _file(moment: Moment, path: str, content: str | int) -> SystemFile:
    if isinstance(content, int):
        return SystemFile(0, moment, path, content, False, b"")
    return SystemFile(0, moment, path, 0, False, content.encode())


HEAD, END = "# Linux/x86 6.12.0 Kernel Configuration\n", "CONFIG_RUNTIME_TESTING_MENU=y\n"
"""Of a whole configuration."""


def configured(*lines: str) -> dict[str, str | int]:
    """The file of a whole configuration with these options."""
    options = "".join(f"{'' if line[0] == '#' else 'CONFIG_'}{line}\n" for line in lines)
    return {"/boot/config-6.12.0": HEAD + options + END}


def judged(check_id: str, facts: Facts) -> CheckResult:
    """The result of one check."""
    return judgement.judge_check(facts, check_file.find_check(check_id))


REFUSED, MISSING = errno.EPERM, errno.ENOENT
