# SPDX-License-Identifier: Apache-2.0
"""Edges from outside: the test interface's words, and a guest with an ordinary GPIO chip that the agent serves."""

import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import lab_kernels
import probe_guest
import pytest
from guest_gpio import GpioLines, gpio_lines

from rtproof.agents.build import build_agent
from rtproof.core.errors import TargetError, UserError
from rtproof.record.reading import open_record
from rtproof.vm import guest as jobs
from rtproof.vm.guest import CONSOLE_LOG, Job, started_guest, wait_until_over
from rtproof.vm.machine import Machine
from rtproof.vm.mailbox import MAILBOX_BYTES, GuestState, Mailbox

KERNEL = "debian-6.1-rt-arm64"
BACKS = ("v2", "v1", "sysfs")
EDGES = 20
IN, OUT = 0, 1
PATIENCE_S = 600
SCRIPT = f"""\
base=$(cat /sys/class/gpio/gpiochip*/base)
answer() {{ # NAME PROBE
    /agent run --warmup 0s --samples {EDGES} --period 1ms --priority 90 -o /out/$1 --probe $2 2> /out/$1.said
}}
answer v2 gpio:chip=0,in={IN},out={OUT},back=v2
answer v1 gpio:chip=9030000.pl061,in={IN},out={OUT},back=v1
answer sysfs gpio:in=$((base + {IN})),out=$((base + {OUT})),back=sysfs
ls /sys/class/gpio | sed "s/gpiochip.*/gpiochip/" > /out/exported
"""


class Interface:
    """The other end of a connection: answers each command with lines of ours."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.asked: list[str] = []
        self._answers = answers
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self.theirs, self.theirs.makefile("rw") as stream:
            for line in stream:
                self.asked.append(line.strip())
                answer = self._answers.get(line.split()[0])
                if answer is None:
                    return
                stream.write(answer)
                stream.flush()


@pytest.fixture
def interface() -> Iterator[Interface]:
    made = Interface({"irq_intercept_out": "OK\n", "set_irq_in": "IRQ raise 3\nOK\nIRQ lower 3\nIRQ raise 1\n"})
    with made.ours:
        yield made


def test_inputs_are_driven_and_outputs_are_seen(interface: Interface) -> None:
    lines = GpioLines(interface.ours, "/chip")
    lines.drive(6, True)
    assert interface.asked == ["irq_intercept_out /chip", "set_irq_in /chip unnamed-gpio-in 6 1"]
    assert [lines.change(PATIENCE_S) for _ in range(3)] == [(3, True), (3, False), (1, True)]
    assert lines.change(0) is None


def test_an_answer_is_the_same_level_on_the_line_asked_for(interface: Interface) -> None:
    lines = GpioLines(interface.ours, "/chip")
    assert lines.answer(0, True, 1, PATIENCE_S)
    assert not lines.answer(0, False, 1, 0.01)


def test_a_refusal_and_an_end_are_told(interface: Interface) -> None:
    lines = GpioLines(interface.ours, "/chip")
    interface._answers["set_irq_in"] = "FAIL Unknown IRQ\n"
    with pytest.raises(
        TargetError, match=r"^QEMU refuses the command set_irq_in /chip unnamed-gpio-in 9 1: Unknown IRQ$"
    ):
        lines.drive(9, True)
    del interface._answers["set_irq_in"]
    with pytest.raises(TargetError, match=r"^QEMU ended"):
        lines.drive(1, True)
    with pytest.raises(TargetError, match=r"^QEMU ended"):
        lines.drive(1, True)


def aarch64_agent() -> Path:
    try:
        return build_agent("aarch64")
    except UserError as error:
        pytest.skip(str(error))


def test_the_agent_answers_edges_on_an_ordinary_chip(tmp_path: Path) -> None:
    """Each edge that it tells of came from here, and its answers were seen here.

    Its output may also change when it takes the line, and when it gives it back.
    """
    machine = Machine(lab_kernels.kernel(KERNEL))
    job = Job(SCRIPT, (("/agent", aarch64_agent()),))
    given = answered = 0
    with started_guest(machine, job, tmp_path / CONSOLE_LOG, PATIENCE_S) as guest, gpio_lines(guest) as lines:
        with suppress(TargetError):  # it ends in the midst of this, when it has had enough
            while guest.alive():
                given += 1
                lines.drive(IN, level := given % 2 == 1)
                while change := lines.change(2):  # on a busy machine an answer may come behind the next edge
                    answered += 1
                    if change == (OUT, level):
                        break
        wait_until_over(guest, PATIENCE_S)
        jobs.unpack_results(guest.mailbox.results.getvalue(), tmp_path)
    seen = 0
    for back in BACKS:
        assert (tmp_path / f"{back}.said").read_text() == ""
        record = open_record(tmp_path / back)
        assert record.end is not None
        assert {(one.obtained, one.missed, one.lost) for one in record.end.totals} == {(EDGES, 0, 0)}
        account = probe_guest.account(record)
        assert account["interface"] == back
        seen += int(account["edges"])
    assert 3 * EDGES <= answered <= seen + 2 * len(BACKS)
    assert seen <= given
    assert (tmp_path / "exported").read_text().split() == ["export", "gpiochip", "unexport"]


PAGE = 4096
ENDED, RESULT, RESULT_END = 2, 3, 4


class FakeGuest:
    """The other end, as guest/mailbox.c has it."""

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


def test_the_end_and_the_results_come_with_their_sum(mailbox: Mailbox, guest: FakeGuest) -> None:
    guest.post(ENDED, struct.pack("<iIQQ", -9, 0, 1_000, 3_500))
    for piece in (b"abc", b"defgh"):
        guest.post(RESULT, piece)
    guest.post(RESULT_END, struct.pack("<II", 8, zlib.crc32(b"abcdefgh")))
    guest.put(12, struct.pack("<I", GuestState.DONE))
    mailbox.feed()
    assert mailbox.end == (-9, 2_500)
    assert mailbox.results.getvalue() == b"abcdefgh"
    assert mailbox.complete
    assert mailbox.state is GuestState.DONE


@pytest.mark.parametrize("sums", [(7, zlib.crc32(b"abcdefg")), (8, 1)])
def test_results_that_do_not_fit_their_sum_are_not_complete(
    mailbox: Mailbox, guest: FakeGuest, sums: tuple[int, int]
) -> None:
    guest.post(RESULT, b"abcdefgh")
    guest.post(RESULT_END, struct.pack("<II", *sums))
    mailbox.feed()
    assert not mailbox.complete


def test_a_guest_that_damages_the_memory_is_a_sentence(mailbox: Mailbox, guest: FakeGuest) -> None:
    guest.put(16, struct.pack("<I", MAILBOX_BYTES))
    with pytest.raises(TargetError, match="has damaged the memory"):
        mailbox.feed()
