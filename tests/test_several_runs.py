# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --repeat`` and ``--abba`` from the command line to the folder, with an agent as it is told."""

import errno
import json
import re
import signal
from pathlib import Path

import fake_agent
import pytest
from agent_process import PATIENCE_S
from run_folders import latencies, write_record, write_run
from test_cli_run import started

from rtproof.cli.main import main
from rtproof.compare.likeness import drawn_order
from rtproof.core.errors import UserError
from rtproof.experiment import target_runner
from rtproof.experiment.run_request import RunRequest
from rtproof.experiment.stored_runs import AnalysedRun, find_runs, read_run, read_runs
from rtproof.experiment.target_runner import Cell, CellEnd
from rtproof.record import run_folder
from rtproof.run import session
from rtproof.targets.local import LocalTarget

LENGTH = ("--duration", "1s")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, behaviour: str = "does_its_load") -> int:
    agent = fake_agent.install(Path(), behaviour).absolute()
    return main(["run", "--agent", str(agent), "--output", "a", *arguments])


def folders() -> list[str]:
    return sorted(path.name for path in Path("a/runs").iterdir())


def test_sides_take_turns_so_that_a_drift_meets_both_alike() -> None:
    sides = ("--abba", "--load good", "--load late", "--repeat", "5", "--order-seed", "7")
    assert run(*sides, "--note", "why", *LENGTH) == 0
    assert folders() == [f"{at:02}-{side}" for at, side in enumerate(drawn_order(5, 7), 1)]
    info = run_folder.open_run("a/runs/02-B").info
    assert info is not None
    assert info.turn == run_folder.TurnInfo(order_seed=7, number=2)
    assert info.note == "why; B: --load late"
    assert run_folder.open_run("a/runs/01-A").record.slices[0].max == 10_000
    assert run_folder.open_run("a/runs/10-B").record.slices[0].max == 700_000


def test_own_options_win_and_loads_add_up() -> None:
    assert (
        run(
            *("--abba", "--priority 7 --load x", "", "--repeat", "1", "--priority", "9", "--cpus", "0", "--load", "y"),
            *LENGTH,
            *("--order-seed", "0"),
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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--abba", "--polcy rr", ""], "A of --abba, '--polcy rr': No such option"),
        (["--abba", "", "--limit 3us"], "all others hold for both"),
        (["--abba", "", "--duration 1s x"], "B of --abba, '--duration 1s x': Got unexpected extra argument"),
        (["--abba", 'a "b', ""], "No closing quotation"),
        (["--abba", "", "--samples 5"], "B of --abba, '--samples 5': --duration and --samples exclude each other"),
        (["--abba", "--period 3", ""], "A of --abba, '--period 3': Invalid value for '--period'"),
        (["--repeat", "2", "--order-seed", "1"], "--order-seed is for --abba"),
        (["--repeat", "2", "--observer"], "--repeat does not go with --observer"),
        (["--repeat", "2", "--profile", "akamina"], "--repeat does not go with --profile"),
        (["--repeat", "0"], "0 is not in the range"),
    ],
)
def test_refusals_name_the_side_and_leave_nothing(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, *LENGTH) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert sentence in err
    assert not Path("a").exists()


def test_what_the_agent_refuses_ends_the_series_and_keeps_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--abba", "--load good", "--load refuses", "--repeat", "5", "--order-seed", "7", *LENGTH) == 2
    out, err = capsys.readouterr()
    assert folders() == ["01-A"]
    assert "run 02-B: there is no CPU 99 on this machine; what was measured before is kept" in err
    assert "01-A" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_series_and_keeps_what_there_is(number: signal.Signals) -> None:
    agent = fake_agent.install(Path(), "until_interrupted").absolute()
    arguments = ["--repeat", "3", "--agent", str(agent), "--output", "a", *LENGTH]
    with started(*arguments, wait_for="rtproof-agent: ready\n") as process:
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert folders() == ["01"]


BY_TURNS = ("--abba", "", "", "--target", "simulated", "--target-option", "episodes=600/h", "--record", "summary")


def test_three_turns_are_by_turns_from_the_first_line_to_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--repeat", "3", "--order-seed", "1", "--duration", "10s", "--output", "a")
    assert main(["run", *BY_TURNS, *asked]) == 0
    out, err = capsys.readouterr()
    assert "6 runs by turns, A B B A A B (drawn from --order-seed 1)" in err
    assert "Not judged" in out
    assert "by turns" not in out, "that is no news at the end"
    assert "nothing else changed" not in out


def test_a_series_by_turns_is_interleaved_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--repeat", "5", "--order-seed", "7", "--duration", "1min", "--output", "a", "--json")
    assert main(["run", *BY_TURNS, *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    order = {"interleaved": True, "order": drawn_order(5, 7), "order_seed": 7, "why_not": None}
    assert found["turns"] == {**order, "rhythm": None, "unseen_rhythm": None}
    assert found["finding"] in ("no difference shown", "A is better", "B is better")


def cell(folder: Path, name: str, *behaviours: str) -> Cell:
    """A cell with a way for each behaviour of the agent."""
    return Cell(name, folder / name, tuple((behaviour, (behaviour,)) for behaviour in behaviours))


def run_cells(folder: Path, *cells: Cell) -> list[CellEnd]:
    asked = RunRequest(("rtproof", "run"), "local", agent=fake_agent.install(folder, "as_told"))
    return [end for end, _ in target_runner.run_cells(LocalTarget(), asked, cells)]


def test_the_first_way_that_can_be_had_is_taken(tmp_path: Path) -> None:
    """A way that the agent refuses is passed over; one on which it dies is the end of its cell."""
    ended, dead = run_cells(
        tmp_path, cell(tmp_path, "a", "refuses", "good", "late"), cell(tmp_path, "b", "dies_early", "good")
    )
    assert (ended.way, ended.refused, ended.failure) == (1, ("there is no CPU 99 on this machine",), "")
    assert (dead.way, dead.failure) == (None, "the agent was killed by SIGSEGV before it measured anything")
    assert [path.name for path in (tmp_path / "a", tmp_path / "b") if path.exists()] == ["a"]


def test_an_agent_that_fails_in_the_end_is_kept_with_its_sentence(tmp_path: Path) -> None:
    ended, killed = run_cells(tmp_path, cell(tmp_path, "a", "runs_out_of_space"), cell(tmp_path, "b", "dies"))
    assert ended.way == 0
    assert ended.failure == "no space left for the record"
    assert killed.failure.startswith("the agent was killed by SIGKILL; what it measured")


def test_a_cell_whose_files_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> session.AgentOutcome:
        raise OSError(errno.ENOSPC, "No space left on device", "agent.log")

    monkeypatch.setattr(session, "run_session", full)
    ended = run_cells(tmp_path, cell(tmp_path, "a", "good"), cell(tmp_path, "b", "good"))
    assert [(each.way, each.failure) for each in ended] == [(None, "agent.log: No space left on device")] * 2


def largest(run: Path, result: AnalysedRun) -> tuple[str, int]:
    return run.name, result.analysis.pooled.observed.max


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [write_run(tmp_path / name, latencies(at, 2_000)) for at, name in enumerate(("b", "a", "c"))]


def test_a_folder_is_searched_for_runs_and_records_in_order(tmp_path: Path, runs: list[Path]) -> None:
    deep = write_run(tmp_path / "campaign" / "cells" / "1", latencies(7, 1_000))
    bare = write_record(tmp_path / "campaign" / "copied.rtrec", latencies(8, 1_000))
    (tmp_path / "campaign" / "report.html").write_text("no run")
    (tmp_path / "again").symlink_to(tmp_path)
    assert find_runs([tmp_path]) == [runs[1], runs[0], runs[2], deep, bare]
    assert find_runs([runs[2], tmp_path / "b", runs[2], tmp_path])[:3] == [runs[2], runs[0], runs[1]]


def test_a_missing_path_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    for name, sentence in (("loop", " is a link to nothing"), ("gone", " does not exist"), ("empty", ": a run is")):
        with pytest.raises(UserError, match=name + sentence):
            find_runs([tmp_path / name])


def test_runs_are_read_as_one_by_one_and_in_order(runs: list[Path]) -> None:
    found, failed = read_runs(runs, largest)
    assert list(found.items()) == [(run, largest(run, read_run(run))) for run in runs]
    assert not failed


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit code and what is on the screen."""
    code = main(list(words))
    return code, capsys.readouterr().out


SIMULATED = BY_TURNS[3:]


@pytest.mark.parametrize(
    ("limit", "code", "word"),
    [((), 0, "MEASURED"), (("--limit", "2ms"), 0, "HELD"), (("--limit", "1us"), 1, "EXCEEDED")],
)
def test_a_series_ends_with_the_screen_of_its_folder(
    limit: tuple[str, ...], code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("run", *SIMULATED, "--repeat", "2", "--duration", "1min", *limit, "--output", "a")
    ended, out = shown(capsys, *asked)
    assert ended == code
    assert (code, out) == shown(capsys, "show", "a")
    first = out.splitlines()[0]
    assert first.startswith(f"{word:<10}")
    assert "page      a/report.html" in out
    assert Path("a/report.html").exists()
    assert len(out.splitlines()) <= 16
    assert max(map(len, out.splitlines())) <= 80


def test_two_sides_end_with_the_screen_and_a_short_comparison(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ("run", "--abba", "", "--period 2ms", *SIMULATED[:2], "--duration", "1min", "--limit", "2ms")
    ended, out = shown(capsys, *asked, "--record", "summary", "--output", "a")
    assert ended == 0
    _, screen = shown(capsys, "show", "a")
    assert out.startswith(f"{screen}\n")
    (header,) = (line for line in screen.splitlines() if line.startswith("run "))
    assert header.endswith("max ms")
    lines = out.removeprefix(f"{screen}\n").splitlines()
    assert lines[:2] == [
        "compared  No difference shown with 5 runs of A and 5 of B.",
        "          A: no options of its own. B: --period 2ms.",
    ]
    assert lines[-1] == "more      rtproof compare a"
    assert len(lines) <= 8
    assert max(map(len, lines)) <= 80
    assert re.search(r"\d us against \d", " ".join(lines)), "the test is about a difference that is told"


@pytest.mark.parametrize(("limit", "code", "word"), [("2ms", 0, "HELD"), ("1us", 1, "EXCEEDED")])
def test_quiet_prints_one_line_for_the_limit_and_one_for_the_comparison(
    limit: str, code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("run", *SIMULATED, "--duration", "10s", "--limit", limit, "--no-report", "-q", "--repeat")
    ended, out = shown(capsys, *asked, "2", "--output", "a")
    assert ended == code
    assert re.fullmatch(rf"{word} 2 of 2 runs\. 0[12]: .*\n", out)
    ended, out = shown(capsys, *asked, "3", "--abba", "", "--period 2ms", "--output", "b")
    assert ended == code
    verdict, comparison = out.splitlines()
    assert verdict.startswith(f"{word} 6 of 6 runs. ")
    assert comparison == "Not judged: 3 runs of A and 3 of B are too few; 5 of each are needed."


def test_json_leaves_the_verdict_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("run", *SIMULATED, "--duration", "10s", "--limit", "1us", "--json", "--repeat", "2", "--output", "a")
    assert main(list(asked)) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["schema"] == "rtproof.runs"
    assert err.splitlines()[-1].startswith("EXCEEDED 2 of 2 runs. ")


def test_the_tables_of_a_series_are_those_of_compare(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", *SIMULATED, "--duration", "10s", "--repeat", "2", "--output", "a"]
    assert main([*asked, "-v"]) == 2
    assert "'rtproof compare FOLDER' prints the tables" in capsys.readouterr().err
    assert main(asked) == 0
    capsys.readouterr()
    _, out = shown(capsys, "compare", "a", "--no-report")
    assert out.startswith("rtproof: 2 runs of the same\n")
    assert "one run to the next" in out


def test_compare_finds_the_sides_of_a_folder_and_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    """They differ in a fact that has to agree otherwise, and that is what the folder is for."""
    asked = ["run", "--abba", "--load good", "--load late", "--repeat", "2", "--order-seed", "0", *LENGTH]
    assert run(*asked[1:]) == 0
    capsys.readouterr()
    code, out = shown(capsys, "compare", "a", "--no-report")
    assert code == 0
    assert out.startswith("rtproof: good against late, 2 runs against 2 - not judged")
    assert "good: --load good, 2 runs. late: --load late, 2 runs." in " ".join(out.split())
    assert "left out" not in out, "chance makes runs alike whose values are all the same"
    _, out = shown(capsys, "compare", "a", "--no-report", "--names", "new,old")
    assert out.startswith("rtproof: new against old, ")
    assert shown(capsys, "compare", "a/runs") == (2, "")
    Path("a/runs/01-A").rename("a/runs/monday")
    assert shown(capsys, "compare", "a") == (2, ""), "no run of the folder is left out"
