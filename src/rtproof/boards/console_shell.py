# SPDX-License-Identifier: Apache-2.0
"""A shell on a console: one command line at a time, and anybody may print in between, above all the kernel.

What a command prints comes twice, line by line with a number. A pair that differs, or has a gap, was cut by somebody
else's words, and the command runs again. Only the agent's frames, which have a CRC, are taken as they come.
"""

import itertools
import re
import time
from dataclasses import dataclass

from rtproof.boards.console_line import ConsoleLine
from rtproof.boards.shell import Answer, Channel
from rtproof.core.errors import LinkError, TargetError, UserError
from rtproof.core.printable import clean

LOGIN = re.compile(rb"login: *$", re.IGNORECASE)
PASSWORD = re.compile(rb"password[^\n]*: *$", re.IGNORECASE)
NEW_PASSWORD = re.compile(rb"new (unix )?password[^\n]*: *$|must change your password", re.IGNORECASE)
REFUSED = re.compile(rb"incorrect|denied|failure", re.IGNORECASE)
ANSWER_S = 10
BEGIN_S = 3
LOGIN_S = 60
TRIES = 5


@dataclass(frozen=True)
class Credentials:
    """Who logs in. password: "" where none is asked for."""

    user: str
    password: str


class Console:
    """What both kinds of commands need: send a line, and read until something is seen."""

    def __init__(self, line: ConsoleLine) -> None:
        self.line = line
        self._tokens = itertools.count(int(time.time()) % 100_000)

    def token(self) -> str:
        """A word that was not used before on this console."""
        return f"rt{next(self._tokens)}x"

    def read_until(self, wanted: re.Pattern[bytes], timeout_s: float, seen: bytes = b"") -> tuple[bytes, bool]:
        """What came until it matches, and whether it did in time."""
        end = time.monotonic() + timeout_s
        while not wanted.search(seen):
            piece = self.line.receive(end - time.monotonic())
            if piece is None:
                return seen, False
            seen += piece
        return seen, True

    def begin(self, command: str, token: str) -> bytes:
        """Send a command line and wait until it runs; what came behind the word for that.

        Before, a shell that edits its line has the terminal in another mode, in which control-D does not end an input.
        The echo of the line has no sum. If the kernel cut both words for it, waiting was enough.
        """
        running = re.compile(rf"=go-{token}-42\r*\n".encode())
        go = f"echo =go-{token}-$((40 + 2))"
        self.line.send(f"{go}; {go}; {command}\n".encode())
        seen, _ = self.read_until(running, BEGIN_S)
        return running.split(seen)[-1]

    def drain(self, quiet_s: float) -> bytes:
        """What comes until nothing has come for so long, or the kernel has talked for ten times that."""
        seen, end = b"", time.monotonic() + 10 * quiet_s
        while time.monotonic() < end and (piece := self.line.receive(quiet_s)) is not None:
            seen += piece
        return seen


class ConsoleChannel:
    """A command that has the console to itself, and reads and writes as it comes."""

    def __init__(self, console: Console, command: str) -> None:
        self._console = console
        token = console.token()
        self._over = re.compile(rf"=over {token} (\d+)".encode())
        self._status: int | None = None
        self._first = console.begin(
            f"{command}; status_of=$?; echo; echo =over {token} $status_of; echo =over {token} $status_of", token
        )
        self._tail = b""

    def send(self, content: bytes) -> None:
        self._console.line.send(content)

    def end_input(self) -> None:
        """Control-D, which ends the input of a program on a terminal at the beginning of a line."""
        self._console.line.send(b"\x04")

    def receive(self, timeout_s: float) -> bytes | None:
        if self._status is not None:
            return b""
        piece, self._first = self._first or self._console.line.receive(timeout_s), b""
        if piece:
            self._tail = (self._tail + piece)[-256:]
            if over := self._over.search(self._tail):
                self._status = int(over[1])
        return piece

    def finish(self, timeout_s: float) -> Answer:
        output = b""
        end = time.monotonic() + timeout_s
        while self._status is None:
            piece = self.receive(end - time.monotonic())
            if piece is None:
                raise LinkError(f"no answer within {timeout_s:g} s")
            output += piece
        plain = output or self._tail
        return Answer(self._status, plain[: plain.rfind(b"\n=over ")].replace(b"\r", b""), b"")

    def close(self) -> None:
        """End the command, so that the console is free for the next one."""
        if self._status is not None:
            return
        for farewell in (b"\ndone\n", b"\x03"):
            self._console.line.send(farewell)
            if self._console.read_until(self._over, ANSWER_S, self._tail)[1]:
                return


class ConsoleShell:
    """A shell that is logged in on a console."""

    binary = False

    def __init__(self, console: Console, name: str) -> None:
        self.name = name
        self._console = console

    def start(self, command: str) -> Channel:
        return ConsoleChannel(self._console, command)

    def restore(self) -> None:
        """Give the shell its prompts and its echo back, for whoever has the console next."""
        self._console.line.send(b"stty echo 2>/dev/null; PS1=$rt_ps1; PS2=$rt_ps2; unset rt_ps1 rt_ps2\n")
        self._console.drain(0.5)

    def ask(self, command: str, given: bytes, timeout_s: float) -> Answer:
        """Run a command, and read its output as often as it takes to have it twice the same."""
        token = self._console.token()
        show = (
            f"for i in 1 2; do echo; echo =answer {token} $i $status_of; "
            f'echo "$answer_of"; echo =end {token} $i; done; '
            f"for i in 1 2; do echo; echo =over {token} 0; done"
        )
        over = re.compile(rf"=over {token} 0".encode())
        first = self._console.begin(f"answer_of=$( ( {command} ) 2>&1 ); status_of=$?; {show}", token)
        for start in range(0, len(given), _PACE):
            self._console.line.send(given[start : start + _PACE])
        if given:
            self._console.line.send(b"\x04")
        for _ in range(TRIES):
            seen, came = self._console.read_until(over, timeout_s, first)
            if came and (answer := _twice_the_same(seen, token)):
                return answer
            if not came and not is_shell(self._console):
                self._console.line.send(b"\x03\n")
                raise LinkError(f"no answer within {timeout_s:g} s")
            token = self._console.token()
            over = re.compile(rf"=over {token} 0".encode())
            show = re.sub(r"rt\d+x", token, show)
            first = self._console.begin(show, token)
        raise LinkError("the console is too noisy: no answer came twice the same")


_PACE = 512


def _twice_the_same(seen: bytes, token: str) -> Answer | None:
    """The answer whose two copies agree; None if they do not, or one is cut."""
    text = seen.replace(b"\r", b"")
    copies = [
        re.search(rf"=answer {token} {i} (\d+)\n(.*?)\n=end {token} {i}\n".encode(), text, re.DOTALL) for i in (1, 2)
    ]
    first, second = copies
    if not first or not second or first.groups() != second.groups():
        return None
    output = first[2] + b"\n" if first[2] else b""
    return Answer(int(first[1]), output, output if int(first[1]) else b"")


def logged_in(console: Console, who: Credentials, name: str) -> ConsoleShell:
    """A shell on the console, after a login if one is asked for. UserError if it is refused, TargetError if silent."""
    end = time.monotonic() + LOGIN_S
    said = b""
    while time.monotonic() < end:
        console.line.send(b"\n")
        said = console.drain(1.0)
        if LOGIN.search(said.rstrip(b"\r\n")):
            _log_in(console, who, name)
        if is_shell(console):
            console.line.send(b"stty -echo 2>/dev/null; rt_ps1=${rt_ps1-$PS1} rt_ps2=${rt_ps2-$PS2}; PS1=; PS2=\n")
            console.drain(0.5)
            return ConsoleShell(console, name)
    last = said.decode(errors="replace").strip().splitlines()
    raise TargetError(
        f"{name}: there is no shell within {LOGIN_S} s; the last line is {clean(last[-1]) if last else '-'!r}"
    )


def is_shell(console: Console) -> bool:
    """Whether something computes. The echo of the line has no sum."""
    token = console.token()
    console.line.send(f"echo ={token}-$((40 + 2)); echo ={token}-$((40 + 2))\n".encode())
    return console.read_until(re.compile(rf"={token}-42".encode()), 3.0)[1]


def _log_in(console: Console, who: Credentials, name: str) -> None:
    if not who.user:
        raise UserError(f"{name} asks for a user: --target-option user=NAME")
    console.line.send(f"{who.user}\n".encode())
    said, asked = console.read_until(re.compile(rb"password|[#$] *$", re.IGNORECASE), ANSWER_S)
    if asked and PASSWORD.search(said.rstrip(b"\r\n")):
        if not who.password:
            raise UserError(f"{name} asks for a password: put it into the variable {PASSWORD_VARIABLE}, or name a file")
        console.line.send(f"{who.password}\n".encode())
        said = console.drain(3.0)
    if NEW_PASSWORD.search(said):
        raise UserError(f"{name} asks for a new password: log in by hand first, and choose one")
    if REFUSED.search(said):
        raise UserError(f"{name} refuses the user {who.user} or the password")


PASSWORD_VARIABLE = "RTPROOF_BOARD_PASSWORD"  # noqa: S105 - the name of a variable
