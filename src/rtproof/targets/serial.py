# SPDX-License-Identifier: Apache-2.0
"""A board's console: a serial port, a terminal server, or a program that shows one.

    device=/dev/ttyUSB0 baud=115200    address=ser2net:2001    exec='socat - UNIX:/tmp/console'

The kernel may print into it at any time. The agent is brought as text, with what the board has for it.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rtproof.boards.board_target import BoardTarget, board_options, option_words
from rtproof.boards.console import Console, ConsoleLine, ProgramLine, SocketLine, TtyLine
from rtproof.boards.console_shell import PASSWORD_VARIABLE, ConsoleShell
from rtproof.core.bounded import read_bounded
from rtproof.core.errors import UserError
from rtproof.core.processes import ended_by_signals

OPTIONS: dict[str, str] = {
    "device": "a serial port of this machine",
    "baud": "its speed (115200)",
    "address": "HOST:PORT of a terminal server, raw or telnet",
    "exec": "a program whose standard input and output are the console",
    "user": "who logs in, if the board asks",
    "password-file": f"file with the password; without it the variable {PASSWORD_VARIABLE} has it",
    **board_options(),
}
WAYS = ("device", "address", "exec")


@contextmanager
def open_target(options: dict[str, str]) -> Iterator[BoardTarget]:
    """The board, once somebody is logged in on its console, which gets its prompt and echo back also after SIGTERM."""
    given = [way for way in WAYS if options.get(way, "").strip()]
    if len(given) != 1:
        raise UserError(f"the target serial needs one of the options {', '.join(WAYS)}")
    (way,) = given
    who = options.get("user", ""), password_of(options)
    with (
        ended_by_signals(),
        closing(Console(lambda: _line(way, options))) as console,
        closing(ConsoleShell(console, who, options[way])) as shell,
    ):
        yield BoardTarget.with_options(shell, options)


def _line(way: str, options: dict[str, str]) -> ConsoleLine:
    if way == "address":
        return SocketLine(options["address"])
    if way == "exec":
        return ProgramLine(option_words(options, "exec"))
    baud = options.get("baud", "115200")
    if not baud.isascii() or not baud.isdecimal():
        raise UserError(f"baud={baud} is not a number")
    return TtyLine(Path(options["device"]), int(baud))


def password_of(options: dict[str, str]) -> str:
    """The password from its file, or from the variable. UserError if the file cannot be read."""
    if "password-file" not in options:
        return os.environ.get(PASSWORD_VARIABLE, "")
    try:
        with Path(options["password-file"]).open("rb") as file:  # it may be a pipe
            return read_bounded(file, name=options["password-file"]).decode().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the password cannot be read from {options['password-file']}: {error}") from None
