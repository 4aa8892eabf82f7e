# SPDX-License-Identifier: Apache-2.0
"""Temporary folders of killed processes are removed by the next run, and nothing else is."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rtproof.core import scratch
from rtproof.record import run_folder
from rtproof.vm import cache_folders

ROOT = Path(__file__).parent.parent
START = """
import sys, time
from pathlib import Path
from rtproof.core.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "password").write_text("secret")
    (folder / "elsewhere").symlink_to(sys.argv[2])
    print(folder, flush=True)
    time.sleep(600)
"""
NO_PROCESS = 2**22
"""Linux gives no process this number or a higher one."""
GONE = f"rtproof-host-{NO_PROCESS}-7-abc"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder for temporary files."""
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.mark.parametrize("reaped", [True, False])
def test_what_a_killed_process_leaves_goes_and_what_a_living_one_has_stays(
    reaped: bool, place: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    words = [sys.executable, "-c", START, str(place), str(elsewhere)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            left = Path(process.stdout.readline().strip())
            assert re.fullmatch(rf"\.rtproof-host-{process.pid}-\d+-\w+", left.name)
            scratch.sweep(place)
            assert (left / "password").exists()
        finally:
            process.send_signal(signal.SIGKILL)
            if reaped:
                process.wait()
            else:
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert (left / "password").exists()
        scratch.sweep(place)
    assert not left.exists()
    assert (elsewhere / "kept").exists()


@pytest.mark.parametrize("name", ["rtproof-0", "rtproof-load-1-2-3", "rtproof-host-", f"x{GONE}", f"{GONE}.txt"])
def test_other_names_stay(name: str, place: Path) -> None:
    (place / name).mkdir()
    (place / GONE).mkdir()
    scratch.sweep()
    assert [each.name for each in place.iterdir()] == [name]


def test_a_file_and_a_link_stay(place: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    (place / f"{GONE}1").symlink_to(tmp_path / "other")
    (place / f"{GONE}2").touch()
    scratch.sweep()
    assert len(list(place.iterdir())) == 2
    assert (tmp_path / "other" / "kept").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_stays(place: Path) -> None:
    (place / GONE).mkdir()
    os.chown(place / GONE, 65534, 65534)
    scratch.sweep()
    assert (place / GONE).exists()


def test_a_folder_that_is_used_stays_where_its_process_is_not_seen(place: Path) -> None:
    """A container sees the host's folder for temporary files, and not the host's processes."""
    (place / GONE).mkdir()
    held = os.open(place / GONE, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        scratch.sweep()
        assert (place / GONE).exists()
    finally:
        os.close(held)
    scratch.sweep()
    assert not (place / GONE).exists()


def test_a_number_that_another_process_got_keeps_nothing(place: Path) -> None:
    (place / f"rtproof-host-{os.getpid()}-7-abc").mkdir()
    with scratch.scratch_folder() as used:
        assert list(place.iterdir()) == [used]
    assert list(place.iterdir()) == []


def test_every_run_sweeps(place: Path, tmp_path: Path) -> None:
    (place / GONE).mkdir()
    run_folder.create_run_folder(tmp_path / "run")
    assert list(place.iterdir()) == []


def test_every_guest_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    left = tmp_path / "rtproof" / "lab" / "scratch" / f".{GONE}"
    left.mkdir(parents=True)
    with cache_folders.scratch_folder() as folder:
        assert list(left.parent.iterdir()) == [folder]


def test_no_other_code_makes_a_folder_that_nobody_sweeps() -> None:
    sources = (ROOT / "src" / "rtproof").rglob("*.py")
    makers = [path.name for path in sources if re.search(r"TemporaryDirectory|mkdtemp", path.read_text())]
    assert makers == ["scratch.py"]


def test_the_page_on_leavings_names_them() -> None:
    page = (ROOT / "docs" / "how-to" / "remove-what-rtproof-left.md").read_text()
    for name in ("`rtproof-host-PID-START-*`", "`.rtproof-host-PID-START-*`", "`~/.local/state/rtproof/key`"):
        assert name in page
