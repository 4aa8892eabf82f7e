# SPDX-License-Identifier: Apache-2.0
"""Whether apt has the packages that commands name: a command that fails at once helps nobody."""

import platform
import re
from collections.abc import Sequence
from dataclasses import replace

from rtproof.doctor.findings import Finding
from rtproof.doctor.host import Host

COMMAND = re.compile(r"apt-get install ([\w.+~ -]+)")
ALWAYS_THERE = "base-files"
"""A package of every Debian and Ubuntu. If apt knows not even this one, it has no lists yet."""


def checked(findings: Sequence[Finding], host: Host, patience_s: float) -> list[Finding]:
    """The findings, without commands for packages that apt does not have. It takes apt 0.4 s to tell."""
    wanted = sorted({name for each in findings for name in _names(each.command)})
    if not wanted:
        return list(findings)
    answer = host.ask("apt-cache", "madison", ALWAYS_THERE, *wanted, patience_s=patience_s)
    known = None if answer.fault else {line.partition("|")[0].strip() for line in answer.printed.splitlines()}
    return [_of_known(each, known) for each in findings]


def _names(command: str) -> list[str]:
    """The packages that a command installs."""
    found = COMMAND.search(command)
    return found[1].split() if found else []


def _of_known(finding: Finding, known: set[str] | None) -> Finding:
    """The finding if apt knows all packages of its command, or else with the reason why it cannot bring them."""
    names = _names(finding.command)
    if not names:
        return finding
    if known is None:
        of_kernel = [name for name in names if platform.release() in name]
        why = f"apt does not tell whether it has {' '.join(of_kernel)}."
        return replace(finding, meaning=f"{finding.meaning} {why}", command="") if of_kernel else finding
    if ALWAYS_THERE not in known:
        why = "apt has no lists of packages yet: apt-get update fetches them."
        return replace(finding, meaning=f"{finding.meaning} {why}")
    lacking = [name for name in names if name not in known]
    why = f"apt has no package {' and no package '.join(lacking)}."
    return replace(finding, meaning=f"{finding.meaning} {why}", command="") if lacking else finding
