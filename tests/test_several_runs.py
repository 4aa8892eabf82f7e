# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --repeat`` and ``--abba`` from the command line to the folder, with an agent as it is told."""

import errno
import json
import signal
from functools import partial
from pathlib import Path

import fake_agent
import pytest
from run_folders import latencies, write_record, write_run
from test_cli_run import started

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment import local_runner
from rtproof.experiment.local_runner import Cell, CellEnd, LocalRunner
from rtproof.experiment.run_request import ExperimentRequest
from rtproof.experiment.stored_runs import AnalysedRun, find_runs, read_run, read_runs, whole_run
from rtproof.judge.analysis_model import Requirement
from rtproof.record import run_folder
from rtproof.run import session
from rtproof.targets.local import LocalTarget

LENGTH = ("--duration", "1s")


@pytest.fixture
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, behaviour: str = "does_its_load") -> int:
    agent = fake_agent.install(Path(), behaviour).absolute()
    return main(["run", "--agent", str(agent), "--output", "a", *arguments])


def folders() -> list[str]:
    return sorted(path.name for path in Path("a/runs").iterdir())


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_repeat_leaves_a_run_folder_each_and_tells_how_much_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--repeat", "3", *LENGTH) == 0
    out, err = capsys.readouterr()
    assert folders() == ["01", "02", "03"]
    assert "3 runs, 0:00:06 in all" in err
    assert "[2/3] 02, 0:00:02; 0:00:04 to go in all" in err
    assert "one run to the next" in out
    assert out.endswith("report: a/report.html\nruns: a/runs\n")
    assert "02" in Path("a/report.html").read_text()


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_sides_take_turns_so_that_a_drift_meets_both_alike() -> None:
    assert run("--abba", "--load good", "--load late", "--repeat", "5", "--note", "why", *LENGTH) == 0
    assert folders() == ["01-A", "02-B", "03-B", "04-A", "05-A", "06-B", "07-B", "08-A", "09-A", "10-B"]
    info = run_folder.open_run("a/runs/02-B").info
    assert info is not None
    assert info.note == "why; B: --load late"
    assert run_folder.open_run("a/runs/01-A").record.slices[0].max == 10_000
    assert run_folder.open_run("a/runs/10-B").record.slices[0].max == 700_000


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_own_options_win_and_loads_add_up() -> None:
    assert (
        run(
            *("--abba", "--priority 7 --load x", "", "--repeat", "1", "--priority", "9", "--cpus", "0", "--load", "y"),
            *LENGTH,
            behaviour="tells_its_arguments",
        )
        == 0
    )
    a, b = ((Path("a/runs") / name / "agent.log").read_text() for name in ("01-A", "02-B"))
    assert "--priority 7 " in a
    assert "--priority 9 " in b
    assert "--cpus 0 " in a
    assert "--load y --load x " in a
    assert "--load x" not in b


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_every_side_is_judged_by_the_same_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--abba", "", "", "--repeat", "1", "--limit", "500us", *LENGTH, behaviour="tells_its_arguments") == 0
    for name in ("01-A", "02-B"):
        info = run_folder.open_run(Path("a/runs") / name).info
        assert info is not None
        assert "--limit 500us" in (Path("a/runs") / name / "agent.log").read_text()
    assert "\nverdicts: rtproof judge a/runs\n" in capsys.readouterr().out
    assert main(["judge", "a/runs"]) == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--abba", "--polcy rr", ""], "A of --abba, '--polcy rr': No such option"),
        (["--abba", "", "--limit 3us"], "all others hold for both"),
        (["--abba", "", "--duration 1s x"], "B of --abba, '--duration 1s x': Got unexpected extra argument"),
        (["--abba", 'a "b', ""], "No closing quotation"),
        (["--abba", "", "--samples 5"], "B of --abba, '--samples 5': --duration and --samples exclude each other"),
        (["--abba", "--period 3", ""], "A of --abba, '--period 3': Invalid value for '--period'"),
        (["--repeat", "2", "--observer"], "leave --observer out"),
        (["--repeat", "2", "--profile", "akamina"], "leave --profile out"),
        (["--repeat", "0"], "0 is not in the range"),
    ],
)
@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_refusals_name_the_side_and_leave_nothing(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, *LENGTH) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert sentence in err
    assert not Path("a").exists()


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_folder_that_exists_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a").mkdir()
    assert run("--repeat", "2", *LENGTH) == 2
    assert "a exists already" in capsys.readouterr().err


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_what_the_agent_refuses_ends_the_series_and_keeps_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--abba", "--load good", "--load refuses", "--repeat", "5", *LENGTH) == 2
    out, err = capsys.readouterr()
    assert folders() == ["01-A"]
    assert "run 02-B: there is no CPU 99 on this machine; what was measured before is kept" in err
    assert "01-A" in out


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_nothing_is_left_where_the_first_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--repeat", "5", "--load", "refuses", *LENGTH) == 2
    assert "rtproof: run 01: there is no CPU 99 on this machine" in capsys.readouterr().err
    assert not Path("a").exists()


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_run_that_was_killed_is_kept_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--repeat", "2", "--load", "dies", *LENGTH) == 2
    assert "run 01: the agent was killed by SIGKILL; what it measured until then is kept" in capsys.readouterr().err
    assert folders() == ["01", "02"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_an_interrupt_ends_the_series_and_keeps_what_there_is(number: signal.Signals) -> None:
    agent = fake_agent.install(Path(), "until_interrupted").absolute()
    arguments = ["--repeat", "3", "--agent", str(agent), "--output", "a", *LENGTH]
    with started(*arguments, wait_for="rtproof-agent: ready\n") as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert folders() == ["01"]
    assert "interrupted: what was measured until then is kept" in err
    assert "Runs of the same" in out


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_json_is_all_that_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--repeat", "2", "--json", "--no-report", *LENGTH) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "rtproof.runs"
    assert [each["max_ns"] for each in found["runs"]] == [10_000, 10_000]
    assert not Path("a/report.html").exists()


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_simulated_runs_of_a_series_are_not_alike(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--abba", "", "", "--repeat", "2", "--target", "simulated", "--target-option", "episodes=600/h"]
    assert main(["run", *words, "--record", "summary", "--duration", "10min", "--output", "a", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    runs = [run for side in found["sides"] for run in side["runs"]]
    assert len({run["max_ns"] for run in runs}) == 4
    assert found["finding"] == "not judged"


@pytest.mark.usefixtures("in_a_folder_of_its_own")
def test_a_series_by_turns_is_interleaved_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--abba", "", "", "--repeat", "5", "--target", "simulated", "--target-option", "episodes=600/h"]
    assert main(["run", *words, "--record", "summary", "--duration", "1min", "--output", "a", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["turns"] == {"interleaved": True, "order": "ABBAABBAAB", "why_not": None}
    assert found["finding"] in ("no difference shown", "A is better", "B is better")


# Several runs one after another, with agents that behave as they are told.


def cell(folder: Path, name: str, *behaviours: str) -> Cell:
    """A cell with a way for each behaviour of the agent."""
    return Cell(name, folder / name, tuple((behaviour, (behaviour,)) for behaviour in behaviours))


def run_cells(folder: Path, *cells: Cell) -> list[CellEnd]:
    agent = fake_agent.install(folder, "as_told")
    return list(LocalRunner(LocalTarget(), agent, ExperimentRequest(("rtproof", "run"), "local")).run(cells))


def test_the_first_way_that_can_be_had_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ended,) = run_cells(tmp_path, cell(tmp_path, "a", "refuses", "good", "late"))
    said = capsys.readouterr().err
    assert (ended.way, ended.refused, ended.failure) == (1, ("there is no CPU 99 on this machine",), "")
    assert "refuses can't be had here (there is no CPU 99 on this machine); good is tried instead" in said
    assert (tmp_path / "a" / "run.rtrec").exists()


@pytest.mark.parametrize(
    ("behaviours", "failure"),
    [
        (("refuses",), "there is no CPU 99 on this machine"),
        (("refuses", "refuses"), "there is no CPU 99 on this machine"),
        (("dies_early", "good"), "the agent was killed by SIGSEGV before it measured anything"),
    ],
)
def test_a_cell_that_cannot_be_measured_is_a_sentence_and_the_next_goes_on(
    behaviours: tuple[str, ...], failure: str, tmp_path: Path
) -> None:
    failed, good = run_cells(tmp_path, cell(tmp_path, "a", *behaviours), cell(tmp_path, "b", "good"))
    assert (failed.outcome, failed.failure) == (None, failure)
    assert not (tmp_path / "a").exists()
    assert good.failure == ""
    assert good.outcome is not None


def test_different_refusals_are_all_told(tmp_path: Path) -> None:
    (ended,) = run_cells(tmp_path, cell(tmp_path, "a", "refuses", "can_not_here"))
    assert ended.failure == (
        "none of its ways can be had here (refuses: there is no CPU 99 on this machine; "
        "can_not_here: the method can't run here: there is no tracer)"
    )


def test_where_the_last_way_lacks_nothing_its_reason_is_the_one(tmp_path: Path) -> None:
    (ended,) = run_cells(tmp_path, cell(tmp_path, "a", "can_not_here", "refuses"))
    assert ended.failure == "there is no CPU 99 on this machine"


def test_an_agent_that_fails_in_the_end_is_kept_with_its_sentence(tmp_path: Path) -> None:
    ended, killed = run_cells(tmp_path, cell(tmp_path, "a", "runs_out_of_space"), cell(tmp_path, "b", "dies"))
    assert ended.outcome is not None
    assert ended.failure == "no space left for the record"
    assert killed.failure.startswith("the agent was killed by SIGKILL; what it measured")


def test_a_cell_whose_files_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> session.AgentOutcome:
        raise OSError(errno.ENOSPC, "No space left on device", "agent.log")

    monkeypatch.setattr(session, "run_session", full)
    ended = run_cells(tmp_path, cell(tmp_path, "a", "good"), cell(tmp_path, "b", "good"))
    assert [(each.outcome, each.failure) for each in ended] == [(None, "agent.log: No space left on device")] * 2


def test_ctrl_c_in_a_cell_skips_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "run_session", lambda *_: session.AgentOutcome(0, "", interrupted=True))
    first, second = run_cells(tmp_path, cell(tmp_path, "a", "good"), cell(tmp_path, "b", "good"))
    assert first.outcome is not None
    assert (second.outcome, second.failure) == (None, local_runner.NOT_MEASURED_INTERRUPTED)


def test_ctrl_c_between_cells_skips_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> session.AgentOutcome:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "run_session", interrupted)
    ended = run_cells(tmp_path, cell(tmp_path, "a", "good"), cell(tmp_path, "b", "good"))
    assert [(each.outcome, each.failure) for each in ended] == [(None, local_runner.NOT_MEASURED_INTERRUPTED)] * 2


def largest(run: Path, result: AnalysedRun) -> tuple[str, int]:
    return run.name, result.analysis.pooled.observed.max


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [write_run(tmp_path / name, latencies(at, 2_000)) for at, name in enumerate(("b", "a", "c"))]


def test_a_folder_is_searched_for_runs_and_records_in_order(tmp_path: Path, runs: list[Path]) -> None:
    deep = write_run(tmp_path / "campaign" / "cells" / "1", latencies(7, 1_000))
    bare = write_record(tmp_path / "campaign" / "copied.rtrec", latencies(8, 1_000))
    (tmp_path / "campaign" / "report.html").write_text("no run")
    assert find_runs([tmp_path]) == [runs[1], runs[0], runs[2], deep, bare]


def test_paths_keep_their_order_and_a_run_named_twice_counts_once(tmp_path: Path, runs: list[Path]) -> None:
    assert find_runs([runs[2], tmp_path / "b", runs[2], tmp_path]) == [runs[2], runs[0], runs[1]]


def test_other_files_of_a_folder_are_runs_where_the_caller_says_so(tmp_path: Path) -> None:
    histogram = tmp_path / "one.hist"
    histogram.write_text("0 1\n")
    with pytest.raises(UserError, match="there is no run in the folder"):
        find_runs([tmp_path])
    assert find_runs([tmp_path], lambda path: path.suffix == ".hist") == [histogram]


def test_a_link_that_leads_in_a_circle_is_not_followed(tmp_path: Path, runs: list[Path]) -> None:
    (tmp_path / "again").symlink_to(tmp_path)
    assert find_runs([tmp_path]) == sorted(runs)


def test_a_missing_path_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match="loop is a link to nothing"):
        find_runs([tmp_path / "loop"])
    with pytest.raises(UserError, match="gone does not exist"):
        find_runs([tmp_path / "gone"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty: a run is a folder with a run\.rtrec"):
        find_runs([tmp_path / "empty"])


def test_runs_are_read_as_one_by_one_and_in_order(runs: list[Path]) -> None:
    read = read_runs(runs, largest)
    assert read.wanted == tuple(largest(run, read_run(run)) for run in runs)
    assert read.paths == tuple(runs)
    assert not read.failed


def test_a_whole_result_survives_the_way_between_processes(runs: list[Path]) -> None:
    results = read_runs(runs, whole_run).wanted
    for run, result in zip(runs, results, strict=True):
        assert result.analysis.pooled.observed == read_run(run).analysis.pooled.observed
        assert result.info is not None
        assert next(result.analysis.record.blocks(0)).values.size


def test_a_run_that_cannot_be_read_costs_the_others_nothing(tmp_path: Path, runs: list[Path]) -> None:
    torn = tmp_path / "torn"
    torn.mkdir()
    (torn / "run.rtrec").write_bytes(b"no record at all")
    read = read_runs([runs[0], torn, runs[1]], largest)
    assert [name for name, _ in read.wanted] == ["b", "a"]
    ((path, sentence),) = read.failed
    assert path == torn
    assert sentence.startswith(str(torn))
    assert "it has no valid BEGIN chunk" in sentence


def test_a_requirement_given_now_is_handed_on(runs: list[Path]) -> None:
    requirement = Requirement(1_000)
    read = read_runs(runs, whole_run, partial(read_run, later=(requirement,)))
    assert {result.analysis.verdict.requirement for result in read.wanted} == {requirement}


def test_no_runs_are_no_trouble() -> None:
    assert read_runs([], largest).wanted == ()
