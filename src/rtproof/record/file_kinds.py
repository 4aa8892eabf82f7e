# SPDX-License-Identifier: Apache-2.0
"""Name the kind of a file that is no run, so that the error says which file to give instead.

``FILE_KINDS`` has one row for each kind. The first row that fits counts. For a new kind, add a row here and an
example file to ``tests/test_record_folder.py``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtproof.core.phrases import quantity
from rtproof.core.printable import one_line
from rtproof.record.chunks import is_record
from rtproof.record.run_folder import RECORD_NAME

HEAD_BYTES = 65_536
"""How much of a file is read to find its kind."""
RECORD_SUFFIXES = (".rtrec",)


@dataclass(frozen=True)
class FileKind:
    """A kind of file that is no run. ``name``: completes the sentence "the file is ...".

    ``fits``: takes the first bytes of a file and says whether it is of this kind. ``instead``: advice for the user.
    """

    name: str
    fits: Callable[[bytes], bool]
    instead: Callable[[Path, bytes], str] = lambda _path, _head: ""


def _magic(*beginnings: bytes, at: int = 0) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(beginnings, at)


def _text(pattern: str) -> Callable[[bytes], bool]:
    """A test for text that contains a regular expression, in which ^ is the beginning of a line."""
    compiled = re.compile(pattern.encode(), re.MULTILINE)
    return lambda head: b"\0" not in head and compiled.search(head) is not None


def _is_picture_of_ours(head: bytes) -> bool:
    return head.startswith(b"\x89PNG") and b"Software\0rtproof" in head


def _rt_tests(program: str) -> Callable[[bytes], bool]:
    return _text(rf'"cmdline:":\s*"(?:[^" ]*/)?{program}\b')


def _hint(words: str) -> Callable[[Path, bytes], str]:
    return lambda _path, _head: words


def _missing(words: str) -> Callable[[Path, bytes], str]:
    return _hint(f"{words} is missing")


def _run_of(path: Path, _head: bytes = b"") -> str:
    """Advice that names the run from which a file was made. The run lies beside the file or is the file's folder."""
    stem = path.with_name(path.name.split(".", 1)[0] or path.name)
    beside = [stem, *(stem.with_name(stem.name + suffix) for suffix in RECORD_SUFFIXES)]
    inside = [path.parent] if (path.parent / RECORD_NAME).exists() or (path.parent / "campaign.json").exists() else []
    for place in (*inside, *beside):
        if place != path and _holds_runs(place):
            return f"give the run it was made from, {place}"
    return "give the run folder or the record that it was made from"


def _holds_runs(place: Path) -> bool:
    """Whether the place is a folder or a record. Another kind of file with the same name is no run."""
    try:
        return is_record(place) if place.is_file() else place.is_dir()
    except OSError:
        return False


def _compressed(program: str) -> Callable[[Path, bytes], str]:
    return _hint(f"unpack it first ({program})")


FILE_KINDS = (
    FileKind("an ELF program, library or kernel module", _magic(b"\x7fELF")),
    FileKind("a file that gzip packed", _magic(b"\x1f\x8b"), _compressed("gunzip")),
    FileKind("a file that xz packed", _magic(b"\xfd7zXZ\x00"), _compressed("unxz")),
    FileKind("a file that zstd packed", _magic(b"\x28\xb5\x2f\xfd"), _compressed("unzstd")),
    FileKind("a file that bzip2 packed", _magic(b"BZh"), _compressed("bunzip2")),
    FileKind("a ZIP archive", _magic(b"PK\x03\x04"), _compressed("unzip")),
    FileKind("a tar archive", _magic(b"ustar", at=257), _compressed("tar -x")),
    FileKind("a profile of perf (perf.data)", _magic(b"PERFILE2", b"2ELIFREP"), _hint("perf report reads it")),
    FileKind("a Parquet table", _magic(b"PAR1"), _run_of),
    FileKind("a PDF document", _magic(b"%PDF")),
    FileKind("a picture of rtproof", _is_picture_of_ours, _run_of),
    FileKind("a picture", _magic(b"\x89PNG", b"\xff\xd8\xff", b"GIF8")),
    FileKind("a report of rtproof in HTML", _text(r"<title>rtproof: "), _run_of),
    FileKind("an HTML page", _text(r"^\s*<(!doctype html|html)|^\s*<!DOCTYPE html")),
    FileKind("verdicts of rtproof judge in JUnit's form", _text(r'<testsuites name="rtproof"'), _run_of),
    FileKind("the result of rteval", _text(r"<rteval\b")),
    FileKind("a report of rtproof in Markdown", _text(r"\A#{1,2} rtproof: "), _run_of),
    FileKind("a report of rtproof as text", _text(r"\Artproof: "), _run_of),
    FileKind("what rtproof run noted about a run (run.json)", _text(r'"agent_sha256":'), _run_of),
    FileKind("a result of rtproof in JSON", _text(r'"schema":\s*"rtproof\.|"format":\s*"rtproof-'), _run_of),
    FileKind(
        "what rtproof keeps of a series of runs (campaign.json)",
        _text(r'\A\s*\{\s*"command":[\s\S]*"(profile|article)":'),
        _run_of,
    ),
    FileKind(
        "the output of rt-tests' oslat",
        _text(r"^oslat V |^\s*Core:\s+\d+.*\n(.*\n)*\s*Minimum:.*\(us\)"),
        _missing('its table, from "Core:" to "Max-Min:"'),
    ),
    FileKind("the output of rt-tests' pi_stress", _rt_tests("pi_stress")),
    FileKind("the output of rt-tests' rt-migrate-test", _rt_tests("rt-migrate-test")),
    FileKind("the output of rt-tests' rt-migrate-test", _text(r"^\s*Task \d+ \(prio \d+\) \(pid \d+\)")),
    FileKind("the output of rt-tests' hackbench", _text(r"^Running in (process|threaded) mode with \d+ groups")),
    FileKind(
        "the output of hwlatdetect",
        _text(r"^hwlatdetect: |^Samples exceeding threshold:"),
        _missing('the line "hwlatdetect:  test duration ... seconds"'),
    ),
    FileKind("the output of a program of rt-tests", _text(r'"rt_test_version:":')),
    FileKind(
        "the output of rtla timerlat",
        _text(r"RTLA timerlat|^\s+Timer Latency\s*$"),
        _missing('the line "# RTLA timerlat histogram" or the head of a table, "CPU COUNT | cur min avg max"'),
    ),
    FileKind(
        "the output of rtla osnoise",
        _text(r"RTLA osnoise|^\s+Operating System Noise\s*$"),
        _missing('the line "# RTLA osnoise histogram" or the head of a table, "CPU Period Runtime Noise"'),
    ),
    FileKind(
        "the YAML of stress-ng",
        _text(r"^ +stress-ng-version:"),
        _hint("it tells the system and what was done, and none of cyclic's latencies; give the text that it printed"),
    ),
    FileKind(
        "the output of stress-ng",
        _text(r"^stress-ng: (info|debug|metrc|metric):"),
        _missing("the lines of its stressor cyclic, which alone measures latencies (--cyclic 1)"),
    ),
    FileKind("the log of rt-app", _text(r"^#idx\s+perf\s+run\s+period")),
    FileKind(
        "the task set of rt-app",
        _text(r'\A\s*\{\s*"(tasks|global)":'),
        _hint("it says what to run, not what was measured"),
    ),
    FileKind("the output of EVL's latmus", _text(r"^# test started on: |^# context: ")),
    FileKind("the output of RTAI's latency test", _text(r"RTAI (Testsuite|latency calibration)")),
    FileKind(
        "the output of cyclictest without figures",
        _text(r"^# /dev/cpu_dma_latency set to|^policy: \w+: loadavg"),
        _missing("a line of a thread (T: 0 ...) or a histogram, so it was ended before it measured"),
    ),
    FileKind("a histogram log (HdrHistogram)", _text(r"\A#\[Histogram log format"), _run_of),
    FileKind(
        "a table of samples that rtproof export wrote", _text(r"\A(#.*\n)*(limit_ns,)?thread,(cpu|loop),"), _run_of
    ),
    FileKind("a table of bins that rtproof export wrote", _text(r"\A(#.*\n)*from_ns,to_ns"), _run_of),
    FileKind(
        "a trace of the kernel as text, which rtproof does not read",
        _text(r"\A# tracer: |\A *\S.{0,20}-\d+ +(\([ \d-]*\) +)?\[\d{3}\] +(\S+ +)?\d+\.\d{6,9}: \w+"),
        lambda path, head: f"{_run_of(path, head)}, or the trace.dat of the same events",
    ),
    FileKind("JSON of an unknown form", _text(r"\A\s*[\{\[]\s*[\"\[\{]")),
)


def file_kind_of(path: Path) -> tuple[FileKind, bytes] | None:
    """The first kind that fits a file, and the file's first bytes. None if no kind fits or the file cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return None
    kind = next((kind for kind in FILE_KINDS if kind.fits(head)), None)
    return (kind, head) if kind else None


def advice(path: Path) -> str:
    """A sentence that names a file's kind and says what to give instead, or what it looks like.

    "" for a damaged record, and for a file that cannot be read.
    """
    found = file_kind_of(path)
    if found is None:
        return _likeness(path)
    kind, head = found
    instead = kind.instead(path, head)
    return f"{path} is {kind.name}{f': {instead}' if instead else ''}"


SHOWN = 60
"""So many characters of a file of an unknown kind are printed."""


def _likeness(path: Path) -> str:
    """What a file of an unknown kind looks like, and what is missing in it."""
    try:
        if is_record(path):
            return ""
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return ""
    text = head.decode(errors="replace")
    if b"\0" in head or text.count("\ufffd") * 10 > len(text):
        return f"{path} is no text and begins with the bytes {head[:8].hex(' ')}: no known file begins so"
    first = next((line for line in text.splitlines() if line.strip()), "")
    if not first:
        return f"{path} holds blanks only"
    lines = quantity(text.count("\n") + (not text.endswith("\n")), "line")
    more = "at least " if len(head) == HEAD_BYTES else ""
    return (
        f"{path} is a text of {more}{lines}, the first of them {one_line(first, SHOWN)!r}: it has neither the heading "
        "nor the figures of any tool that is known"
    )
