# SPDX-License-Identifier: Apache-2.0
"""A machine or container that any program reaches which runs a command there, such as docker, kubectl or adb.

    exec='docker exec -i NAME'    exec='kubectl exec -i POD -c rt --'    exec='adb shell'

How the program passes words, exit statuses and bytes on is tried first.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rtproof.boards.board_target import BoardTarget, board_options, option_words
from rtproof.boards.program_shell import open_program_shell
from rtproof.core.errors import UserError

OPTIONS: dict[str, str] = {
    "exec": "the program and its words; a command for the board's shell is put behind them",
    **board_options(),
}


@contextmanager
def open_target(options: dict[str, str]) -> Iterator[BoardTarget]:
    """The machine, once a command has run there. UserError if the program runs none."""
    words = option_words(options, "exec")
    if not words:
        raise UserError("the target command needs a program: --target-option exec='docker exec -i NAME'")
    yield BoardTarget.with_options(open_program_shell(words), options)
