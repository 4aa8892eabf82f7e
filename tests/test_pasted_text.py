# SPDX-License-Identifier: Apache-2.0
"""A text that came through a mail, a console, a web page or another system has the same figures as the tool printed."""

import contextlib
import gzip
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from run_folders import latencies, write_run
from test_tool_outputs import names, output

from rtproof import importers
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.core.plugins import load_plugins
from rtproof.importers import _pasted, rt_tests, stress_ng
from rtproof.summary.imported_histogram import ImportedHistogram

CYCLICTEST = (Path(__file__).parent / "data" / "cyclictest" / "histogram.txt").read_text()
TEXTS = {name: output(name) for name in names() if not name.endswith((".json", ".xml"))} | {"histogram.txt": CYCLICTEST}


def before_each(prefix: str) -> Callable[[str], bytes]:
    return lambda text: "".join(prefix + line for line in text.splitlines(keepends=True)).encode()


def with_times(text: str) -> bytes:
    lines = enumerate(text.splitlines(keepends=True))
    return "".join(f"[{at + 100:5}.{at:06}] {line}" for at, line in lines).encode()


FORMS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "quoted": (before_each("> "), "quotation marks"),
    "quoted twice": (before_each(">> "), "quotation marks"),
    "with a console's times": (with_times, "times of a console"),
    "with a log's times": (before_each("Nov 28 23:34:00 board test[123]: "), "times of a log"),
    "with Windows' line ends": (lambda text: text.replace("\n", "\r\n").encode(), ""),
    "in UTF-16": (lambda text: text.encode("utf-16"), "UTF-16"),
    "in UTF-16 without a mark": (lambda text: text.encode("utf-16-le"), "UTF-16"),
    "in big-endian UTF-16 without a mark": (lambda text: text.encode("utf-16-be"), "UTF-16"),
    "in big-endian UTF-16": (lambda text: b"\xfe\xff" + text.encode("utf-16-be"), "UTF-16"),
    "packed": (lambda text: gzip.compress(text.encode()), "gzip"),
    "with a mark of the byte order": (lambda text: b"\xef\xbb\xbf" + text.encode(), ""),
    "with blanks that do not break": (lambda text: text.replace(" ", "\xa0").encode(), ""),
    "in colours": (before_each("\x1b[1;32m"), ""),
}


def read(tmp_path: Path, content: bytes) -> ImportedHistogram:
    (tmp_path / "x").write_bytes(content)
    return importers.read(tmp_path / "x")


def figures(found: ImportedHistogram) -> tuple[object, ...]:
    parts = [(part.cpu, part.count, part.min_ns, part.mean_ns, part.max_ns, part.overflow) for part in found.parts]
    whole = (found.tool, found.count, found.min_ns, found.mean_ns, found.max_ns, found.duration_ns, found.faults)
    return (*whole, parts, [each.most_ns.tolist() for each in found.lines])


@pytest.mark.parametrize("name", TEXTS)
def test_what_stands_around_the_lines_changes_no_figure(name: str, tmp_path: Path) -> None:
    plain = read(tmp_path, TEXTS[name].encode())
    for form, (change, note) in FORMS.items():
        found = read(tmp_path, change(TEXTS[name]))
        assert figures(found) == figures(plain), form
        assert found.doubts == plain.doubts, form
        assert any(note in each for each in found.notes), form


@pytest.mark.parametrize("blanks", ["    ", "\t"])
@pytest.mark.parametrize("name", ["histogram.txt", "rtla-timerlat-top.txt", "xenomai-3.txt", "hwlatdetect.txt"])
def test_indented_text_is_told(name: str, blanks: str, tmp_path: Path) -> None:
    found = read(tmp_path, before_each(blanks)(TEXTS[name]))
    assert figures(found) == figures(read(tmp_path, TEXTS[name].encode()))
    assert any("the blanks before" in note for note in found.notes)


def test_a_quotation_inside_a_mail_is_read(tmp_path: Path) -> None:
    mail = f"Hi,\n\nthis is what I see:\n\n{before_each('> ')(CYCLICTEST).decode()}\nIs that good?\n"
    found = read(tmp_path, mail.encode())
    assert figures(found) == figures(read(tmp_path, CYCLICTEST.encode()))
    assert any("3 lines of it cyclictest does not print: 'Hi,'" in note for note in found.notes)


@pytest.mark.parametrize("name", TEXTS)
def test_plain_text_has_no_strange_line(name: str, tmp_path: Path) -> None:
    found = read(tmp_path, TEXTS[name].encode())
    assert found.doubts == ()
    assert not [note for note in found.notes if "does not print" in note or "taken off" in note]


def lines_of(text: str) -> _pasted.ToolLines:
    (found,) = (module for module in load_plugins(importers) if module.looks_like(text))
    lines: _pasted.ToolLines = found.LINES
    return lines


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_was_cut_within_a_number_is_told(name: str, tmp_path: Path) -> None:
    """Behind each digit of the last line of figures. What is left is refused, or read without this line."""
    text = _pasted.plain_text(TEXTS[name].encode())[0]
    figures = lines_of(text).figures
    start = [match.start() for match in figures.finditer(text)][-1]
    cuts = [at for at in range(start + 1, text.index("\n", start)) if text[at - 1 : at + 1].isdigit()]
    told = 0
    for at in cuts:
        if not figures.match(text[start:at]):
            continue
        with contextlib.suppress(UserError):
            found = read(tmp_path, text[:at].encode())
            assert [doubt.code for doubt in found.doubts] == ["lines-unread"], text[start:at]
        told += 1
    assert told


def test_a_number_of_a_table_is_not_read_without_its_last_digits(tmp_path: Path) -> None:
    text = TEXTS["rtla-timerlat-top.txt"].rstrip("\n")
    found = read(tmp_path, text[:-1].encode())
    assert len(found.parts) == len(read(tmp_path, (text + "\n").encode()).parts) - 1
    assert "this line is left out" in found.doubts[0].what


LINE = "T: {} ( 201{}) P:80 I:200 C:  50000 Min:      6 Act:   18 Avg:    7 Max:     {}\n"


@pytest.mark.parametrize(
    ("last", "state", "said"),
    [
        ("T: 1 ( 2011) P:80 I:200 C:  50000 Min:      6 Act:   18 Avg:    7 Max:     999", "UNDECIDED", "has no end"),
        (LINE.format(1, 1, "9O6"), "UNDECIDED", "cannot be read"),
        (LINE.format(1, 1, "9,060"), "UNDECIDED", "cannot be read"),
        (LINE.format(1, 1, "999").replace("Max: ", "**Max: "), "UNDECIDED", "cannot be read"),
        (LINE.format(1, 1, "99"), "INVALID", "before the last digit"),
        (LINE.format(1, 1, "199"), "HELD", "largest"),
    ],
)
def test_nothing_is_held_over_a_figure_that_was_not_read(
    last: str, state: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Thread 1 was left out, or 9 and 99 were read of 906 and 999, and 420 us was HELD."""
    file = tmp_path / "lines.txt"
    file.write_text(LINE.format(0, 0, "306") + last)
    main(["judge", str(file), "--limit", "420us"])
    told = " ".join(capsys.readouterr().out.split())
    assert state in told
    assert said in told


def test_packed_outputs_and_logs_of_a_folder_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """judge looked at .txt alone: the folder was HELD."""
    packed = gzip.compress(LINE.format(0, 0, "999").encode())
    files = {"ok.txt": LINE.format(0, 0, "306").encode(), "late.txt.gz": packed}
    for name, content in (*files.items(), ("late.log", gzip.decompress(packed))):
        (tmp_path / name).write_bytes(content)
    assert main(["judge", str(tmp_path), "--limit", "420us"]) == 1
    told = capsys.readouterr().out
    assert "3 runs" in told
    assert told.count("  EXCEEDED: ") == 2


@pytest.mark.parametrize("prefix", ["node7| ", "board-3: ", "cpu0 ", "# ", "[x] 5 "])
@pytest.mark.parametrize("name", sorted(TEXTS.keys() - {"stress-ng.txt"}))  # its own lines have a prefix
def test_rows_behind_an_unknown_prefix_are_counted_and_named(name: str, prefix: str, tmp_path: Path) -> None:
    """They were left out without a word."""
    lines = lines_of(_pasted.plain_text(TEXTS[name].encode())[0])
    figures = [line for line in TEXTS[name].splitlines(keepends=True) if lines.figures.match(line)]
    with contextlib.suppress(UserError):
        (doubt,) = read(tmp_path, (TEXTS[name] + 3 * (prefix + figures[-1].lstrip())).encode()).doubts
        assert doubt.code == "lines-unread"
        assert doubt.what.startswith(f"3 lines of figures cannot be read: '{prefix}")


def by_diff(arguments: str) -> Callable[[str, Path], str]:
    def text(one: str, place: Path) -> str:
        (place / "a").write_text(one)
        (place / "b").write_text(re.sub(r"(?m)\d(\D*)$", r"77\1", one))
        words = ["diff", *arguments.split(), "a", "b"]
        return subprocess.run(words, cwd=place, capture_output=True, text=True, check=False).stdout

    return text


@pytest.mark.parametrize("form", ["-u", "-c", "", "-U 0", "-u100"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_diff_of_two_outputs_is_refused(name: str, form: str, tmp_path: Path) -> None:
    """show read "59 us; n = 7" of the lines of both."""
    told = by_diff(form)(TEXTS[name], tmp_path)
    with pytest.raises(UserError, match="x cannot be read: it is a diff, which has lines of two outputs"):
        read(tmp_path, told.encode())
    if form == "-u":
        with pytest.raises(UserError, match="it is a diff"):
            read(tmp_path, re.sub(r"(?m)^(---|\+\+\+|@@).*\n", "", told).encode())


HONEST = [
    "Notes:\n- idle machine\n+ PREEMPT_RT\n\n",
    "-bash: warning: setlocale: LC_ALL: cannot change locale (de)\n+ cyclictest -q -h 100 -D 10\n",
]


@pytest.mark.parametrize("before", HONEST)
def test_lines_that_begin_as_those_of_a_diff_are_no_diff(before: str, tmp_path: Path) -> None:
    """A list in notes, and a shell's complaint before the command that it shows, were refused."""
    plain = read(tmp_path, CYCLICTEST.encode())
    assert figures(read(tmp_path, (before + CYCLICTEST).encode())) == figures(plain)


def test_a_diff_of_no_tool_is_passed_over_in_a_folder(tmp_path: Path) -> None:
    """A patch of the kernel beside the results ended judge with 2."""
    elsewhere = tmp_path / ".other"
    elsewhere.mkdir()
    (tmp_path / "ok.txt").write_text(CYCLICTEST)
    patch = tmp_path / "patch.txt"
    patch.write_text("--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@\n-int a;\n+int b;\n return;\n")
    assert main(["judge", str(tmp_path), "--limit", "10ms"]) == 0
    for form in ("-u", ""):
        patch.write_text(by_diff(form)(CYCLICTEST, elsewhere))
        assert main(["judge", str(tmp_path), "--limit", "10ms"]) == 2


def test_a_damaged_packed_file_of_a_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was passed over in silence."""
    folder = tmp_path / "folder"
    folder.mkdir()
    packed = gzip.compress(CYCLICTEST.encode())
    for name, content in {"ok.txt": CYCLICTEST.encode(), "late.txt.gz": packed[:-20], "c.log.gz": packed[:300]}.items():
        (folder / name).write_bytes(content)
    write_run(folder / "run", latencies(1, 5_000))
    write_run(tmp_path / "other", latencies(2, 5_000))

    def names_it(*command: str) -> bool:
        assert main([*command, str(folder)]) == 2
        told = " ".join("".join(capsys.readouterr()).split())
        return bool(re.search(r"c.log.gz (ERROR no result|cannot be read: it was packed with gzip)", told))

    assert names_it("show")
    assert names_it("judge", "--limit", "10ms")
    assert names_it("history")
    (folder / "ok.txt").unlink()
    assert names_it("compare", str(tmp_path / "other"), "--against")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for command, words in ((["show", "-"], "3,258"), (["judge", "-", "--limit", "10ms"], "HELD")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CYCLICTEST.encode())))
        main(command)
        assert words in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello")))
    assert main(["show", "-"]) == 2
    assert "standard input is not the output of a tool" in capsys.readouterr().err


def test_a_packed_file_that_is_damaged_or_huge_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(CYCLICTEST.encode())
    with pytest.raises(UserError, match="damaged or was cut off"):
        read(tmp_path, packed[:-20])
    monkeypatch.setattr(_pasted, "LARGEST_TEXT_BYTES", 1_000)
    with pytest.raises(UserError, match="unpacked, it is larger"):
        read(tmp_path, packed)


OSLAT = """oslat V 2.60

        Core:\t 1 2
Counter Freq:\t 2096 2096 (Mhz)
    0.500 (us):\t 90 80
    ...
    1.500 (us):\t 5 0
    4.000 (us):\t 0 1 (including overflows)
     Minimum:\t 0.101 0.099 (us)
     Average:\t 0.552 0.543 (us)
     Maximum:\t 1.250 3.700 (us)
     Max-Min:\t 1.149 3.601 (us)
    Duration:\t 59.970 59.970 (sec)
"""


def test_oslats_bins_of_nanoseconds_and_left_out_rows(tmp_path: Path) -> None:
    """Since 2.5 with -W 500 -z: a bin holds the nanoseconds, rounded up, from one width below its name."""
    found = read(tmp_path, OSLAT.encode())
    assert found.faults == ()
    assert not found.unsure
    assert found.rounded_up
    assert (found.min_ns, found.max_ns, found.resolution_ns) == (99, 3_700, 1)
    assert [(part.count, part.overflow) for part in found.parts] == [(95, 0), (81, 1)]
    first = found.parts[0].histogram
    assert first is not None
    assert (first.lo.tolist(), first.hi.tolist()) == ([0, 1_000], [499, 1_499])


def test_oslats_version_2_4_rounds_down() -> None:
    found = importers.read_text(output("oslat.txt"))
    assert found
    assert not found.rounded_up
    assert (found.parts[0].min_ns, found.min_ns) == (0, 0)


OTHERS = {
    "T: 0 ( 1234) P:80 C:   1000 Min:      7 Act:   11 Avg:   12 Max:      44\n": ("signaltest", 1_000, 44_000, 80),
    "T: 0 ( 1234) I:1000 C:   1000 Min:      7 Act:   11 Avg:   12 Max:      44\n": (
        "cyclicdeadline",
        1_000,
        44_000,
        None,
    ),
    "#0: ID1, P80, CPU2, I1000; #1: ID2, P80, CPU3, Cycles 500\n#1 -> #0, Min    1, Cur    4, Avg    3, Max   41\n": (
        "ptsematest, svsematest or sigwaittest",
        500,
        41_000,
        80,
    ),
}


@pytest.mark.parametrize("text", OTHERS)
def test_the_texts_of_other_programs_of_rt_tests(text: str) -> None:
    found = rt_tests.read(text)
    assert (found.title, found.count, found.max_ns, found.priority) == OTHERS[text]


def test_stress_ng_at_its_cap_is_told() -> None:
    text = output("stress-ng.txt").replace("7356 samples", "10000 samples")
    assert any("how many came later is unknown" in note for note in stress_ng.read(text).notes)
    assert not any("how many came later" in note for note in stress_ng.read(output("stress-ng.txt")).notes)


def test_an_unknown_file_is_told_by_what_it_looks_like(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {
        b"Dear reader,\nthis is no measurement.\n": "is a text of 2 lines, the first of them 'Dear reader,'",
        b"\0\1\2\3": "is no text and begins with the bytes 00 01 02 03",
        b"\n \n": "holds blanks only",
        b"   agent-812   [001] d..2.   120.000001: sched_switch: prev_comm=a\n": "or the trace.dat of the same events",
        b"                 Timer Latency\n": 'the line "# RTLA timerlat histogram"',
        b"policy: fifo: loadavg: 0.00 0.01 0.05 1/103 812\n": "it was ended before it measured",
        b"stress-ng: info:  [1] dispatching hogs: 1 cpu\n": "its stressor cyclic",
    }
    for content, words in kinds.items():
        (tmp_path / "x").write_bytes(content)
        assert main(["show", str(tmp_path / "x")]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert "BEGIN" not in error


def test_the_user_states_nanoseconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """cyclictest -N prints nanoseconds, and its text does not tell it."""
    line = "T: 0 ( 811) P:90 I:1000 C:   5000 Min:   7012 Act:  11000 Avg:  12003 Max:   44123\n"
    (tmp_path / "x").write_text(line)
    assert main(["show", str(tmp_path / "x")]) == 3
    assert "hardly microseconds" in " ".join(capsys.readouterr().out.split())
    assert main(["show", str(tmp_path / "x"), "--unit", "ns"]) == 0
    told = capsys.readouterr().out
    assert "44.123 us" in told
    assert "the user states the unit (--unit)" in told
    stated = ["--limit", "50us", "--unit", "ns", "--fixed-beforehand"]
    assert main(["judge", str(tmp_path / "x"), *stated]) == 0
    assert "44.123 us" in capsys.readouterr().out
    (tmp_path / "y").write_text(output("oslat.txt"))
    main(["show", str(tmp_path / "y"), "--unit", "ns"])
    assert "--unit is not used" in capsys.readouterr().out
