# SPDX-License-Identifier: Apache-2.0
"""Boot a board with more words on its command line: by kexec, into the file of the kernel that it runs.

Nothing that the board boots from changes. So every other boot is the way back: a reset, a power cycle, or the one that
the kernel does by itself 10 s after a panic. The board's command line says which words were added, so this host stores
nothing, and the next host understands what a killed one left.
"""

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rtproof.boards import ADDED
from rtproof.boards.shell import Answer, Shell
from rtproof.core.errors import BoardLostError, LinkError, TargetError, UserError
from rtproof.core.patience import Patience
from rtproof.core.phrases import duration
from rtproof.core.printable import clean

MARK = f"{ADDED}=1"
"""Behind a board's own command line, before the words that were added. The kernel ignores the setting of a module that
it does not load, and passes no word with a dot to init."""
SAFE = f"{MARK} panic=10"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
LOAD = """PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
refuse() { echo "$1" >&2; exit 1; }
release=$(uname -r)
for kernel in /boot/vmlinuz-$release /boot/Image-$release /boot/zImage-$release /lib/modules/$release/vmlinuz; do
[ -f "$kernel" ] && break; done
for initrd in /boot/initrd.img-$release /boot/initramfs-$release.img /boot/initrd-$release; do
[ -f "$initrd" ] && break; done
command -v kexec > /dev/null || refuse "it has no kexec (package kexec-tools)"
[ -f "$kernel" ] || refuse "there is no file of its kernel, such as /boot/vmlinuz-$release"
[ -e /sys/kernel/kexec_loaded ] || refuse "its kernel has no kexec (CONFIG_KEXEC)"
[ "$(cat /proc/sys/kernel/kexec_load_disabled 2> /dev/null)" != 1 ] || refuse "kernel.kexec_load_disabled is 1"
[ -f "$initrd" ] && set -- "$1" --initrd="$initrd"
kexec -a -l "$kernel" --command-line="$@" && exit
said=$(kexec -l "$kernel" --command-line="$@" 2>&1) && exit
case $(cat /sys/kernel/security/lockdown 2> /dev/null) in *"[none]"* | "") refuse "$said";; esac
refuse "lockdown refuses kexec: $(echo "$said" | tail -n 1)"
"""
"""Loads the kernel with the command line $1. What kexec says is the last line: of an old one, that does not know -a."""
UNLOAD = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; kexec -u"
GO = """PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
if [ -d /run/systemd/system ]; then systemctl kexec; else sync; (sleep 1; kexec -e) < /dev/null > /dev/null 2>&1 & fi
"""
"""systemd ends programs and unmounts file systems first. Without it, files are as after a power cut behind a sync. The
second is for the answer, which may also be lost."""
SETTLED = "[ ! -d /run/systemd/system ] || systemctl is-system-running --wait"
"""Waits until systemd has started everything, so that a run does not measure the boot."""
GO_S, SETTLED_S, LOAD_S, ASK_S = 60, 120, 300, 20
TRIES = 2
"""A boot that somebody interrupted may end with the words of before."""


@dataclass(frozen=True)
class Boot:
    """The present boot of a board: its id, and the kernel's command line."""

    id: str
    line: str

    @property
    def own(self) -> str:
        """The command line without what was added."""
        return self.line.partition(MARK)[0].rstrip()

    def with_words(self, words: str | None) -> str:
        """The command line that has these words; None: the board's own."""
        return self.own if words is None else f"{self.own} {SAFE} {words}".strip()

    def has(self, words: str | None) -> bool:
        """Whether the board runs with them. Some kernels build in a part of the line, which then stands there twice."""
        return set(self.line.split()) == set(self.with_words(words).split())


class KexecBoots:
    """The boots of one board. before: words before a command that needs root. patience_s: how long a boot may take.

    say: takes a sentence for each boot.
    """

    def __init__(self, shell: Shell, before: tuple[str, ...], patience_s: float, say: Callable[[str], None]) -> None:
        self._shell = shell
        self._before = before
        self._patience_s = patience_s
        self._say = say
        self._left = ""
        self._lost = False

    def require(self) -> None:
        """UserError if the board cannot be booted so: it loads its kernel, and forgets it again."""
        now = self._look()
        here = Path(BOOT_ID)
        if here.exists() and here.read_text().strip() == now.id:
            raise UserError(f"{self._shell.name} is this machine: its boot would end rtproof itself")
        if "--" in now.line.split():
            raise UserError(
                f"the command line of {self._shell.name} has words behind '--': no words can be added to it"
            )
        answer = self._load(now.with_words(""))
        if answer.status:
            raise UserError(f"{self._shell.name} cannot be booted by kexec: {answer.words()}")
        self._as_root(UNLOAD)

    def boot(self, words: str | None) -> None:
        """Boot with these words behind the board's own command line, or with that alone; nothing if it runs so already.

        BoardLostError if it does not come back, TargetError if it comes back with another command line. The board's own
        line is had by kexec, too: a boot loader may ask, or start another kernel. Once it is lost, nothing is tried.
        """
        if self._lost:
            return
        asked = "its own command line" if words is None else words or "no more words"
        for _ in range(TRIES):
            now = self._wait(asked)
            if now.has(words):
                if words is None:  # A user's "reboot" boots what is loaded, such as by a boot that was refused.
                    with suppress(LinkError):
                        self._as_root(UNLOAD)
                return
            load = partial(self._load, now.with_words(words))
            answer = Patience(self._shell.name, self._patience_s, "waiting for it").tried(load, self._say)
            if answer.status:
                raise TargetError(f"{self._shell.name} cannot be booted with {asked}: {answer.words()}")
            self._say(f"rtproof: {self._shell.name} boots with {asked}")
            self._left = now.id
            try:
                answer = self._as_root(GO, timeout_s=GO_S)
            except LinkError:  # It went down before its answer came.
                continue
            if answer.status:
                self._left = ""
                raise TargetError(f"{self._shell.name} does not boot: {answer.words()}")
        if not (now := self._wait(asked)).has(words):
            raise TargetError(f"{self._shell.name} booted without {asked}: its command line is {clean(now.line)}")

    def _wait(self, asked: str) -> Boot:
        patience = Patience(self._shell.name, self._patience_s)
        try:
            now = patience.tried(self._look, lambda _: None)
        except LinkError as problem:
            self._lost = True
            longest = duration(1e9 * self._patience_s)
            raise BoardLostError(
                f"{self._shell.name} did not come back within {longest} after its boot with {asked} "
                f"({problem.__cause__ or problem}): reset it; the reset boots with its own command line"
            ) from problem
        if self._left:
            self._left = ""
            with suppress(LinkError):
                self._shell.ask(SETTLED, timeout_s=SETTLED_S)
        return now

    def _look(self) -> Boot:
        """LinkError if nobody answers, or if it has not ended the boot that it was told to end."""
        answer = self._shell.ask(f"cat {BOOT_ID} /proc/cmdline", timeout_s=ASK_S)
        found, _, line = answer.output.decode(errors="replace").replace("\r", "").strip().partition("\n")
        if answer.status or not found:
            raise LinkError(f"it does not say what it booted: {answer.words()}")
        if found == self._left:
            raise LinkError("it answers, and still runs the boot from before")
        return Boot(found, line.strip())

    def _load(self, line: str) -> Answer:
        return self._as_root(LOAD, line, timeout_s=LOAD_S)

    def _as_root(self, script: str, *words: str, timeout_s: float = 60) -> Answer:
        return self._shell.ask(shlex.join((*self._before, "sh", "-c", script, "sh", *words)), timeout_s=timeout_s)
