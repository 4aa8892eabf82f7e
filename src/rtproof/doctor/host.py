# SPDX-License-Identifier: Apache-2.0
"""What the checks ask this machine, and the commands that bring what is missing there.

Every question has an end: programs are stopped, and files are read in part. A test gives another root folder and
another user. Programs are found by ``PATH``. Commands are right for this system's package manager, and for this user.
"""

import grp
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from rtproof.core.printable import one_line
from rtproof.core.toml import read_toml

MOST_BYTES = 1 << 16
"""Of a file. The rest is not read."""
PROGRAM_S = 0.8
"""How long a program may take to print its version."""
MOST_SHOWN = 80
CAP_SYS_NICE = 23
"""Its bit in a set of capabilities (linux/capability.h)."""
CONTAINERS = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}
OUTSIDE = {"pid": 4026531836, "cgroup": 4026531835}
"""The numbers of a system's first namespaces. A machine made from an image still has a file of CONTAINERS."""


@dataclass(frozen=True)
class ProgramAnswer:
    """What a program did. path: "" if there is no such program.

    fault: why it cannot be used, as the end of a sentence that begins with its name; "" if it answered.
    """

    path: str
    printed: str = ""
    fault: str = ""

    @property
    def line(self) -> str:
        """The first line that it printed."""
        return next(filter(None, (one_line(line, MOST_SHOWN) for line in self.printed.splitlines())), "")


@dataclass(frozen=True)
class Host:
    """This machine. root: the folder that stands for /. user: its effective number."""

    root: Path = Path("/")
    user: int = field(default_factory=os.geteuid)

    def path(self, name: str) -> Path:
        """The file that an absolute path names."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str:
        """The text of a file, at most MOST_BYTES of it. OSError if it cannot be read. It does not wait for a device."""
        file = os.open(self.path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return os.read(file, MOST_BYTES).decode(errors="replace").strip()
        finally:
            os.close(file)

    def text(self, name: str) -> str:
        """As ``read``; "" if the file cannot be read."""
        try:
            return self.read(name)
        except OSError:
            return ""

    @property
    def has_sys_nice(self) -> bool:
        """Whether this process may have a real-time policy whatever its limits are (capabilities(7))."""
        found = re.search(r"^CapEff:\s*([0-9a-f]+)$", self.text("/proc/self/status"), re.MULTILINE)
        return bool(int(found[1], 16) >> CAP_SYS_NICE & 1) if found else self.user == 0

    @property
    def in_user_namespace(self) -> bool:
        """Whether the capabilities of this process count in its user namespace only (user_namespaces(7))."""
        return self.text("/proc/self/uid_map").split() not in ([], ["0", "0", "4294967295"])

    @property
    def control_groups(self) -> list[tuple[list[str], str]]:
        """The controllers and the name of each control group of this process (cgroups(7)); [""] for version 2."""
        lines = (line.split(":", 2) for line in self.text("/proc/self/cgroup").splitlines())
        return [(line[1].split(","), line[2]) for line in lines if len(line) == 3]

    @property
    def container(self) -> str:
        """The name of what runs this container, such as ``podman``; "" if no sign of a container is here."""
        for line in self.text("/proc/1/environ").split("\0"):
            name, _, value = line.partition("=")
            if name == "container" and value:
                return one_line(value, MOST_SHOWN)
        with suppress(OSError):
            links = (str(self.path(f"/proc/self/ns/{kind}").readlink()) for kind in OUTSIDE)
            if all(link == f"{kind}:[{number}]" for link, (kind, number) in zip(links, OUTSIDE.items(), strict=True)):
                return ""
        return next((name for path, name in CONTAINERS.items() if self.path(path).exists()), "")

    @property
    def groups(self) -> dict[int, str]:
        """The names of the groups in /etc/group, by number."""
        lines = (line.split(":") for line in self.text("/etc/group").splitlines())
        return {int(line[2]): line[0] for line in lines if len(line) == 4 and line[2].isdecimal()}

    @property
    def own_groups(self) -> set[str]:
        """The names of this process's groups, also of those that a directory service knows."""
        known, found = self.groups, set()
        for number in {*os.getgroups(), os.getegid()}:
            with suppress(KeyError):
                found.add(known.get(number) or grp.getgrgid(number).gr_name)
        return found

    def ask(self, program: str, *arguments: str, patience_s: float = PROGRAM_S) -> ProgramAnswer:
        """Run a program without input. It is stopped when it takes too long."""
        path = shutil.which(program)
        if path is None:
            return ProgramAnswer("", fault="is not installed")
        try:
            done = subprocess.run(
                [path, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=patience_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ProgramAnswer(path, fault=f"did not answer within {patience_s:g} s")
        except OSError as error:
            return ProgramAnswer(path, fault=f"cannot be started: {error.strerror}")
        answer, code = ProgramAnswer(path, done.stdout.decode(errors="replace")), done.returncode
        if code in (126, 127):
            return replace(answer, fault=f"cannot be run: {answer.line or f'exit code {code}'}")
        return replace(answer, fault=f"was ended by {signal.Signals(-code).name}") if code < 0 else answer


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
