# SPDX-License-Identifier: Apache-2.0
"""The lab's manners: its cache, its agents, the time that is left, and what signals leave behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtproof.cli.main import main
from rtproof.lab.guest_cell import cell_store_folder
from rtproof.vm.cache_folders import lab_cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with 3 MiB of kernels in three folders, the first unused for longest, and a snapshot."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for at in range(3):
        folder = lab_cache() / "kernels" / f"k{at}"
        folder.mkdir(parents=True)
        (folder / "image").write_bytes(bytes(1 << 20))
        os.utime(folder, (at + 1, at + 1))
    (lab_cache() / "snapshots").mkdir()
    (lab_cache() / "snapshots" / "a.state").write_bytes(bytes(2 << 20))
    return lab_cache()


def test_the_cache_is_listed_and_cut_to_a_size(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "cache"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["kernels", "3", "3", "none"] in rows
    assert ["snapshots", "1", "2", "4096"] in rows
    assert main(["lab", "cache", "bound", "--mib", "2", "kernels"]) == 0
    assert capsys.readouterr().out == "kernels: 1 MiB removed\n"
    assert sorted(path.name for path in (cache / "kernels").iterdir() if path.is_dir()) == ["k1", "k2"]


LAB = """
import sys
from rtproof.lab.guest_cell import cell_store
cell_store()
print("open", flush=True)
sys.stdin.read()
"""


def test_what_a_running_lab_uses_is_not_removed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", LAB], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lab:
        assert lab.stdout is not None
        assert lab.stdout.readline() == "open\n"
        assert main(["lab", "cache", "clear", "all"]) == 2
        assert "a lab is running and uses the cache" in capsys.readouterr().err
        assert (cache / "kernels" / "k0").is_dir()
        lab.communicate()
    assert main(["lab", "cache", "clear", "kernels"]) == 0
    assert not (cache / "kernels" / "k0").exists()
    assert cell_store_folder().is_dir()
