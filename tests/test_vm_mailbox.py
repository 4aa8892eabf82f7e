# SPDX-License-Identifier: Apache-2.0

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtproof.core.errors import TargetError
from rtproof.vm.mailbox import MAILBOX_BYTES, GuestState, Mailbox

PAGE = 4096
SAID, ENDED, RESULT, RESULT_END, FAILED = 1, 2, 3, 4, 5


class FakeGuest:
    """The other end, as guest/mail.c has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0

    def word(self, at: int) -> int:
        return int(struct.unpack_from("<I", self.path.read_bytes()[:PAGE], at)[0])

    def put(self, at: int, data: bytes) -> None:
        with self.path.open("rb+") as file:
            file.seek(at)
            file.write(data)

    def post(self, kind: int, payload: bytes) -> None:
        begin = PAGE + -(-self.word(8) // PAGE) * PAGE
        frame = struct.pack("<II", kind, len(payload)) + payload + bytes(-len(payload) % 8)
        self.put(begin + self.written, frame)
        self.written += len(frame)
        self.put(16, struct.pack("<I", self.written))


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    made = Mailbox(tmp_path / "mail")
    yield made
    made.close()


@pytest.fixture
def guest(mailbox: Mailbox, tmp_path: Path) -> FakeGuest:
    return FakeGuest(tmp_path / "mail")


def test_the_job_stands_on_the_second_page_and_the_header_says_so(mailbox: Mailbox, guest: FakeGuest) -> None:
    mailbox.give(b"the job")
    mailbox.stop_when_ready()
    assert [guest.word(at) for at in (0, 4, 8)] == [0x6D707472, 1, 7]
    assert guest.path.read_bytes()[PAGE : PAGE + 7] == b"the job"


def test_what_the_job_says_comes_piece_by_piece(mailbox: Mailbox, guest: FakeGuest) -> None:
    mailbox.give(b"x" * 5000)
    guest.post(SAID, b"one\n")
    assert mailbox.feed() == b"one\n"
    assert mailbox.feed() == b""
    guest.post(SAID, b"t")
    guest.post(SAID, b"wo\n")
    assert mailbox.feed() == b"two\n"
    assert mailbox.letters.said == b"one\ntwo\n"


def test_the_end_and_the_results_come_with_their_sum(mailbox: Mailbox, guest: FakeGuest) -> None:
    guest.post(ENDED, struct.pack("<iIQQ", -9, 0, 1_000, 3_500))
    for piece in (b"abc", b"defgh"):
        guest.post(RESULT, piece)
    guest.post(RESULT_END, struct.pack("<II", 8, zlib.crc32(b"abcdefgh")))
    guest.put(12, struct.pack("<I", GuestState.DONE))
    mailbox.feed()
    assert mailbox.letters.end == (-9, 2_500)
    assert mailbox.letters.results.getvalue() == b"abcdefgh"
    assert mailbox.letters.complete
    assert mailbox.state is GuestState.DONE


@pytest.mark.parametrize("sums", [(7, zlib.crc32(b"abcdefg")), (8, 1)])
def test_results_that_do_not_fit_their_sum_are_not_complete(
    mailbox: Mailbox, guest: FakeGuest, sums: tuple[int, int]
) -> None:
    guest.post(RESULT, b"abcdefgh")
    guest.post(RESULT_END, struct.pack("<II", *sums))
    mailbox.feed()
    assert not mailbox.letters.complete


def test_a_reason_and_lost_words_are_told(mailbox: Mailbox, guest: FakeGuest) -> None:
    guest.post(FAILED, b"no such module")
    guest.post(ENDED, struct.pack("<iIQQ", 0, 12, 0, 0))
    assert mailbox.feed() == b"\n[12 bytes more had no room]\n"
    assert mailbox.letters.failure == "no such module"


def test_a_job_without_room_is_refused(mailbox: Mailbox) -> None:
    with pytest.raises(TargetError, match="the job's files have 33 MiB, and there is room for 32 MiB"):
        mailbox.give(bytes(33 << 20))


def test_a_guest_that_damages_the_memory_is_a_sentence(mailbox: Mailbox, guest: FakeGuest) -> None:
    guest.put(16, struct.pack("<I", MAILBOX_BYTES))
    with pytest.raises(TargetError, match="has damaged the memory"):
        mailbox.feed()
