# SPDX-License-Identifier: Apache-2.0
"""``rtproof run`` from the command line to the files it leaves, with an agent that behaves as it is told."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import fake_agent
import pytest

from rtproof.cli.main import main
from rtproof.judge.analysis_model import State
from rtproof.record import run_folder
from rtproof.record.requirement import Requirement
from rtproof.record.writing import RecordWriter

LIMIT = ["--limit", "500us"]
ONCE_PER_HOUR = [*LIMIT, "--at-most", "1/h"]
HOURLY = Requirement(500_000, 3_600_000_000_000, longest_ns=600_000_000_000)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(behaviour: str, *arguments: str) -> int:
    agent = fake_agent.install(Path(), behaviour)
    return main(["run", "--agent", str(agent.absolute()), "--duration", "1s", *arguments])


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir() if not path.name.startswith("agent-"))


def test_a_run_prints_and_leaves_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("good", "--output", "a", "--note", "first") == 0
    assert capsys.readouterr().out.startswith("MEASURED  The largest latency was 10 us")
    assert names() == ["a", "a.html"]
    assert Path("a.html").read_text().startswith("<!doctype html>")
    info = run_folder.open_run("a").info
    assert info is not None
    assert info.command[:3] == ["rtproof", "run", "--agent"]
    assert (info.note, info.target, info.requirements) == ("first", "local", ())
    assert re.fullmatch(r"[0-9a-f]{64}", info.agent_sha256)


@pytest.mark.parametrize(
    ("behaviour", "arguments", "code"),
    [
        *(("good", [], 0), ("late", LIMIT, 1), ("good", LIMIT, 0)),
        *(
            ("late", ONCE_PER_HOUR, 1),
            ("good", ONCE_PER_HOUR, 4),
            ("dies", ONCE_PER_HOUR, 4),
            ("runs_out_of_space", ONCE_PER_HOUR, 2),
        ),
    ],
)
def test_the_exit_code_is_the_verdict(behaviour: str, arguments: list[str], code: int) -> None:
    assert run(behaviour, "--output", "a", *arguments) == code
    assert names() == ["a", "a.html"]


def test_json_is_all_that_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    code = run("late", "--output", "a", "--json", "--at-most", "1/day", "--confidence", "0.9", *LIMIT)
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["schema"] == "rtproof.analysis"
    assert found["verdict"]["exit_code"] == code == State.REFUTED.exit_code
    assert found["verdict"]["requirement"] == {
        "limit_ns": 500_000,
        "at_most_ns": 86_400_000_000_000,
        "confidence_ratio": 0.9,
        "gap_ns": 60_000_000_000,
        "longest_ns": 600_000_000_000,
        "bunches_count": 1.0,
        "shows_ns": 3_600_000_000_000,
    }
    assert err.endswith("run: a\nreport: a.html\n")


def test_several_limits_are_all_fixed_before_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--limit", "50ms", "--at-most", "1/h", "--at-most", "1/day", "--gap", "10s"]
    assert run("late", "--output", "a", "--json", *LIMIT, *words) == 1
    info = run_folder.open_run("a").info
    assert info is not None
    asked = [(each.limit_ns, each.at_most_ns, each.gap_ns) for each in info.requirements]
    assert asked == [(500_000, 3600 * 10**9, 10**10), (50_000_000, 86_400 * 10**9, 10**10)]
    found = json.loads(capsys.readouterr().out)
    assert [verdict["state"] for verdict in found["verdicts"]] == ["REFUTED", "UNDECIDED"]
    assert found["verdict"] == found["verdicts"][0]
    assert [verdict["alpha_ratio"] for verdict in found["verdicts"]] == pytest.approx([0.025, 0.025])


def test_a_refusal_is_one_sentence_and_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("refuses", "--output", "a") == 2
    assert capsys.readouterr() == ("", "rtproof: there is no CPU 99 on this machine\n")
    assert names() == []


def test_a_foreign_record_is_kept_and_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("writes_nonsense", "--output", "a") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (Path("a") / "run.rtrec").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--period", "0ms"], "--period"),
        (["--samples", "0"], "--samples"),
        (["--samples", "5", "--duration", "1s"], "exclude each other"),
        (["--warmup", "-1s"], "--warmup"),
        (["--cpus", "0-"], "is not a list of CPUs"),
        (["--threads", "0"], "--threads"),
        (["--policy", "best"], "--policy"),
        (["--priority", "100"], "--priority"),
        (["--phase", "odd"], "--phase"),
        (["--dma-latency", "low"], "--dma-latency"),
        (["--record", "all"], "--record"),
        (["--limit", "500"], "has no unit"),
        (["--limit", "1ms", "--confidence", "nan"], "is not a confidence"),
        (["--confidence", "0.9"], "need a --limit"),
        (["--explain=top"], "not 'top'"),
        (["--target", "board"], "; a machine of yours is --target ssh --target-option host=board"),
        (["-o", "no/such/folder"], "there is no folder no/such to make it in"),
        (["--target-option", "host=x"], "the target local has no option 'host'; it has none"),
        (["--agent", "nowhere"], "the agent nowhere cannot be read: No such file or directory"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(arguments: list[str], word: str, refused: Callable[..., str]) -> None:
    assert word in refused("run", "--output", "a", *arguments)
    assert names() == []


def test_options_reach_the_agent_in_its_own_words() -> None:
    arguments = (
        "--probe timer --method timerfd --period 1500us --warmup 0s --cpus 3,0-1 --threads 2 --policy rr --priority 70 "
        "--phase 10us --dma-latency 20us --no-lock-memory --record summary --checkpoint 2s --load cpu "
        "--load sched:groups=2,pairs=3 --allow-unprivileged"
    )
    assert run("tells_its_arguments", "--output", "a", *arguments.split()) == 0
    said = (Path("a") / "agent.log").read_text()
    wanted = arguments.replace("3,0-1", "0-1,3").replace("20us", "20").replace("--warmup 0s", "--warmup 0ns")
    for word in [*re.split(r" (?=--)", wanted), "--duration 1s"]:
        assert f" {word} " in said


@contextmanager
def started(*arguments: str, wait_for: str = "") -> "Iterator[subprocess.Popen[str]]":
    """A run as a process of its own, whose agent is ready. wait_for: the line that says so, if others come before."""
    command = [sys.executable, "-m", "rtproof", "run", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        while wait_for and first and first != wait_for:
            first = process.stderr.readline()
        assert first == "rtproof-agent: ready\n"
        yield process


# ``show``, ``report`` and ``export``: everything that reads a run and adds nothing to it.


@pytest.fixture
def run_read() -> Iterator[Path]:
    """A run whose 1000 activations were 700 us late, with a limit of 500 us fixed before it; nothing may change it."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert run("late", "--no-report", "--output", "a", *LIMIT) == 1
    before = contents(Path("a"))
    yield Path("a")
    assert contents(Path("a")) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def verdict(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)["verdict"]
    return found


def test_a_bare_record_holds_what_was_asked(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run_read / "run.rtrec"), "--json"]) == 1
    assert verdict(capsys)["state"] == "EXCEEDED"


@pytest.mark.parametrize(
    "later",
    [["--limit", "600us", "--at-most", "1/h"], [*LIMIT, "--at-most", "1/s"], [*ONCE_PER_HOUR, "--confidence", "0.9"]],
)
def test_a_limit_chosen_after_the_data_decides_nothing(
    run_read: Path, later: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(run_read), "--json", *later]) == 4
    found = verdict(capsys)
    assert found["state"] == "UNDECIDED"
    assert "the limit was chosen after the data" in str(found["reasons"])


def test_the_ending_of_a_name_chooses_the_format(run_read: Path) -> None:
    for name, begin in (("a.md", "# rtproof"), ("a.TXT", "rtproof: "), ("page", "<!doctype html>")):
        assert main(["report", str(run_read), "-o", name]) == 0
        assert Path(name).read_text().lower().startswith(begin), name


def test_a_report_is_never_written_over(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.html").write_text("precious")
    Path("a-2.html").symlink_to("nowhere")
    assert main(["report", str(run_read)]) == 0
    assert capsys.readouterr().out == "a-3.html\n"
    assert main(["report", str(run_read), "--output", "a.html"]) == 2
    assert "a.html exists already" in capsys.readouterr().err
    assert Path("a.html").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["show", "a", "--percentile", "100"], "is not a percentage above 0 and below 100"),
        (["report", "a", "--format", "pdf"], "there is no format 'pdf'"),
        (["report", "a", "-o", "a.pdf"], "no format of a report ends in .pdf"),
        (["export", "a", "--format", "svg"], "svg is a format of reports"),
        (["report", "a", "--format", "text", "--output", "no/such/folder/x"], "no/such/folder/x: no such file"),
        (["export", "a", "--format", "bins", "--option", "width=1us", "--option", "width=2us"], "is given twice"),
        (["export", "a", "--format", "csv", "--option", "a.csv"], "is not of the form key=value"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_read(
    run_read: Path, arguments: list[str], word: str, refused: Callable[..., str]
) -> None:
    before = sorted(Path().iterdir())
    assert word in refused(*arguments)
    assert sorted(Path().iterdir()) == before


def newer_record(path: Path) -> None:
    with RecordWriter(path) as writer:
        writer.chunk(1, bytes([99, 0, 0, 0]) + bytes(60))


@pytest.mark.parametrize(
    "make",
    [
        Path.touch,
        Path.mkdir,
        newer_record,
        lambda path: path.write_bytes(b"\x7fELF" + bytes(1000)),
        lambda path: path.symlink_to("/dev/zero"),
    ],
    ids=["empty", "empty folder", "newer", "foreign", "device"],
)
def test_what_is_no_record_is_one_sentence(
    make: Callable[[Path], object], tmp_path: Path, refused: Callable[..., str]
) -> None:
    make(tmp_path / "x")
    assert "x" in refused("show", tmp_path / "x")


@pytest.mark.parametrize("name", ["csv", "hdr", "parquet"])
def test_standard_output_gets_the_bytes_of_the_file(
    run_read: Path, name: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", str(run_read), "--format", name, "--output", "there"]) == 0
    capfdbinary.readouterr()
    assert main(["export", str(run_read), "--format", name, "--output", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out == Path("there").read_bytes()
    assert err.startswith(b"standard output: ")
    assert not Path("-").exists()


def test_no_binary_format_is_written_to_a_terminal(
    run_read: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["export", str(run_read), "--format", "parquet", "--output", "-"]) == 2
    assert "is binary and standard output is a terminal" in capsys.readouterr().err
