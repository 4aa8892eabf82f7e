# SPDX-License-Identifier: Apache-2.0
"""Who runs when and beside whom, also among several processes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LENGTHY

# Each test leaves a file while it runs, and looks for those of others.
COMMON = """
import time
from pathlib import Path
import pytest

HERE = Path(__file__).parent
RUNNING = HERE / "running"

def kinds_beside(name):
    mine = RUNNING / name
    mine.touch()
    time.sleep(0.03)
    found = {path.name.rstrip("0123456789") for path in RUNNING.iterdir() if path != mine}
    mine.unlink()
    return found
"""
MARKED = """
from common import HERE, kinds_beside, pytest

@pytest.mark.serial
@pytest.mark.parametrize("n", range(4))
def test_alone(n):
    assert kinds_beside(f"alone{n}") == set()

@pytest.mark.real
@pytest.mark.parametrize("n", range(24))
def test_real(n):
    if "real" in kinds_beside(f"real{n}"):
        (HERE / "together").touch()

@pytest.mark.slow
@pytest.mark.parametrize("n", range(6))
def test_slow(n):
    assert "alone" not in kinds_beside(f"slow{n}")
"""
ORDINARY = """
import os
import sys
from common import kinds_beside, pytest

@pytest.mark.parametrize("n", range(12))
def test_ordinary(n):
    assert not kinds_beside(f"ordinary{n}") & {"alone", "ordinary"}  # those of a file share a process
    assert not sys.dont_write_bytecode
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ  # of a process that a test starts
"""
LOADS = """
from common import kinds_beside, pytest

@pytest.mark.all_loads
@pytest.mark.parametrize("n", range(4))
def test_loads(n):
    assert kinds_beside(f"loads{n}") <= {"slow"}
"""
ORDER = ["loads"] * 4 + ["slow"] * 6 + ["ordinary"] * 12 + ["real"] * 24 + ["alone"] * 4


@pytest.fixture
def session(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n all_loads\n slow\n real\n serial\n")
    for name, text in (("common", COMMON), ("test_ordinary", ORDINARY), ("test_marked", MARKED), ("test_loads", LOADS)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "running").mkdir()
    return tmp_path


def pytest_says(session: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=session, capture_output=True, text=True, check=False, env=environment)


def test_nothing_runs_beside_a_serial_test_and_real_ones_do_together(session: Path) -> None:
    result = pytest_says(session, "-n", "3")
    assert "50 passed" in result.stdout, result.stdout
    assert (session / "together").exists()


def test_the_kinds_come_in_their_order(session: Path) -> None:
    said = pytest_says(session, "--collect-only").stdout.splitlines()
    names = [line.partition("::test_")[2].partition("[")[0] for line in said if "::" in line]
    assert names == ORDER


def test_quick_leaves_out_what_is_marked_and_only_files_that_are_there(session: Path) -> None:
    named = [name for names in LENGTHY.values() for name in names.split()]
    assert len(named) == len(set(named))
    assert [name for name in named if not (Path(__file__).parent / f"test_{name}.py").is_file()] == []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--quick", "--collect-only", str(session)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=session).stdout
    assert "12/50 tests collected (38 deselected)" in listed
