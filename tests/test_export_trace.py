# SPDX-License-Identifier: Apache-2.0
"""The exporters trace-txt and trace-dat; that trace-cmd reads traces of today is shown in test_agent_trace.py."""

import gzip
import struct
from pathlib import Path

import pytest
from analysis_records import block, record
from trace_cases import FILES, TEXT, events_of_text, report_of_trace_cmd, trace_cmd, traced

from rtproof.core.errors import UserError
from rtproof.exporters import trace_dat, trace_txt
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Record
from rtproof.record.reading import open_record
from rtproof.summary import kernel_trace
from rtproof.summary.kernel_trace import page_layout, print_addresses


def test_the_text_is_that_of_the_kernel(tmp_path: Path) -> None:
    sentence = trace_txt.export(analyse(traced()), tmp_path / "a", {})
    assert (tmp_path / "a").read_text() == TEXT
    assert "5 events, by the clock mono" in sentence


@pytest.mark.parametrize("module", [trace_txt, trace_dat])
def test_without_a_trace_there_is_nothing_to_write(tmp_path: Path, module: object) -> None:
    export = module.export  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=r"this run was not traced"):
        export(analyse(record([block([1_000])])), tmp_path / "a", {})
    assert list(tmp_path.iterdir()) == []


class Reader:
    """Takes a file apart as trace-cmd.dat.v6(5) says."""

    def __init__(self, content: bytes, order: str) -> None:
        self.content, self.at, self.order = content, 0, order

    def take(self, size: int) -> bytes:
        self.at += size
        return self.content[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int(struct.unpack(self.order + {1: "B", 2: "H", 4: "I", 8: "Q"}[size], self.take(size))[0])

    def sized(self, size: int) -> str:
        return self.take(self.number(size)).decode()

    def word(self) -> str:
        end = self.content.index(b"\0", self.at)
        return self.take(end + 1 - self.at)[:-1].decode()


@pytest.mark.parametrize(("endian", "order"), [("little", "<"), ("big", ">")])
def test_the_file_is_laid_out_as_its_manual_says(tmp_path: Path, endian: str, order: str) -> None:
    about = FILES["about"].replace("little", endian)
    trace_dat.export(analyse(traced(about=about)), tmp_path / "a", {})
    file = Reader((tmp_path / "a").read_bytes(), order)
    assert file.take(12) == b"\x17\x08\x44tracing6\0"[:12]
    assert [file.number(1), file.number(1), file.number(4)] == [endian == "big", 8, 4096]
    assert [file.word(), file.sized(8)] == ["header_page", FILES["header_page"]]
    assert [file.word(), file.sized(8)] == ["header_event", FILES["header_event"]]
    assert [file.number(4), file.sized(8)] == [1, FILES["events/ftrace/print/format"]]
    systems = {}
    for _ in range(file.number(4)):
        name = file.word()
        systems[name] = [file.sized(8).split()[1] for _ in range(file.number(4))]
    assert systems == {"irq": ["irq_handler_entry"], "sched": ["sched_waking", "sched_switch"]}
    assert [file.sized(4), file.sized(4), file.sized(8)] == ["", "", FILES["saved_cmdlines"]]
    assert [file.number(4), file.word()] == [2, "options  "]
    of_buffers = [(file.number(2), file.sized(4)) for _ in range(2)]
    assert of_buffers == [
        (2, "CPU: 0\n" + FILES["cpu0/stats"].replace("entries: 3", "entries: 0") + "\0"),
        (2, "CPU: 1\n" + FILES["cpu1/stats"].replace("entries: 2", "entries: 0") + "\0"),
    ]
    clock = FILES["trace_clock"]
    assert [file.number(2), file.sized(4), file.number(2)] == [4, f"{clock}\0", 0]
    assert file.word() == "flyrecord"
    places = [(file.number(8), file.number(8)) for _ in range(2)]
    assert file.sized(8) == clock
    assert [size for _, size in places] == [8192, 0]
    assert places[0][0] % 4096 == 0
    assert file.content[places[0][0] :] == b"a" * 8192


@pytest.fixture
def arm(tmp_path: Path) -> Record:
    """Of a 32-bit ARM under Linux 6.1 PREEMPT_RT: 40 loops of the application with marks, in a buffer of 8 KiB."""
    whole = Path(__file__).parent / "data" / "trace" / "armhf.rtrec.gz"
    (tmp_path / "record").write_bytes(gzip.decompress(whole.read_bytes()))
    return open_record(tmp_path / "record")


def test_a_trace_of_a_32_bit_kernel_is_read_event_by_event(arm: Record, tmp_path: Path) -> None:
    said = trace_dat.export(analyse(arm), tmp_path / "trace.dat", {})
    text = kernel_trace.trace_text(arm, "text")
    events = events_of_text(text)
    assert said.endswith(f": {len(events)} events on 3 pages of 4096 bytes from 1 CPU")
    assert page_layout(arm).commit_size == 4
    assert print_addresses(arm) == {0xC0473AD4: "tracing_mark_write"}
    assert sum(int(kernel_trace.trace_statistics(arm, cpu)["entries"]) for cpu in kernel_trace.trace_cpus(arm)) == len(
        events
    )


def test_trace_cmd_finds_the_same_in_it(arm: Record, tmp_path: Path) -> None:
    trace_dat.export(analyse(arm), tmp_path / "trace.dat", {})
    assert report_of_trace_cmd(tmp_path / "trace.dat") == events_of_text(kernel_trace.trace_text(arm, "text"))
    assert "print:                tracing_mark_write: work 1" in trace_cmd("report", str(tmp_path / "trace.dat"))


def test_pages_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="lost a part of its trace"):
        trace_dat.export(analyse(traced(**{"cpu0/raw": "a" * 100})), tmp_path / "a", {})
    whole = "field: local_t commit; offset:8; size:8;\nfield: char data; offset:16; size:4080;"
    for page in (
        "nothing",
        whole.replace("16; size:4080", "0; size:0"),
        whole.replace("8;\n", "900;\n"),
        f"{whole[:-5]}{9**20};",
    ):
        with pytest.raises(UserError, match="does not tell how the pages"):
            trace_dat.export(analyse(traced(header_page=page)), tmp_path / "a", {})
    assert list(tmp_path.iterdir()) == []
