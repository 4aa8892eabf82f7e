# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path

import pytest

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.record.run_folder import open_run
from rtproof.targets import simulated

RUN = ["run", "--target", "simulated", "--output", "r", "--duration", "10min", "--limit", "100us"]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_is_no_machine_and_brings_its_agent() -> None:
    with simulated.open_target({"seed": "3"}) as target:
        assert (target.machine(), target.host_name()) == ("simulated", "simulated")
        assert target.own_agent().name == "simulated_agent.py"
        assert target.own_agent().exists()


def test_nonsense_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="no kind of process"):
        simulated.open_target({"kind": "flood"}).__enter__()
    assert main([*RUN, "--target-option", "speed=2"]) == 2
    assert "has no option 'speed'; there are: seed (" in capsys.readouterr().err
    assert not Path("r").exists()


def test_what_only_the_process_and_the_run_together_show_is_refused_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--period", "50us"]) == 2
    assert "events must be less than a period late" in capsys.readouterr().err
    assert not Path("r").exists()


def test_everything_made_of_such_a_run_says_that_it_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--target-option", "seed=7"]) == 4
    first = capsys.readouterr().out.split("What the verdict rests on")[0]
    assert "a simulated process, no machine" in first
    assert "no machine: a seeded process was played" in first
    assert "simulated: no figure is of any machine (seed=7" in first
    assert "a simulated process, no machine</title>" in Path("r.html").read_text()
    main(["show", "r", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert "simulated" in [doubt["code"] for doubt in said["doubts"]]
    assert said["verdict"]["sentences"][-1]["text"].startswith("no machine")


def test_run_and_record_tell_what_was_played() -> None:
    main([*RUN, "--target-option", "kind=storm", "--target-option", "episodes=1 / 3h", "--no-report"])
    run = open_run("r")
    assert run.info is not None
    assert (run.info.target, run.info.agent_arch) == ("simulated", "simulated")
    assert len(run.info.agent_sha256) == 64
    told = "seed=1 kind=storm episodes=1/3h above=100000ns scale=20000ns shape=0 step=1s"
    assert run.record.fact("simulated") == told
    assert run.record.begin.machine == "simulated"
