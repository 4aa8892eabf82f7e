# SPDX-License-Identifier: Apache-2.0
"""A machine that OpenSSH reaches: the user's own ssh, with its configuration, keys, agents and jump hosts.

The board needs a shell with cat, chmod and mv; neither sftp nor scp. The run goes on there if the connection breaks.
"""

import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rtproof.boards.board_target import BoardTarget, board_options
from rtproof.boards.shell import Answer, Channel, ProgramChannel, Shell
from rtproof.core.errors import LinkError, UserError
from rtproof.core.printable import clean
from rtproof.core.scratch import scratch_folder

OPTIONS: dict[str, str] = {
    "host": "name or address, as ssh takes it",
    "user": "user there",
    "port": "port of sshd or dropbear",
    "config": "another file in place of ~/.ssh/config",
    **board_options(),
}
SSH_FAILED = 255
ALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=15")
TRYING_HELPS = ("timed out", "refused", "No route to host", "unreachable", "Connection reset", "closed by")
"""What ssh says of a board that is off or starts up. All else, such as a wrong key, stays as it is."""
CLOSE_TIMEOUT_S = 10
PERSIST_S = 60
"""A master connection whose rtproof was killed ends after this time without a command."""


class SshShell(Shell):
    """Command lines over one master connection, which is made anew when it has broken. more: options of ssh."""

    binary = True

    def __init__(
        self, options: dict[str, str], socket: Path, program: Sequence[str] = ("ssh",), more: Sequence[str] = ()
    ) -> None:
        self.name = options["host"]
        self._program = tuple(program)
        self._options = (
            *more,
            *(("-F", options["config"]) if "config" in options else ()),
            *(("-l", options["user"]) if "user" in options else ()),
            *(("-p", options["port"]) if "port" in options else ()),
            *("-o", f"ControlPath={socket}", "-o", "ControlMaster=auto", "-o", f"ControlPersist={PERSIST_S}"),
            *ALIVE,
            "-T",
        )

    def first_connection(self) -> None:
        """Connect while ssh may still ask the user on the terminal: for a password, a key's PIN, or a new host.

        LinkError if the board may be there later, and otherwise UserError.
        """
        done = subprocess.run(
            [*self._program, *self._options, "--", self.name, "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if said := _ssh_failed(Answer(done.returncode, done.stdout, done.stderr)):
            problem = LinkError if any(words in said for words in TRYING_HELPS) else UserError
            raise problem(f"ssh cannot reach {self.name}: {said}")

    def start(self, command: str) -> Channel:
        words = ("-o", "BatchMode=yes", "--", self.name, f"exec sh -c {shlex.quote(command)}")
        return ProgramChannel((*self._program, *self._options, *words), _ssh_failed)

    def close(self) -> None:
        """End the master connection. One that does not answer ends by itself, PERSIST_S after its last command."""
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*self._program, *self._options, "-O", "exit", "--", self.name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=CLOSE_TIMEOUT_S,
            )


def _ssh_failed(answer: Answer) -> str:
    if answer.status != SSH_FAILED:
        return ""
    return clean(answer.words()) if answer.complaint.strip() else "ssh lost the connection"


@contextmanager
def open_target(options: dict[str, str]) -> Iterator[BoardTarget]:
    """The machine, once ssh has reached it."""
    if not options.get("host"):
        raise UserError("the target ssh needs a host: --target-option host=NAME")
    with scratch_folder() as folder:
        shell = SshShell(options, folder / "s")
        shell.first_connection()
        try:
            yield BoardTarget.with_options(shell, options)
        finally:
            shell.close()
