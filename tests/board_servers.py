# SPDX-License-Identifier: Apache-2.0
"""Boards on this machine: OpenSSH's server and dropbear in a network namespace, whose cable can be pulled.

The servers run in a mount namespace too. There the user ``rtboard`` exists, with a home of its own and the right to use
sudo, and root has another home; nothing of this machine's files is changed.
"""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

USER, USER_ID = "rtboard", 64_321
_numbers = itertools.count()


@dataclass(frozen=True)
class Cable:
    """A pair of virtual network devices, one of them in the namespace. address: of the board's end."""

    namespace: str
    device: str
    address: str

    def pull(self) -> None:
        """No packet passes any more, and nobody is told."""
        must_run("ip", "link", "set", self.device, "down")

    def plug(self) -> None:
        """Packets pass again."""
        must_run("ip", "link", "set", self.device, "up")


@dataclass(frozen=True)
class Board:
    """A server that runs. options: those of the target ssh; home: of ``rtboard``; cache: of root."""

    cable: Cable
    options: tuple[str, ...]
    home: Path
    cache: Path

    def as_user(self) -> tuple[str, ...]:
        """The same for ``rtboard``."""
        return (*self.options, "--target-option", f"user={USER}")


def must_run(*words: str | Path) -> None:
    """A program that must end well."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{words}: {done.stderr}"


def need_programs(*programs: str) -> None:
    """Skip the test unless these programs are here."""
    for program in programs:
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            pytest.skip(f"there is no {program}")


def need(*programs: str) -> None:
    """Skip the test unless these programs are here and this user may make namespaces."""
    need_programs(*programs)
    if os.geteuid() != 0:
        pytest.skip("only root can make a network namespace")
    if subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces cannot be made here")


@contextmanager
def cable() -> Iterator[Cable]:
    """A namespace with one cable to it."""
    need("ip", "unshare")
    number = os.getpid() % 40_000 * 4 + next(_numbers) % 4
    name, device = f"rtproof-{number}", f"rtb{number}"
    network = f"10.{64 + number // 65_536 % 64}.{number // 256 % 256}."
    low = number % 64 * 4
    with ExitStack() as stack:
        must_run("ip", "netns", "add", name)
        stack.callback(must_run, "ip", "netns", "del", name)
        must_run("ip", "link", "add", device, "type", "veth", "peer", "name", f"{device}p", "netns", name)
        for words in (
            ("addr", "add", f"{network}{low + 1}/30", "dev", device),
            ("link", "set", device, "up"),
            ("-n", name, "addr", "add", f"{network}{low + 2}/30", "dev", f"{device}p"),
            ("-n", name, "link", "set", f"{device}p", "up"),
            ("-n", name, "link", "set", "lo", "up"),
        ):
            must_run("ip", *words)
        yield Cable(name, device, f"{network}{low + 2}")


PREPARE = """
set -e
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/root" /root
mount --bind "$1/run" /run
[ ! -e /etc/sudoers ] || mount --bind "$1/sudoers" /etc/sudoers
shift
exec "$@"
"""


def _prepare(folder: Path) -> Path:
    """The files of the board, and the user's home in it."""
    home = Path(tempfile.mkdtemp(prefix="rtproof-home-"))  # pytest's own folders are closed to other users
    (folder / "run" / "sshd").mkdir(parents=True, mode=0o755)
    for place in (folder / "root", folder / "root" / ".ssh", folder / "root" / ".cache", home / ".ssh"):
        place.mkdir(mode=0o700)
    must_run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
    for place in (home / ".ssh", folder / "root" / ".ssh"):
        shutil.copy(folder / "key.pub", place / "authorized_keys")
    passwd = Path("/etc/passwd").read_text() + f"{USER}:*:{USER_ID}:{USER_ID}::{home}:/bin/sh\n"
    (folder / "passwd").write_text(passwd)
    (folder / "sudoers").write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    (folder / "sudoers").chmod(0o440)
    for path in (home, home / ".ssh", home / ".ssh" / "authorized_keys"):
        os.chown(path, USER_ID, USER_ID)
    folder.chmod(0o755)
    return home


@contextmanager
def board(folder: Path, server: str) -> Iterator[Board]:
    """A board with the server ``sshd`` or ``dropbear``."""
    need("ssh", "ssh-keygen", server)
    home = _prepare(folder)
    with cable() as wire:
        command = _sshd(folder, wire) if server == "sshd" else _dropbear(folder, wire)
        (folder / "config").write_text(
            f"Host board\n HostName {wire.address}\n Port 22\n User root\n IdentityFile {folder / 'key'}\n"
            f" IdentitiesOnly yes\n StrictHostKeyChecking accept-new\n UserKnownHostsFile {folder / 'known'}\n"
        )
        entered = ("ip", "netns", "exec", wire.namespace, "unshare", "--mount", "sh", "-c", PREPARE, "sh", str(folder))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*entered, *command], stdout=log, stderr=log, start_new_session=True)
        try:
            _wait_for_port(wire.address, process, folder / "log")
            options = ("--target", "ssh", "--target-option", "host=board", "--target-option", f"config={folder}/config")
            yield Board(wire, options, home, folder / "root" / ".cache")
        finally:
            process.terminate()
            process.wait(300)
            _end_all(wire.namespace)
            shutil.rmtree(home)


def _end_all(namespace: str) -> None:
    """Kill what still runs in the namespace, such as a run that was left there."""
    found = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    for pid in found.stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), 9)


def processes(namespace: str) -> list[str]:
    """The command lines of what runs in the namespace."""
    found = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    lines = []
    for pid in found.stdout.split():
        with suppress(OSError):
            lines.append(Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return lines


def is_followed(folder: Path) -> bool:
    """Whether the run of this folder is recorded on a board that is on this machine, and some host follows it."""
    with suppress(FileNotFoundError):
        there = json.loads((folder / "unfinished.json").read_text())["where"]["folder"]
        wanted = b"\0".join((b"background", b"follow", there.encode(), b""))
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # a follower sees the board's files
                if wanted in place.read_bytes() and (place.parent / "root" / there[1:] / "run.rtrec").exists():
                    return True
    return False


def _sshd(folder: Path, wire: Cable) -> Sequence[str]:
    must_run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "host"))
    words = (
        f"ListenAddress={wire.address}", f"HostKey={folder}/host", "StrictModes=no", "UsePAM=no", "PidFile=none",
        "PasswordAuthentication=no", "MaxStartups=100",
    )  # fmt: skip
    sshd = shutil.which("sshd", path="/usr/sbin:/sbin")
    return (str(sshd), "-D", "-e", "-f", "/dev/null", *(word for each in words for word in ("-o", each)))


def _dropbear(folder: Path, wire: Cable) -> Sequence[str]:
    must_run("dropbearkey", "-t", "ed25519", "-f", str(folder / "host"))
    dropbear = shutil.which("dropbear", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    return (str(dropbear), "-F", "-E", "-r", f"{folder}/host", "-p", f"{wire.address}:22", "-P", f"{folder}/pid")


def _wait_for_port(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    import socket

    end = time.monotonic() + 300
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with suppress(OSError), socket.create_connection((address, 22), 5):
            return
        time.sleep(0.05)
    raise AssertionError(f"the server does not answer: {log.read_text()}")
