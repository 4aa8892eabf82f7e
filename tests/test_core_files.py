# SPDX-License-Identifier: Apache-2.0

import os
import re
import socket
from contextlib import chdir
from pathlib import Path

import pytest
from fuzzing.mutations import mutated
from test_importers import END, POINTS, TEXT
from test_record_folder import INFO

from rtproof import importers
from rtproof.cli.main import main
from rtproof.core import files
from rtproof.core.errors import RecordError, UserError
from rtproof.experiment import stored_runs
from rtproof.importers import cyclictest, cyclictest_json, jitterdebugger, xenomai
from rtproof.record import run_folder
from rtproof.record.reading import open_regular


def fill_and_fail(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder.parent.parent / "note").touch()
    raise OSError("full")


@pytest.mark.parametrize("kind", ["file", "folder", "dead link"])
def test_what_exists_is_refused_and_kept(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "file":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    with pytest.raises(UserError, match="exists already"), files.whole_file(path, new=True):
        raise AssertionError("it must not come so far")
    assert path.is_symlink() or path.exists()


def test_only_folders_that_are_new_and_empty_are_taken_back(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    wanted = tmp_path / "mine" / "kept" / "empty" / "a"
    with pytest.raises(OSError, match="full"), files.removing_empty_folders(wanted):
        fill_and_fail(wanted)
    assert sorted(path.name for path in (tmp_path / "mine").rglob("*")) == ["kept", "note"]
    with files.removing_empty_folders(wanted):
        wanted.mkdir(parents=True)
    assert wanted.exists()


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_may_keep_its_reader_waiting_is_refused(tmp_path: Path, kind: str) -> None:
    place = {"device": Path("/dev/null")}.get(kind, tmp_path / "a")
    with socket.socket(socket.AF_UNIX) as end, chdir(tmp_path):
        if kind == "pipe":
            os.mkfifo(place)
        elif kind == "socket":
            end.bind("a")
        with pytest.raises(UserError, match=f"^cannot read {place}: it is a pipe or a device and not a file$"):
            files.refuse_what_waits(place)


@pytest.mark.parametrize("path", ["/proc/kmsg", "/proc/self/mem"])
def test_what_the_kernel_makes_up_as_it_is_read_is_refused_before_it_is_opened(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"there is no {path}")
    with pytest.raises(UserError, match="the kernel makes it up as it is read"):
        files.refuse_what_waits(Path(path))
    with pytest.raises(UserError, match="the kernel makes it up as it is read"):
        stored_runs.read_histogram_file(Path(path))
    with pytest.raises(RecordError, match="is empty"):
        open_regular(path)


# A power cut takes no file of rtproof's: each is flushed to the medium, and then the folder that has its name.


Told = list[tuple[str, Path]]
"""What was done, in order: ("flush" or "rename", the path that it was done to)."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    done: Told = []
    fsync, rename = os.fsync, Path.rename

    def flush(opened: int) -> None:
        done.append(("flush", Path(f"/proc/self/fd/{opened}").readlink()))
        fsync(opened)

    def to(self: Path, target: Path) -> Path:
        done.append(("rename", target))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Path, "rename", to)
    return done


def test_a_new_run_folder(told: Told, tmp_path: Path) -> None:
    run_folder.create_run_folder(tmp_path / "runs" / "today" / "run")
    assert set(told) == {("flush", tmp_path), ("flush", tmp_path / "runs"), ("flush", tmp_path / "runs" / "today")}


def test_what_the_host_wrote_about_a_run(told: Told, tmp_path: Path) -> None:
    run_folder.write_run_info(tmp_path, INFO)
    assert [what for what, _ in told] == ["flush", "rename", "flush"]
    assert told[0][1].parent == tmp_path
    assert [place for _, place in told[1:]] == [tmp_path / run_folder.INFO_NAME, tmp_path]
    assert list(tmp_path.iterdir()) == [tmp_path / run_folder.INFO_NAME]


# Whatever a file holds, a command ends with one of the five exit codes, and steers no terminal.


DATA = Path(__file__).parent / "data"
LIVE = "policy: fifo: loadavg: 4.31\nT: 0 ( 1845) P:80 I:1000 C:1799993 Min: 10 Act: 19 Avg: 44 Max: 23350\n"
FILES = {
    "histogram.txt": (DATA / "cyclictest" / "histogram.txt").read_bytes(),
    "result.json": (DATA / "cyclictest" / "result.json").read_bytes(),
    "jitterdebugger.json": (DATA / "jitterdebugger.json").read_bytes(),
    "latency.txt": (TEXT + END).encode(),
    "points.txt": POINTS.encode(),
    "live.txt": LIVE.encode(),
    "vector.rtrec": (DATA / "golden" / "vector.rtrec").read_bytes(),
    "x86_64.rtrec": (DATA / "golden" / "x86_64.rtrec").read_bytes(),
}
COMMANDS = (
    ("show", "{}"),
    ("show", "{}", "--limit", "100us", "--at-most", "1/s", "--json"),
    ("judge", "{}", "--limit", "1ms", "--fixed-beforehand", "--markdown", "-"),
    ("report", "{}", "--output", "-"),
    ("compare", "{}", "--against", "whole", "--although-different", "--no-report"),
    ("export", "{}", "--format", "cyclictest", "--output", "-"),
)
SEEDS = {".rtrec": 2}
MOST_SEEDS = 5
"""Of each file with each command; a record takes longer. Bigger numbers were run by hand."""


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_a_sentence_or_a_result(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("whole").write_bytes(FILES[name])
    for number in range(SEEDS.get(Path(name).suffix, MOST_SEEDS) * len(COMMANDS)):
        file = Path(name)
        file.write_bytes(mutated(FILES[name], number))
        command = [word.format(name) for word in COMMANDS[number % len(COMMANDS)]]
        code = main(command)
        out, err = capsys.readouterr()
        about = f"seed {number}: {' '.join(command)}: {out[-300:]}{err}"
        assert code in (0, 1, 2, 3, 4), about
        assert "defect of" not in " ".join((out + err).split()), about
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", out + err), about
        assert out or code, about


XENOMAI = TEXT + END
HISTOGRAM = (DATA / "cyclictest" / "histogram.txt").read_text()
JSON = (DATA / "cyclictest" / "result.json").read_text()
JITTER = (DATA / "jitterdebugger.json").read_text()
DIGITS = "9" * 5_000


def changed(text: str, pattern: str, new: str) -> str:
    """The first place that the pattern's group fits, replaced."""
    found = re.search(pattern, text, re.MULTILINE)
    assert found, pattern
    return text[: found.start(1)] + new + text[found.end(1) :]


@pytest.mark.parametrize(
    ("module", "text", "says"),
    [
        (xenomai, changed(XENOMAI, r"^RTS\|\s+(8\.720)", "1e999"), "larger than any clock"),
        (xenomai, changed(XENOMAI, r"^RTS.*\|\s+(1)\|", "0.1"), "0.1 stands where a whole number belongs"),
        (xenomai, changed(XENOMAI, r"^HSD\|\s+avg\|\s+106 -\s*(107) ", str(2**63)), "no computer"),
        (xenomai, changed(XENOMAI, r"period: (1000)", DIGITS), r"\(5,000 characters\)"),
        (xenomai, POINTS.replace("5.5 11", "5.5 1e999"), "it has no line of figures"),
        (cyclictest, changed(HISTOGRAM, r"^\d{6} (\d+)", DIGITS), r"\(5,000 characters\)"),
        (cyclictest, changed(HISTOGRAM, r"^\d{6} (\d+)", str(2**63)), "no computer"),
        (cyclictest, LIVE.replace("1799993", DIGITS), r"\(5,000 characters\)"),
        (cyclictest_json, changed(JSON, r'"\d+": (\d+)', "1e999"), "not of its form"),
        (cyclictest_json, changed(JSON, r'"cycles": (\d+)', str(-5)), "makes no sense"),
        (cyclictest_json, changed(JSON, r'"min": (\d+)', str(-(2**63))), "larger than any clock"),
        (jitterdebugger, changed(JITTER, r'"\d+":\s*(\d+)', str(2**63)), "no computer"),
        (jitterdebugger, changed(JITTER, r'"count":\s*(\d+)', DIGITS), "not of its form|larger"),
    ],
)
def test_a_number_that_no_tool_prints_is_a_sentence(module: object, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        module.read(text)  # type: ignore[attr-defined]
    assert len(str(refused.value)) < 300


def test_whole_files_have_no_faults(tmp_path: Path) -> None:
    for name in ("histogram.txt", "result.json", "jitterdebugger.json", "latency.txt", "points.txt", "live.txt"):
        (tmp_path / name).write_bytes(FILES[name])
        assert importers.read(tmp_path / name).faults == ()
