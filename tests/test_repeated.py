# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --repeat`` and ``--abba`` from the command line to the folder, with an agent as it is told."""

import json
import signal
from pathlib import Path

import fake_agent
import pytest
from test_cli_run import started

from rtproof.cli.main import main
from rtproof.record import run_folder

LENGTH = ("--duration", "1s")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, behaviour: str = "does_its_load") -> int:
    agent = fake_agent.install(Path(), behaviour).absolute()
    return main(["run", "--agent", str(agent), "--output", "a", *arguments])


def folders() -> list[str]:
    return sorted(path.name for path in Path("a/runs").iterdir())


def test_repeat_leaves_a_run_folder_each_and_tells_how_much_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--repeat", "3", *LENGTH) == 0
    out, err = capsys.readouterr()
    assert folders() == ["01", "02", "03"]
    assert "3 runs, 0:00:06 in all" in err
    assert "[2/3] 02, 0:00:02; 0:00:04 to go in all" in err
    assert "one run to the next" in out
    assert out.endswith("report: a/report.html\nruns: a/runs\n")
    assert "02" in Path("a/report.html").read_text()


def test_sides_take_turns_so_that_a_drift_meets_both_alike() -> None:
    assert run("--abba", "--load good", "--load late", "--repeat", "5", "--note", "why", *LENGTH) == 0
    assert folders() == ["01-A", "02-B", "03-B", "04-A", "05-A", "06-B", "07-B", "08-A", "09-A", "10-B"]
    info = run_folder.open_run("a/runs/02-B").info
    assert info is not None
    assert info.note == "why; B: --load late"
    assert run_folder.open_run("a/runs/01-A").record.slices[0].max == 10_000
    assert run_folder.open_run("a/runs/10-B").record.slices[0].max == 700_000


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
def test_refusals_name_the_side_and_leave_nothing(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, *LENGTH) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert sentence in err
    assert not Path("a").exists()


def test_a_folder_that_exists_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a").mkdir()
    assert run("--repeat", "2", *LENGTH) == 2
    assert "a exists already" in capsys.readouterr().err


def test_what_the_agent_refuses_ends_the_series_and_keeps_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--abba", "--load good", "--load refuses", "--repeat", "5", *LENGTH) == 2
    out, err = capsys.readouterr()
    assert folders() == ["01-A"]
    assert "run 02-B: there is no CPU 99 on this machine; what was measured before is kept" in err
    assert "01-A" in out


def test_nothing_is_left_where_the_first_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--repeat", "5", "--load", "refuses", *LENGTH) == 2
    assert "rtproof: run 01: there is no CPU 99 on this machine" in capsys.readouterr().err
    assert not Path("a").exists()


def test_a_run_that_was_killed_is_kept_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--repeat", "2", "--load", "dies", *LENGTH) == 2
    assert "run 01: the agent was killed by SIGKILL; what it measured until then is kept" in capsys.readouterr().err
    assert folders() == ["01", "02"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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


def test_json_is_all_that_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--repeat", "2", "--json", "--no-report", *LENGTH) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "rtproof.runs"
    assert [each["max_ns"] for each in found["runs"]] == [10_000, 10_000]
    assert not Path("a/report.html").exists()


def test_simulated_runs_of_a_series_are_not_alike(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--abba", "", "", "--repeat", "2", "--target", "simulated", "--target-option", "episodes=600/h"]
    assert main(["run", *words, "--record", "summary", "--duration", "10min", "--output", "a", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    runs = [run for side in found["sides"] for run in side["runs"]]
    assert len({run["max_ns"] for run in runs}) == 4
    assert found["finding"] == "not judged"


def test_a_series_by_turns_is_interleaved_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--abba", "", "", "--repeat", "5", "--target", "simulated", "--target-option", "episodes=600/h"]
    assert main(["run", *words, "--record", "summary", "--duration", "1min", "--output", "a", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["turns"] == {"interleaved": True, "order": "ABBAABBAAB", "why_not": None}
    assert found["finding"] in ("no difference shown", "A is better", "B is better")
