# SPDX-License-Identifier: Apache-2.0
"""Runs over a console: on terminals of this machine, and on a guest with BusyBox's login on its serial port."""

import hashlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from board_guests import COUNTED
from board_runs import assert_whole, ended, start, wait_until, wait_until_grown, wait_until_measured
from board_servers import is_followed, need, need_programs
from console_boards import ConsoleBoard, Manners, login_board
from lab_kernels import kernel

from rtproof.boards.console_shell import PASSWORD_VARIABLE
from rtproof.targets import serial
from rtproof.vm.initramfs import CpioEntry, cpio_archive, cpio_file, cpio_folder, find_busybox
from rtproof.vm.machine import bootable_image

pytestmark = pytest.mark.slow
SECRET = "secret"


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConsoleBoard]:
    need("sh")
    need_programs("setsid", "busybox")
    monkeypatch.setenv(PASSWORD_VARIABLE, SECRET)
    with login_board(tmp_path, "dash -i", Manners(noise_s=0.1, bytes_per_s=100_000)) as made:
        yield made


def words_for(board: ConsoleBoard, home: Path, *more: str) -> list[str]:
    options = (f"address={board.address}", "user=root", f"dir={home / 'board'}", *more)
    return [word for option in options for word in ("--target-option", option)]


def run(board: ConsoleBoard, home: Path, *more: str) -> "subprocess.Popen[str]":
    words = ("--duration", "1h", "--checkpoint", "500ms", "--no-report", "-q", "-o", str(home / "run"))
    return start("run", "--target", "serial", *words_for(board, home, *more), *words)


def assert_nothing_left(home: Path) -> None:
    assert [each.name for each in home.glob("board/rtproof-*/*")] == ["agents"]


def test_a_run_brings_its_record_and_leaves_nothing_and_tells_nobody_the_password(
    board: ConsoleBoard, tmp_path: Path
) -> None:
    process = run(board, tmp_path)
    wait_until_measured(process, tmp_path / "run")
    for file in ("unfinished.json", "run.json"):
        assert SECRET not in (tmp_path / "run" / file).read_text()
    for program in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            assert SECRET.encode() not in program.read_bytes().split(b"\0")
    seconds, before = wait_until_grown(tmp_path / "board"), board.shown.count(b"board login:")
    ended(process, interrupt=True)
    assert_whole(tmp_path / "run", seconds, "INTERRUPTED")
    assert_nothing_left(tmp_path)
    wait_until(lambda: board.shown.count(b"board login:") > before)


@pytest.mark.parametrize("logged_out", [False, True], ids=["a second", "logged out"])
def test_a_line_that_is_gone_for_a_while_costs_nothing(board: ConsoleBoard, tmp_path: Path, logged_out: bool) -> None:
    process = run(board, tmp_path)
    wait_until_measured(process, tmp_path / "run")
    before = board.shown.count(b"board login:")
    board.cut()
    if logged_out:
        os.write(board.master, b"\x03")
        wait_until(lambda: not is_followed(tmp_path / "run"))
        os.write(board.master, b"exit\nexit\n")
        wait_until(lambda: board.shown.count(b"board login:") > before)
    seconds = wait_until_grown(tmp_path / "board")
    board.mend()
    ended(process, interrupt=True)
    assert "connected to" in (tmp_path / "run" / "agent.log").read_text()
    assert_whole(tmp_path / "run", seconds, "INTERRUPTED")
    assert_nothing_left(tmp_path)


def test_a_line_that_is_gone_for_good_is_told_and_the_run_can_be_taken_up(board: ConsoleBoard, tmp_path: Path) -> None:
    process = run(board, tmp_path, "patience=3s")
    wait_until_measured(process, tmp_path / "run")
    board.cut()
    _, said = process.communicate(timeout=1800)
    assert process.returncode == 2
    assert "no connection to" in said.splitlines()[-1]
    seconds = wait_until_grown(tmp_path / "board")
    board.mend()
    ended(start("stop", str(tmp_path / "run"), "--no-report"))
    assert_whole(tmp_path / "run", seconds, "INTERRUPTED")
    assert_nothing_left(tmp_path)


def test_a_guest_with_a_login_on_its_serial_port(tmp_path: Path) -> None:
    """At 115200 baud, while its kernel prints ten times a second. The record is the same on both sides."""
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    with guest_console(tmp_path, Manners(bytes_per_s=11_520)) as port:
        wait_until(lambda: b"serialboard login:" in port.shown)  # else the boot takes some of the minute for a login
        options = {"address": port.address, "user": USER, "password-file": str(tmp_path / "password")}
        words = [word for key, value in options.items() for word in ("--target-option", f"{key}={value}")]
        folder = tmp_path / "run"
        target = ("--target", "serial", *words, "--duration", "3s", "--no-report", "-o", str(folder), "--detach")
        ended(start("run", *target))
        place = json.loads((folder / "unfinished.json").read_text())["where"]["folder"]
        with serial.open_target(options) as opened:
            shell = opened._shell
            wait_until(lambda: shell.ask(f"[ -e {place}/exit ]").status == 0)
            there = shell.ask(f"sha256sum < {place}/run.rtrec").output.split()[0].decode()
        ended(start("attach", str(folder), "--no-report"))
        assert hashlib.sha256((folder / "run.rtrec").read_bytes()).hexdigest() == there
        assert_whole(folder, 3)
        with serial.open_target(options) as opened:
            left = opened._shell.ask(f"ls -d {place} 2>/dev/null; ls {place.rpartition('/')[0]}; ps").output
            before = port.shown.count(b"serialboard login:")
        assert left.split()[0] == b"agents"
        assert b"rtproof-agent" not in left
        wait_until(lambda: port.shown.count(b"serialboard login:") > before)


# A guest in QEMU as a board with a serial port: BusyBox's getty and login, and a kernel that prints into it.


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
