# SPDX-License-Identifier: Apache-2.0
"""A guest in QEMU as a board with a serial port: BusyBox's getty and login on it, and a kernel that prints into it."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from board_guests import COUNTED
from console_boards import ConsoleBoard, Manners
from lab_kernels import kernel

from rtproof.vm.initramfs import CpioEntry, cpio_archive, cpio_file, cpio_folder, find_busybox
from rtproof.vm.machine import bootable_image

USER, PASSWORD = "root", "between us"
HASH = "$6$rtproof$TOfnNKSG53oQ9V4HXHSubNWfE5fsow4TB/uLhn1szhC9HxG2CpWUUt/b28bUPthFif3240xfiwdK/CLZHJgv//"
"""Of PASSWORD: openssl passwd -6 -salt rtproof."""
NOISE_MS = 100
INIT = f"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /root /usr/bin /usr/sbin /sbin
/bin/busybox --install -s
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
hostname serialboard
(n=0; while :; do n=$((n + 1)); echo "noise: the kernel's number $n" >/dev/kmsg; usleep {NOISE_MS}000; done) &
exec /sbin/init
"""
INITTAB = "ttyS0::respawn:/sbin/getty -L 115200 ttyS0 vt100\n::ctrlaltdel:/sbin/reboot\n"
BOOT = "console=ttyS0,115200 loglevel=8 printk.devkmsg=on nokaslr panic=-1 random.trust_cpu=on"


def initramfs() -> bytes:
    """The board's file system."""
    entries: list[CpioEntry] = [
        cpio_file("init", INIT.encode(), executable=True),
        cpio_file("bin/busybox", find_busybox("x86_64").read_bytes(), executable=True),
        cpio_file("etc/inittab", INITTAB.encode()),
        cpio_file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"),
        cpio_file("etc/group", b"root:x:0:\n"),
        cpio_file("etc/shadow", f"root:{HASH}:19000:0:99999:7:::\n".encode()),
        cpio_file("etc/motd", b"A board for tests. Every login: is denied to nobody.\n"),
        cpio_file("etc/issue", b"Guest of rtproof on \\l\n"),
        cpio_folder("dev"),
    ]
    return cpio_archive(entries)


@contextmanager
def guest_console(folder: Path, manners: Manners, name: str = "debian-6.1-rt") -> Iterator[ConsoleBoard]:
    """The serial port of a guest that boots. folder: for its files; manners: of the line to it."""
    booted = kernel(name)
    image = bootable_image(booted)
    (folder / "initrd").write_bytes(initramfs())
    place = folder / "port"
    words = (
        *("qemu-system-x86_64", "-M", "pc", "-accel", "tcg", *COUNTED, "-smp", "1", "-m", "512"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"),
        *("-kernel", str(image), "-initrd", str(folder / "initrd"), "-append", BOOT),
        *("-chardev", f"socket,id=port,path={place},server=on,wait=on", "-serial", "chardev:port"),
    )
    with (folder / "qemu.log").open("wb") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    port = socket.socket(socket.AF_UNIX)
    try:
        _connect(port, place, process, folder / "qemu.log")
        port.setblocking(False)
        board = ConsoleBoard(os.dup(port.fileno()), manners)
        try:
            yield board
        finally:
            board.close()
            os.close(board.master)
    finally:
        port.close()
        process.kill()
        process.wait()


def _connect(port: socket.socket, place: Path, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with suppress(OSError):
            port.connect(str(place))
            return
        time.sleep(0.05)
    raise AssertionError("QEMU opens no serial port")
