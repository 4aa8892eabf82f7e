# SPDX-License-Identifier: Apache-2.0
"""Command lines on a console, one at a time. Anybody may print in between, above all the kernel.

The loop on the board (``console_login``) refuses a line that did not arrive whole. What a command printed is kept there
and comes twice, as often as it takes until both copies agree. Only the agent's frames, which have a CRC, are taken as
they come.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rtproof.boards.console import MOST_SEEN, Console
from rtproof.boards.console_login import LOGIN, Credentials, log_in, plain
from rtproof.boards.shell import Answer, Channel
from rtproof.core.errors import LinkError, UserError

GO_S = 10
FAREWELL_S = 3
LEAVE_S = 10
ENDS = b"\x04\x04\x04"
"""The end of the input for a command, which may need two, as openssl does, and for what follows it. The loop bears what
is left."""
TRIES = 8
LONGEST_LINE = 900
"""Characters. A terminal takes 4095, and some shells' editors 1024."""
AGAIN = re.compile(rb"=again\r*\n")
FUNCTIONS = (
    'printf x >/dev/null 2>&1 || printf() { shift; echo "$@"; }; nl=$(echo; echo .); nl=${nl%.}',
    'show() { for i in 1 2; do echo; echo "=answer $1 $i $s"; printf "%s\\n" "$a"; echo "=end $1 $i"; done; '
    "over $1 0; }",
    'over() { for i in 1 2; do echo; echo "=over $1 $2"; done; }; go() { for i in 1 2; do echo; echo "=go $1"; done; }',
    "[ -t 0 ] && tty=yes || tty=no",
)
"""What the loop is taught first. show: prints the answer $a, whose status is $s."""
LEAVE = 'stty echo 2>/dev/null; for i in 1 2; do echo; echo "=left ${ours:-no}"; done; exit'
"""Ends the loop, and says whether this program, or one before it that was killed, had to log in for it."""
LEFT = re.compile(rb"=left (yes|no)\r*\n")


def as_lines(command: str) -> list[str]:
    """A command line as lines for the loop, each with its length in front. The last one runs it."""
    if len(command) <= LONGEST_LINE and "\n" not in command:
        return [_with_length(command)]
    lines = ["c="]
    for number, part in enumerate(command.split("\n")):
        lines += ['c="$c$nl"'] if number else []
        for at in range(0, len(part), LONGEST_LINE // 4):
            quoted = part[at : at + LONGEST_LINE // 4].replace("'", "'\\''")
            lines.append(f"c=\"$c\"'{quoted}'")
    length = len(command) if command.isascii() else 0
    check = f"[ ${{#c}} = {length} ]" if length else "true"
    lines.append(f'if {check}; then eval "$c"; else echo; echo =again; echo =again; fi')
    return [_with_length(line) for line in lines]


def _with_length(line: str) -> str:
    return f"={len(line) if line.isascii() else 0} {line}\n"


class ConsoleChannel:
    """A command that has the console to itself, and reads and writes as it comes."""

    def __init__(self, shell: "ConsoleShell", command: str) -> None:
        self._shell, self._console = shell, shell.console
        token = self._console.token()
        self._over = re.compile(rf"=over {token} (\d+)".encode())
        self._status: int | None = None
        self._first = shell.begin(f"go {token}; ( {command} ); over {token} $?", token)
        self._tail = b""

    def send(self, content: bytes) -> None:
        self._console.send(content)

    def end_input(self) -> None:
        """Control-D, which ends the input of a program on a terminal at the beginning of a line."""
        self._console.send(b"\x04")

    def receive(self, timeout_s: float) -> bytes | None:
        if self._status is not None:
            return b""
        with self._shell.using():
            piece, self._first = self._first or self._console.receive(timeout_s), b""
        if piece:
            self._tail = (self._tail + piece)[-512:]
            if over := self._over.search(self._tail):
                self._status = int(over[1])
        return piece or None

    def finish(self, timeout_s: float) -> Answer:
        output = b""
        end = time.monotonic() + timeout_s
        while self._status is None:
            piece = self.receive(max(0.0, end - time.monotonic()))
            if time.monotonic() > end or len(output) > MOST_SEEN:
                raise LinkError(f"no answer within {timeout_s:g} s and {MOST_SEEN >> 20} MiB")
            output += piece or b""
        plain = (output or self._tail).replace(b"\r", b"")
        return Answer(self._status, plain[: plain.find(b"\n=over ")], b"")

    def close(self) -> None:
        """End the command, so that the console is free for the next one."""
        if self._status is not None or not self._shell.ready:
            return
        with suppress(LinkError), self._shell.using():
            for farewell in (b"\ndone\n", b"\x03"):
                self._console.send(farewell)
                seen, came = self._console.wait_for(
                    lambda seen: bool(self._over.search(seen)), FAREWELL_S, self._first + self._tail
                )
                if came:
                    return
                self._tail = seen[-512:]
            raise LinkError("the command on the console does not end")


class ConsoleShell:
    """A shell on a console. It logs in when it is made, and again whenever the line was gone.

    ready: the loop on the board waits for a line.
    """

    binary = False

    def __init__(self, console: Console, who: Credentials, name: str) -> None:
        self.name, self.console, self.ready = name, console, False
        self._who = who
        ours = log_in(console, who, name, again=False)
        try:
            self._teach(ours)
        except BaseException:
            self.close()  # nobody else will, and the loop on the board has no prompt and no echo
            raise

    def _teach(self, ours: bool) -> None:
        """Tell the loop on the board its functions, and whether this program had to log in for it."""
        self.ready = True
        with self.using():
            for line in (*FUNCTIONS, "ours=yes" if ours else ":"):
                self.console.send(_with_length(line).encode())
            if self._asked("echo $tty", b"", GO_S).output == b"no\n":
                # Without a terminal there is no Control-D, so the board would wait for more for ever.
                raise UserError(f"{self.name} shows a shell without a terminal: use --target command or --target ssh")

    @contextmanager
    def using(self) -> Iterator[None]:
        """Whoever is interrupted in here leaves the console in a state that nobody knows."""
        try:
            yield
        except BaseException:
            self.ready = False
            raise

    def _reconnect(self) -> None:
        """LinkError also if the login is refused: it was not before, and a name may arrive damaged."""
        if self.ready:
            return
        self.console.reopen()
        try:
            self._teach(log_in(self.console, self._who, self.name, again=True))
        except UserError as problem:
            raise LinkError(str(problem)) from None

    def start(self, command: str) -> Channel:
        self._reconnect()
        with self.using():
            return ConsoleChannel(self, command)

    def ask(self, command: str, given: bytes, timeout_s: float) -> Answer:
        """Run a command, and read its output as often as it takes to have it twice the same."""
        self._reconnect()
        with self.using():
            return self._asked(command, given, timeout_s)

    def begin(self, line: str, token: str) -> bytes:
        """Send a command line that begins with ``go``, and wait until it runs; what came behind the word for that."""
        running = re.compile(rf"=go {token}\r*\n".encode())
        for _ in range(TRIES):
            self._send(line)
            seen, came = self.console.wait_for(lambda seen: bool(running.search(seen) or AGAIN.search(seen)), GO_S)
            if running.search(seen):
                return running.split(seen)[-1]
            if not came:
                break
        raise LinkError("the console does not answer any more")

    def _send(self, command: str) -> None:
        for line in as_lines(command):
            self.console.send(line.encode())

    def _asked(self, command: str, given: bytes, timeout_s: float) -> Answer:
        token = self.console.token()
        if given:
            # What the command leaves of its input must not be taken for further command lines.
            keep = f"a=$( {{ ( {command} ) 2>&1; s=$?; cat >/dev/null; exit $s; }} ); s=$?; show {token}"
            line, seen = "", self.begin(f"go {token}; {keep}", token)
            self.console.send_much(given)
            self.console.send(ENDS)
        else:
            line, seen = f"a=$( ( {command} ) 2>&1 </dev/null ); s=$?; show {token}", b""
        for _ in range(TRIES):
            if line:
                self._send(line)
            seen, came = self.console.wait_for(_ended_or_refused(token), timeout_s, seen)
            if not came:
                raise LinkError(f"no answer within {timeout_s:g} s")
            if answer := _twice_the_same(seen, token):
                return answer
            if not AGAIN.search(seen):
                token = self.console.token()
                line = f"show {token}"
            seen = b""
        raise LinkError("the console is too noisy: no answer came twice the same")

    def close(self) -> None:
        """Leave the console as it was found, and give the line back."""
        with suppress(LinkError):
            if not self.ready:
                self.console.send(b"\x03\n")
            self.console.send(_with_length(LEAVE).encode())
            # What was sent before may still be on its way, and is lost if the line is closed now.
            said, _ = self.console.wait_for(lambda seen: bool(LEFT.search(seen)), LEAVE_S)
            if (left := LEFT.search(said)) and left[1] == b"yes":
                self.console.send(b"exit\n")
                self.console.wait_for(lambda seen: bool(LOGIN.search(plain(seen))), FAREWELL_S)
        self.console.close()


def _ended_or_refused(token: str) -> Callable[[bytes], bool]:
    over = re.compile(rf"=over {token} 0".encode())
    return lambda seen: bool(over.search(seen) or AGAIN.search(seen))


def _twice_the_same(seen: bytes, token: str) -> Answer | None:
    """The answer whose two copies agree, with or without what looks like the kernel's; None if they do not."""
    for text in (re.sub(rb"[\r\0]", b"", seen), plain(seen)):
        first, second = (
            re.search(rf"=answer {token} {i} (\d+)\n(.*?)\n=end {token} {i}\n".encode(), text, re.DOTALL)
            for i in (1, 2)
        )
        if first and second and first.groups() == second.groups():
            output = first[2] + b"\n" if first[2] else b""
            return Answer(int(first[1]), output, output if int(first[1]) else b"")
    return None
