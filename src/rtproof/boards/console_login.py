# SPDX-License-Identifier: Apache-2.0
"""From whatever a console shows to a shell that takes command lines without a prompt, an editor and an echo.

The kernel may print into everything. Its messages have a time, ``[   12.345678] words``, on most boards.
"""

import re
import time

from rtproof.boards.console import Console
from rtproof.core.errors import LinkError, UserError
from rtproof.core.printable import clean

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
