# SPDX-License-Identifier: Apache-2.0
"""A run that goes on while nobody is connected: follow what it prints, tell it to end, and fetch its record.

The other side is ``agent/background/`` on the board. Offsets into the board's files are all that must be known to go on
after the connection broke, so any host that knows the folder can take a run up.
"""

import os
import platform
import re
import secrets
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from rtproof.boards.frames import FrameReader, FrameType, LinkFrame
from rtproof.boards.shell import Channel, Shell
from rtproof.core.errors import AGENT_SAYS, LinkError, NoSuchRunError, RecordStaysError, TargetError, UserError
from rtproof.core.patience import Patience
from rtproof.core.printable import clean

BEAT_S = 5
"""How often either side says that it is there."""
SILENT_S = 20
"""A board that says nothing for so long is not connected any more."""
NOISY_S = 60
"""A board that prints something else for so long is not connected any more, either."""
ASK_AGAIN_S = 5
SURE_S = 2
"""What was sent so long before something came over the same connection has arrived, too."""
RECEIPT_S = 1
"""A host that streams the record says this often what it has safely, so that the board can free it."""
STANDING = re.compile(r"(.+?); boot (\S+); now (\S+); log (-?\d+); record (-?\d+)(?:; given (\d+) (\d+))?")
RECORD = "run.rtrec"
"""The agent's name for the record in the run's folder on the board."""
KEEPER_GONE = "how the agent ended is unknown: its keeper was killed, or the board's disk is full"
LONGEST_LINE = 1 << 16
"""Of the agent, in bytes. A longer one is cut, because what never ends must not fill the memory."""
MOST_LATER = 4096
"""Frames that are kept behind a hole: at most 64 MiB."""
RUNNING = ("running", "sending")
HERE, GONE = "run-is-here", "run-is-gone"


@dataclass(frozen=True)
class Place:
    """Where a run goes on. agent: its path on the board; folder: of the run; before: words such as ``sudo -n``."""

    agent: str
    folder: str
    before: tuple[str, ...] = ()

    def words(self) -> dict[str, str]:
        record = f"{self.folder}/{RECORD}"
        return {"agent": self.agent, "folder": self.folder, "before": shlex.join(self.before), "record": record}

    @classmethod
    def read(cls, words: Mapping[str, str]) -> "Place":
        """UserError if a word is missing."""
        try:
            return cls(words["agent"], words["folder"], tuple(shlex.split(words["before"])))
        except (KeyError, ValueError) as problem:
            raise UserError(f"what is stored of the run does not say where it goes on ({problem})") from None

    def command(self, verb: str, *words: str) -> str:
        return shlex.join((*self.before, self.agent, "background", verb, self.folder, *words))


@dataclass(frozen=True)
class RunStanding:
    """How a run stands. words: as the agent says it. log, record: how long the files are, in bytes; -1: none.

    boot, now: the id of the boot in which it was started, and of the present one. given, given_log: of a run that is
    streamed, the bytes that some host has already, and that are not there any more.
    """

    words: str
    boot: str
    now: str
    log: int
    record: int
    given: int = 0
    given_log: int = 0

    @property
    def goes_on(self) -> bool:
        """Whether more may be printed or measured."""
        return self.words in RUNNING

    @classmethod
    def read(cls, content: bytes) -> "RunStanding | None":
        """What a frame says; None if it cannot be read."""
        found = STANDING.fullmatch(content.decode(errors="replace"))
        if not found:
            return None
        return cls(found[1], found[2], found[3], *(int(number or 0) for number in found.groups()[3:]))


class Assembly:
    """A file of the board that arrives in pieces, some twice or late. at: the bytes that have arrived in order."""

    def __init__(self, type_: FrameType, take: Callable[[bytes], None], at: int = 0) -> None:
        self.type = type_
        self.at = at
        self._take = take
        self._later: dict[int, bytes] = {}
        self._asked = (-1, 0.0)

    def add(self, frame: LinkFrame) -> None:
        """Take a frame, and what was waiting for it."""
        kept = frame.offset <= self.at or len(self._later) < MOST_LATER
        if kept and frame.offset + len(frame.content) > self.at:
            self._later[frame.offset] = frame.content
        while ready := [offset for offset in self._later if offset <= self.at]:
            for offset in ready:
                content = self._later.pop(offset)[self.at - offset :]
                if content:
                    self._take(content)
                    self.at += len(content)

    def missing(self, length: int, now: float) -> str:
        """The line that asks for the first hole; "" without one, or if it was asked a moment ago.

        length: of what was sent.
        """
        until = min((offset for offset in self._later), default=length)
        if until <= self.at or (self._asked[0] == self.at and now - self._asked[1] < ASK_AGAIN_S):
            return ""
        self._asked = self.at, now
        return f"again {self.type.value} {self.at} {until - self.at}\n"


class BackgroundRun:
    """A run in the background, as a target's process.

    patience_s: how long to try to connect again. bring_agent: brings the agent once more to a board that has lost it.
    streams: the record is fetched while it is measured.
    """

    def __init__(
        self, shell: Shell, place: Place, patience_s: float, bring_agent: Callable[[], str], *, streams: bool = False
    ) -> None:
        self._shell = shell
        self._place = place
        self._host = f"{platform.node() or 'localhost'}-{secrets.token_hex(4)}"
        self._patience_s = patience_s
        self._bring_agent = bring_agent
        self._rest = b""
        self._lines: list[str] = []
        self._log = Assembly(FrameType.LOG, self._take_log)
        self._channel: Channel | None = None
        self._signals: list[str] = []
        self._unsure: list[tuple[str, float]] = []
        self._given_up = self._gone = False
        self._streams = streams
        self._stream: RecordStream | None = None
        self.standing: RunStanding | None = None

    # What a target's process does.

    def lines(self) -> Iterator[str]:
        """What the agent prints, also while the connection was broken; and a sentence for each break.

        LinkError if the board cannot be reached for longer than the patience. The run may go on there.
        """
        try:
            for frame in self._frames(self._follow_to_end):
                if isinstance(frame, str):
                    yield frame
                else:
                    lines, self._lines = self._lines, []
                    yield from lines
        except NoSuchRunError:
            # What was in RAM is gone after a reboot. What was streamed is here, and a record like any that was cut off.
            if not self._stream or not self._stream.record.at:
                raise
            self._gone = True
        yield from self._lines
        self._lines = []
        if self._rest:
            yield self._rest.decode(errors="replace")

    def interrupt(self) -> None:
        self._signal("int")

    def terminate(self) -> None:
        self._signal("term")

    def kill(self) -> None:
        """End the agent there. Without a connection, or once it breaks or the agent has ended, give it up instead."""
        ended = self.standing is not None and not self.standing.goes_on
        self._given_up = True
        self._signal("kill")
        if ended:
            raise LinkError("given up, as asked")

    def wait(self) -> int:
        """The agent's exit code or signal; that of a kill if nobody could see it end."""
        found = re.fullmatch(r"(exit|signal) (\d+)", self.standing.words if self.standing else "")
        if not found:
            return -signal.SIGKILL
        return int(found[2]) if found[1] == "exit" else -int(found[2])

    def where(self) -> dict[str, str]:
        return self._place.words()

    def stream_into(self, record: Path) -> bool:
        if self._streams:
            self._stream = RecordStream(record)
        return self._streams

    def ended_how(self) -> str:
        """What happened to a run whose end nobody saw, in a sentence; "" if it ended by itself."""
        standing = self.standing
        if self._gone:
            return "the board has it no more: it was booted anew, or the run was removed; what was streamed is kept"
        if standing and standing.words == "other-boot":
            boots = f"boot id {clean(standing.boot)} before, {clean(standing.now)} now"
            return f"the board was booted anew during the run ({boots})"
        return KEEPER_GONE if standing and standing.words == "vanished" else ""

    # The connection.

    def _signal(self, name: str) -> None:
        """Also called by a signal handler: it may write into the channel, and does nothing else."""
        self._signals.append(name)
        if self._channel:
            with suppress(LinkError):
                self._send_signals(self._channel)

    def _send_signals(self, channel: Channel) -> None:
        """Each may be interrupted by a signal handler that does the same, and may never arrive."""
        with suppress(IndexError):
            while True:
                name = self._signals.pop(0)
                self._unsure.append((name, time.monotonic()))
                channel.send(f"signal {name}\n".encode())

    def _frames(self, work: Callable[[Channel], Iterator[LinkFrame]]) -> Iterator[LinkFrame | str]:
        """The frames of as many connections as it takes, and a sentence when one is lost or found again."""
        patience = Patience(self._shell.name, self._patience_s)
        while True:
            try:
                for frame in self._connected(work):
                    yield from patience.found()
                    yield frame
                return
            except LinkError as problem:
                yield from patience.lost(problem, give_up=self._given_up)

    def _connected(self, work: Callable[[Channel], Iterator[LinkFrame]]) -> Iterator[LinkFrame]:
        text = () if self._shell.binary else ("text",)
        channel = self._shell.start(self._place.command("follow", self._host, str(self._log.at), *text))
        # Some may have been lost with the last connection: the agent takes a signal twice as once.
        self._signals[:0] = [name for name, _ in self._unsure]
        self._unsure.clear()
        self._channel = channel
        try:
            self._send_signals(channel)
            yield from work(channel)
        finally:
            self._channel = None
            channel.close()

    def _received(self, channel: Channel) -> Iterator[LinkFrame]:
        """The frames of this connection. LinkError when it breaks, TargetError if another host has the run."""
        reader = FrameReader()
        heard = framed = beat = time.monotonic()
        spoke = False
        while True:
            piece = channel.receive(1.0)
            now = time.monotonic()
            if piece == b"":
                self._explain_end(channel, spoke=spoke)
            if piece:
                heard, spoke = now, True
                while self._unsure and now - self._unsure[0][1] > SURE_S:
                    del self._unsure[0]
                for frame in reader.feed(piece):
                    framed = now
                    yield frame
            if now - heard > SILENT_S:
                raise LinkError(f"nothing came for {SILENT_S} s")
            if now - framed > NOISY_S:
                raise LinkError(f"nothing that can be read came for {NOISY_S} s")
            if now - beat > BEAT_S:
                channel.send(b"alive\n")
                beat = now

    def _explain_end(self, channel: Channel, *, spoke: bool) -> None:
        answer = channel.finish(10)
        words = answer.words()
        if "follows this run" in words:
            raise TargetError(f"{self._shell.name}: {words.rpartition(': ')[2]}")
        if "there is no run in" in words:
            raise NoSuchRunError(f"{self._shell.name}: {words.removeprefix(AGENT_SAYS)}")
        if answer.status and words.startswith(AGENT_SAYS):
            raise TargetError(f"{self._shell.name}: {words.removeprefix(AGENT_SAYS)}")
        if not spoke:
            self._look_what_is_left()
        # On a console, the last thing before a break is often a piece of a frame.
        readable = " " in words and not words.startswith("=rtproof")
        raise LinkError(words if answer.status and readable else "the board ended the connection")

    def _look_what_is_left(self) -> None:
        """Bring the agent again if it is lost, as without power. NoSuchRunError if the run is gone, too."""
        state = shlex.quote(f"{self._place.folder}/state")
        boot = "read -r boot < /proc/sys/kernel/random/boot_id"
        look = f"[ -f {state} ] && left={HERE} || left={GONE}; {boot}; echo $left $boot"
        answer = self._shell.ask(shlex.join((*self._place.before, "sh", "-c", look)))
        run, _, now = answer.output.decode(errors="replace").strip().partition(" ")
        if run == GONE:
            before = self.standing.boot if self.standing else now
            booted = f"the board was booted anew (boot id {before} before, {now} now), and " if before != now else ""
            raise NoSuchRunError(f"{self._shell.name}: {booted}there is no run in {self._place.folder} any more")
        if run == HERE:
            try:
                self._place = replace(self._place, agent=self._bring_agent())
            except TargetError as problem:
                raise LinkError(str(problem)) from problem

    def _follow_to_end(self, channel: Channel) -> Iterator[LinkFrame]:
        if self._stream:
            self._stream.ask(channel)
        for frame in self._received(channel):
            self._take(frame, self._log)
            if self._stream:
                self._stream.take(channel, frame, self._log.at)
            yield frame
            # The files of a run that has ended do not grow any more.
            final = None if not self.standing or self.standing.goes_on else self.standing
            if final and self._log.at >= final.log:
                return
            if line := self._log.missing(final.log if final else 0, time.monotonic()):
                channel.send(line.encode())

    def _take(self, frame: LinkFrame, file: Assembly) -> None:
        if frame.type is file.type:
            file.add(frame)
        elif frame.type is FrameType.STANDING:
            self._take_standing(frame)

    def _take_standing(self, frame: LinkFrame) -> None:
        """How it stands. TargetError if this host lacks what the board no longer has."""
        self.standing = RunStanding.read(frame.content) or self.standing
        if not self.standing:
            return
        self._log.at = max(self._log.at, self.standing.given_log)
        if self._stream and self._stream.record.at < self.standing.given:
            raise TargetError(
                f"{self._shell.name}: {self.standing.given:,} bytes of the record were streamed to another folder, and "
                f"are only there; {self._stream.file} has {self._stream.record.at:,}"
            )

    def _take_log(self, content: bytes) -> None:
        *lines, self._rest = (self._rest + content).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        self._lines += [line.decode(errors="replace") for line in lines]

    # The record.

    def fetch(self, file: Path) -> Iterator[str]:
        """Append to the file what it lacks of the record; yields a sentence for each break of the connection."""
        if self._stream:
            self._stream.close()
        if self._gone:
            return
        have = file.stat().st_size if file.exists() else 0
        with file.open("ab") as writing:
            record = Assembly(FrameType.RECORD, lambda content: _write(writing, content), have)
            for frame in self._frames(lambda channel: self._fetch_rest(channel, record)):
                if isinstance(frame, str):
                    yield frame

    def _fetch_rest(self, channel: Channel, record: Assembly) -> Iterator[LinkFrame]:
        channel.send(f"record {record.at}\n".encode())
        # The board may tell its end before it reads this line. Asking for holes then would bring all of it twice.
        asked, comes = time.monotonic(), False
        for frame in self._received(channel):
            self._take(frame, record)
            yield frame
            comes = comes or frame.type is FrameType.RECORD
            told = self.standing if frame.type is FrameType.STANDING else None
            told = None if told and told.goes_on else told
            if told and record.at >= told.record:
                channel.send(b"done\n")
                return
            all_sent = comes or time.monotonic() - asked > ASK_AGAIN_S
            if line := record.missing(told.record if told and all_sent else 0, time.monotonic()):
                channel.send(line.encode())

    def remove(self, say: Callable[[str], None]) -> None:
        """Remove the run from the board. TargetError if it goes on or cannot be removed."""
        if self._gone:
            return
        patience = Patience(self._shell.name, self._patience_s, "the record is here")
        removal = self._place.command("remove")
        answer = patience.tried(lambda: self._shell.ask(removal), say, lambda: self._given_up)
        if answer.status:
            raise TargetError(f"{self._shell.name}: {clean(answer.words())}")


class RecordStream:
    """The record of a run that goes on, as far as this host has it in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._writing = file.open("ab")
            have = os.fstat(self._writing.fileno()).st_size
        except OSError as problem:
            raise UserError(f"cannot write {file}: {problem.strerror}") from None
        self.record = Assembly(FrameType.RECORD, lambda content: _write(self._writing, content), have)
        self._told = (-1, -1)
        self._told_at = 0.0

    def ask(self, channel: Channel) -> None:
        self._told = (-1, -1)
        channel.send(f"record {self.record.at}\n".encode())

    def take(self, channel: Channel, frame: LinkFrame, log_at: int) -> None:
        """Take a frame of any type. What is here is told once a second, when it is safe on this host's medium."""
        if frame.type is FrameType.RECORD:
            self.record.add(frame)
        now = time.monotonic()
        if line := self.record.missing(0, now):
            channel.send(line.encode())
        have = (self.record.at, log_at)
        if have != self._told and now - self._told_at > RECEIPT_S:
            try:
                self._writing.flush()
                os.fsync(self._writing.fileno())
            except OSError as problem:
                raise RecordStaysError(f"cannot write {self.file}: {problem.strerror}; the run goes on there") from None
            channel.send("have {} {}\n".format(*have).encode())
            self._told, self._told_at = have, now

    def close(self) -> None:
        self._writing.close()


def _write(writing: BinaryIO, content: bytes) -> None:
    try:
        writing.write(content)
    except OSError as problem:
        raise RecordStaysError(
            f"cannot write the record: {problem.strerror}; the record is still on the board"
        ) from None


def start(shell: Shell, place: Place, arguments: tuple[str, ...]) -> None:
    """Start the agent there. TargetError if it does not start. A folder that is there is of an earlier try."""
    answer = shell.ask(place.command("start", *arguments))
    if answer.status and "File exists" not in answer.words():
        raise TargetError(f"{shell.name}: {answer.words().removeprefix(AGENT_SAYS)}")
