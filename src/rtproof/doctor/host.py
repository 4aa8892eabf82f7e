# SPDX-License-Identifier: Apache-2.0
"""What the checks ask this machine. Every question has an end: programs are stopped, and files are read in part.

A test gives another root folder and another user. Programs are found by ``PATH``.
"""

import grp
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rtproof.core.printable import one_line

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
