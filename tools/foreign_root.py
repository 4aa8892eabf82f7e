# SPDX-License-Identifier: Apache-2.0
"""usage: foreign_root.py ROOT COMMAND...    runs a command in a folder with a whole system of arm64

As root. The kernel starts the emulator for programs of arm64 only inside a user namespace that ends with the command
(Linux 6.7 or newer), so that nothing on this machine changes. The root gets this machine's /dev, /proc and /sys.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
MS_BIND, MS_REC = 4096, 16384
LENT = ("dev", "proc", "sys")
IDS = "0 0 65536"
FORMATS = Path("/proc/sys/fs/binfmt_misc")
EMULATOR = "qemu-aarch64-static"
HEADER = r"\x7fELF\x02\x01\x01" + r"\x00" * 9 + r"\x02\x00\xb7\x00"
MASK = r"\xff" * 7 + r"\x00" + r"\xff" * 8 + r"\xfe\xff\xff\xff"


def main(root: str, *command: str) -> int:
    """Exit code of the command."""
    emulator = shutil.which(EMULATOR)
    if not emulator:
        raise SystemExit(f"{EMULATOR} is not installed (Debian: qemu-user-static)")
    ready, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        enter_namespaces(ready[1], mapped[0])
        mount("none", FORMATS, "binfmt_misc")
        # F: the kernel opens the emulator now, outside of the root.
        (FORMATS / "register").write_text(f":arm64:M::{HEADER}:{MASK}:{emulator}:F")
        for name in LENT:
            mount(f"/{name}", Path(root, name), "", MS_BIND | MS_REC)
        os.chroot(root)
        os.chdir("/")
        os._exit(subprocess.run(command, check=False).returncode)
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{child}/{name}").write_text(IDS)
    os.write(mapped[1], b"m")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def enter_namespaces(ready: int, mapped: int) -> None:
    """Leave for new namespaces of users and mounts, and wait until the parent has mapped all ids onto themselves."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER | CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "cannot make a user namespace")
    os.write(ready, b"r")
    os.read(mapped, 1)
    os.setgid(0)
    os.setuid(0)


def mount(source: str, place: Path, kind: str, flags: int = 0) -> None:
    if ctypes.CDLL(None, use_errno=True).mount(source.encode(), str(place).encode(), kind.encode(), flags, None):
        raise OSError(ctypes.get_errno(), f"cannot mount {source} at {place} in a user namespace")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
