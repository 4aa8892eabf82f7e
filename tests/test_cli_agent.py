# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest

from rtproof.agents import build
from rtproof.cli.main import main

LISTED = "load\tsched\tgroups of processes\nload_option\tsched\tgroups\thow many\n"


def test_what_the_agent_has_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = tmp_path / "agent"
    agent.write_text(f"#!/bin/sh\nprintf '{LISTED}'\n")
    agent.chmod(0o755)
    monkeypatch.setattr(build, "packaged_agent", lambda arch: agent)
    assert main(["agent", "list"]) == 0
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert rows[0][0] == "load"
    assert rows[0][1].endswith("groups of processes")
    assert rows[1][1].split() == ["option", "sched", "groups", "how", "many"]


def test_an_agent_that_lists_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\nexit 1\n")
    agent.chmod(0o755)
    monkeypatch.setattr(build, "packaged_agent", lambda arch: agent)
    assert main(["agent", "list"]) == 2
    assert capsys.readouterr().err == f"rtproof: {agent} does not say its list: exit code 1\n"
