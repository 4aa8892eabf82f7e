# SPDX-License-Identifier: Apache-2.0
"""What comes from outside is read within a bound, and one that is too large, too deep or too long is one sentence."""

import gzip
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from rtproof.cli.main import main
from rtproof.core.errors import RecordError
from rtproof.record import chunks, reading
from rtproof.record.chunks import ChunkType, FileWindow, Frame, frame_bytes, walk_chunks

ROOT = Path(__file__).parent.parent
GOOD_CELL = ROOT / "tests" / "data" / "written_by_537db1b" / "campaign" / "cells" / "good"
MIB = 1 << 20
DEEP, DIGITS = b"[" * 100_000, b"9" * 6_000

DIRECT = re.compile(r"\.read_(?:text|bytes)\(|json\.loads?\(|tomllib\.load|msgspec\.json\.decode\(")
OWN, KERNEL, LAB, PROCESS = "its own files", "/proc and /sys", "what the lab builds or boots", "its own processes"
EXCEPTIONS = {
    "agents/build.py": OWN,
    "audit/boot_words.py": OWN,
    "audit/check_file.py": OWN,
    "audit/functions/kernel.py": OWN,
    "boards/kexec.py": KERNEL,
    "boards/upload.py": "the agent",
    "cli/commands/agent.py": "the agent",
    "cli/main.py": OWN,
    "core/bounded.py": "here it is",
    "core/scratch.py": KERNEL,
    "core/toml.py": "bytes that were read within a bound",
    "doctor/examination.py": PROCESS,
    "doctor/host.py": OWN,
    "experiment/audited_system.py": "the facts that were just collected",
    "experiment/exported_files.py": "what it just wrote",
    "experiment/application_runs.py": KERNEL,
    "experiment/other_tools.py": "importers.read_text, of what was collected within a bound",
    "experiment/guest_runner.py": "the agent",
    "experiment/target_runner.py": "the agent",
    "cli/commands/cyclictest.py": KERNEL,
    "compare/run_metrics.py": OWN,
    "experiment/cyclictest_output.py": KERNEL,
    "explain/causes.py": OWN,
    "explain/thread_modes.py": OWN,
    "experiment/given_files.py": OWN,
    "lab/cell_explanation.py": LAB,
    "lab/guest_cell.py": LAB,
    "lab/kernel_catalogue.py": LAB,
    "lab/kernel_comparison.py": LAB,
    "lab/systems.py": LAB,
    "lab/verify_inputs.py": LAB,
    "report/formats/html.py": OWN,
    "run/running_records.py": KERNEL,
    "tune/knobs.py": OWN,
    "tune/permanent.py": OWN,
    "vm/cache_folders.py": LAB,
    "vm/emulators.py": LAB,
    "vm/guest.py": LAB,
    "vm/initramfs.py": LAB,
    "vm/kernel_files.py": LAB,
    "vm/machine.py": LAB,
    "vm/qemu_process.py": PROCESS,
}
"""Files of src/rtproof that read without ``core.bounded``, and what they read."""


def test_whoever_reads_from_outside_reads_within_a_bound() -> None:
    source = ROOT / "src" / "rtproof"
    found = {
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        if DIRECT.search(file.read_text(encoding="utf-8"))
    }
    assert found == set(EXCEPTIONS)


def placed(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_documents_that_are_deep_long_or_large_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOOD_CELL, "run")
    shutil.copytree(GOOD_CELL.parent.parent, "campaign")
    for file, command in (
        ("run/run.json", "show run"),
        ("run/unfinished.json", "attach run"),
        ("campaign/campaign.json", "report campaign"),
        ("result.json", "matrix result.json"),
        ("lab.json", "lab verify lab.json"),
        ("profile.toml", "run --profile profile.toml"),
        ("load.toml", "run --load load.toml"),
    ):
        start = b"x=" if file.endswith("toml") else b'{"x":'
        for content, words in (
            (start + DEEP, "nested too deeply"),
            (start + DIGITS, ""),
            (b" " * 16 * MIB + b"{}", "more than any file of this kind"),
        ):
            placed(Path(file), content)
            assert main(command.split()) == 2
            said = capsys.readouterr().err
            assert file in said
            assert words in said
            assert "defect" not in said
            assert "set_int_max_str_digits" not in said


def head_of_trace(*sections: bytes) -> bytes:
    """A trace.dat of version 7 whose options name these sections, by their numbers from 16 on."""
    whole = b"\x17\x08\x44tracing7\0\0\x08" + struct.pack("<I", 4096) + b"zlib\x001.0\0"
    options, body, at = b"", b"", 4_096
    for number, section in enumerate(sections, 16):
        options += struct.pack("<HIQ", number, 8, at + len(body))
        body += struct.pack("<HHIQ", number, 1, 0, len(section)) + section
    options += struct.pack("<HIQ", 0, 8, 0)
    whole += struct.pack("<Q", len(whole) + 8) + struct.pack("<HHIQ", 0, 0, 0, len(options)) + options
    return whole.ljust(at, b"\0") + body


def many_zeros(mib: int) -> bytes:
    """Zeros that zlib packed, with the sizes before them."""
    packed = zlib.compress(bytes(mib * MIB), 1)
    return struct.pack("<II", len(packed), mib * MIB) + packed


def seconds_of_width_0() -> bytes:
    """A record of 6 MiB with 4 billion rows of seconds."""
    array = struct.pack("<IqBBH", 65_536, 9, 0, 4, 0)
    payload = struct.pack("<HHI", 0, 0, 0) + 3 * array
    begin = struct.pack("<HH16sqqHHHH", 1, 7, bytes(16), *[0] * 6)
    several = b"".join(frame_bytes(ChunkType.SECONDS, number, payload) for number in range(1, 65_536))
    return frame_bytes(ChunkType.BEGIN, 0, begin) + several


BOMBS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "packed.txt.gz": (lambda: gzip.compress(bytes(256 * MIB), 1), "show {0}", "unpacked, it is larger than 64 MiB"),
    "lines.txt": (lambda: b"# Histogram\n" + b"x\n" * 4_000_001, "show {0}", "more than 4,000,000 lines"),
    "deep.xml": (lambda: b"<rteval>" + b"<a>" * 1_000_001, "show {0}", "more than 1,000,000 elements"),
    "trace.dat": (
        lambda: head_of_trace(*[many_zeros(220)] * 4),
        "explain {0} --thread a",
        "its events and formats take more than 640 MiB",
    ),
    "seconds.rtrec": (seconds_of_width_0, "show {0}", "takes more than 640 MiB"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_would_take_much_is_refused_before_it_does(name: str, tmp_path: Path) -> None:
    make, command, words = BOMBS[name]
    place = placed(tmp_path / name, make())
    ended = subprocess.run(
        [sys.executable, "-m", "rtproof", *command.format(place).split()],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)),
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr


def test_what_an_agent_writes_each_second_may_take_memory_in_proportion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a day of 64 CPUs could not be read."""
    with (ROOT / "tests" / "data" / "golden" / "x86_64-1.3.rtrec").open("rb") as file:
        window = FileWindow(file.fileno(), os.fstat(file.fileno()).st_size)
        frames = [(part.type, bytes(part.payload)) for part in walk_chunks(window) if isinstance(part, Frame)]
    rows = [each for each in frames if each[0] in (ChunkType.SECONDS, ChunkType.CONDITIONS)]
    written = [*frames[:-1], *rows * 1_000, frames[-1]]
    long = tmp_path / "long.rtrec"
    long.write_bytes(b"".join(frame_bytes(kind, at, payload) for at, (kind, payload) in enumerate(written)))
    monkeypatch.setattr(reading, "MOST_BYTES", 100_000)
    assert reading.open_record(long).end
    monkeypatch.setattr(reading, "ROWS_FACTOR", 2)
    with pytest.raises(RecordError, match="damaged or too large"):
        reading.open_record(long)


BEGIN = frame_bytes(ChunkType.BEGIN, 0, struct.pack("<HH16sqqHHHH", 1, 7, bytes(16), *[0] * 6))


def test_a_small_file_with_samples_of_months_is_refused(tmp_path: Path) -> None:
    """A block of 65,536 equal samples has 88 bytes, and each of its seconds takes memory."""

    def zeros(number: int) -> bytes:
        first = (number - 2) * 65_536
        full, none = (struct.pack("<IqBBH", n, 9, 0, 4, 0) for n in (65_536, 0))
        return struct.pack("<HHQq", 0, 0, first, first * 1_000_000) + full + 2 * none

    small = tmp_path / "months.rtrec"
    series = struct.pack("<HHiBqq", 0, 0, 0, 3, 1_000_000, 0) + b"\5\0timer\1\0x\7\0latency\2\0ns"
    blocks = [frame_bytes(ChunkType.SAMPLES, number, zeros(number)) for number in range(2, 100_000)]
    small.write_bytes(b"".join((BEGIN, frame_bytes(ChunkType.SERIES, 1, series), *blocks)))
    with pytest.raises(RecordError, match="damaged or too large"):
        reading.open_record(small)


@pytest.mark.parametrize(
    "piece", [chunks.CHUNK_MAGIC, chunks.CHUNK_HEADER.pack(chunks.CHUNK_MAGIC, 1 << 20, 2, 0, 1, 0)]
)
def test_a_search_for_chunks_costs_in_proportion_to_the_file(
    piece: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 MiB took minutes: each magic cost a copy of a quarter MiB, and each head a checksum of all that it claims."""
    size = 4 << 20
    looked_at, checked = Mock(wraps=chunks.frame_at), Mock(wraps=chunks.checksum)
    monkeypatch.setattr(chunks, "frame_at", looked_at)
    monkeypatch.setattr(chunks, "checksum", checked)
    small = tmp_path / "magic.rtrec"
    small.write_bytes(BEGIN + piece * (size // len(piece)))
    assert reading.open_record(small).damage[0].length == size // len(piece) * len(piece)
    assert looked_at.call_count < 100
    assert checked.call_count * (1 << 20) < 24 * size
