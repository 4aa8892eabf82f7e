# SPDX-License-Identifier: Apache-2.0
"""A board as a target: the agent that fits it is brought there, and its runs go on without this host."""

import functools
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from rtproof.agents.architectures import candidates_for
from rtproof.agents.build import build_agent, find_agent, packaged_agent
from rtproof.boards import STREAM, USUAL_BUFFER, background_run, upload
from rtproof.boards.background_run import RECORD, BackgroundRun, Place
from rtproof.boards.kexec import KexecBoots
from rtproof.boards.shell import Answer, Channel, Shell
from rtproof.core import files, patience
from rtproof.core.errors import LinkError, RecordStaysError, TargetError, UserError
from rtproof.core.patience import Patience
from rtproof.core.printable import clean
from rtproof.core.units import parse_duration

BUFFER = re.compile(r"([1-9][0-9]{0,5})MiB")


def board_options() -> dict[str, str]:
    """The options of every board: the words after them are their help."""
    return {
        "sudo": "words before the agent's command, such as 'sudo -n' or doas",
        "dir": "folder there for the agent and its runs (default: ~/.cache, /var/tmp, /tmp, /dev/shm or /run)",
        STREAM: f"RAM there for what was not fetched yet, such as 4MiB, with --stream ({USUAL_BUFFER})",
        "patience": f"how long to go on trying to connect again before giving up ({patience.USUAL})",
    }


VERSION = re.compile(rb"\d+\.\d+\.\d+ record \d+")
"""What an agent says of itself. Words before it such as echo end well and run nothing."""


LONGEST_ANSWER_S = 600
"""How long a program without a record may take: one that tries many settings on a slow board takes a minute."""


def option_words(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The words of an option's value, as a shell would take them. UserError if a quote is not closed."""
    try:
        return tuple(shlex.split(options.get(name, "")))
    except ValueError as error:
        raise UserError(f"{name}={options[name]} cannot be split into words: {error}") from None


class PatientShell(Shell):
    """Runs a command again when the connection broke before its answer came, so only commands that bear that."""

    def __init__(self, shell: Shell, patience_s: float, say: Callable[[str], None]) -> None:
        self.name, self.binary = shell.name, shell.binary
        self._shell = shell
        self._patience_s = patience_s
        self._say = say

    def start(self, command: str) -> Channel:
        return self._shell.start(command)  # nobody can say here how far a command has come

    def ask(self, command: str, given: bytes = b"", timeout_s: float = 60) -> Answer:
        """LinkError once the patience is over."""
        patience = Patience(self.name, self._patience_s, "waiting for it")
        return patience.tried(lambda: self._shell.ask(command, given, timeout_s), self._say)


class BoardTarget:
    """A machine behind a shell. before: words before the agent's command; folder: as ``own_folder`` takes it.

    stream_bytes: nothing is written but in RAM, and so much of the record may wait there to be fetched; 0: no stream.
    """

    def __init__(
        self,
        shell: Shell,
        before: tuple[str, ...] = (),
        folder: str = "",
        patience_s: float = 600,
        stream_bytes: int = 0,
    ) -> None:
        self._shell = shell
        self._before = before
        self._stream_bytes = stream_bytes
        self._asked_folder = folder
        self._patience_s = patience_s
        answer = shell.ask("uname -m && uname -n")
        names = [clean(word) for word in answer.output.decode(errors="replace").split()]
        if answer.status or len(names) < 2:
            raise TargetError(f"{shell.name} does not say what machine it is: {answer.words()}")
        self._machine, self._host_name = names[-2:]
        self._patient = PatientShell(shell, patience_s, _say)
        self._boots = KexecBoots(shell, before, patience_s, _say)
        self._run: BackgroundRun | None = None
        self._program: Path | None = None

    @functools.cached_property
    def _folder(self) -> str:
        """Looked for only when something must be kept there: a run is taken up from a board that is full, too."""
        return upload.own_folder(self._shell, self._asked_folder, in_ram=self._stream_bytes > 0)

    @classmethod
    def with_options(cls, shell: Shell, options: Mapping[str, str]) -> Self:
        """A board with the options of ``board_options``. UserError for a value that makes no sense."""
        patience_s = parse_duration(options.get("patience", patience.USUAL)) / 1e9
        folder = options.get("dir", "")
        if not folder.isprintable():
            raise UserError(f"dir={folder} cannot be the board's folder: there is a control character in its name")
        before, buffer, buffer_bytes = option_words(options, "sudo"), options.get(STREAM), 0
        if buffer is not None:
            if not (found := BUFFER.fullmatch(buffer)):
                words = f"a whole number of MiB, such as {USUAL_BUFFER}, not {buffer!r}"
                raise UserError(f"the option {STREAM!r} takes {words}")
            buffer_bytes = int(found[1]) << 20
        return cls(shell, before, folder, patience_s, buffer_bytes)

    def machine(self) -> str:
        return self._machine

    def host_name(self) -> str:
        return self._host_name

    def own_agent(self) -> Path:
        """The first agent that runs there, of those that may fit the machine. It is there afterwards."""
        answer = self._shell.ask(shlex.join((*self._before, "true")))
        if answer.status:  # sudo, or what stands in its place, runs nothing
            raise TargetError(f"{self._shell.name}: {shlex.join(self._before)} runs nothing there: {answer.words()}")
        refused = []
        for architecture in candidates_for(self._machine):
            program = find_agent(architecture.name) if self._shell.binary else _smallest_agent(architecture.name)
            place = upload.bring(self._shell, program, self._folder, _say)
            answer = self._shell.ask(shlex.join((*self._before, place, "version")))
            if answer.status == 0 and VERSION.search(answer.output):
                return program
            refused.append(f"{architecture.name} ({answer.words()})")
        raise TargetError(f"{self._shell.name}: no agent runs on a {self._machine}: {', '.join(refused)}")

    def push(self, program: Path) -> str:
        self._program = program
        return upload.bring(self._patient, program, self._folder, _say)

    def place(self, file: Path) -> str:
        started = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        return f"{self._folder}/run-{started}-{secrets.token_hex(3)}/{RECORD}"

    def start(self, arguments: Sequence[str]) -> BackgroundRun:
        place, words = self._place_of(arguments), arguments[1:]
        if self._stream_bytes:
            words = (*words, "--stream", str(self._stream_bytes))
        background_run.start(self._patient, place, tuple(words))
        return self._following(place)

    def ask(self, arguments: Sequence[str]) -> tuple[int, list[str]]:
        answer = self._patient.ask(f"{shlex.join((*self._before, *arguments))} 2>&1", timeout_s=LONGEST_ANSWER_S)
        return answer.status, answer.output.decode(errors="replace").splitlines()

    def require_boots(self) -> None:
        self._boots.require()

    def boot(self, words: str | None) -> None:
        self._boots.boot(words)
        self.__dict__.pop("_folder", None)  # one in RAM is not there any more

    def where(self, arguments: Sequence[str]) -> dict[str, str]:
        return self._place_of(arguments).words()

    def _place_of(self, arguments: Sequence[str]) -> Place:
        remote = arguments[arguments.index("-o") + 1]
        return Place(arguments[0], remote.rpartition("/")[0], self._before)

    def take_up(self, where: Mapping[str, str]) -> BackgroundRun:
        return self._following(Place.read(where))

    def _following(self, place: Place) -> BackgroundRun:
        def bring_again() -> str:
            return upload.bring(self._shell, self._program or self.own_agent(), self._folder, _say)

        streams = self._stream_bytes > 0
        self._run = BackgroundRun(self._shell, place, self._patience_s, bring_again, streams=streams)
        return self._run

    def pull(self, remote: str, file: Path) -> None:
        """Fetch the record, and then remove the run from the board."""
        assert self._run
        try:
            for sentence in self._run.fetch(file):
                _say(sentence)
            files.flush_file(file)  # only what is on the medium here may be removed there
        except OSError as error:
            raise RecordStaysError(f"cannot write {file}: {error.strerror}; the record is still on the board") from None
        try:
            self._run.remove(_say)
        except LinkError:
            raise
        except TargetError as problem:
            _say(f"rtproof: the record is here, and this stays on the board: {problem}")


def _smallest_agent(architecture: str) -> Path:
    """The agent for a slow link. That of this machine's own compiler is four times as large as that of zig."""
    if not packaged_agent(architecture).exists():
        with suppress(UserError):
            return build_agent(architecture, "zig")
    return find_agent(architecture)


def _say(sentence: str) -> None:
    print(clean(sentence), file=sys.stderr)
