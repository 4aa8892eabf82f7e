# SPDX-License-Identifier: Apache-2.0
"""The files of packaging/ci agree with each other and with the exit codes of rtproof."""

import re
import subprocess
from pathlib import Path

import pytest

from rtproof.judge.analysis_model import State

CI = Path(__file__).parent.parent / "packaging" / "ci"


def test_the_three_files_have_the_same_settings_and_valid_scripts() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    github = yaml.safe_load((CI / "github-actions.yml").read_text())
    gitlab = yaml.safe_load((CI / "gitlab-ci.yml").read_text())["latency"]
    jenkins = (CI / "Jenkinsfile").read_text()
    assert github["env"] == gitlab["variables"] == dict(re.findall(r"^ +([A-Z_]+) = '([^']*)'", jenkins, re.MULTILINE))
    assert gitlab["allow_failure"]["exit_codes"] == [State.UNDECIDED.exit_code]
    assert f"if (code == {State.UNDECIDED.exit_code}) {{\n                        unstable(" in jenkins
    steps = [step["run"] for step in github["jobs"]["latency"]["steps"] if "run" in step]
    for script in (*steps, "\n".join(gitlab["script"]), *re.findall(r"'''\n(.*?)'''", jenkins, re.DOTALL)):
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
