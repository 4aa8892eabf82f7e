# SPDX-License-Identifier: Apache-2.0
"""The wheel, as a user gets it: made from the checkout, installed somewhere else, run from there."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import rtproof
from rtproof.agents import build
from rtproof.agents.architectures import host_architecture

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT], check=True)
    return next(folder.glob("rtproof-*.whl"))


def test_the_wheel_serves_every_host(wheel: Path) -> None:
    assert wheel.name == f"rtproof-{rtproof.__version__}-py3-none-any.whl"


def test_the_wheel_has_the_sources_for_targets_and_what_the_report_needs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"rtproof/_agent_source/{name}" for name in [*build.c_files_of(ROOT / "agent"), "cflags", "ldflags", "table.sh"]
    }
    wanted |= {f"rtproof/_guest_source/{path.name}" for path in (ROOT / "guest").iterdir()}
    wanted |= {f"rtproof/_kmod_source/{name}" for name in ("Kbuild", "main.c", "rtproof.h", "LICENSE")}
    package = ROOT / "src"
    wanted |= {
        str(path.relative_to(package))
        for path in (package / "rtproof" / "report" / "vendor").rglob("*")
        if path.is_file()
    }
    wanted |= {str(path.relative_to(package)) for path in package.rglob("*.toml")}
    assert wanted <= names
    for folder in ("articles", "loads", "profiles"):
        assert any(name.startswith(f"rtproof/{folder}/") and name.endswith(".toml") for name in wanted)


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
def test_the_installed_package_brings_its_own_agent(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([*PIP, "install", "--no-deps", "--target", tmp_path, wheel], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": "/dev/null"}

    def rtproof_says(*arguments: str) -> str:
        command = [sys.executable, "-m", "rtproof", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert rtproof_says("agent", "path") == str(
        tmp_path / "rtproof" / "_agents" / host_architecture().name / "rtproof-agent"
    )
    assert rtproof_says("agent", "version") == rtproof.__version__
