# SPDX-License-Identifier: Apache-2.0
"""The protocol of latmon over a guest's GPIO lines: a client's bytes as latmus sends them, and the agent at both ends.

Line 0 of the module's chip is wired to line 1, 2 to 3 and 4 to 5. The client's bytes go over the guest's own network,
127.0.0.1, by BusyBox. A wire from the output to the input answers its edges.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import probe_guest
import pytest
from probe_guest import Guest, values

from rtproof.record.contents import Record
from rtproof.record.reading import open_record
from rtproof.summary.recorded_facts import probe_accounts

KERNEL = "debian-6.1-rt"
PERIOD_US, CELLS = 5_000, 40
CELLS_OF_AGENT = 1_000
START = struct.pack(">II", PERIOD_US, CELLS)
STOP = struct.pack(">II", 0, 0)
BULK = struct.Struct(">iiiiII")
SCRIPT = f"""\
insmod /rtproof.ko gpio=1 || exit
ip link set lo up || ifconfig lo up || exit
chip=gpio:chip=rtproof-loop
latmon() {{ # NAME IN OUT OPTION...
    name=$1 probe=$chip,in=$2,out=$3; shift 3
    exec /agent run --warmup 0s --duration 10s --period {PERIOD_US}us --priority 90 -o /out/$name --method latmon \
        --probe $probe "$@" 2> /out/$name.said
}}
latmus() {{ # NAME IN OUT OPTION...
    name=$1 probe=$chip,in=$2,out=$3,peer=127.0.0.1; shift 3
    exec /agent run --warmup 0s --period {PERIOD_US}us --priority 90 -o /out/$name --method latmus --probe $probe "$@" \
        2> /out/$name.said
}}
listening() {{ # waits until the agent listens
    while ! grep -q " 0100007F:0902 .* 0A " /proc/net/tcp; do usleep 10000; done
}}
send() {{ # FILE SECONDS...: sends the file, and waits so long
    cat $1; usleep $2
}}

latmon told 1 0 & listening
(send /start 2600000; send /stop 500000) | nc 127.0.0.1 2306 > /out/told.bytes
wait
latmon unanswered 3 0 & listening
(send /start 2600000; send /stop 1700000) | nc 127.0.0.1 2306 > /out/unanswered.bytes
wait
latmon vanished 1 0 & listening
send /start 500000 | timeout 1 nc 127.0.0.1 2306 > /out/vanished.bytes
wait
latmon sent-away 1 0 & listening
for wrong in zero cells period garbage; do
    send /$wrong 100000 | timeout 1 nc 127.0.0.1 2306 > /out/$wrong.bytes
done
(send /start 500000; send /stop 500000) | nc 127.0.0.1 2306 > /out/served.bytes & served=$!
usleep 200000
send /start 100000 | timeout 1 nc 127.0.0.1 2306 > /out/second.bytes
wait $served
wait
latmon generator 3 0 & listening
latmus responder 1 2 --duration 2300ms &
wait
latmon left 3 0 & generator=$!; listening
latmus alone 1 2 --duration 9s & responder=$!
usleep 1600000
kill -KILL $generator
wait
latmon widow 3 0 & listening
latmus killed 1 2 --duration 9s & responder=$!
usleep 700000
kill -KILL $responder
wait
latmon slow 3 0 & listening
latmus stalled 1 2 --duration 1500ms & responder=$!
usleep 700000
kill -STOP $responder
usleep 312000
kill -CONT $responder
wait
"""


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    place = tmp_path_factory.mktemp("requests")
    requests = {
        "start": START,
        "stop": STOP,
        "zero": STOP,
        "cells": struct.pack(">II", PERIOD_US, 1001),
        "period": struct.pack(">II", PERIOD_US // 2, CELLS),
        "garbage": b"GET / HTTP/1.1\r\n\r\n",
    }
    for name, content in requests.items():
        (place / name).write_bytes(content)
    return probe_guest.run(KERNEL, SCRIPT, tmp_path_factory, 1, *((f"/{name}", place / name) for name in requests))


@dataclass(frozen=True)
class Figures:
    """What a client gets: the bulks with samples, the overruns of the one without, and the cells."""

    bulks: list[tuple[int, int, int, int, int]]
    last_overruns: int
    cells: list[int]


def received(path: Path, cells: int) -> Figures:
    """Unpacks what latmon sent, as latmus does: bulks up to the first without samples, then the cells, and no more."""
    data, at, bulks = path.read_bytes(), 0, []
    while True:
        high, low, least, most, overruns, samples = BULK.unpack_from(data, at)
        at += BULK.size
        if not samples:
            break
        bulks.append(((high << 32) + (low & 0xFFFFFFFF), least, most, overruns, samples))
    assert len(data) == at + 4 * cells
    return Figures(bulks, overruns, list(struct.unpack_from(f">{cells}I", data, at)))


def account(record: Record) -> dict[str, str]:
    return probe_accounts(record, "latmon")[0]


def overruns(answers_ns: np.ndarray) -> int:
    """Periods that passed before the answers, as latmon counts them: whole microseconds, and more than a period."""
    return int(np.maximum(-(-(answers_ns // 1000) // PERIOD_US) - 1, 0).sum())


def expect_figures_of(answers_ns: np.ndarray, figures: Figures, per_bulk: int) -> None:
    parts = [answers_ns[at : at + per_bulk] for at in range(0, len(answers_ns), per_bulk)]
    assert figures.bulks == [(part.sum(), part.min(), part.max(), overruns(part), len(part)) for part in parts]
    if figures.cells:
        cells = np.minimum(answers_ns // 1000, len(figures.cells) - 1)
        assert figures.cells == np.bincount(cells, minlength=len(figures.cells)).tolist()


def test_every_figure_that_a_client_gets_is_that_of_the_record(guest: Guest) -> None:
    figures = received(guest.folder / "told.bytes", CELLS)
    record = guest.record("told")
    (answers_ns,) = values(record).values()
    assert len(figures.bulks) == 3, "two of a second each, and the rest"
    assert [bulk[-1] for bulk in figures.bulks[:2]] == [1_000_000 // PERIOD_US] * 2
    expect_figures_of(answers_ns, figures, 1_000_000 // PERIOD_US)
    assert figures.last_overruns == 0
    told = account(record)
    assert told["outcome"] == "the client said stop"
    assert int(told["samples"]) == int(told["sent"]) == len(answers_ns)
    assert record.end is not None
    assert record.end.time_ns < 5e9, "the run ends with the client"


def test_an_edge_without_an_answer_is_an_overrun_on_the_wire_and_a_time_that_passed_in_the_record(guest: Guest) -> None:
    figures, record = received(guest.folder / "unanswered.bytes", CELLS), guest.record("unanswered")
    (waited_ns,) = values(record).values()
    assert (figures.bulks, figures.last_overruns, sum(figures.cells)) == ([], len(waited_ns), 0)
    assert (waited_ns >= 1e9).all()
    assert account(record)["overruns"] == str(len(waited_ns))


def test_periods_that_pass_before_an_answer_are_overruns_and_missed(guest: Guest) -> None:
    """The responder stood still for 312 ms."""
    record = guest.record("slow")
    (answers_ns,) = values(record).values()
    assert (answers_ns > 300e6).sum() == 1
    assert int(account(record)["overruns"]) == overruns(answers_ns) >= 60
    assert record.end is not None
    assert record.end.totals[0].missed == int((answers_ns // (PERIOD_US * 1000)).sum())


def test_a_client_that_vanishes_ends_the_run_with_one_sentence(guest: Guest) -> None:
    for name in ("vanished", "widow"):
        assert guest.said(name) == "rtproof-agent: latmon: the client vanished without a stop\n"
        told = account(open_record(guest.folder / name))
        assert told["outcome"] == "the client vanished without a stop"
        assert int(told["sent"]) <= int(told["samples"]) > 0


def test_requests_that_make_no_sense_are_sent_away_without_a_byte(guest: Guest) -> None:
    said = guest.said("sent-away").splitlines()
    reasons = [
        "a period is 1 to 1000000 us, not 0 us",
        "a histogram has 1000 cells at most, not 1001",
        "it wants a period of 2500 us and this run has one of 5000 us: start it with --period 2500us",
        f"a period is 1 to 1000000 us, not {int.from_bytes(b'GET ')} us",
        "another client is being served",
    ]
    assert len(said) == len(reasons)
    for line, reason in zip(said, reasons, strict=True):
        assert line.startswith("rtproof-agent: latmon: 127.0.0.1:")
        assert line.endswith(f" was sent away: {reason}")
    for name in ("zero", "cells", "period", "garbage", "second"):
        assert (guest.folder / f"{name}.bytes").read_bytes() == b""
    record = open_record(guest.folder / "sent-away")
    assert account(record)["refused"] == str(len(reasons))
    (answers_ns,) = values(record).values()
    expect_figures_of(answers_ns, received(guest.folder / "served.bytes", CELLS), 1_000_000 // PERIOD_US)


def test_what_the_generator_measured_stands_beside_the_responders_own(guest: Guest) -> None:
    """The agent at both ends: what went over the wire is the generator's record, bit by bit."""
    generator, responder = guest.record("generator"), guest.record("responder")
    (answers_ns,) = values(generator).values()
    theirs, told = account(responder), account(generator)
    assert theirs["role"] == "latmus"
    assert theirs["outcome"] == "latmon sent all its figures"
    figures = ("samples", "sum_ns", "min_ns", "max_ns", "overruns", "bulks", "period_us")
    assert [theirs[word] for word in figures] == [told[word] for word in figures]
    assert int(theirs["samples"]) == len(answers_ns)
    assert (int(theirs["min_ns"]), int(theirs["max_ns"])) == (answers_ns.min(), answers_ns.max())
    assert int(theirs["sum_ns"]) == answers_ns.sum()
    cells = np.bincount(np.minimum(answers_ns // 1000, CELLS_OF_AGENT - 1))
    assert {k: v for k, v in theirs.items() if k.startswith("cell_")} == {
        f"cell_{cell}": str(n) for cell, n in enumerate(cells.tolist()) if n
    }
    assert probe_guest.account(responder)["edges"] == told_edges(generator)
    assert theirs["strange"] == "0"


def told_edges(generator: Record) -> str:
    """Edges that the generator gave: all of them had an answer, the last ones too."""
    told = probe_guest.account(generator)
    assert (told["given"], told["unanswered"]) == (told["answered"], "0")
    return told["answered"]


def test_a_generator_that_is_gone_ends_the_responders_run(guest: Guest) -> None:
    assert guest.said("alone") == "rtproof-agent: latmon: latmon vanished\n"
    record = open_record(guest.folder / "alone")
    assert record.end is not None
    assert record.end.text == "it ends with the other side: latmon vanished"
    assert record.end.time_ns < 5e9
