# SPDX-License-Identifier: Apache-2.0
"""A profile with the real agent on this machine, shortened to a moment."""

import json
from pathlib import Path

import agent_process
import pytest
from agent_process import needs_root

from rtproof.cli.main import main

pytestmark = pytest.mark.real


@needs_root
def test_a_profile_runs_from_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "--profile", "akamina", "--set", "load=unloaded", "--samples", "30", "--warmup", "100ms"]
    code = main([*words, "--agent", agent_process.agent(), "--output", "a"])
    found = json.loads(Path("a/result.json").read_text())
    (cell,) = found["cells"]
    (result,) = cell["results"]
    assert code == found["exit_code"] == result["analysis"]["verdict"]["exit_code"]
    assert result["way"] in {"kernel", "timerlat", "timer"}
    assert [each["way"] for each in result["passed"]] == ["kernel", "timerlat", "timer"][: len(result["passed"])]
    pooled = result["analysis"]["pooled"]
    assert pooled["obtained_count"] + pooled["missed_count"] + pooled["lost_count"] >= 30
    assert "Shortened: 300 ms instead of 4 h 10 min." in capsys.readouterr().out
    assert 'href="./cells/unloaded.html"' in Path("a/report.html").read_text()
