# SPDX-License-Identifier: Apache-2.0
"""The wheel, as a user gets it: made from the checkout, installed somewhere else, run from there."""

import configparser
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy.random.mtrand
import pytest
from packaging.metadata import Metadata
from packaging.tags import platform_tags, sys_tags
from packaging.utils import parse_wheel_filename

import rtproof
from rtproof.agents import build
from rtproof.agents.architectures import host_architecture

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
BUILT = f"rtproof/_agents/{host_architecture().name}"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT], check=True)
    return next(folder.glob("rtproof-*.whl"))


def test_the_wheel_is_named_after_the_platform_of_the_programs_in_it(wheel: Path) -> None:
    _, version, _, tags = parse_wheel_filename(wheel.name)
    assert str(version) == rtproof.__version__
    assert {(tag.interpreter, tag.abi) for tag in tags} == {("py3", "none")}
    assert tags & set(sys_tags()), "pip would not install it where it was built"
    programs = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("rtproof/_agents/")}
    if not programs:
        assert {tag.platform for tag in tags} == {"any"}
        return
    assert programs <= {f"{BUILT}/{build.AGENT_NAME}", f"{BUILT}/{build.SCANNER_NAME}"}
    machine = next(tag for tag in platform_tags() if tag.startswith("linux_")).removeprefix("linux_")
    assert all(tag.platform.endswith(f"_{machine}") for tag in tags)


PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED = 1


def segments(elf: bytes) -> dict[int, bytes]:
    """The bytes of an ELF file in a segment of each type, 32 or 64 bits, either order of bytes (elf(5))."""
    assert elf[:4] == b"\x7fELF"
    order = "<" if elf[5] == 1 else ">"
    word, table, sizes, offset, length = ("Q", 32, 54, 8, 32) if elf[4] == 2 else ("I", 28, 42, 4, 16)
    (begin,) = struct.unpack_from(order + word, elf, table)
    size, count = struct.unpack_from(order + "HH", elf, sizes)
    found = {}
    for header in range(begin, begin + size * count, size):
        (kind,) = struct.unpack_from(order + "I", elf, header)
        (place,) = struct.unpack_from(order + word, elf, header + offset)
        found[kind] = elf[place : place + struct.unpack_from(order + word, elf, header + length)[0]]
    return found


def needed_libraries(elf: bytes) -> list[int]:
    """For each library that the program asks for, where its name lies."""
    entry = ("<" if elf[5] == 1 else ">") + ("QQ" if elf[4] == 2 else "II")
    return [value for tag, value in struct.iter_unpack(entry, segments(elf)[PT_DYNAMIC]) if tag == DT_NEEDED]


def built(wheel: Path, name: str) -> bytes:
    archive = zipfile.ZipFile(wheel)
    if f"{BUILT}/{name}" not in archive.namelist():
        pytest.skip(f"nothing here builds {name}")
    return archive.read(f"{BUILT}/{name}")


def test_the_agent_in_the_wheel_needs_no_c_library(wheel: Path) -> None:
    """What makes the wheel's two tags true: no interpreter is named in the program headers."""
    types = segments(built(wheel, build.AGENT_NAME))
    assert PT_LOAD in types
    assert PT_INTERP not in types


def test_the_scanner_in_the_wheel_names_no_library(wheel: Path) -> None:
    """So it makes the two tags no less true. A module of numpy, which does name one, shows that the test can fail."""
    assert needed_libraries(built(wheel, build.SCANNER_NAME)) == []
    assert needed_libraries(Path(numpy.random.mtrand.__file__).read_bytes())


def test_the_metadata_are_those_that_an_index_takes(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Metadata.from_email(archive.read(name), validate=True)
    assert metadata.description_content_type == "text/markdown"
    assert metadata.license_expression == "Apache-2.0 AND GPL-2.0-only AND GPL-2.0-or-later AND MIT"
    assert {"LICENSE", "kmod/LICENSE", "qemu_plugin/LICENSE"} <= set(metadata.license_files or ())
    assert metadata.keywords


def test_the_readme_of_the_package_links_to_no_file_of_the_checkout(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    description = Metadata.from_email(archive.read(name), validate=True).description
    assert description
    assert description.startswith("# rtproof\n")
    assert "(`docs/verdict.md`)" in description
    assert [link for link in re.findall(r"\]\(([^)]+)\)", description) if not link.startswith("https://")] == []


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


def test_pytest_finds_the_plugin_in_the_wheel_and_does_not_come_with_it(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
    points = configparser.ConfigParser()
    points.read_string(archive.read(name).decode())
    assert dict(points["pytest11"]) == {"rtproof": "rtproof.cli.pytest_plugin"}
    assert "rtproof/cli/pytest_plugin.py" in archive.namelist()
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    needed = Metadata.from_email(archive.read(name), validate=True).requires_dist or []
    assert "pytest" not in {each.name for each in needed}


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
def test_the_installed_package_brings_its_own_agent_and_scanner(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([*PIP, "install", "--no-deps", "--target", tmp_path, wheel], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": "/dev/null"}

    def rtproof_says(*arguments: str) -> str:
        command = [sys.executable, "-m", "rtproof", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert rtproof_says("agent", "path") == str(tmp_path / BUILT / "rtproof-agent")
    assert rtproof_says("agent", "version") == rtproof.__version__
    tried = "from rtproof.record.compiled_scanner import scanner; print(scanner() is not None)"
    done = subprocess.run([sys.executable, "-c", tried], env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"True\n", "with no place to build one, there is only the package's scanner"
