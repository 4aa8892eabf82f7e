# SPDX-License-Identifier: Apache-2.0
"""The wheel, as a user gets it: made from the checkout, installed somewhere else, run from there."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

import rtproof
from rtproof.agents import build
from rtproof.agents.architectures import ARCHITECTURES, architecture

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT], check=True)
    return next(folder.glob("rtproof-*.whl"))


def hatchling_build(root: Path, into: Path, target: str, wish: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into), "-t", target]
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    environment["RTPROOF_WHEEL"] = wish
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def source_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    folder = tmp_path_factory.mktemp("source")
    done = hatchling_build(ROOT, folder, "sdist", "platform")
    assert done.returncode == 0, done.stderr
    return next(folder.glob("rtproof-*.tar.gz"))


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is handed out, made from the checkout."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    pytest.importorskip("ziglang", reason="ziglang is not installed (extra cross)")
    folder = tmp_path_factory.mktemp("complete")
    done = hatchling_build(ROOT, folder, "wheel", "complete")
    assert done.returncode == 0, done.stderr
    return next(folder.glob("rtproof-*.whl"))


def test_the_complete_wheel_has_the_right_program_for_each_architecture(complete: Path) -> None:
    assert complete.name == f"rtproof-{rtproof.__version__}-py3-none-any.whl"
    archive = zipfile.ZipFile(complete)
    programs = {name for name in archive.namelist() if name.startswith("rtproof/_agents/")}
    wanted = {f"rtproof/_agents/{arch.name}/{build.AGENT_NAME}" for arch in ARCHITECTURES}
    wanted |= {f"rtproof/_agents/{arch.name}/{build.SCANNER_NAME}" for arch in ARCHITECTURES if arch.has_scanner}
    assert programs == wanted | {"rtproof/_agents/musl-COPYRIGHT", "rtproof/_agents/zig-LICENSE"}
    for name in wanted:
        content, arch = archive.read(name), architecture(Path(name).parent.name)
        assert (content[4], content[5], content[18 if arch.elf[1] == 1 else 19]) == arch.elf
        assert archive.getinfo(name).external_attr >> 16 & 0o111, f"nobody may run {name}"
        assert not any(name in content for name in (b"libc.so", b"libpthread", b"/ld-")), f"{name} needs a library"
    assert "Permission is hereby granted" in archive.read("rtproof/_agents/musl-COPYRIGHT").decode()
    assert not any("/tests/" in name for name in archive.namelist() if "_agent_source" in name)


def test_the_source_package_makes_the_same_wheel_to_the_byte(
    source_package: Path, complete: Path, tmp_path: Path
) -> None:
    with tarfile.open(source_package) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = (path for path in tmp_path.iterdir() if path.is_dir())
    done = hatchling_build(root, tmp_path / "dist", "wheel", "complete")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "dist" / complete.name).read_bytes() == complete.read_bytes()


def test_the_source_package_has_what_the_checkout_has_and_nothing_else(source_package: Path) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    tracked = [name for name in listed if (ROOT / name).exists()]
    if not tracked:
        pytest.skip("no checkout of git")
    with tarfile.open(source_package) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    hidden = {name for name in tracked if name.startswith(".")}
    assert set(tracked) - hidden - packed == set()
    assert packed - set(tracked) - {"PKG-INFO", ".gitignore"} == set()


def test_the_metadata_are_those_that_an_index_takes(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Metadata.from_email(archive.read(name), validate=True)
    assert metadata.description_content_type == "text/markdown"
    assert metadata.license_expression == "Apache-2.0 AND GPL-2.0-only AND GPL-2.0-or-later AND MIT"
    assert {"LICENSE", "kmod/LICENSE", "qemu_guard/LICENSE", "qemu_plugin/LICENSE"} <= set(metadata.license_files or ())
    assert (metadata.author_email, metadata.maintainer_email, metadata.project_urls) == (None, None, None)
    known = pytest.importorskip("trove_classifiers", reason="the list of classifiers is not installed").classifiers
    assert metadata.classifiers
    assert set(metadata.classifiers) <= known
    assert metadata.requires_python
    for python in re.findall(r"Python :: (3\.\d+)", "\n".join(metadata.classifiers)):
        assert f"{python}.0" in metadata.requires_python
    needed = metadata.requires_dist or []
    assert {each.name for each in needed if not each.marker} == {"click", "msgspec", "numpy"}
    extras = {str(each.marker).partition("extra == ")[2].strip("\"'"): each.name for each in needed if each.marker}
    assert extras == {"cross": "ziglang", "labgrid": "labgrid", "parquet": "duckdb", "plot": "matplotlib"}


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
