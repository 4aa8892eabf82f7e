# SPDX-License-Identifier: Apache-2.0
"""The target serial on terminals of this machine: shells, noise, logins that refuse, lines that break."""

import fcntl
import os
import pty
import select
import shutil
import signal
import socket
import termios
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from board_runs import wait_until
from board_servers import need_programs
from console_boards import ConsoleBoard, Manners, console, login_board

from rtproof.boards import console_shell, upload
from rtproof.boards.console import SocketLine
from rtproof.boards.console_shell import LONGEST_LINE, ConsoleShell, as_lines
from rtproof.boards.upload import DECODERS
from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.targets import serial

SHELLS = ("busybox sh -i", "dash -i", "bash -i", "bash --norc --noediting -i")
NOISY = Manners(noise_s=0.1, bytes_per_s=11520)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    need_programs("setsid", "busybox")
    monkeypatch.setenv(console_shell.PASSWORD_VARIABLE, "secret")
    for module, name in ((console_shell, "LOGIN_S"), (console_shell, "GO_S"), (console_shell, "LEAVE_S")):
        monkeypatch.setattr(module, name, 600)  # a busy machine's shells are slow


@contextmanager
def shell_on(board: ConsoleBoard, home: Path, **more: str) -> Iterator[ConsoleShell]:
    options = {"address": board.address, "user": "root", "dir": str(home / "board"), **more}
    with serial.open_target(options) as target:
        shell = target._shell
        assert isinstance(shell, ConsoleShell)
        yield shell


@pytest.mark.parametrize("program", SHELLS)
@pytest.mark.parametrize("manners", [Manners(), NOISY], ids=["quiet", "noisy"])
def test_commands_run_whatever_shell_the_login_starts(tmp_path: Path, program: str, manners: Manners) -> None:
    with login_board(tmp_path, program, manners) as board:
        with shell_on(board, tmp_path) as shell:
            for number in range(5):
                answer = shell.ask(f"printf '%s\\n' 'a  b' '{number} \\n'; exit {number}")
                assert (answer.status, answer.output) == (number, f"a  b\n{number} \\n\n".encode())
            assert shell.ask("tr a-z A-Z", b"given\nand more\n").output == b"GIVEN\nAND MORE\n"
            assert shell.ask("cat").output == b""
            assert shell.ask("no-such-program here").status == 127
            long = "x" * 3 * LONGEST_LINE
            assert shell.ask(f"echo '{long}\n  it''s'").output == f"{long}\n  its\n".encode()
            assert shell.ask("printf '%s' 'grün'").output == "grün\n".encode()
        # The one who logged in logs out.
        wait_until(lambda: board.shown.rstrip().endswith(b"board login:") or bool(manners.noise_s))


def test_a_shell_that_was_there_is_left_as_it_was(tmp_path: Path) -> None:
    with console(["busybox", "sh", "-i"], tmp_path) as board:
        with shell_on(board, tmp_path) as shell:
            assert shell.ask("echo here").output == b"here\n"
            assert not termios.tcgetattr(board.master)[3] & termios.ECHO
        wait_until(lambda: console_shell.plain(board.shown).endswith((b"# ", b"$ ")))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_console_is_left_as_it_was_when_rtproof_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with console(["dash", "-i"], tmp_path) as board:
        with pytest.raises(KeyboardInterrupt), shell_on(board, tmp_path) as shell:
            shell.ask(f"kill -s {number.name[3:]} {os.getpid()}; sleep 1")
        wait_until(lambda: bool(termios.tcgetattr(board.master)[3] & termios.ECHO))
        wait_until(lambda: console_shell.plain(board.shown).endswith((b"# ", b"$ ")))
    assert signal.getsignal(number) is before


def test_a_line_that_loses_bytes_is_sent_again(tmp_path: Path) -> None:
    with console(["dash", "-i"], tmp_path) as board, shell_on(board, tmp_path) as shell:
        board.manners.lost_per_byte = 0.002
        for number in range(20):
            assert shell.ask(f"echo number {number}", timeout_s=120).output == f"number {number}\n".encode()


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
def test_each_decoder_brings_bytes_to_a_board_with_it_alone(tmp_path: Path, decoder: str, packed: bool) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    of_decoder = {"base64": ("base64",), "printf": ()}[decoder]
    for name in (
        "stty",
        "cat",
        "rm",
        "wc",
        "uname",
        "id",
        "mkdir",
        "chmod",
        "sha256sum",
        *of_decoder,
        *["gzip"] * packed,
    ):
        (programs / name).symlink_to(str(shutil.which("busybox")))
    # BusyBox's own shell runs all its applets, whether they are in PATH or not.
    (programs / "sh").symlink_to(str(shutil.which("dash")))
    content = os.urandom(3000) + bytes(range(256)) * 200
    said: list[str] = []
    start = f"PATH={programs}; export PATH; cd {programs}; exec sh -i"
    with console(["sh", "-c", start], tmp_path, NOISY_FAST) as board, shell_on(board, tmp_path) as shell:
        upload.send_as_text(shell, content, f"{tmp_path}/arrived", said.append)
    assert (tmp_path / "arrived").read_bytes() == content
    assert not list(tmp_path.glob("arrived.*"))
    assert f"by {decoder}{' and gzip' if packed else ''}" in said[-1]


NOISY_FAST = Manners(noise_s=0.1, bytes_per_s=200_000)


def test_a_block_that_is_spoilt_is_sent_again(tmp_path: Path) -> None:
    content = os.urandom(40_000)
    with console(["dash", "-i"], tmp_path) as board, shell_on(board, tmp_path) as shell:
        board.manners.lost_per_byte = 0.00005
        upload.send_as_text(shell, content, f"{tmp_path}/arrived", lambda _: None)
    assert (tmp_path / "arrived").read_bytes() == content


# Refusals.


def refused(options: dict[str, str], kind: type[RtproofError] = UserError) -> str:
    with pytest.raises(kind) as problem, serial.open_target(options):
        raise AssertionError("it was opened")
    said = str(problem.value)
    assert "\n" not in said
    assert "secret" not in said
    return said


def test_a_login_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with login_board(tmp_path) as board:
        assert "asks for a user" in refused({"address": board.address})
        monkeypatch.setenv(console_shell.PASSWORD_VARIABLE, "wrong")
        assert "refuses the user root or the password" in refused({"address": board.address, "user": "root"})
    with login_board(tmp_path) as board:
        monkeypatch.delenv(console_shell.PASSWORD_VARIABLE)
        assert "RTPROOF_BOARD_PASSWORD" in refused({"address": board.address, "user": "root"})
        nothing = str(tmp_path / "nothing")
        missing = refused({"address": board.address, "user": "root", "password-file": nothing})
        assert "cannot be read" in missing
    with login_board(tmp_path) as board:
        (tmp_path / "word").write_text("secret\n")
        with shell_on(board, tmp_path, **{"password-file": str(tmp_path / "word")}) as shell:
            assert shell.ask("echo in").output == b"in\n"


def test_a_boot_loader_is_not_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_shell, "LISTEN_S", 6)  # on a busy machine it counts slowly
    boot = (
        "stty -echo -icanon min 0 time 5; keys=; for n in $(seq 30 -1 1); do "
        "printf '\\rHit any key to stop autoboot: %d ' $n; keys=$keys$(dd bs=1 count=1 2>/dev/null | wc -c); done; "
        'stty sane; echo; echo "keys $keys"; exec dash -i'
    )
    with console(["sh", "-c", boot], tmp_path) as board:
        wait_until(lambda: b"autoboot" in board.shown)
        with shell_on(board, tmp_path) as shell:
            assert shell.ask("echo up").output == b"up\n"
        assert b"keys " + 30 * b"0" in board.shown


@pytest.mark.parametrize("late_s", [0.5, 1.0])
def test_a_console_that_is_late(tmp_path: Path, late_s: float) -> None:
    with login_board(tmp_path, manners=Manners(late_s=late_s)) as board, shell_on(board, tmp_path) as shell:
        assert shell.ask("cat", b"late\n").output == b"late\n"


@contextmanager
def device_of(board: ConsoleBoard) -> Iterator[str]:
    """The board's console as a serial port of this machine: a terminal whose other side is the board's socket."""
    master, slave = pty.openpty()
    line = socket.create_connection(board.address.split(":"))  # type: ignore[arg-type]
    over = threading.Event()

    def pass_on() -> None:
        while not over.is_set():
            waiting: list[int | socket.socket] = [master, line]
            readable, _, _ = select.select(waiting, [], [], 0.02)
            if line in readable:
                os.write(master, line.recv(4096))
            if master in readable:
                line.sendall(os.read(master, 4096))

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        yield os.ttyname(slave)
    finally:
        over.set()
        thread.join()
        line.close()
        os.close(slave)
        os.close(master)


def test_a_serial_port_is_used_alone_and_given_back_as_it_was(tmp_path: Path) -> None:
    with login_board(tmp_path, "dash -i", Manners(noise_s=0.1)) as board, device_of(board) as device:
        before = settings_of(device)
        options = {"device": device, "baud": "460800", "user": "root", "dir": str(tmp_path / "board")}
        with serial.open_target(options) as target:
            assert target.host_name() == os.uname().nodename
            during = settings_of(device)
            assert during[4] == during[5] == termios.B460800
            assert not during[3] & (termios.ECHO | termios.ICANON | termios.ISIG)
            assert "another program uses the serial port" in refused(options)
        assert settings_of(device) == before


def settings_of(device: str) -> list[Any]:
    file = os.open(device, os.O_RDWR | os.O_NOCTTY)
    try:
        return termios.tcgetattr(file)
    finally:
        os.close(file)


def test_a_terminal_server_may_speak_telnet() -> None:
    """Its wishes are refused (RFC 854), and its doubled 255 is one byte."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = SocketLine(f"127.0.0.1:{server.getsockname()[1]}")
        peer, _ = server.accept()
        with peer, closing(line):
            peer.sendall(b"ab\xff\xfd\x01cd\xff\xfb\x03\xff\xfa\x18\x01x\xff\xf0ef\xff\xff\xff\xf1gh")
            came = b""
            while not came.endswith(b"gh"):
                came += line.receive(5) or b""
            assert came == b"abcdef\xffgh"
            assert peer.recv(16) == b"\xff\xfc\x01\xff\xfe\x03"


def test_long_commands_go_in_parts_that_the_loop_takes() -> None:
    parts = as_lines("echo 'it''s'\n" + "x" * 5000)
    assert all(len(part) < 1024 for part in parts)
    assert parts[0] == "=2 c=\n"
    assert as_lines("echo ä") == ["=0 echo ä\n"]


def test_what_is_no_console(tmp_path: Path) -> None:
    assert "needs one of the options" in refused({})
    assert "needs one of the options" in refused({"device": "/dev/ttyS0", "address": "a:1"})
    assert "is not HOST:PORT" in refused({"address": "nowhere"})
    assert "cannot be reached: Connection refused" in refused({"address": "127.0.0.1:1"}, TargetError)
    assert "cannot be opened: No such file" in refused({"device": str(tmp_path / "ttyUSB7")})
    assert "is no serial port" in refused({"device": "/dev/null"})
    assert "cannot be started" in refused({"exec": str(tmp_path / "nothing")})
    assert "the console is gone" in refused({"exec": "true"}, TargetError)
    master, slave = pty.openpty()
    try:
        name = os.ttyname(slave)
        for speed in ("fast", "-1", "0", "12345"):
            assert f"baud={speed}" in refused({"device": name, "baud": speed})
        fcntl.flock(slave, fcntl.LOCK_EX)
        assert f"another program uses the serial port {name}" in refused({"device": name})
    finally:
        os.close(master)
        os.close(slave)
