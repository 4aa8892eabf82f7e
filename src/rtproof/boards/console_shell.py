# SPDX-License-Identifier: Apache-2.0
"""Command lines on a console, one at a time. Anybody may print in between, above all the kernel.

The loop on the board refuses a line that did not arrive whole. What a command printed is kept there
and comes twice, as often as it takes until both copies agree. Only the agent's frames, which have a CRC, are taken as
they come.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rtproof.boards.console import MOST_SEEN, Console
from rtproof.boards.shell import Answer, Channel, Shell
from rtproof.core.errors import LinkError, UserError
from rtproof.core.printable import clean

# From whatever a console shows to a shell that takes command lines without a prompt, an editor and an echo. The kernel
# may print into everything. Its messages have a time, ``[   12.345678] words``, on most boards.


PASSWORD_VARIABLE = "RTPROOF_BOARD_PASSWORD"  # noqa: S105 - the name of a variable
LOGIN = re.compile(rb"(?<!last )\blogin: *\Z", re.IGNORECASE)
PASSWORD = re.compile(rb"password[^\n]*: *\Z", re.IGNORECASE)
PROMPT = re.compile(rb"[#$%>] ?\Z")
REFUSED = re.compile(rb"incorrect|denied|failure|invalid|maximum number of tries", re.IGNORECASE)
WAITING_BOOT_LOADER = re.compile(r"(=>|U-Boot>|(barebox|grub|grub rescue)[^\n]*>|ok)", re.IGNORECASE)
"""The whole prompt of U-Boot, Barebox, GRUB or Open Firmware."""
BOOT_LOADER = re.compile(rb"(autoboot|\bU-Boot )[^\n]*\Z", re.IGNORECASE)
"""A key would stop it, and the board would not start."""
LOGIN_S = 60
LISTEN_S = 1.2
"""Before anything is sent: a boot loader counts its seconds."""
PROMPT_S = 2
ANSWER_S = 10
READY_S = 3
POLITE_TRIES = 2
"""Before Control-C ends what has the console."""
KEPT = 4096

LOOP = (
    "sh -c 'stty -echo 2>/dev/null; for i in 1 2; do echo; echo =ready-{token}-$((40 + 2)); done; "
    '[ "$RTPROOF_LOOP" ] && exit; trap : INT; r() {{ IFS= read -r l; }}; while r || r || r || r || r; do case $l in '
    '=[0-9]*) n=${{l%% *}} l=${{l#* }}; if [ "$n" = =0 ] || [ "$n" = "=${{#l}}" ]; then eval "$l"; '
    "else echo; echo =again; echo =again; fi;; exit) exit;; "
    '*) (RTPROOF_LOOP=1; export RTPROOF_LOOP; eval "$l");; esac; done\'\n'
)
"""Reads a line and runs it, until it is told to exit. A line of rtproof says how long it is, and is refused otherwise.

It is no interactive shell, so nothing changes the terminal between two lines. Any other line runs too: after a host
that was killed, a person who types there has a shell still. A loop in a loop only says that it is there.
"""


Credentials = tuple[str, str]
"""Who logs in, and the password, "" where none is asked for."""


def log_in(console: Console, who: Credentials, name: str, *, again: bool) -> bool:
    """Get a shell that reads lines; whether this host had to log in for it.

    again: the connection broke, and what it was used for may still have the console.
    UserError if the login is refused, LinkError if there is no shell within LOGIN_S.
    """
    end = time.monotonic() + LOGIN_S
    token, by_us = console.token(), False
    said, _ = console.wait_for(lambda _: False, LISTEN_S)
    ready = re.compile(rf"=ready-{token}-42".encode())
    tries = POLITE_TRIES - 1 if again else 0
    while time.monotonic() < end:
        shown = b"" if BOOT_LOADER.search(plain(said)) else (b"\x03\n" if tries >= POLITE_TRIES else b"\n")
        console.send(shown)
        new, asked = console.wait_for(_asks, PROMPT_S)
        said = (said + new)[-KEPT:]
        tries += 1
        if BOOT_LOADER.search(plain(said)):
            continue
        if LOGIN.search(plain(new)):
            _give_name(console, who, name)
            by_us = True
        elif PASSWORD.search(plain(new)) or (again and not asked and tries == POLITE_TRIES):
            continue
        console.send(LOOP.format(token=token).encode())
        new, came = console.wait_for(lambda seen: bool(ready.search(seen)), READY_S)
        if came:
            return by_us
        said = (said + new)[-KEPT:]
    raise LinkError(_why_no_shell(said, name))


def plain(said: bytes) -> bytes:
    """Without the terminal's escape codes and without whole messages of the kernel."""
    without_codes = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()=>][AB0]?|[\r\0]", b"", said)
    return re.sub(rb"\[ *\d+\.\d{6}\][^\n]*\n", b"", without_codes)


def _give_name(console: Console, who: Credentials, name: str) -> None:
    user, password = who
    if not user:
        raise UserError(f"{name} asks for a user: --target-option user=NAME")
    console.send(f"{user}\n".encode())
    said, _ = console.wait_for(_decided, ANSWER_S)
    if PASSWORD.search(plain(said)):
        if not password:
            raise UserError(f"{name} asks for a password: put it into the variable {PASSWORD_VARIABLE}, or name a file")
        console.send(f"{password}\n".encode())
        said, _ = console.wait_for(_decided, ANSWER_S)
    text = plain(said)
    if PASSWORD.search(text):
        console.send(b"\x03")
        raise UserError(f"{name} asks for a new password: log in by hand first, and choose one")
    if REFUSED.search(text) and LOGIN.search(text):
        raise UserError(f"{name} refuses the user {clean(user)} or the password")


def _asks(said: bytes) -> bool:
    """Whether the last thing that was printed is a question or a shell's prompt."""
    text = plain(said)
    return any(pattern.search(text) for pattern in (LOGIN, PASSWORD, PROMPT))


def _decided(said: bytes) -> bool:
    """Whether a login goes on. A question for the name alone says nothing: each newline before brought one."""
    text = plain(said)
    return bool(PASSWORD.search(text) or PROMPT.search(text) or (REFUSED.search(text) and LOGIN.search(text)))


def _why_no_shell(said: bytes, name: str) -> str:
    if not plain(said).strip():
        return f"{name} says nothing within {LOGIN_S} s: is the board on, and is it this port?"
    strange = sum(byte > 126 or (byte < 32 and byte not in b"\r\n\t\b\x07\x1b") for byte in said)
    if 4 * strange > len(said):
        return f"{name} prints only what cannot be read: is its speed another one (--target-option baud=NUMBER)?"
    last = clean(plain(said).decode(errors="replace").strip().splitlines()[-1][:100])
    if WAITING_BOOT_LOADER.fullmatch(last):
        return f"{name}: a boot loader waits there for commands (its prompt is {last!r}): boot the board first"
    return f"{name}: there is no shell within {LOGIN_S} s; the last line is {last!r}"


# Command lines for that shell.


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


class ConsoleShell(Shell):
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

    def ask(self, command: str, given: bytes = b"", timeout_s: float = 60) -> Answer:
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
