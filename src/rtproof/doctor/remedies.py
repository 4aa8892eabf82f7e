# SPDX-License-Identifier: Apache-2.0
"""Commands that bring what is missing: right for this system's package manager, and for this user."""

import importlib.metadata
import importlib.util
import pwd
import re
import shlex
import shutil
import sys
import sysconfig
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from rtproof.core.toml import read_toml
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
    manager = package_manager(host)
    found = [_table()["packages"][name].get(manager, "") for name in names]
    wanted = " ".join(dict.fromkeys(" ".join(found).split()))
    return as_root(host, f"{_table()['managers'][manager]['install']} {wanted}") if names and all(found) else ""


def headers_command(host: Host, release: str) -> str:
    """The command that installs the headers of a kernel; "" if its release is none of this system's kernels."""
    manager = _table()["managers"].get(package_manager(host), {"headers": {}})
    for pattern, name in manager["headers"].items():
        if found := re.fullmatch(pattern, release):
            return as_root(host, f"{manager['install']} {name.format(found[0], *found.groups())}")
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
    has_pip, by_uv = importlib.util.find_spec("pip") is not None, re.search(r"/uv/tools/rtproof(/|$)", sys.prefix)
    if re.search(r"/pipx/venvs/rtproof(/|$)", sys.prefix):
        return f"pipx inject rtproof {word}"
    if sys.prefix != sys.base_prefix or by_uv:
        by_pip = has_pip and not by_uv
        return f"{python} -m pip install {word}" if by_pip else f"uv pip install --python {python} {word}"
    keeps_pip_out = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()
    installer = ""
    with suppress(importlib.metadata.PackageNotFoundError):
        installer = importlib.metadata.distribution("rtproof").read_text("INSTALLER") or ""
    # If rtproof came by pip, numpy is pip's too, and the system's matplotlib may not load it.
    by_system = system_name if keeps_pip_out and installer.strip() not in ("pip", "uv", "pipx") else ""
    if by_system and (command := packages(host, by_system)):
        return command
    command = f"{python} -m pip install {'--user --break-system-packages ' if keeps_pip_out else ''}{word}"
    first = "" if has_pip else packages(host, "pip")  # Debian has pip in a package of its own
    return f"{first} && {command}" if first else command


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
