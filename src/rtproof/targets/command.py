# SPDX-License-Identifier: Apache-2.0
"""A machine or container that any program reaches which runs a command there, such as docker, kubectl or adb.

    exec='docker exec -i NAME'    exec='kubectl exec -i POD -c rt --'    exec='adb shell'

Some programs pass their words on as they are (docker, kubectl); others join them with spaces and give them to a shell
there (adb, ssh). Some lose the exit status, or change bytes because there is a terminal on the way. So this is tried
before anything else is done.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from rtproof.boards.board_target import BoardTarget, board_options, option_words
from rtproof.boards.shell import Answer, Channel, ProgramChannel, Shell
from rtproof.core.errors import LinkError, UserError
from rtproof.core.printable import clean

OPTIONS: dict[str, str] = {
    "exec": "the program and its words; a command for the board's shell is put behind them",
    **board_options(),
}
TRIAL = "printf '%s\\n' \"rt  proof\" '$HOME'; exit 7"
TRIAL_OUTPUT, TRIAL_STATUS = b"rt  proof\n$HOME\n", 7
TRIAL_TIMEOUT_S = 30
EVERY_BYTE = bytes(range(256)) * 3
STATUS_MARK = re.compile(rb"\r?\n=rtproof-status (\d{1,3})\r?\n?\Z")


Manner = Callable[[str], list[str]]
"""The arguments that a program wants for a command line."""
MANNERS: tuple[Manner, ...] = (
    lambda command: ["sh", "-c", command],
    lambda command: [f"sh -c {shlex.quote(command)}"],
    lambda command: [command],
)
"""As words, as one line, and as a line for a shell there."""


class StatusChannel(ProgramChannel):
    """A channel whose command prints its own exit status at the end, because the program loses it."""

    def finish(self, timeout_s: float) -> Answer:
        answer = super().finish(timeout_s)
        found = STATUS_MARK.search(answer.output)
        if not found:
            raise LinkError(f"the connection ended early: {answer.words()}")
        return Answer(int(found[1]), answer.output[: found.start()], answer.complaint)


class ProgramShell(Shell):
    """Command lines through a program. told: whether the program's exit status is that of the command."""

    def __init__(self, words: Sequence[str], manner: Manner, *, told: bool, binary: bool) -> None:
        self.name = shlex.join(words)
        self.binary = binary
        self._words = tuple(words)
        self._manner = manner
        self._told = told

    def start(self, command: str) -> Channel:
        if self._told:
            return ProgramChannel((*self._words, *self._manner(command)), _never_lost)
        with_status = f"( {command} ); printf '\\n=rtproof-status %d\\n' $?"
        return StatusChannel((*self._words, *self._manner(with_status)), _never_lost)


def _never_lost(_: Answer) -> str:
    return ""


def open_program_shell(words: Sequence[str]) -> ProgramShell:
    """The shell behind a program, once it is known how it passes things on. UserError if no manner works."""
    refused = ""
    for manner in MANNERS:
        try:
            answer = _tried(words, manner(TRIAL), b"")
        except LinkError as problem:
            raise UserError(f"{words[0]}: {problem}") from None
        if answer.output.replace(b"\r\n", b"\n").endswith(TRIAL_OUTPUT):
            told = answer.status == TRIAL_STATUS
            return ProgramShell(words, manner, told=told, binary=_keeps_bytes(words, manner))
        refused = refused or answer.words()
    raise UserError(f"{shlex.join(words)} runs no command there: {clean(refused)}")


def _tried(words: Sequence[str], arguments: Sequence[str], given: bytes) -> Answer:
    channel = ProgramChannel((*words, *arguments), _never_lost)
    try:
        # A program that ends without reading breaks the pipe; what it printed says more than that.
        with suppress(LinkError):
            if given:
                channel.send(given)
            channel.end_input()
        return channel.finish(TRIAL_TIMEOUT_S)
    finally:
        channel.close()


def _keeps_bytes(words: Sequence[str], manner: Manner) -> bool:
    """Whether every byte comes back as it was sent. UserError if none comes back."""
    try:
        answer = _tried(words, manner("cat"), EVERY_BYTE)
    except LinkError:
        return False
    if not answer.output:
        raise UserError(f"{shlex.join(words)} passes no standard input on; docker and kubectl need -i for it")
    return answer.output.endswith(EVERY_BYTE)


@contextmanager
def open_target(options: dict[str, str]) -> Iterator[BoardTarget]:
    """The machine, once a command has run there. UserError if the program runs none."""
    words = option_words(options, "exec")
    if not words:
        raise UserError("the target command needs a program: --target-option exec='docker exec -i NAME'")
    yield BoardTarget.with_options(open_program_shell(words), options)
