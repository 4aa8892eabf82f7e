# SPDX-License-Identifier: Apache-2.0
"""The files of packaging/ci: what a service would run of them is run here, with a stub of the service around it.

The installation is left out: ``make wheel-check`` installs with pip.
"""

import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

CI = Path(__file__).parent.parent / "packaging" / "ci"
VERDICTS = {0: "passed", 1: "failed", 2: "failed", 3: "failed", 4: "unstable"}
"""What becomes of a job, by the exit code of rtproof run."""
STUB = """#!/bin/sh
echo "$@" >> "$CALLS"
while [ $# -gt 0 ]; do
	case $1 in
	run | judge | history | compare) command=$1 ;;
	--output) output=$2 ;;
	--junit | --markdown) echo "$1" > "$2" ;;
	esac
	shift
done
case $command in
run) [ "$CODE" = 2 ] || mkdir -p "$output"; exit "$CODE" ;;
compare) exit "${COMPARE_CODE:-0}" ;;
esac
[ -z "${output:-}" ] || echo "$command" > "$output"
"""


@dataclass(frozen=True)
class Done:
    """A job that ended. ``result``: passed, failed or unstable. ``output``: standard output and error."""

    result: str
    output: str
    folder: Path


@dataclass(frozen=True)
class Place:
    """Where a job runs: its folder, and the variables that it gets in place of those in the file."""

    folder: Path
    variables: dict[str, str]

    def shell(self, script: str, given: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
        """Run a script as the service does. ``given``: the variables in the file."""
        environment = {name: str(value) for name, value in given.items()} | self.variables
        return subprocess.run(
            ["bash", *options, "-c", script],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )


def on_github(place: Place) -> Done:
    """The steps in their order: a step with an always-condition runs after a failure, too, and so does an upload."""
    job = yaml.safe_load((CI / "github-actions.yml").read_text())
    steps = job["jobs"]["latency"]["steps"]
    assert steps[0]["name"] == "Install"
    failed, said = False, ""
    for step in steps[1:]:
        if "run" not in step or (failed and "cancelled" not in step.get("if", "")):
            continue
        done = place.shell(step["run"], job["env"], "--noprofile", "--norc", "-eo", "pipefail")
        said += done.stdout
        failed = failed or done.returncode != 0
    result = "failed" if failed else "unstable" if "::warning::UNDECIDED" in said else "passed"
    return Done(result, said, place.folder)


def on_gitlab(place: Place) -> Done:
    """All lines in one shell that ends at the first failure, as the runner's shell executor does."""
    job = yaml.safe_load((CI / "gitlab-ci.yml").read_text())["latency"]
    assert job["before_script"][2] == '.rtproof/bin/pip install "$RTPROOF"'
    done = place.shell("\n".join(job["script"]), job["variables"], "-eo", "pipefail")
    allowed = job["allow_failure"]["exit_codes"]
    result = "passed" if not done.returncode else "unstable" if done.returncode in allowed else "failed"
    return Done(result, done.stdout, place.folder)


def on_jenkins(place: Place) -> Done:
    """The two scripts of the stage Measure (sh -xe), and then the decisions of its Groovy, read line by line."""
    text = (CI / "Jenkinsfile").read_text()
    _, measure, keep = re.findall(r"'''\n(.*?)'''", text, re.DOTALL)
    given = dict(re.findall(r"^ +([A-Z_]+) = '([^']*)'", text, re.MULTILINE))
    done = place.shell(measure, given, "-xe")
    code, said = done.returncode, done.stdout
    if code in map(int, re.search(r"if \(code in \[([^]]*)\]\)", text)[1].split(",")):  # type: ignore[index]
        kept = place.shell(keep, given, "-xe")
        said += kept.stdout
        if kept.returncode:
            return Done("failed", said, place.folder)
    deeds = {int(number): deed for number, deed in re.findall(r"if \(code == (\d)\) \{\s+(\w+)\(", text)}
    assert re.search(r"else if \(code != 0\) \{\s+error\(", text)
    result = {"unstable": "unstable", "error": "failed"}[deeds.get(code, "error")] if code else "passed"
    return Done(result, said, place.folder)


SERVICES = {"github": on_github, "gitlab": on_gitlab, "jenkins": on_jenkins}
each_service = pytest.mark.parametrize("service", SERVICES)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder for the job and the runner's two folders, with rtproof of this interpreter first in PATH."""
    folder = tmp_path / "work"
    folder.mkdir()
    variables = {
        "PATH": f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(Path.home()),
        "SUDO": "",
        "KEPT": str(tmp_path / "kept"),
        "BASELINE": str(tmp_path / "baseline"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "CALLS": str(tmp_path / "calls"),
    }
    return Place(folder, variables)


def with_stub(place: Place, code: int) -> Place:
    """rtproof is a script whose ``run`` ends with this code."""
    program = place.folder.parent / "bin" / "rtproof"
    program.parent.mkdir()
    program.write_text(STUB)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    place.variables["CODE"] = str(code)
    return place


@each_service
@pytest.mark.parametrize("code", VERDICTS)
def test_each_verdict_has_its_own_end(service: str, code: int, place: Place) -> None:
    done = SERVICES[service](with_stub(place, code))
    assert done.result == VERDICTS[code], done.output
    calls = (place.folder.parent / "calls").read_text().splitlines()
    assert calls[0].startswith(
        "run --until-decided --max-duration 2h --limit 500us --at-most 1/min --load sched --output"
    )
    kept = place.folder.parent / "kept"
    assert len(list(kept.glob("*"))) == (code in (0, 1, 4))
    assert (place.folder / "history.html").exists() == (code in (0, 1, 4))
    if code != 2:
        assert (place.folder / "rtproof.xml").exists()
    assert not any(call.startswith("compare") for call in calls), "there is no baseline"


@each_service
@pytest.mark.parametrize("compare_code", [0, 2])
def test_five_nights_are_compared_with_the_baseline_and_the_job_ends_as_the_verdict_says(
    service: str, compare_code: int, place: Place
) -> None:
    for number in range(6):
        (place.folder.parent / "kept" / f"2026010{number}T000000Z").mkdir(parents=True)
    (place.folder.parent / "baseline").mkdir()
    place.variables["COMPARE_CODE"] = str(compare_code)
    done = SERVICES[service](with_stub(place, 0))
    assert done.result == "passed", done.output
    calls = (place.folder.parent / "calls").read_text().splitlines()
    (compared,) = (call.split() for call in calls if call.startswith("compare"))
    assert [Path(name).name for name in compared[1:5]] == [f"2026010{number}T000000Z" for number in (2, 3, 4, 5)]
    assert compared[6:] == ["--against", place.variables["BASELINE"], "--output", "comparison.html"]
    assert ("no comparison with the baseline" in done.output.replace("echo no comparison", "")) == bool(compare_code)


@pytest.mark.real
@each_service
def test_the_lines_measure_and_judge_a_real_run(service: str, place: Place) -> None:
    place.variables.update({"LIMIT": "100ms", "AT_MOST": "1/1s", "MAX_DURATION": "1s", "LOAD": "sched"})
    done = SERVICES[service](place)
    assert "Traceback" not in done.output
    (run,) = (path for path in (place.folder / "runs").iterdir() if path.is_dir())
    suites = ElementTree.parse(place.folder / "rtproof.xml").getroot()
    (case,) = suites.iter("testcase")
    worst = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
    assert done.result == {"passed": "passed", "failure": "failed", "error": "failed", "skipped": "unstable"}[worst]
    if worst != "error":
        kept = place.folder.parent / "kept" / run.name
        assert {path.name for path in kept.iterdir()} == {path.name for path in run.iterdir()} != set()
        assert "<html" in (place.folder / "history.html").read_text()
    assert (place.folder / "rtproof.md").read_text()


def test_the_files_hold_no_settings_but_those_of_the_page() -> None:
    """The three files have the same variables with the same values."""
    github = yaml.safe_load((CI / "github-actions.yml").read_text())["env"]
    gitlab = yaml.safe_load((CI / "gitlab-ci.yml").read_text())["latency"]["variables"]
    jenkins = dict(re.findall(r"^ +([A-Z_]+) = '([^']*)'", (CI / "Jenkinsfile").read_text(), re.MULTILINE))
    assert github == gitlab == jenkins
