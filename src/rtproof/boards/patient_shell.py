# SPDX-License-Identifier: Apache-2.0
"""A shell that waits for its board: between two runs of a long experiment the link may be away, too."""

from collections.abc import Callable

from rtproof.boards.shell import Answer, Channel, Shell
from rtproof.core.patience import Patience


class PatientShell:
    """Runs a command again when the connection broke before its answer came, so only commands that bear that.

    say: takes the sentences about a board that is out of reach.
    """

    def __init__(self, shell: Shell, patience_s: float, say: Callable[[str], None]) -> None:
        self.name = shell.name
        self.binary = shell.binary
        self._shell = shell
        self._patience_s = patience_s
        self._say = say

    def start(self, command: str) -> Channel:
        """As the shell itself: nobody can say here how far a command has come."""
        return self._shell.start(command)

    def ask(self, command: str, given: bytes, timeout_s: float) -> Answer:
        """LinkError once the patience is over."""
        patience = Patience(self.name, self._patience_s, "waiting for it")
        return patience.tried(lambda: self._shell.ask(command, given, timeout_s), self._say)
