# SPDX-License-Identifier: Apache-2.0
"""``rtproof run`` from the command line to the files it leaves, with an agent that behaves as it is told."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import fake_agent
import pytest

from rtproof import exporters, targets
from rtproof.cli.main import main
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.experiment import stored_runs, target_runs
from rtproof.judge.analysis_model import State
from rtproof.record import run_folder
from rtproof.record.writing import RecordWriter
from rtproof.report import formats

LIMIT = ["--limit", "500us"]
HOURLY = run_folder.RequirementInfo(
    limit_ns=500_000, at_most_ns=3_600_000_000_000, confidence=0.95, longest_ns=600_000_000_000
)


@pytest.fixture
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(behaviour: str, *arguments: str) -> int:
    agent = fake_agent.install(Path(), behaviour)
    return main(["run", "--agent", str(agent.absolute()), "--duration", "1s", *arguments])


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir() if not path.name.startswith("agent-"))


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_run_prints_and_leaves_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("good", "--output", "a", "--note", "first") == 0
    out, err = capsys.readouterr()
    assert out.endswith("\npage      a.html\nmore      rtproof show a\n")
    assert out.startswith("NOT ASKED The run was measured")
    assert "rtproof-agent: measured as asked" in err
    assert names() == ["a", "a.html"]
    assert Path("a.html").read_text().startswith("<!doctype html>")
    info = run_folder.open_run("a").info
    assert info is not None
    assert info.command[:3] == ["rtproof", "run", "--agent"]
    assert (info.note, info.target, info.requirements) == ("first", "local", [])
    assert re.fullmatch(r"[0-9a-f]{64}", info.agent_sha256)


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_the_usual_folder_tells_time_and_host() -> None:
    assert run("good", "--no-report") == 0
    (folder,) = Path("runs").iterdir()
    assert re.fullmatch(rf"\d{{8}}T\d{{6}}Z-{re.escape(os.uname().nodename)}", folder.name)


@pytest.mark.parametrize(
    ("behaviour", "arguments", "code"),
    [("good", [], 0), ("late", LIMIT, 1), ("good", LIMIT, 4), ("dies", LIMIT, 4), ("runs_out_of_space", LIMIT, 2)],
)
@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_the_exit_code_is_the_verdict(behaviour: str, arguments: list[str], code: int) -> None:
    assert run(behaviour, "--output", "a", *arguments) == code
    assert names() == ["a", "a.html"]


@pytest.mark.usefixtures("in_a_folder_of_its_own")
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
    }
    assert err.endswith("run: a\nreport: a.html\n")


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_the_tables_or_one_line_are_printed_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("late", "--output", "a", "-v", *LIMIT) == State.REFUTED.exit_code
    out = capsys.readouterr().out
    assert out.endswith("\nall of it: rtproof show a\nrun: a\nreport: a.html\n")
    assert "Numbers per thread" in out
    assert "Percentiles" not in out
    assert run("late", "--output", "b", "-q", *LIMIT) == State.REFUTED.exit_code
    assert capsys.readouterr().out == "REFUTED Episodes above 500 us come more often than once per 1 h.\n"
    assert Path("b.html").exists()


@pytest.mark.usefixtures("in_a_folder_of_its_own")
@pytest.mark.parametrize("option", ["-v", "-q"])
def test_how_much_is_printed_is_chosen_for_a_single_run(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("good", "--output", "a", "--repeat", "2", option) == 2
    assert "-v and -q are for a single run" in capsys.readouterr().err
    assert not Path("a").exists()


@pytest.mark.usefixtures("in_a_folder_of_its_own")
@pytest.mark.parametrize(("refusal", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_shows_the_verdict_in_colour_unless_its_user_refuses(
    refusal: dict[str, str], coloured: bool
) -> None:
    agent = fake_agent.install(Path(), "late").absolute()
    words = [sys.executable, "-m", "rtproof", "run", "--agent", str(agent), "--duration", "1s", *LIMIT]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **refusal}
    environment = {name: value for name, value in environment.items() if name != "NO_COLOR" or name in refusal}
    with subprocess.Popen(words, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        said = b""
        with suppress(OSError):  # The end of a terminal whose other side is closed.
            while part := os.read(ours, 65_536):
                said += part
    os.close(ours)
    assert process.returncode == State.REFUTED.exit_code
    assert (b"\x1b[31m" in said) == coloured
    assert b"REFUTED" in said


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_the_requirement_is_fixed_before_the_run() -> None:
    run("late", "--output", "a", *LIMIT)
    info = run_folder.open_run("a").info
    assert info is not None
    assert info.requirements == [HOURLY]


@pytest.mark.usefixtures("in_a_folder_of_its_own")
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


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_killed_agent_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    run("dies", "--output", "a")
    said = capsys.readouterr().err
    assert "rtproof: the agent was killed by SIGKILL; the record was cut off: it covers " in said
    assert "; what it measured until then is kept" in said


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_full_disk_is_the_last_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    run("runs_out_of_space", "--output", "a")
    out, err = capsys.readouterr()
    assert "1,000" in out
    assert err.splitlines()[-1] == "rtproof: no space left for the record"


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_refusal_is_one_sentence_and_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("refuses", "--output", "a") == 2
    assert capsys.readouterr() == ("", "rtproof: there is no CPU 99 on this machine\n")
    assert names() == []


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_foreign_record_is_kept_and_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("writes_nonsense", "--output", "a") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (Path("a") / "run.rtrec").stat().st_size > 0


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_folder_that_exists_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a").mkdir()
    assert run("dies", "--output", "a") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "a exists already" in err
    assert names() == ["a"]


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_page_that_nobody_named_takes_the_next_free_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.html").write_text("precious")
    assert run("late", "--output", "a") == 0
    assert "a-2.html" in capsys.readouterr().out
    assert Path("a-2.html").stat().st_size > 1_000
    assert Path("a.html").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--period", "0ms"], "--period"),
        (["--period", "1"], "has no unit: write one of ns, us, ms, s, min, h or d"),
        (["--duration", "soon"], "is not a duration"),
        (["--duration", "0s"], "must be longer than 0"),
        (["--samples", "0"], "--samples"),
        (["--samples", "5", "--duration", "1s"], "exclude each other"),
        (["--warmup", "-1s"], "--warmup"),
        (["--cpus", "0-"], "is not a list of CPUs"),
        (["--threads", "0"], "--threads"),
        (["--policy", "best"], "--policy"),
        (["--priority", "100"], "--priority"),
        (["--phase", "odd"], "--phase"),
        (["--dma-latency", "low"], "--dma-latency"),
        (["--dma-latency", "1500ns"], "whole microseconds"),
        (["--record", "all"], "--record"),
        (["--limit", "500"], "has no unit"),
        (["--limit", "0us"], "must be longer than 0"),
        (["--limit", "1ms", "--at-most", "2/h"], "is not a rate"),
        (["--limit", "1ms", "--confidence", "95"], "is not a confidence"),
        (["--limit", "1ms", "--confidence", "nan"], "is not a confidence"),
        (["--at-most", "1/h"], "need a --limit"),
        (["--confidence", "0.9"], "need a --limit"),
        (["--target", "moon"], f"there is no target 'moon'; there are: {', '.join(plugins.plugin_names(targets))}"),
        (["--target-option", "host=x"], "the target local has no option 'host'; it has none"),
        (["--target-option", "host"], "is not of the form key=value"),
        (["--agent", "nowhere"], "the agent nowhere cannot be read: No such file or directory"),
        (["--unknown"], "No such option"),
    ],
)
@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_what_makes_no_sense_is_one_sentence(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--output", "a", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("rtproof: ")
    assert word in err
    assert names() == []


@pytest.mark.usefixtures("in_a_folder_of_its_own")
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


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_samples_go_without_a_duration() -> None:
    agent = fake_agent.install(Path(), "tells_its_arguments").absolute()
    assert main(["run", "--agent", str(agent), "--output", "a", "--samples", "7"]) == 0
    said = (Path("a") / "agent.log").read_text()
    assert " --samples 7 " in said
    assert "--duration" not in said


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


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_ctrl_c_keeps_the_run() -> None:
    agent = fake_agent.install(Path(), "until_interrupted").absolute()
    with started("--agent", str(agent), "--output", "a", "--duration", "1h", *LIMIT) as process:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    assert process.returncode == State.UNDECIDED.exit_code
    assert "\ndoubts    the run ended after 1.0 s because it was interrupted\n" in out
    assert out.endswith("\npage      a.html\nmore      rtproof show a\n")
    end = run_folder.open_run("a").record.end
    assert end is not None
    assert end.reason.name == "INTERRUPTED"


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_kill_9_of_the_host_ends_the_agent_and_keeps_the_record() -> None:
    agent = fake_agent.install(Path(), "until_the_host_goes").absolute()
    os.mkfifo("fifo")
    pipe = os.open("fifo", os.O_RDWR)
    with started("--agent", str(agent), "--output", "a", "--load", "fifo") as process:
        process.kill()
    assert select.select([pipe], [], [], 60)[0] == [pipe], "the agent does not end"
    os.close(pipe)
    end = run_folder.open_run("a").record.end
    assert end is not None
    assert end.reason.name == "HOST_GONE"


# ``show``, ``report`` and ``export``: everything that reads a run and adds nothing to it.


@pytest.fixture
def run_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose 1000 activations were 700 us late, with a limit of 500 us fixed before it."""
    monkeypatch.chdir(tmp_path)
    folder = Path("a")
    agent = fake_agent.install(Path(), "late").absolute()
    arguments = ["--agent", str(agent), "--duration", "1s", "--no-report", "--output", str(folder), *LIMIT]
    assert main(["run", *arguments]) == 1
    return folder


@pytest.fixture
def nothing_is_added(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test does, the run folder has the same bytes afterwards."""
    folder = request.getfixturevalue("run_read") if "run" in request.fixturenames else None
    before = contents(folder)
    yield
    assert contents(folder) == before


def contents(folder: Path | None) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.absolute().iterdir()} if folder else {}


def verdict(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)["verdict"]
    return found


@pytest.mark.usefixtures("nothing_is_added")
def test_show_has_the_verdict_of_the_run(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run_read)]) == 1
    assert "REFUTED" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.usefixtures("nothing_is_added")
def test_a_bare_record_has_no_requirement(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["show", str(run_read / "run.rtrec"), "--json"]) == 0
    assert verdict(capsys)["state"] == "NOT ASKED"


@pytest.mark.usefixtures("nothing_is_added")
def test_the_same_limit_again_is_no_later_choice(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["show", str(run_read), "--json", *LIMIT]) == 1
    assert verdict(capsys)["state"] == "REFUTED"


@pytest.mark.parametrize("later", [["--limit", "600us"], [*LIMIT, "--at-most", "1/s"], [*LIMIT, "--confidence", "0.9"]])
@pytest.mark.usefixtures("nothing_is_added")
def test_a_limit_chosen_after_the_data_decides_nothing(
    run_read: Path, later: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["show", str(run_read), "--json", *later]) == 4
    found = verdict(capsys)
    assert found["state"] == "UNDECIDED"
    assert "the limit was chosen after the data" in str(found["reasons"])


@pytest.mark.usefixtures("nothing_is_added")
def test_json_and_text_name_the_doubt(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    main(["show", str(run_read), "--limit", "2ms", "--json"])
    codes = [doubt["code"] for doubt in json.loads(capsys.readouterr().out)["doubts"]]
    assert "limit-after-data" in codes
    main(["show", str(run_read), "--limit", "2ms"])
    assert "measure again with the limit given to rtproof run" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("nothing_is_added")
def test_a_percentile_may_be_asked_for(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    main(["show", str(run_read), "--json", "--percentile", "99.95", "--percentile", "99.99999"])
    shares = [one["share_ratio"] for one in json.loads(capsys.readouterr().out)["pooled"]["observed"]["quantiles"]]
    assert shares == sorted([0.5, 0.9, 0.99, 0.999, 0.9995, 0.9999, 0.99999, 0.999999, 0.9999999])
    main(["report", str(run_read), "--format", "text", "--output", "-", "--percentile", "99.99999"])
    assert "99.99999 %" in capsys.readouterr().out


@pytest.mark.parametrize("name", plugins.plugin_names(formats))
@pytest.mark.usefixtures("nothing_is_added")
def test_every_report_format(run_read: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["report", str(run_read), "--format", name]) == 0
    suffix = plugins.load_plugin(formats, name).SUFFIX
    assert capsys.readouterr().out == f"a{suffix}\n"
    assert Path(f"a{suffix}").stat().st_size > 100


@pytest.mark.usefixtures("nothing_is_added")
def test_a_report_names_the_command_that_repeats_it(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["report", str(run_read), "--format", "text", "--output", "-"]) == 0
    assert "rtproof run --agent" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("nothing_is_added")
def test_the_ending_of_a_name_chooses_the_format(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, begin in (("a.md", "# rtproof"), ("a.TXT", "rtproof: "), ("page", "<!doctype html>"), ("a.json", "{")):
        assert main(["report", str(run_read), "-o", name]) == 0
        assert Path(name).read_text().lower().startswith(begin), name
    capsys.readouterr()
    assert main(["report", str(run_read), "-o", "a.pdf"]) == 2
    assert "no format of a report ends in .pdf: give --format NAME, one of html (.html)" in capsys.readouterr().err
    assert not Path("a.pdf").exists()
    assert main(["export", str(run_read), "--format", "svg"]) == 2
    assert "svg is a format of reports: rtproof report" in capsys.readouterr().err


def test_the_next_command_is_named_as_this_one_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    for called, shown in ((".venv/bin/rtproof", ".venv/bin/rtproof"), ("/usr/bin/pytest", "rtproof")):
        monkeypatch.setattr("sys.argv", [called])
        assert target_runs.program_name() == shown
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("sys.argv", [".venv/bin/rtproof"])
    assert target_runs.program_name() == "rtproof"


def test_a_report_is_never_written_over(run_read: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.html").write_text("precious")
    Path("a-2.html").symlink_to("nowhere")
    capsys.readouterr()
    assert main(["report", str(run_read)]) == 0
    assert capsys.readouterr().out == "a-3.html\n"
    assert main(["report", str(run_read), "--output", "a.html"]) == 2
    assert "a.html exists already" in capsys.readouterr().err
    assert Path("a.html").read_text() == "precious"


@pytest.mark.parametrize("name", plugins.plugin_names(exporters))
@pytest.mark.usefixtures("nothing_is_added")
def test_every_export_format(run_read: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "parquet":
        pytest.importorskip("duckdb")
    capsys.readouterr()
    exporter = plugins.load_plugin(exporters, name)
    if hasattr(exporter, "NEEDS"):
        assert main(["export", str(run_read), "--format", name]) == 2
        assert capsys.readouterr().err.startswith("rtproof: ")
        assert not Path("a" + exporter.SUFFIX).exists()
        return
    assert main(["export", str(run_read), "--format", name]) == 0
    path = Path("a" + exporter.SUFFIX)
    assert capsys.readouterr().out.startswith(f"{path}: ")
    assert path.stat().st_size > 60


@pytest.mark.usefixtures("nothing_is_added")
def test_options_reach_the_export_format(run_read: Path) -> None:
    arguments = ["-o", "width=100us", "-o", "count=8", "--output", "b.csv"]
    assert main(["export", str(run_read), "--format", "bins", *arguments]) == 0
    assert "700000,800000,1000" in Path("b.csv").read_text().splitlines()


@pytest.mark.usefixtures("nothing_is_added")
def test_files_from_a_copied_record_lie_beside_it(run_read: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied.rtrec"
    copy.write_bytes((run_read / "run.rtrec").read_bytes())
    assert main(["export", str(copy), "--format", "cyclictest"]) == 0
    assert (tmp_path / "copied.hist.txt").exists()


@pytest.mark.usefixtures("nothing_is_added")
def test_the_current_folder_may_be_the_run(run_read: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run_read)
    assert main(["report", ".", "--format", "text"]) == 0
    assert Path("../a.txt").exists()
    monkeypatch.chdir("..")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["show", "nowhere"], "nowhere"),
        (["show", "a", "--limit", "soon"], "is not a duration"),
        (["show", "a", "--percentile", "100"], "is not a percentage above 0 and below 100"),
        (
            ["report", "a", "--format", "pdf"],
            "there is no format 'pdf'; there are: html, json, markdown, png, svg, text",
        ),
        (["report", "a", "--format", "text", "--output", "no/such/folder/x"], "no/such/folder/x: no such file"),
        (["export", "a"], "--format"),
        (["export", "a", "--format", "xls"], "there is no exporter 'xls'; there are: app-csv, bins,"),
        (["export", "a", "--format", "bins", "-o", "size=1"], "has no option 'size'; there are: width (width of a bin"),
        (["export", "a", "--format", "bins", "-o", "width=1us", "-o", "width=2us"], "is given twice"),
        (["export", "a", "--format", "bins", "-o", "width"], "is not of the form key=value"),
        (["export", "a", "--format", "csv", "-o", "a.csv"], "is not of the form key=value; --output names the file"),
        (["export", "a", "--format", "csv", "-o", "x=1"], "has no option 'x'; it has none"),
        (["export", "a", "--format", "csv", "--output", "no/such/folder/x"], "no/such/folder/x: no such file"),
    ],
)
@pytest.mark.usefixtures("nothing_is_added")
def test_what_makes_no_sense_is_one_sentence_read(
    run_read: Path, arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().iterdir())
    capsys.readouterr()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert word in err
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
@pytest.mark.usefixtures("nothing_is_added")
def test_what_is_no_record_is_one_sentence(
    make: Callable[[Path], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "x")
    assert main(["show", str(tmp_path / "x")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "x" in err


@pytest.mark.usefixtures("nothing_is_added")
def test_a_broken_run_json_is_one_sentence(run_read: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / run_folder.RECORD_NAME).write_bytes((run_read / run_folder.RECORD_NAME).read_bytes())
    (folder / run_folder.INFO_NAME).write_text('{"schema_version": 1')
    capsys.readouterr()
    assert main(["show", str(folder)]) == 2
    assert "run.json is not a file that a run writes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["csv", "bins", "cyclictest", "hdr", "parquet"])
@pytest.mark.usefixtures("nothing_is_added")
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


@pytest.mark.parametrize("name", ["parquet", "trace-dat"])
@pytest.mark.usefixtures("nothing_is_added")
def test_no_binary_format_is_written_to_a_terminal(
    run_read: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["export", str(run_read), "--format", name, "--output", "-"]) == 2
    assert "is binary and standard output is a terminal" in capsys.readouterr().err


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_the_page_is_named_only_once_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write, before = stored_runs.write_new_file, []

    def write_page(path: Path, content: bytes) -> None:
        before.append(capsys.readouterr().out)
        write(path, content)

    monkeypatch.setattr(stored_runs, "write_new_file", write_page)
    assert run("late", "--output", "a", *LIMIT) == State.REFUTED.exit_code
    assert before[0].startswith("REFUTED")
    assert "a.html" not in before[0]
    assert capsys.readouterr().out == "page      a.html\nmore      rtproof show a\n"


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_page_that_cannot_be_written_is_not_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, _: bytes) -> None:
        raise UserError(f"cannot write {path}")

    monkeypatch.setattr(stored_runs, "write_new_file", refuse)
    assert run("late", "--output", "a", *LIMIT) == 2
    said = capsys.readouterr()
    assert said.out.endswith("more      rtproof show a\n")
    assert "page " not in said.out
