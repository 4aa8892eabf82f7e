# SPDX-License-Identifier: Apache-2.0
"""Small or endless inputs that ask for much memory: is each read or refused within 1 GiB, by one sentence?

Each is made in a scratch folder, read by a command of its own, and removed. The memory is the peak that is resident
(wait4).
"""

import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count, repeat
from pathlib import Path
from typing import Any, NamedTuple

from fuzzing.targets import CAMPAIGN, GOOD_CELL, tool_outputs
from part import Bound, Details, Figure, Part

from rtproof import importers
from rtproof.core import plugins
from rtproof.record.chunks import ChunkType, frame_bytes

MIB = 1 << 20
MOST_MIB = 1024
PATIENCE_S = 120
LARGE = 31
"""MiB of a text: a little less than the most that is read of most tools."""
DEEP, DIGITS = 200_000, b"9" * 6_000
ANSWERS = (0, 1, 2, 3, 4)
HISTOGRAM = b"# Histogram\n"
LIVE = "T:{} ( 999) P:80 I:1000 C:{{0:7}} Min:      1 Act:    2 Avg:    2 Max:       9\n"
JSON = b'{"file_version":1,"cmdline:":"cyclictest -h 9","rt_test_version:":"2.5","return_code":0,"thread":{'
CELL = '"{{0}}":{{{{"histogram":{{{{"1":1}}}},"{}":1,"min":1,"max":1,"avg":1.0,"cpu":0}}}},'
CPU0 = b'"0":{"cycles":1,"min":1,"max":1,"avg":1.0,"cpu":0}'
XML = b'<rteval version="3"><cyclictest command_line="cyclictest -h 9"><core id="0"><statistics>'
XML += b"<samples>9</samples><minimum>1</minimum><maximum>9</maximum><mean>1</mean></statistics><histogram>"
XML_END = b"</histogram></core></cyclictest></rteval>"
JITTER = b'{"version":3,"cpu":{"0":{"count":9,"histogram":{'


class Bomb(NamedTuple):
    """A number among the pieces of the file is a hole of so many bytes. The file "-" is standard input, from a pipe."""

    name: str
    file: str
    pieces: Iterable[bytes | int]
    command: str = "show FILE --limit 100us"


def rows(row: str, mib: float = 0, head: bytes = b"", tail: bytes = b"") -> Iterator[bytes]:
    """A row with its number in place of {0}, until there are so many MiB."""
    yield head
    size, numbers = 0, count(1)
    while size < (mib or LARGE) * MIB:
        piece = "".join(row.format(next(numbers)) for _ in range(1 + 4_096 // len(row))).encode()
        size += len(piece)
        yield piece
    yield tail


def same(piece: bytes, mib: int = 0, head: bytes = b"", tail: bytes = b"") -> Iterator[bytes]:
    yield head
    yield from repeat(piece * (MIB // len(piece)), mib or LARGE)
    yield tail


def packed(pieces: Iterable[bytes], bits: int) -> Iterator[bytes]:
    unit = zlib.compressobj(9, zlib.DEFLATED, bits)
    yield from map(unit.compress, pieces)
    yield unit.flush()


def of_tools() -> Iterator[Bomb]:
    """For each tool that can be read: one of its lines again and again, and a number of it with 6,000 digits."""
    for module in plugins.load_plugins(importers):
        seed = next(each for each in tool_outputs() if module.looks_like(each.decode(errors="replace")))
        lines = seed.splitlines(keepends=True)
        line = next((each for each in reversed(lines[: 2 * len(lines) // 3]) if re.search(rb"\d", each)), lines[-1])
        at, number = seed.rindex(line), list(re.finditer(rb"\d+", line))[-1]
        yield Bomb(f"{module.TOOL}: a line", "a.txt", same(line, 0, seed[:at], seed[at:]))
        yield Bomb(f"{module.TOOL}: digits", "a.txt", [seed[: at + number.start()], DIGITS, seed[at + number.end() :]])


def of_texts() -> Iterator[Bomb]:
    text, histogram = partial(Bomb, file="a.txt"), partial(rows, "{0:06d} 000001\n", head=HISTOGRAM)
    yield text("one long line", pieces=same(b"1", head=HISTOGRAM + b"000001 "))
    yield text("a histogram of many rows", pieces=histogram())
    yield text("rows of 9,000 columns", pieces=rows("{0:06d}" + " 000001" * 9_000 + "\n", head=HISTOGRAM))
    yield text("many lines of figures", pieces=rows(LIVE.format(" 0")))
    yield text("many threads", pieces=rows(LIVE.format("{0:7}")))
    yield text("many values", pieces=rows("       0:{0:8}:       9\n", 60), command="judge FILE --limit 1ms")
    for each in (b" ", b"\n", b"\r", b"> > x\n", b"x\n", b"\xff", b"[ 1.000000] T: 0\n"):
        yield text(f"{each!r}", pieces=same(each))
    yield text("wide characters", pieces=same(b"1\n", head="\U0001f600".encode() + HISTOGRAM))
    yield text("UTF-16", pieces=same("1\n".encode("utf-16-le"), head=b"\xff\xfe"))
    yield text("gzip: 10 GiB", pieces=packed(repeat(bytes(MIB), 10_240), 31))
    yield text("a hole of 8 GiB", pieces=[HISTOGRAM, 8 << 30])
    yield text("compared", pieces=histogram(), command="compare FILE FILE --against FILE")
    yield text("JSON: deep unknown", pieces=[b'{"x":', b'{"a":' * DEEP, b"1", b"}" * DEEP, b"," + JSON[1:] + b"}}"])
    yield text("JSON: threads", pieces=rows(CELL.format("cycles"), head=JSON, tail=CPU0 + b"}}"))
    yield text("JSON: bins", pieces=rows('"{0}":1,', head=JITTER, tail=b'"0":1},"min":1,"max":9,"avg":1.0}}}'))
    yield text("XML: buckets", pieces=rows('<bucket index="{0}" value="1"/>', 29, XML, XML_END))
    yield text("XML: deep", pieces=same(b"<a>", head=b"<rteval>"))
    yield text("XML: attributes", pieces=rows(' a{0}=""', head=b"<rteval", tail=b"/>"))
    yield Bomb("endless rows", "-", histogram(1e9), "show -")
    yield Bomb("endless command line", "-", repeat(b"quiet " * 9_999), "audit --cmdline -")
    yield Bomb("configuration", "config", rows("CONFIG_A{0}=y\n"), "audit --kernel-config FILE")
    yield Bomb("settings", "sysctl", rows("kernel.a{0} = 1\n"), "audit --sysctl FILE")
    yield Bomb("a thread of a copy of /proc", "d/proc/1/stat", same(b"1 "), "audit --proc-dump d")


def of_samples() -> Iterator[Bomb]:
    def raw(seconds: int, threads: int, of_second: int) -> Iterator[bytes]:
        for second in range(1, seconds):
            times_ns = (1_000_000_000 // of_second * each for each in range(of_second))
            yield b"".join(struct.pack("<IqqQ", each, second, ns, 0) for ns in times_ns for each in range(threads))

    yield Bomb("samples.raw", "samples.raw", raw(18_000, 1, 1_000))
    yield Bomb("samples.raw: threads", "samples.raw", raw(4_000, 4_000, 1))
    yield Bomb("samples.csv, 92 MB", "samples.csv", rows("0;{0:010d}.000000009;9\n", 88))
    yield Bomb("samples.csv, 500 MiB", "samples.csv", rows("0;{0:010d}.000000009;9\n", 500))
    yield Bomb("samples.csv: a line", "samples.csv", same(b"1", 400, b"0;1.000000009;9\n"))


def trace_dat(kinds: Iterable[int], mib: int, cpus: int = 0) -> Iterator[bytes]:
    """A trace.dat of version 7 with sections of MiB of zeros. cpus: all have the same chunk of zeros."""
    zeros, at, body, options = b"".join(packed(repeat(bytes(MIB), mib), 15)), 1 << 18, b"", b""
    for kind in kinds:
        options += struct.pack("<HIQ", kind, 8, at + len(body))
        body += struct.pack("<HHIQII", kind, 1, 0, len(zeros) + 8, len(zeros), mib * MIB) + zeros
    if cpus:
        there, chunk = at + len(body) + 16, struct.pack("<III", 1, len(zeros), mib * MIB) + zeros
        told = struct.pack("<Q", there - 16) + b"\0mono\0" + struct.pack("<II", 4096, cpus)
        told += b"".join(struct.pack("<IQQ", cpu, there, len(chunk)) for cpu in range(cpus))
        options += struct.pack("<HI", 3, len(told)) + told
        body += struct.pack("<HHIQ", 3, 1, 0, len(chunk)) + chunk
    options += struct.pack("<HIQ", 0, 8, 0)
    head = b"\x17\x08\x44tracing7\0\0\x08" + struct.pack("<I", 4096) + b"zlib\x001.0\0"
    head += struct.pack("<Q", len(head) + 8) + struct.pack("<HHIQ", 0, 0, 0, len(options)) + options
    yield head.ljust(at, b"\0") + body


def of_traces() -> Iterator[Bomb]:
    trace = partial(Bomb, file="trace.dat", command="explain FILE --thread a")
    yield trace("trace.dat: six sections", pieces=trace_dat(range(16, 22), 1_000))
    yield trace("trace.dat: a chunk", pieces=trace_dat([20], 1_000, 1))
    yield trace("trace.dat: CPUs of one chunk", pieces=trace_dat([16], 60, 99))
    yield trace("trace.dat: a hole of 1 GiB", pieces=[*trace_dat([16], 1), 1_000 * MIB])
    yield trace("trace.dat: a hole of 9 GiB", pieces=[*trace_dat([16], 1), 9 << 30])


def record(kind: int, payload: Callable[[int], bytes], mib: float) -> Iterator[bytes]:
    """A record whose chunks have such payloads, by their numbers."""
    series = struct.pack("<HHiBqq", 0, 0, 0, 3, 1_000_000, 0) + b"\5\0timer\1\0x\7\0latency\2\0ns"
    yield frame_bytes(ChunkType.BEGIN, 0, struct.pack("<HH16sqqHHHH", 1, 7, bytes(16), *[0] * 6))
    yield frame_bytes(ChunkType.SERIES, 1, series)
    size, numbers = 0, count(2)
    while size < mib * MIB:
        number = next(numbers)
        piece = frame_bytes(kind, number, payload(number))
        size += len(piece)
        yield piece


def of_records() -> Iterator[Bomb]:
    pack, file = struct.pack, struct.pack("<qBBH", *[0] * 4)
    deflated = b"".join(packed([bytes(120_000) + os.urandom(8_000)], -15))
    full, none, one = (pack("<IqBBH", n, 9, 0, 4, 0) for n in (65_536, 0, 1))
    snapshot = pack("<HBBQqqqqHHBBH", 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 65_535) + os.urandom(8 * 65_535)
    for name, kind, mib, payload in (
        ("packed files", ChunkType.FILE, 99, file + pack("<H10sI", 10, b"/a.deflate", len(deflated)) + deflated),
        ("plain files", ChunkType.FILE, 1_600, file + pack("<HHI", 2, 0x612F, 9 * MIB) + bytes(9 * MIB)),
        ("empty files", ChunkType.FILE, 60, file + bytes(6)),
        ("events", ChunkType.EVENT, 60, pack("<qH", 0, 0) + bytes(4)),
        ("readings", ChunkType.TICK, 60, pack("<qH", 0, 0)),
        ("wrong chunks", ChunkType.FACT, 60, b""),
        ("seconds", ChunkType.SECONDS, 0.012, pack("<HHI", 0, 0, 0) + 3 * full),
        ("largest values", ChunkType.TOP, 0.012, pack("<HH", 0, 65_535) + 3 * full),
        ("snapshots", ChunkType.SNAPSHOT, 100, snapshot),
        ("conditions", ChunkType.CONDITIONS, 44, pack("<HHI", 0, 0, 1 << 20) + bytes(9 << 20)),
        ("above levels", ChunkType.ABOVE, 12, pack("<HHII", 0, 0, 0, 1 << 22) + b"\1\1\0" * (1 << 22)),
        ("series", ChunkType.SERIES, 60, pack("<HHiBqq", 7, 7, 0, 3, 9, 0) + bytes(8)),
        ("summaries", ChunkType.SUMMARY, 60, bytes(struct.calcsize("<HBBqqQQqqqQQQQQQI"))),
    ):  # fmt: skip
        command = "audit FILE" if "files" in name else "show FILE"
        yield Bomb(f"record: {name}", "a.rtrec", record(kind, partial(lambda each, _: each, payload), mib), command)
    for name, mib, array, step in (("blocks of zeros", 100, full, 65_536), ("blocks of one", 60, one, 1)):
        samples = partial(lambda array, step, n: pack("<HHQq", 0, 0, (n - 2) * step, (n - 2) * step * 10**6) + array
                          + 2 * none, array, step)  # fmt: skip
        yield Bomb(f"record: {name}", "a.rtrec", record(ChunkType.SAMPLES, samples, mib))
    begin = next(record(0, bytes, 1))
    yield Bomb("record: a hole of 8 GiB", "a.rtrec", [begin, 8 << 30])
    yield Bomb("record: magic words", "a.rtrec", same(b"RTP\x1a", 60, begin))
    yield Bomb("record: cut chunks of 16 MiB", "a.rtrec", same(b"RTP\x1a\0\0\0\1" + bytes(8_184), 20, begin))


def of_documents() -> Iterator[Bomb]:
    """The files that rtproof and its users write."""
    for file, command in (("run/run.json", "show run"), ("run/unfinished.json", "attach run"),
                          ("campaign/campaign.json", "report campaign"), ("result.json", "matrix FILE"),
                          ("p.toml", "run --profile FILE"), ("l.toml", "run --load FILE")):  # fmt: skip
        start, end = (b"x=", b"\n") if file.endswith("toml") else (b'{"x":', b"}")
        for shape, pieces in (("deep", [b"[" * DEEP, b"]" * DEEP]), ("digits", [DIGITS]), ("3 GiB", [3 << 30]),
                              ("values", [b"[", *same(b"[[]],", 15), b"0]"])):  # fmt: skip
            yield Bomb(f"{file}: {shape}", file, [start, *pieces, end], command)


def lay_out(bomb: Bomb, folder: Path) -> None:
    """Write the file, beside a whole record and in a whole campaign where it belongs there."""
    if bomb.file.startswith(("run/", "campaign/")):
        subprocess.run(["cp", "-r", GOOD_CELL, folder / "run"], check=True)
        subprocess.run(["cp", "-r", CAMPAIGN, folder / "campaign"], check=True)
    place = folder / bomb.file
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as file:
        for piece in bomb.pieces if bomb.file != "-" else ():
            if isinstance(piece, int):
                file.truncate(file.seek(piece, os.SEEK_END))
            else:
                file.write(piece)


def read(bomb: Bomb, folder: Path) -> tuple[int, float, int, str]:
    """MiB at most, seconds, exit code (below 0: a signal), and the end of what was printed."""
    words = [bomb.file if each == "FILE" else each for each in bomb.command.split()]
    begun, said = time.monotonic(), folder / "said"
    with said.open("wb") as output:
        popen = subprocess.Popen(
            [sys.executable, "-m", "rtproof", *words], cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=output
        )
    resource.prlimit(popen.pid, resource.RLIMIT_CPU, (PATIENCE_S, PATIENCE_S))
    assert popen.stdin
    with suppress(BrokenPipeError), popen.stdin:
        for piece in bomb.pieces if bomb.file == "-" else ():
            popen.stdin.write(bytes(piece))
    _, status, used = os.wait4(popen.pid, 0)
    popen.returncode = os.waitstatus_to_exitcode(status)
    last = said.read_bytes()[-400:].decode(errors="replace").strip().splitlines() or [""]
    return used.ru_maxrss >> 10, time.monotonic() - begun, popen.returncode, last[-1]


def bombs() -> dict[str, Bomb]:
    """All of them by name."""
    every = (*of_texts(), *of_samples(), *of_traces(), *of_records(), *of_documents(), *of_tools())
    return {bomb.name: bomb for bomb in every}


def measure(name: str) -> dict[str, Any]:
    """What reading one takes, and how it ends."""
    bomb = bombs()[name]
    with tempfile.TemporaryDirectory() as folder:
        lay_out(bomb, Path(folder))
        mib, seconds, code, last = read(bomb, Path(folder))
    bad = code not in ANSWERS or "defect" in last or "little memory" in last
    return {"mib": mib, "seconds": seconds, "code": code, "last_line": last, "without_an_answer": int(bad)}


def row(name: str, one: Details) -> list[str]:
    return [f"| {name} | {one['mib']:,} | {one['seconds']:.1f} | {one['code']} | {one['last_line'][:150]} |"]


PART = Part(
    goal=f"no input takes more than {MOST_MIB:,} MiB, and each is read or refused by one sentence",
    items=lambda: list(bombs()),
    measure=measure,
    figures=(
        Figure("mib", "largest resident memory", "MB", Bound(most=MOST_MIB)),
        Figure("without_an_answer", "without an answer", bound=Bound(0, 0)),
    ),
    head="| input | MiB | s | exit code | the last line |",
    rows=row,
    long="it takes ten minutes",
)
