# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from agent_process import agent

from rtproof import loads
from rtproof.cli.main import main

LACKING = 'name = "lacking"\nhelp = "x"\n[[parts]]\nprogram = ["rtproof-no-such"]\n'


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    loads.user_folder().mkdir(parents=True)


def test_all_there_are_are_listed_with_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    (loads.user_folder() / "lacking.toml").write_text(LACKING)
    (loads.user_folder() / "foreign.toml").write_text(
        'name = "foreign"\nhelp = "x"\n[[parts]]\nload = "nothing-of-the-kind"\n'
    )
    assert main(["loads"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert {"doload", "sched", "lacking"} <= set(lines)
    assert lines["lacking"].endswith("; not here: there is no program 'rtproof-no-such'")
    assert lines["foreign"].endswith("; not here: the agent has no load 'nothing-of-the-kind'")
    assert "not here" not in lines["sched"]


def test_one_is_shown_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["loads", "stress-ng", "sched"]) == 0
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert words == ["stress-ng", "stressor", "workers", "restart", "sched", "groups", "pairs", "bytes", "restart"]


def test_one_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["loads", "nothing"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("rtproof: there is no load 'nothing'; there are: article2-stress, ")
    assert err.count("\n") == 1
