# SPDX-License-Identifier: Apache-2.0
"""Commands that bring what is missing: right for this system's package manager, and for this user."""

import importlib.metadata
import importlib.util
import platform
import pwd
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from rtproof.core.toml import read_toml
from rtproof.doctor.findings import Finding
from rtproof.doctor.host import Host

SUDOERS = frozenset({"sudo", "wheel", "admin"})
"""The groups whose members may usually use sudo. Asking sudo itself would be logged."""


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    return read_toml(Path(__file__).with_name("packages.toml"), dict[str, dict[str, dict[str, Any]]])


def package_manager(host: Host) -> str:
    """The package manager of this system, by /etc/os-release (os-release(5)); "" if packages.toml has none for it."""
    text = host.text("/etc/os-release") or host.text("/usr/lib/os-release")
    words = dict(re.findall(r"^(ID|ID_LIKE)=[\"']?([^\"'\n]*)", text, re.MULTILINE))
    ids = f"{words.get('ID', '')} {words.get('ID_LIKE', '')}".split()
    managers = _table()["managers"].items()
    return next((name for each in ids for name, manager in managers if each in manager["systems"]), "")


def _install(host: Host, names: str) -> str:
    return as_root(host, f"{_table()['managers'][package_manager(host)]['install']} {names}")


def as_root(host: Host, command: str) -> str:
    """A command of the shell for the superuser, as this user gives it."""
    if host.user == 0:
        return command
    if shutil.which("sudo") and SUDOERS & host.own_groups:
        return f"sudo sh -c {_quoted(command)}" if re.search(r"[|&;<>]", command) else f"sudo {command}"
    return f"su -c {_quoted(command)}"


def _quoted(command: str) -> str:
    """The command as one word. What begins with a dollar is for the user's own shell, such as $$ and $(uname -r)."""
    return f'"{command}"' if "$" in command and '"' not in command else shlex.quote(command)


def user_name(host: Host) -> str:
    """The name of the user, or the number where no name belongs to it."""
    try:
        return pwd.getpwuid(host.user).pw_name
    except KeyError:
        return str(host.user)


def packages(host: Host, *names: str) -> str:
    """The command that installs packages of the table; "" if this system's manager is unknown or lacks one of them."""
    found = [_table()["packages"][name].get(package_manager(host), "") for name in names]
    return _install(host, " ".join(dict.fromkeys(" ".join(found).split()))) if names and all(found) else ""


def headers_command(host: Host, release: str) -> str:
    """The command that installs the headers of a kernel; "" if its release is none of this system's kernels."""
    for pattern, name in _table()["managers"].get(package_manager(host), {"headers": {}})["headers"].items():
        if found := re.fullmatch(pattern, release):
            return _install(host, name.format(found[0], *found.groups()))
    return ""


def requirement(extra: str) -> str:
    """What pip installs for an extra of rtproof, such as ``duckdb>=1.4``."""
    with suppress(importlib.metadata.PackageNotFoundError):
        for line in importlib.metadata.requires("rtproof") or ():
            wanted, _, marker = line.partition(";")
            if re.search(rf"extra *== *['\"]{extra}['\"]", marker):
                return wanted.strip()
    return f"rtproof[{extra}]"


def python_package(host: Host, wanted: str, system_name: str = "") -> str:
    """The command that installs a Python package for this Python.

    wanted: for pip. system_name: of the table, for the Python of a system that keeps pip out (PEP 668).
    """
    word, python = shlex.quote(wanted), shlex.quote(sys.executable or "python3")
    has_pip = importlib.util.find_spec("pip") is not None
    if re.search(r"/pipx/venvs/rtproof(/|$)", sys.prefix):
        return f"pipx inject rtproof {word}"
    if sys.prefix != sys.base_prefix or re.search(r"/uv/tools/rtproof(/|$)", sys.prefix):
        by_pip = has_pip and not re.search(r"/uv/tools/rtproof(/|$)", sys.prefix)
        return f"{python} -m pip install {word}" if by_pip else f"uv pip install --python {python} {word}"
    keeps_pip_out = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()
    if keeps_pip_out and system_name and not _came_by_pip() and (by_system := packages(host, system_name)):
        return by_system
    command = f"{python} -m pip install {'--user --break-system-packages ' if keeps_pip_out else ''}{word}"
    first = "" if has_pip else packages(host, "pip")  # Debian has pip in a package of its own
    return f"{first} && {command}" if first else command


def _came_by_pip() -> bool:
    """Whether rtproof is no package of the system. Then numpy is pip's, and the system's matplotlib may not load it."""
    try:
        installer = importlib.metadata.distribution("rtproof").read_text("INSTALLER") or ""
    except importlib.metadata.PackageNotFoundError:
        return False
    return installer.strip() in ("pip", "uv", "pipx")


def own_command(host: Host, words: str) -> str:
    """A command of rtproof with more rights: of root, or of another container. "" if nothing is known to bring them."""
    if host.user == 0 or host.container:
        return container_options(host, "--privileged")
    # By its path, because the superuser's PATH is another one.
    return as_root(host, f"{shlex.quote(shutil.which('rtproof') or 'rtproof')} {words}")


def container_options(host: Host, options: str) -> str:
    """The command that starts a container with more rights; "" if this is none that is known."""
    program = {"podman": "podman", "docker": "docker", "oci": "podman"}.get(host.container, "")
    return f"{program} run {options} ..." if program else ""


ALWAYS_THERE = "base-files"
"""A package of every Debian and Ubuntu. If apt knows not even this one, it has no lists yet."""


def checked_by_apt(findings: Sequence[Finding], host: Host, patience_s: float) -> list[Finding]:
    """The findings, without commands for packages that apt does not have: a command that fails at once helps nobody."""
    wanted = sorted({name for each in findings for name in _apt_packages(each.command)})
    if not wanted:
        return list(findings)
    answer = host.ask("apt-cache", "madison", ALWAYS_THERE, *wanted, patience_s=patience_s)
    known = None if answer.fault else {line.partition("|")[0].strip() for line in answer.printed.splitlines()}
    return [_of_known(each, known) for each in findings]


def _apt_packages(command: str) -> list[str]:
    found = re.search(r"apt-get install ([\w.+~ -]+)", command)
    return found[1].split() if found else []


def _of_known(finding: Finding, known: set[str] | None) -> Finding:
    """The finding if apt knows all packages of its command, or else with the reason why it cannot bring them."""
    names = _apt_packages(finding.command)
    if known is None:
        lacking = [name for name in names if platform.release() in name]
        why = f"apt does not tell whether it has {' '.join(lacking)}."
    elif names and ALWAYS_THERE not in known:
        why = "apt has no lists of packages yet: apt-get update fetches them."
        return replace(finding, meaning=f"{finding.meaning} {why}")
    else:
        lacking = [name for name in names if name not in known]
        why = f"apt has no package {' and no package '.join(lacking)}."
    return replace(finding, meaning=f"{finding.meaning} {why}", command="") if lacking else finding
