# SPDX-License-Identifier: Apache-2.0
"""The files in ``debian/`` agree with the project's. ``make packages-check`` builds and tries the packages."""

import fnmatch
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import click
import pytest

import rtproof
from rtproof.agents import build
from rtproof.agents.architectures import ARCHITECTURES, architecture_of_machine
from rtproof.cli import commands
from rtproof.cli.commands import completion
from rtproof.core import plugins

ROOT = Path(__file__).parent.parent
DEBIAN = ROOT / "debian"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("rtproof", "rtproof-agent", "rtproof-dkms")


def paragraphs(path: Path) -> list[dict[str, str]]:
    """The paragraphs of a file in Debian's format (deb822), each field with its lines joined by newlines."""
    found = []
    for block in re.split(r"\n\s*\n", path.read_text()):
        fields = re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", block, re.MULTILINE)
        found.append({name: value.strip() for name, value in fields})
    return [fields for fields in found if fields]


CONTROL = paragraphs(DEBIAN / "control")
RULES = (DEBIAN / "rules").read_text()
CHANGELOG = (DEBIAN / "changelog").read_text()


def names(field: str) -> set[str]:
    """The packages that a field such as Depends names, without versions."""
    return {entry.split()[0] for entry in field.split(",") if entry.strip()}


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.match(r"rtproof \(([^)]+)\) \S+; urgency=\w+\n", CHANGELOG)
    module = re.search(r'^PACKAGE_VERSION="(.*)"$', (ROOT / "kmod/dkms.conf").read_text(), re.MULTILINE)
    assert newest
    assert module
    assert newest[1] == module[1] == rtproof.__version__
    assert (
        f"/usr/src/rtproof-{module[1]}\n    dkms install rtproof/{module[1]}\n" in (ROOT / "kmod/README.md").read_text()
    )


def test_there_are_three_packages_and_no_invented_address() -> None:
    source, *binaries = CONTROL
    assert tuple(fields["Package"] for fields in binaries) == PACKAGES
    assert re.search(r"^ -- (.*>)  ", CHANGELOG, re.MULTILINE)[1] == source["Maintainer"]  # type: ignore[index]
    # The top-level domain that RFC 2606 keeps for addresses which nobody has.
    assert source["Maintainer"].endswith(".invalid>")
    assert not {"Homepage", "Vcs-Git", "Vcs-Browser"} & set(source)


def test_the_build_dependencies_are_those_of_the_project() -> None:
    needed = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    wanted = {f"python3-{re.split('[>=<]', requirement)[0]}" for requirement in needed}
    assert wanted <= names(CONTROL[0]["Build-Depends"])


def test_the_program_at_the_desk_brings_the_agent_and_no_module() -> None:
    at_desk, agent, module = CONTROL[1:]
    assert {"rtproof-agent", "${python3:Depends}", "${shlibs:Depends}"} <= names(at_desk["Depends"])
    assert "rtproof-dkms" in names(at_desk["Suggests"])
    # The agent is static, and serves boards without Python.
    assert names(agent["Depends"]) == {"${misc:Depends}"}
    assert (at_desk["Architecture"], agent["Architecture"], module["Architecture"]) == ("any", "any", "all")


def test_each_architecture_of_debian_has_the_name_that_rtproof_gives_it() -> None:
    machines = {
        "amd64": "x86_64",
        "arm64": "aarch64",
        "armel": "armv5tel",
        "armhf": "armv7l",
        "i386": "i686",
        "powerpc": "ppc",
        "ppc64el": "ppc64le",
        "riscv64": "riscv64",
    }
    told = dict(re.findall(r"^NAME_(\w+) := (\w+)$", RULES, re.MULTILINE))
    assert told == {debian: architecture_of_machine(machine).name for debian, machine in machines.items()}
    # Debian never had a port for ARM v4T with this name of ours.
    assert {each.name for each in ARCHITECTURES} - set(told.values()) == {"arm920t"}


def test_the_places_of_the_programs_are_those_where_rtproof_looks() -> None:
    place = build.packaged_agent("NAME").relative_to(Path(rtproof.__file__).parent)
    assert place == Path("_agents/NAME/rtproof-agent")
    link = re.search(r"ln -s (\S+) (\S+) \$\(OURS\)/\$\(MODULES\)/_agents/\$\(NAME\)", RULES)
    assert link
    assert [Path(target).name for target in link.groups()] == [build.SCANNER_NAME, build.AGENT_NAME]


def test_each_shell_of_the_command_gets_its_completions() -> None:
    (argument,) = completion.command.params
    assert isinstance(argument.type, click.Choice)
    assert set(re.findall(r"rtproof\) completion |\$\(RTPROOF\) completion (\w+)", RULES)) == set(argument.type.choices)


def test_dkms_builds_what_kbuild_makes() -> None:
    conf = dict(re.findall(r'^([\w\[\]]+)="(.*)"$', (ROOT / "kmod/dkms.conf").read_text(), re.MULTILINE))
    kbuild = (ROOT / "kmod/Kbuild").read_text()
    assert f"obj-m := {conf['BUILT_MODULE_NAME[0]']}.o" in kbuild
    assert conf["MAKE[0]"] == "make KDIR=$kernel_source_dir"
    assert (DEBIAN / "rtproof-dkms.dkms").read_text().split() == ["kmod/dkms.conf"]


# The licences of all files.


COPYRIGHT = paragraphs(DEBIAN / "copyright")
STANZAS = [fields for fields in COPYRIGHT if "Files" in fields]
SPDX_NAMES = {
    "GPL-2.0-only WITH Linux-syscall-note OR Apache-2.0": "GPL-2.0-only with Linux-syscall-note exception or Apache-2.0"
}


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no git checkout, so nothing says which files are the project's")
    return [name for name in listed.stdout.split("\0") if name and not (ROOT / name).is_symlink()]


def licence_of(name: str) -> str:
    """What debian/copyright says: the last paragraph that names the file holds."""
    holding = [s for s in STANZAS if any(fnmatch.fnmatchcase(name, pattern) for pattern in s["Files"].split())]
    return holding[-1]["License"]


def test_each_file_has_the_licence_that_it_names_itself() -> None:
    wrong = []
    for name in tracked_files():
        head = (ROOT / name).read_bytes()[:400].decode(errors="replace")
        own = re.search(r"^\W*SPDX-License-Identifier: ([\w. -]+?)(?: \*/| -->|,|$)", head, re.MULTILINE)
        if own and SPDX_NAMES.get(own[1], own[1]) != licence_of(name):
            wrong.append(f"{name}: {own[1]}, and not {licence_of(name)}")
    assert wrong == []


@pytest.mark.parametrize("folder", ["kmod", "qemu_plugin", "src/rtproof/report/vendor/uplot"])
def test_a_folder_with_a_licence_of_its_own_is_named(folder: str) -> None:
    assert (ROOT / folder / "LICENSE").is_file()
    assert licence_of(f"{folder}/LICENSE") != "Apache-2.0"


def test_no_other_folder_has_a_licence_of_its_own() -> None:
    with_licence = {str(Path(name).parent) for name in tracked_files() if Path(name).name.startswith("LICENSE")}
    assert with_licence == {".", "kmod", "qemu_plugin", "src/rtproof/report/vendor/uplot"}


def test_each_licence_is_used_and_its_text_is_there() -> None:
    alone = [fields["License"] for fields in COPYRIGHT if "Files" not in fields and "License" in fields]
    texts = {text.partition("\n")[0] for text in alone}
    used = {part for stanza in STANZAS for part in stanza["License"].split(" or ")}
    assert texts == used
    simple = {part.partition(" with ")[0] for part in used}
    assert simple == set(PROJECT["project"]["license"].split(" AND "))


def test_each_pattern_is_of_a_file() -> None:
    files = tracked_files()
    for stanza in STANZAS:
        for pattern in stanza["Files"].split():
            assert fnmatch.filter(files, pattern), pattern


def test_the_source_of_the_minified_plots_is_of_the_same_version() -> None:
    minified = (ROOT / "src/rtproof/report/vendor/uplot/uPlot.iife.min.js").read_text()
    source = (DEBIAN / "missing-sources/uPlot.iife.js").read_text()
    version = re.search(r"https://github.com/leeoniya/uPlot (\(v[\d.]+\))", source)
    assert version
    assert f"https://github.com/leeoniya/uPlot {version[1]}" in minified[:200]
    assert len(source.splitlines()) > 1000


def test_each_override_of_lintian_has_its_reason() -> None:
    files = [*DEBIAN.glob("*.lintian-overrides"), DEBIAN / "source/lintian-overrides"]
    assert len(files) == 3
    for path in files:
        assert path.read_text().startswith("# "), path
        for reason, override in re.findall(r"((?:^#.*\n)+)((?:^[^#\n].*\n)+)", path.read_text(), re.MULTILINE):
            assert len(reason) > 20
            assert all(line.split(":")[0].split()[0] in PACKAGES for line in override.splitlines())


# What README.Debian tells, and the wheel without programs.


TOLD = (DEBIAN / "README.Debian").read_text()


@pytest.mark.parametrize("line", re.findall(r"(?:^ +|-m )(rtproof .*)$", TOLD, re.MULTILINE))
def test_the_commands_of_the_readme_exist(line: str) -> None:
    found: click.Command
    _, name, *words = shlex.split(line)
    found = plugins.load_plugin(commands, name).command
    if isinstance(found, click.Group):
        found, words = found.commands[words[0]], words[1:]
    with click.Context(found) as context:
        found.make_parser(context).parse_args(words)


def test_the_readme_names_the_zig_that_is_pinned() -> None:
    assert set(re.findall(r"ziglang\W+([\d.]+\d)", TOLD)) == {build.PINNED_ZIG}


def test_a_wheel_without_programs_has_the_sources_and_fits_any_machine(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    environment = {**os.environ, "RTPROOF_WHEEL": "bare", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"rtproof-{rtproof.__version__}-py3-none-any.whl"
    inside = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in inside if name.startswith("rtproof/_agents/")]
    sources = ("agent_source/main.c", "scanner_source/scan.c", "kmod_source/main.c")
    assert {f"rtproof/_{name}" for name in sources} <= set(inside)
    assert not (tmp_path / "cache").exists(), "something was compiled"


# The scripts refuse with a sentence.


def script(tmp_path: Path, *command: str, user: int) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "id"
    program.write_text(f"#!/bin/sh\necho {user}\n")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    return subprocess.run(["sh", *command], cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize(
    ("user", "root", "sentence"),
    [
        (1000, "", "check_debian_packages.sh: only root can work in a new root of Debian\n"),
        (0, "nowhere", "check_debian_packages.sh: nowhere is no root of Debian\n"),
    ],
)
def test_the_check_refuses_with_a_sentence(tmp_path: Path, user: int, root: str, sentence: str) -> None:
    said = script(tmp_path, "tools/check_debian_packages.sh", *([root] if root else []), user=user)
    assert (said.returncode, said.stderr) == (2, sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["id"]


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ("build fly", "there is no step fly; there are: build lint use module"),
        ("lint use", "without the step build, KEEP must name the folder with the packages"),
    ],
)
def test_steps_that_cannot_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: str, sentence: str
) -> None:
    (tmp_path / "root/usr/bin").mkdir(parents=True)
    (tmp_path / "root/usr/bin/dpkg").touch(mode=0o755)
    monkeypatch.setenv("STEPS", steps)
    monkeypatch.delenv("KEEP", raising=False)
    said = script(tmp_path, "tools/check_debian_packages.sh", str(tmp_path / "root"), user=0)
    assert (said.returncode, said.stderr) == (2, f"check_debian_packages.sh: {sentence}\n")
