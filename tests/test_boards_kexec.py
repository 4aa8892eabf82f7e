# SPDX-License-Identifier: Apache-2.0
"""Boards that boot by kexec for words of their command line: a folder plays their files, and scripts their programs."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rtproof.boards.kexec import MARK, SAFE, KexecBoots
from rtproof.boards.shell import Answer, Channel, Shell
from rtproof.core.errors import BoardLostError, LinkError, TargetError, UserError

OWN = "console=ttyS0 root=/dev/vda1"
RELEASE = "6.1.0-9-amd64"
KEXEC = """#!/bin/sh
case $1 in
-a) echo "Unknown option: $1" >&2; exit 1;;
-l) [ ! -e ROOT/refuses ] || { echo "kexec_load failed: $(cat ROOT/refuses)" >&2; exit 255; }
    for word; do case $word in --command-line=*) echo "${word#*=}" > ROOT/loaded;; esac; done; echo "$*" > ROOT/said;;
-u) rm ROOT/loaded;;
esac
"""
GONE = "systemctl kexec"
"""What only the script has that boots."""


class Board(Shell):
    """A board with a systemd, whose programs are scripts. ends: what a boot makes of the words; None: it never ends."""

    name, binary = "board", True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.boots: list[str] = []
        self.ends: Callable[[str], str | None] = lambda line: line
        self.on, self.cut = True, False
        for folder in ("bin", "boot", "proc/sys/kernel/random", "sys/kernel/security", "run"):
            (root / folder).mkdir(parents=True)
        for name, text in (("kexec", KEXEC), ("uname", f"#!/bin/sh\necho {RELEASE}\n")):
            (root / "bin" / name).write_text(text.replace("ROOT", str(root)))
            (root / "bin" / name).chmod(0o755)
        for name in ("sh", "cat", "tail", "rm", "grep"):
            (root / "bin" / name).symlink_to(str(shutil.which(name)))
        (root / "boot" / f"vmlinuz-{RELEASE}").touch()
        self.write("sys/kernel/kexec_loaded", "0")
        self.write("proc/sys/kernel/kexec_load_disabled", "0")
        self.write("sys/kernel/security/lockdown", "[none] integrity")
        self.booted(OWN)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(f"{text}\n")

    def booted(self, line: str) -> None:
        self.boots.append(line)
        self.write("proc/cmdline", line)
        self.write("proc/sys/kernel/random/boot_id", f"boot-{len(self.boots)}")

    def start(self, command: str) -> Channel:
        raise NotImplementedError

    def ask(self, command: str, given: bytes = b"", timeout_s: float = 60) -> Answer:
        if not self.on:
            raise LinkError("no route to it")
        if self.cut and "--command-line" in command:
            self.cut = False
            raise LinkError("cut")
        if GONE in command:
            loaded = self.ends((self.root / "loaded").read_text().strip())
            self.on = loaded is not None
            if loaded is not None:
                self.booted(loaded)
            raise LinkError("it went down")
        command = re.sub("/boot/|/proc/|/sys/kernel/|/run/systemd", lambda place: f"{self.root}{place[0]}", command)
        command = command.replace(":/usr/local/sbin:/usr/sbin:/sbin", "")
        path = {"PATH": str(self.root / "bin")}
        done = subprocess.run(["/bin/sh", "-c", command], env=path, capture_output=True, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path / "board")


def boots_of(board: Board) -> KexecBoots:
    """Its patience ends with the first try."""
    return KexecBoots(board, (), 0, lambda _: None)


def test_it_boots_only_for_other_words_and_at_last_as_before(board: Board) -> None:
    boots = boots_of(board)
    boots.require()
    assert not (board.root / "loaded").exists()
    for words in ("", "", "skew_tick=1 idle=poll", "skew_tick=1 idle=poll", None, None):
        board.cut = words is None
        boots.boot(words)
    assert board.boots == [OWN, f"{OWN} {SAFE}", f"{OWN} {SAFE} skew_tick=1 idle=poll", OWN]


def test_a_boot_that_was_refused_leaves_nothing_loaded(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else the user's own reboot would have these words."""
    boots, asked, no = boots_of(board), board.ask, Answer(1, b"", b"denied")
    monkeypatch.setattr(board, "ask", lambda command, **more: no if GONE in command else asked(command, **more))
    with pytest.raises(TargetError, match="board does not boot: denied"):
        boots.boot("idle=poll")
    assert (board.root / "loaded").exists()
    boots.boot(None)
    assert not (board.root / "loaded").exists()


def test_the_next_host_knows_what_a_killed_one_added(board: Board) -> None:
    boots_of(board).boot("idle=poll")
    boots_of(board).boot("nohz=off")
    boots_of(board).boot(None)
    assert board.boots[2:] == [f"{OWN} {SAFE} nohz=off", OWN]


@pytest.mark.parametrize("initrd", ["", f"initrd.img-{RELEASE}", f"initramfs-{RELEASE}.img"])
def test_the_kernel_and_its_initrd_are_loaded_with_the_whole_line_as_one_word(board: Board, initrd: str) -> None:
    if initrd:
        (board.root / "boot" / initrd).touch()
    boots_of(board).boot("idle=poll")
    kernel = f"{board.root}/boot/vmlinuz-{RELEASE}"
    more = f" --initrd={board.root}/boot/{initrd}" if initrd else ""
    said = (board.root / "said").read_text().strip()
    assert said == f"-l {kernel} --command-line={OWN} {SAFE} idle=poll{more}"


def without(name: str) -> Callable[[Board], None]:
    return lambda board: (board.root / name).unlink()


def with_text(name: str, text: str) -> Callable[[Board], None]:
    return lambda board: board.write(name, text)


def locked(board: Board) -> None:
    board.write("refuses", "Operation not permitted")
    board.write("sys/kernel/security/lockdown", "none [integrity]")


REFUSED: dict[str, tuple[Callable[[Board], None], str]] = {
    "no tool": (without("bin/kexec"), "it has no kexec (package kexec-tools)"),
    "no kernel": (without(f"boot/vmlinuz-{RELEASE}"), f"no file of its kernel, such as .*/boot/vmlinuz-{RELEASE}"),
    "a kernel without it": (without("sys/kernel/kexec_loaded"), "its kernel has no kexec"),
    "switched off": (with_text("proc/sys/kernel/kexec_load_disabled", "1"), "kernel.kexec_load_disabled is 1"),
    "lockdown": (locked, "lockdown refuses kexec: kexec_load failed: Operation not permitted"),
    "what kexec says": (with_text("refuses", "No such device"), "by kexec: kexec_load failed: No such device"),
    "words of init": (with_text("proc/cmdline", f"{OWN} -- single"), "has words behind '--'"),
}


@pytest.mark.parametrize(("spoil", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_board_that_cannot_boot_so_is_refused_in_a_sentence(
    board: Board, spoil: Callable[[Board], None], sentence: str
) -> None:
    spoil(board)
    with pytest.raises(UserError, match=sentence.replace("(", r"\(").replace(")", r"\)")) as refused:
        boots_of(board).require()
    assert "\n" not in str(refused.value)
    assert len(board.boots) == 1


def test_this_machine_is_refused_by_whatever_name(board: Board) -> None:
    board.write("proc/sys/kernel/random/boot_id", Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with pytest.raises(UserError, match="board is this machine: its boot would end rtproof itself"):
        boots_of(board).require()


def test_a_board_that_does_not_come_back_is_lost_and_left_alone(board: Board) -> None:
    boots = boots_of(board)
    board.ends = lambda _: None
    sentence = r"did not come back within .* after its boot with idle=poll \(no route to it\): reset it; the reset"
    with pytest.raises(BoardLostError, match=sentence):
        boots.boot("idle=poll")
    board.on = True
    boots.boot(None)
    assert len(board.boots) == 1


def test_a_board_that_answers_and_does_not_boot_is_lost_too(board: Board) -> None:
    def stays(_: str) -> str | None:
        board.boots.pop()
        return OWN

    board.ends = stays
    with pytest.raises(BoardLostError, match="it answers, and still runs the boot from before"):
        boots_of(board).boot("idle=poll")


def test_a_board_that_boots_without_the_words_is_no_measurement(board: Board) -> None:
    board.ends = lambda line: line.replace("idle=poll", "")
    with pytest.raises(TargetError, match=f"booted without idle=poll: its command line is {OWN} {MARK}"):
        boots_of(board).boot("idle=poll")
    assert len(board.boots) == 3


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("local", "--reboot would end rtproof itself"),
        ("qemu", "--reboot is for a board: a guest boots for each run anyway"),
        ("simulated", "--reboot is for a board with a shell: the target simulated has none"),
    ],
)
def test_targets_that_are_no_boards_are_refused(
    target: str, sentence: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    assert sentence in refused("tune", "--reboot", "--target", target, "--output", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_shell_of_this_machine_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    if not os.access("/proc/sys/kernel/random/boot_id", os.R_OK):
        pytest.skip("this machine has no boot id")
    words = ("--target", "command", "--target-option", "exec=sh -c", "--output", tmp_path / "out")
    assert "is this machine" in refused("tune", "--reboot", *words)
