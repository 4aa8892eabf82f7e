# SPDX-License-Identifier: Apache-2.0
"""The scripts behind ``make demo``, each among stand-ins for what it calls."""

import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(checkout: Path, name: str, *arguments: str, python: str = "") -> subprocess.CompletedProcess[str]:
    shutil.copy(TOOLS / name, checkout / "tools" / name)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHON": python}
    command = ["sh", str(checkout / "tools" / name), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which nothing is installed and nothing can be."""
    script(tmp_path / "tools" / "apt.sh", "echo tried to install $* >>installed")
    script(tmp_path / "tools" / "venv.sh", "echo $1 >>venv")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "run.txt").touch()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


@pytest.mark.parametrize("python", ["no-such-python", "false"])
def test_without_a_new_enough_python_it_says_which_is_needed(checkout: Path, python: str) -> None:
    result = run(checkout, "venv.sh", "run", python=python)
    assert result.returncode == 2
    assert "needs Python 3.11 or newer" in result.stderr
    assert not (checkout / ".venv").exists()


def test_without_the_venv_module_it_tries_to_install_it_and_else_says_how(checkout: Path) -> None:
    script(checkout / "python", 'case "$2" in *ensurepip*) exit 1 ;; *print*) echo 3.11 ;; esac')
    result = run(checkout, "venv.sh", "run", python=str(checkout / "python"))
    assert result.returncode == 2
    assert (checkout / "installed").read_text() == "tried to install python3.11-venv\n"
    assert result.stderr.count("\n") == 1
    assert "apt-get install python3.11-venv" in result.stderr


def test_nothing_is_installed_when_nothing_has_changed(checkout: Path) -> None:
    script(checkout / ".venv" / "run.stamp", "")
    assert run(checkout, "venv.sh", "run", python="no-such-python").returncode == 0


@pytest.mark.parametrize(("code", "ends_with"), [(0, 0), (1, 0), (3, 0), (4, 0), (2, 2), (130, 130)])
def test_the_demo_works_whatever_the_verdict(checkout: Path, code: int, ends_with: int) -> None:
    script(checkout / ".venv" / "bin" / "rtproof", f'[ "$1" = agent ] || {{ echo "$@"; exit {code}; }}')
    result = run(checkout, "demo.sh")
    assert result.returncode == ends_with
    assert "run --duration 20s --limit 500us --load sched" in result.stdout
    assert (checkout / "venv").read_text() == "run\n"


def test_the_demo_takes_zig_where_nothing_builds_the_agent(checkout: Path) -> None:
    script(checkout / ".venv" / "bin" / "rtproof", '[ "$1" != agent ] || grep -q cross venv')
    assert run(checkout, "demo.sh").returncode == 0
    assert (checkout / "venv").read_text() == "run\ncross\n"


def test_packages_that_are_there_are_not_installed_again(checkout: Path) -> None:
    if not shutil.which("dpkg-query"):
        pytest.skip("this is no Debian")
    result = run(checkout, "apt.sh", "dpkg", "libc6")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_kernels_that_cannot_be_had_do_not_stop_the_others(checkout: Path) -> None:
    script(checkout / ".venv" / "bin" / "python", 'echo "$*" >>asked; [ "$6" != b ] || exit 2')
    result = run(checkout, "kernels.sh", "a", "b", "c")
    asked = (checkout / "asked").read_text().splitlines()
    assert asked == [f"-m rtproof lab kernels fetch {name}" for name in "abc"]
    assert (result.stdout, result.stderr) == ("", "without b what boots it is skipped\n")
