# SPDX-License-Identifier: Apache-2.0
"""Name the kind of a file that is no run, so that the error says which file to give instead."""

import re
from pathlib import Path

from rtproof.core.phrases import quantity
from rtproof.core.printable import one_line
from rtproof.record.chunks import is_record
from rtproof.record.run_folder import RECORD_NAME

HEAD_BYTES = 65_536
"""How much of a file is read to find its kind."""
SHOWN = 60
"""So many characters of a file of an unknown kind are printed."""
OF_RUN = "give the run folder or the record that it was made from"
BINARY_KINDS = (
    ("an ELF program, library or kernel module", rb"\x7fELF", ""),
    ("a file that gzip packed", rb"\x1f\x8b", "unpack it first (gunzip)"),
    ("a file that xz packed", rb"\xfd7zXZ\x00", "unpack it first (unxz)"),
    ("a file that zstd packed", rb"\x28\xb5\x2f\xfd", "unpack it first (unzstd)"),
    ("a file that bzip2 packed", rb"BZh", "unpack it first (bunzip2)"),
    ("a ZIP archive", rb"PK\x03\x04", "unpack it first (unzip)"),
    ("a tar archive", rb"(?s:.{257})ustar", "unpack it first (tar -x)"),
    ("a profile of perf (perf.data)", rb"PERFILE2|2ELIFREP", "perf report reads it"),
    ("a Parquet table", rb"PAR1", OF_RUN),
    ("a PDF document", rb"%PDF", ""),
    ("a picture of rtproof", rb"(?s:\x89PNG.*Software\x00rtproof)", OF_RUN),
    ("a picture", rb"\x89PNG|\xff\xd8\xff|GIF8", ""),
)
"""Of each kind its name, a regular expression that its beginning matches, and what to do instead."""
TEXT_KINDS = (
    ("a report of rtproof", r"<title>rtproof: |\A(#{1,2} )?rtproof: ", OF_RUN),
    ("an HTML page", r"^\s*<(!doctype html|!DOCTYPE html|html)", ""),
    ("a result of rtproof", r'<testsuites name="rtproof"|"schema":\s*"rtproof\.|"format":\s*"rtproof-', OF_RUN),
    ("what rtproof keeps beside a run", r'"agent_sha256":|\A\s*\{\s*"command":[\s\S]*"(profile|article)":', OF_RUN),
    ("the result of rteval", r"<rteval\b", ""),
    (
        "the output of rt-tests' oslat",
        r"^oslat V |^\s*Core:\s+\d+.*\n(.*\n)*\s*Minimum:.*\(us\)",
        'its table, from "Core:" to "Max-Min:" is missing',
    ),
    (
        "the output of a program of rt-tests",
        r'"rt_test_version:":|^\s*Task \d+ \(prio \d+\) \(pid \d+\)|^Running in (process|threaded) mode with \d+ ',
        "",
    ),
    (
        "the output of hwlatdetect",
        r"^hwlatdetect: |^Samples exceeding threshold:",
        'the line "hwlatdetect:  test duration ... seconds" is missing',
    ),
    (
        "the output of rtla timerlat",
        r"RTLA timerlat|^\s+Timer Latency\s*$",
        'the line "# RTLA timerlat histogram" or the head of a table, "CPU COUNT | cur min avg max" is missing',
    ),
    (
        "the output of rtla osnoise",
        r"RTLA osnoise|^\s+Operating System Noise\s*$",
        'the line "# RTLA osnoise histogram" or the head of a table, "CPU Period Runtime Noise" is missing',
    ),
    (
        "the output of stress-ng",
        r"^stress-ng: (info|debug|metrc|metric):|^ +stress-ng-version:",
        "the lines of its stressor cyclic, which alone measures latencies (--cyclic 1) are missing; give the text that "
        "it printed",
    ),
    ("the log of rt-app", r"^#idx\s+perf\s+run\s+period", ""),
    ("the task set of rt-app", r'\A\s*\{\s*"(tasks|global)":', "it says what to run, not what was measured"),
    ("the output of EVL's latmus", r"^# test started on: |^# context: ", ""),
    ("the output of RTAI's latency test", r"RTAI (Testsuite|latency calibration)", ""),
    (
        "the output of cyclictest without figures",
        r"^# /dev/cpu_dma_latency set to|^policy: \w+: loadavg",
        "a line of a thread (T: 0 ...) or a histogram is missing, so it was ended before it measured",
    ),
    (
        "a table that rtproof export wrote",
        r"\A#\[Histogram log format|\A(#.*\n)*((limit_ns,)?thread,(cpu|loop),|from_ns,to_ns)",
        OF_RUN,
    ),
    (
        "a trace of the kernel as text, which rtproof does not read",
        r"\A# tracer: |\A *\S.{0,20}-\d+ +(\([ \d-]*\) +)?\[\d{3}\] +(\S+ +)?\d+\.\d{6,9}: \w+",
        f"{OF_RUN}, or the trace.dat of the same events",
    ),
    ("JSON of an unknown form", r"\A\s*[\{\[]\s*[\"\[\{]", ""),
)
"""The same of kinds of text. ^ is the beginning of any line. The first kind that fits counts."""


def advice(path: Path) -> str:
    """A sentence that names a file's kind and says what to give instead, or what it looks like.

    "" for a damaged record, and for a file that cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if is_record(path):
            return ""
    except OSError:
        return ""
    text = head.decode(errors="replace")
    fits = [(name, what) for name, begin, what in BINARY_KINDS if re.match(begin, head)]
    if b"\0" not in head:
        fits += [(name, what) for name, part, what in TEXT_KINDS if re.search(part, text, re.MULTILINE)]
    if fits:
        name, what = fits[0]
        if what.startswith(OF_RUN):
            what = what.replace(OF_RUN, _run_of(path))
        return f"{path} is {name}{f': {what}' if what else ''}"
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


def _run_of(path: Path) -> str:
    """Advice that names the run from which a file was made, which is the file's folder or lies beside it."""
    if (path.parent / RECORD_NAME).exists() or (path.parent / "campaign.json").exists():
        return f"give the run it was made from, {path.parent}"
    stem = path.with_name(path.name.split(".", 1)[0] or path.name)
    for place in (stem, stem.with_name(f"{stem.name}.rtrec")):
        if place != path and (place.is_dir() or (place.is_file() and is_record(place))):
            return f"give the run it was made from, {place}"
    return OF_RUN
