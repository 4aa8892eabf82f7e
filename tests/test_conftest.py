# SPDX-License-Identifier: Apache-2.0
"""Tests marked ``serial`` are alone and last, also among several processes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Each test leaves a file while it runs; those that should be alone look for others.
INNER = """
import time
from pathlib import Path
import pytest

RUNNING = Path(__file__).parent / "running"

def others_beside(name):
    mine = RUNNING / name
    mine.touch()
    time.sleep(0.02)
    found = sorted(path.name for path in RUNNING.iterdir() if path != mine)
    mine.unlink()
    return found

@pytest.mark.serial
@pytest.mark.parametrize("n", range(4))
def test_alone(n):
    assert others_beside(f"alone{n}") == []

@pytest.mark.parametrize("n", range(12))
def test_ordinary(n):
    assert [name for name in others_beside(f"ordinary{n}") if name.startswith("alone")] == []
"""


@pytest.fixture
def session(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = serial: alone\n")
    (tmp_path / "test_inner.py").write_text(INNER)
    (tmp_path / "running").mkdir()
    return tmp_path


def pytest_says(session: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=session, capture_output=True, text=True, check=False)


def test_nothing_runs_beside_a_serial_test(session: Path) -> None:
    result = pytest_says(session, "-n", "3")
    assert "16 passed" in result.stdout, result.stdout


def test_serial_tests_come_last(session: Path) -> None:
    names = [
        line.partition("::")[2] for line in pytest_says(session, "--collect-only").stdout.splitlines() if "::" in line
    ]
    assert [name.startswith("test_alone") for name in names] == [False] * 12 + [True] * 4
