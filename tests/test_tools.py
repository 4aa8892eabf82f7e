# SPDX-License-Identifier: Apache-2.0
"""The scripts behind ``make test``: they wait for another apt-get, and a part that fails does not stop the others."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LISTS = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)"
ARCHIVES = "E: Could not get lock /var/cache/apt/archives/lock. It is held by process 1 (apt-get)"

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


def program(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**plain, "PATH": path, **environment},
    )


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """A system where a package is missing until apt-get has installed it; apt-get fails as files named ``busy`` say."""
    program(tmp_path / "bin/id", "echo 0")
    program(tmp_path / "bin/sleep", "echo slept >> slept")
    program(tmp_path / "bin/dpkg-query", "[ -e installed ] && echo -n installed")
    program(
        tmp_path / "bin/apt-get",
        'echo "$@" >> calls',
        'case "$*" in *update*) busy=busy-update ;; *) busy=busy-install ;; esac',
        "if [ -s $busy ]; then head -n 1 $busy >&2; sed -i 1d $busy; exit 100; fi",
        'case "$*" in *install*) touch installed ;; esac',
    )
    return tmp_path


def apt(debian: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(debian, "sh", str(ROOT / "tools/apt.sh"), "some-package", **environment)


def test_packages_are_installed_with_patience_for_the_lock_of_dpkg(debian: Path) -> None:
    done = apt(debian)
    assert (done.returncode, done.stdout, done.stderr) == (0, "installing with apt-get: some-package\n", "")
    update, install = (debian / "calls").read_text().splitlines()
    assert update.endswith("update")
    assert install.endswith("install --yes --no-install-recommends some-package")
    assert "-o DPkg::Lock::Timeout=600" in install


def test_locks_without_a_timeout_are_asked_for_again(debian: Path) -> None:
    (debian / "busy-update").write_text(f"{LISTS}\n" * 3)
    (debian / "busy-install").write_text(f"{ARCHIVES}\n" * 2)
    done = apt(debian)
    assert done.returncode == 0
    assert (debian / "installed").exists()
    assert (debian / "slept").read_text().count("slept") == 5
    assert done.stderr == "waiting for another apt-get\n" * 2


def test_the_patience_ends(debian: Path) -> None:
    (debian / "busy-update").write_text(f"{LISTS}\n" * 9)
    (debian / "busy-install").write_text(f"{LISTS}\n" * 9)
    done = apt(debian, LOCK_PATIENCE_S="2")
    assert "missing, and not installed" in done.stderr
    assert LISTS in done.stderr
    assert (debian / "slept").read_text().count("slept") == 4


def test_an_error_that_is_no_lock_is_told_at_once(debian: Path) -> None:
    (debian / "busy-install").write_text("E: Unable to locate package some-package\n")
    done = apt(debian)
    assert "Unable to locate package" in done.stderr
    assert "missing, and not installed" in done.stderr
    assert not (debian / "slept").exists()


def test_all_parts_run_and_those_that_failed_are_named(tmp_path: Path) -> None:
    done = run(
        tmp_path, "sh", str(ROOT / "tools/parts.sh"), "echo one", "exit 3", "echo 'two words'; exit 4", "echo last"
    )
    assert done.returncode == 3
    assert done.stdout.splitlines() == [
        "echo one",
        "one",
        "exit 3",
        "echo 'two words'; exit 4",
        "two words",
        "echo last",
        "last",
    ]
    assert done.stderr.splitlines() == [
        "",
        "failed with exit code 3: exit 3",
        "failed with exit code 4: echo 'two words'; exit 4",
    ]


def test_parts_that_all_succeed_end_with_the_last_line_of_the_last(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", str(ROOT / "tools/parts.sh"), "true", "echo 7 passed")
    assert (done.returncode, done.stderr, done.stdout.splitlines()[-1]) == (0, "", "7 passed")


def test_who_interrupts_a_part_ends_all(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", str(ROOT / "tools/parts.sh"), "exit 130", "echo last")
    assert (done.returncode, done.stdout) == (130, "exit 130\n")


@pytest.mark.parametrize("failing", ["agent", "environment", "pytest"])
def test_make_test_runs_everything_whatever_fails(failing: str, tmp_path: Path) -> None:
    """Every part is replaced by one that notes that it ran."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/parts.sh", tmp_path / "tools")
    ends = {part: f"exit {int(part == failing)}" for part in ("agent", "environment", "pytest")}
    for script in ("apt", "kernels"):
        program(tmp_path / f"tools/{script}.sh", f"echo {script} >> ran")
    program(tmp_path / "tools/venv.sh", "echo environment >> ran", ends["environment"])
    program(tmp_path / ".venv/bin/python", "echo pytest >> ran", "echo 7 of pytest", ends["pytest"])
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/Makefile").write_text(f"check:\n\t@echo agent >> ../ran; {ends['agent']}\n")
    done = run(tmp_path, "make", "test")
    ran = (tmp_path / "ran").read_text().split()
    assert ran[0] == "apt"
    assert set(ran) >= {"agent", "environment", "pytest"}
    assert ran.count("agent") == 3
    assert ran[-1] == "pytest"
    assert done.returncode != 0
    assert "failed with exit code" in done.stderr
    assert {"agent": "agent-checks", "environment": "environment", "pytest": "-m pytest"}[failing] in done.stderr
