# SPDX-License-Identifier: Apache-2.0
"""What carries a board's bytes: frames with a checksum, files in pieces, and text for consoles."""

import base64
import binascii
import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.boards.background_run import Assembly, BackgroundRun, Place
from rtproof.boards.frames import LARGEST, FrameReader, FrameType, LinkFrame
from rtproof.boards.shell import Answer, Shell

FRAMES = st.builds(LinkFrame, st.sampled_from(FrameType), st.integers(0, 2**63 - 1), st.binary(max_size=600))


def written(frame: LinkFrame, *, as_text: bool) -> bytes:
    """The frame as the agent sends it."""
    crc = f"{binascii.crc32(frame.content):08x}"
    head = f"\n=rtproof {frame.type.value} {frame.offset} {len(frame.content)} {crc}".encode()
    if as_text:
        return head + b" " + base64.b64encode(frame.content) + b"\n"
    return head + b"\n" + frame.content


def read(pieces: Sequence[bytes]) -> tuple[list[LinkFrame], int]:
    reader = FrameReader()
    return [frame for piece in pieces for frame in reader.feed(piece)], reader.damaged


@given(st.lists(st.tuples(FRAMES, st.booleans()), max_size=6), st.integers(1, 97))
def test_frames_arrive_however_they_are_cut(frames: list[tuple[LinkFrame, bool]], size: int) -> None:
    whole = b"login: \n" + b"".join(written(frame, as_text=text) for frame, text in frames)
    found, _ = read([whole[at : at + size] for at in range(0, len(whole), size)])
    assert found == [frame for frame, _ in frames]


@given(st.lists(FRAMES, min_size=1, max_size=5), st.data())
def test_a_spoilt_frame_is_left_out_and_the_others_arrive(frames: list[LinkFrame], data: st.DataObject) -> None:
    """The kernel prints into one of them. What is given is what was sent, whatever was spoilt."""
    at = data.draw(st.integers(0, len(frames) - 1))
    texts = [written(frame, as_text=True) for frame in frames]
    cut = data.draw(st.integers(1, len(texts[at]) - 1))
    texts[at] = texts[at][:cut] + b"\r\n[   12.345678] a message of the kernel\r\n" + texts[at][cut:]
    found, _ = read([b"".join(texts)])
    others = [frame for n, frame in enumerate(frames) if n != at]
    assert found in (others, frames)


STAMPED = b"[   12.345678] a message of the kernel\r\n"
PLAIN = b"random: crng init done\r\n"


class NoisyBoard:
    """A board that sends a file as ``follow`` does in text. The kernel prints into it."""

    def __init__(self, content: bytes, chance: random.Random) -> None:
        self._content, self._random = content, chance
        self.sent = 0

    def frames(self, offset: int, length: int) -> bytes:
        pieces = range(offset, offset + length, 576)
        frames = (LinkFrame(FrameType.RECORD, at, self._content[at : min(at + 576, offset + length)]) for at in pieces)
        return b"".join(self._cut(written(frame, as_text=True)) for frame in frames)

    def _cut(self, text: bytes) -> bytes:
        self.sent += 1
        for _ in range(self._random.choice((0, 1, 1, 2))):
            at = self._random.randrange(len(text))
            message = self._random.choice((STAMPED, PLAIN, b"[   1", b"oops", b"\x00\xff\n"))
            text = text[:at] + message + text[at:]
        return text


@pytest.mark.parametrize("seed", range(200))
def test_what_the_kernel_spoils_is_asked_for_again_until_the_file_is_whole(seed: int) -> None:
    chance = random.Random(seed)
    content = chance.randbytes(chance.randrange(1, 20_000))
    board, reader, taken = NoisyBoard(content, chance), FrameReader(), bytearray()
    file = Assembly(FrameType.RECORD, taken.extend)
    coming, now = board.frames(0, len(content)), 0.0
    beat = written(LinkFrame(FrameType.STANDING, 0, b"every few seconds"), as_text=True)
    while file.at < len(content):
        for frame in reader.feed(coming + beat):
            if frame.type is FrameType.RECORD:
                file.add(frame)
        now += 10
        assert now < 10_000
        line = file.missing(len(content), now)
        coming = board.frames(*(int(word) for word in line.split()[2:])) if line else b""
    assert bytes(taken) == content


@pytest.mark.parametrize(
    "text",
    [
        b"=rtproof L 0 999999 00000000\n",
        b"=rtproof L 0 4 00000000\nabcd",
        b"=rtproof X 0 4 00000000\nabcd",
        b"=rtproof L -1 4 00000000\nabcd",
        b"=rtproof L 0 4 00000000 !!!!\n",
        b"=rtproof =rtproof =rtproof ",
    ],
)
def test_what_is_no_frame_is_skipped(text: bytes) -> None:
    good = LinkFrame(FrameType.LOG, 7, b"here")
    found, _ = read([text + b"x" * 100, written(good, as_text=False)])
    assert found == [good]


@given(st.binary(max_size=2 * LARGEST), st.data())
def test_a_file_is_put_together_from_pieces_that_come_twice_late_or_again(content: bytes, data: st.DataObject) -> None:
    taken = bytearray()
    file = Assembly(FrameType.RECORD, taken.extend)
    cuts = sorted({0, len(content), *data.draw(st.lists(st.integers(0, len(content)), max_size=8))})
    pieces = [LinkFrame(FrameType.RECORD, a, content[a:b]) for a, b in itertools.pairwise(cuts)]
    kept = data.draw(st.lists(st.sampled_from(pieces), max_size=12)) if pieces else []
    for piece in kept:
        file.add(piece)
    now = 0.0
    while line := file.missing(len(content), now):
        _, kind, offset, length = line.split()
        assert kind == "R"
        assert int(offset) == file.at
        file.add(LinkFrame(FrameType.RECORD, int(offset), content[int(offset) : int(offset) + int(length)]))
        now += 10
    assert bytes(taken) == content


class ScriptedChannel:
    """A run that has ended, whose end is told before the host's line is read and again behind the record."""

    def __init__(self, record: bytes) -> None:
        standing = f"exit 0; boot a; now a; log 0; record {len(record)}".encode()
        end = written(LinkFrame(FrameType.STANDING, 0, standing), as_text=True)
        self._coming = [end, written(LinkFrame(FrameType.RECORD, 0, record), as_text=True), end]
        self.sent: list[bytes] = []

    def send(self, content: bytes) -> None:
        self.sent.append(content)

    def end_input(self) -> None: ...

    def receive(self, timeout_s: float) -> bytes | None:
        return self._coming.pop(0) if self._coming else None

    def finish(self, timeout_s: float) -> Answer:
        raise AssertionError("it does not end by itself")

    def close(self) -> None: ...


class ScriptedShell(Shell):
    name, binary = "board", False

    def __init__(self, channel: ScriptedChannel) -> None:
        self._channel = channel

    def start(self, command: str) -> ScriptedChannel:
        return self._channel

    def ask(self, command: str, given: bytes = b"", timeout_s: float = 60) -> Answer:
        raise AssertionError("nothing is asked")


def test_a_record_is_not_brought_twice_because_its_end_was_told_first(tmp_path: Path) -> None:
    channel = ScriptedChannel(b"the record")
    run = BackgroundRun(ScriptedShell(channel), Place("/tmp/agent", "/tmp/run"), 1, lambda: "/tmp/agent")
    assert list(run.fetch(tmp_path / "record")) == []
    assert (tmp_path / "record").read_bytes() == b"the record"
    assert channel.sent == [b"record 0\n", b"done\n"]
