# SPDX-License-Identifier: Apache-2.0
"""Commands that bring what is missing: right for this system's package manager, and for this user."""

import grp
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from rtproof.core.toml import read_toml
from rtproof.doctor.host import SUDOERS, Host

INSTALL = {
    "apt": "apt-get install",
    "dnf": "dnf install",
    "pacman": "pacman -S",
    "apk": "apk add",
    "zypper": "zypper install",
}
"""How each package manager installs packages."""
FAMILIES = {
    **dict.fromkeys(("debian", "ubuntu", "raspbian", "linuxmint"), "apt"),
    **dict.fromkeys(("fedora", "rhel", "centos", "rocky", "almalinux"), "dnf"),
    **dict.fromkeys(("arch", "manjaro", "archarm"), "pacman"),
    **dict.fromkeys(("alpine", "postmarketos"), "apk"),
    **dict.fromkeys(("suse", "opensuse", "sles", "opensuse-leap", "opensuse-tumbleweed"), "zypper"),
}
"""The package manager of each ``ID`` or ``ID_LIKE`` in /etc/os-release."""


class PackageNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names of one package, by package manager. "" if that manager has none."""

    apt: str = ""
    dnf: str = ""
    pacman: str = ""
    apk: str = ""
    zypper: str = ""


@cache
def known_packages() -> dict[str, PackageNames]:
    """All packages that a check may name."""
    return read_toml(Path(__file__).with_name("packages.toml"), dict[str, PackageNames])


def package_manager(host: Host) -> str:
    """The package manager of this system, by /etc/os-release (os-release(5)); "" if it is none of INSTALL."""
    text = host.text("/etc/os-release") or host.text("/usr/lib/os-release")
    words = dict(re.findall(r"^(ID|ID_LIKE)=[\"']?([^\"'\n]*)", text, re.MULTILINE))
    ids = f"{words.get('ID', '')} {words.get('ID_LIKE', '')}".split()
    return next((FAMILIES[each] for each in ids if each in FAMILIES), "")


def as_root(host: Host, command: str) -> str:
    """A command of the shell for the superuser, as this user gives it."""
    if host.user == 0:
        return command
    plain = not re.search(r"[|&;<>]", command)
    if _may_use_sudo(host):
        return f"sudo {command}" if plain else f"sudo sh -c {_quoted(command)}"
    return f"su -c {_quoted(command)}"


def _quoted(command: str) -> str:
    """The command as one word. What begins with a dollar is for the user's own shell, such as $$ and $(uname -r)."""
    return f'"{command}"' if "$" in command and '"' not in command else shlex.quote(command)


def _may_use_sudo(host: Host) -> bool:
    """Whether sudo is here and the user is in a group that usually may use it. Asking sudo would be logged."""
    return shutil.which("sudo") is not None and bool(SUDOERS & set(group_names(host)))


def group_names(host: Host) -> Iterator[str]:
    """The names of this process's groups."""
    known = {line.split(":")[2]: line.split(":")[0] for line in _group_lines(host)}
    for number in {*os.getgroups(), os.getegid()}:
        with suppress(KeyError):
            yield known.get(str(number)) or grp.getgrgid(number).gr_name


def _group_lines(host: Host) -> Iterator[str]:
    return (line for line in host.text("/etc/group").splitlines() if line.count(":") == 3)


def user_name(host: Host) -> str:
    """The name of the user, or the number where no name belongs to it."""
    try:
        return pwd.getpwuid(host.user).pw_name
    except KeyError:
        return str(host.user)


def packages(host: Host, *names: str) -> str:
    """The command that installs packages of the table; "" if this system's manager is unknown or lacks one of them."""
    manager = package_manager(host)
    found = [getattr(known_packages()[name], manager) if manager else "" for name in names]
    if not all(found):
        return ""
    words = " ".join(dict.fromkeys(" ".join(found).split()))
    return as_root(host, f"{INSTALL[manager]} {words}")


HEADERS = {
    "apt": ((r".+", "linux-headers-{0}"),),
    "dnf": (
        (r"([\d.]+-[\d.]+\.(?:el|fc|amzn)\w+\.\w+)\+rt", "kernel-rt-devel-{1}"),
        (r".+\.rt\d.+\.el\w+\.\w+", "kernel-rt-devel-{0}"),
        (r"[\d.]+-[\d.]+\.(?:el|fc|amzn)\w+\.\w+", "kernel-devel-{0}"),
    ),
    "pacman": ((r".+-arch\d+-\d+", "linux-headers"), (r".+-(lts|zen|hardened|rt|rt-lts)", "linux-{1}-headers")),
    "apk": ((r".+-(lts|virt|edge|rpi|stable)", "linux-{1}-dev"),),
    "zypper": ((r".+-(default|rt|azure|preempt|vanilla|kvmsmall|lpae)", "kernel-{1}-devel"),),
}
"""For each package manager: the releases of its kernels, and the package with the headers of such a kernel."""


def headers_command(host: Host, release: str) -> str:
    """The command that installs the headers of a kernel; "" if its release is none of this system's kernels."""
    manager = package_manager(host)
    for pattern, name in HEADERS.get(manager, ()):
        if found := re.fullmatch(pattern, release):
            return as_root(host, f"{INSTALL[manager]} {name.format(found[0], *found.groups())}")
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
    word = shlex.quote(wanted)
    python = shlex.quote(sys.executable or "python3")
    if re.search(r"/pipx/venvs/rtproof(/|$)", sys.prefix):
        return f"pipx inject rtproof {word}"
    if re.search(r"/uv/tools/rtproof(/|$)", sys.prefix):
        return f"uv pip install --python {python} {word}"
    if sys.prefix != sys.base_prefix:
        return f"{python} -m pip install {word}" if _has_pip() else f"uv pip install --python {python} {word}"
    by_system = packages(host, system_name) if system_name and _keeps_pip_out() and not _came_by_pip() else ""
    return by_system or _with_pip(host, f"{python} -m pip", word)


def _came_by_pip() -> bool:
    """Whether rtproof is no package of the system. Then numpy is pip's, and the system's matplotlib may not load it."""
    try:
        installer = importlib.metadata.distribution("rtproof").read_text("INSTALLER") or ""
    except importlib.metadata.PackageNotFoundError:
        return False
    return installer.strip() in ("pip", "uv", "pipx")


def _keeps_pip_out() -> bool:
    return Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()


def _with_pip(host: Host, pip: str, word: str) -> str:
    """The command for the system's own Python. Debian has pip in a package of its own."""
    first = "" if _has_pip() else packages(host, "pip")
    command = f"{pip} install {'--user --break-system-packages ' if _keeps_pip_out() else ''}{word}"
    return f"{first} && {command}" if first else command


def _has_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


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
