# SPDX-License-Identifier: Apache-2.0
"""What debian/, packaging/ and CITATION.cff repeat of the project is what the project says."""

import fnmatch
import hashlib
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from rtproof import __version__
from rtproof.agents.architectures import ARCHITECTURES, architecture_of_machine
from rtproof.agents.build import c_files_of
from rtproof.judge.analysis_model import State

ROOT = Path(__file__).parent.parent
CI = ROOT / "packaging" / "ci"
BUILDROOT = ROOT / "packaging" / "buildroot" / "package"
RECIPES = sorted((ROOT / "packaging" / "yocto" / "meta-rtproof").rglob("*.bb"))
LICENCES = {"rtproof-agent": ROOT / "LICENSE", "rtproof-kmod": ROOT / "kmod" / "LICENSE"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere() -> None:
    places = {
        "debian/changelog": r"\Artproof \((.+?)\)",
        "kmod/dkms.conf": r'PACKAGE_VERSION="(.*)"',
        "kmod/README.md": r"dkms install rtproof/(\S+)",
        "CITATION.cff": r"^version: \"?([\d.]+)",
        **{f"packaging/buildroot/package/{name}/{name}.mk": r"_VERSION = (.*)" for name in LICENCES},
    }
    found = {place: re.findall(form, (ROOT / place).read_text(), re.MULTILINE)[0] for place, form in places.items()}
    assert found == dict.fromkeys(places, __version__)
    assert {each.stem.rpartition("_")[2] for each in RECIPES} == {__version__}


def test_the_hashes_of_the_licences_are_right() -> None:
    for (name, licence), recipe in zip(LICENCES.items(), RECIPES, strict=True):
        content = licence.read_bytes()
        assert f"sha256  {hashlib.sha256(content).hexdigest()}" in (BUILDROOT / name / f"{name}.hash").read_text()
        assert f"LICENSE;md5={hashlib.md5(content, usedforsecurity=False).hexdigest()}" in recipe.read_text()


def test_the_makefile_builds_the_sources_that_the_program_builds(tmp_path: Path) -> None:
    """Buildroot and Yocto call make, rtproof calls the compiler itself."""
    command = ["make", "-s", "-C", str(ROOT / "agent"), "sources", f"O={tmp_path}"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert [word for word in made if not word.startswith("/")] == c_files_of(ROOT / "agent")


def test_what_a_link_leads_to_outside_of_the_agents_folder_is_copied_too() -> None:
    """Both build systems copy the folder, and the link would lead nowhere."""
    links = [path for path in (ROOT / "agent").rglob("*") if path.is_symlink()]
    outside = [path for path in links if not path.resolve().is_relative_to(ROOT / "agent")]
    assert outside
    for path in outside:
        there, file = path.relative_to(ROOT / "agent"), path.resolve().relative_to(ROOT)
        copies = (BUILDROOT / "rtproof-agent" / "rtproof-agent.mk").read_text()
        assert f"cp --remove-destination $(RTPROOF_AGENT_SITE)/../{file} \\\n\t\t$(@D)/{there}" in copies
        assert f"file://{file} " in RECIPES[0].read_text(), "beside the folder the link leads to it"


def test_each_architecture_of_debian_has_the_name_that_rtproof_gives_it() -> None:
    machines = {
        "amd64": "x86_64", "arm64": "aarch64", "armel": "armv5tel", "armhf": "armv7l",
        "i386": "i686", "powerpc": "ppc", "ppc64el": "ppc64le", "riscv64": "riscv64",
    }  # fmt: skip
    told = dict(re.findall(r"^NAME_(\w+) := (\w+)$", (ROOT / "debian" / "rules").read_text(), re.MULTILINE))
    assert told == {debian: architecture_of_machine(machine).name for debian, machine in machines.items()}
    # Debian never had a port for ARM v4T with this name of ours.
    assert {each.name for each in ARCHITECTURES} - set(told.values()) == {"arm920t"}


SPDX_NAMES = {
    "GPL-2.0-only WITH Linux-syscall-note OR Apache-2.0": "GPL-2.0-only with Linux-syscall-note exception or Apache-2.0"
}


def test_debians_copyright_names_the_licence_of_each_file_and_no_other() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout, so nothing says which files are the project's")
    names = [name for name in listed.stdout.split("\0") if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]
    text = (ROOT / "debian" / "copyright").read_text()
    stanzas = re.findall(r"^Files:((?:[ \t].*\n)+)Copyright:(?:[ \t].*\n)+License: (.*)$", text, re.MULTILINE)
    licence_of = {name: licence for files, licence in stanzas for name in fnmatch_any(names, files.split())}
    assert [files for files, _ in stanzas if not all(fnmatch.filter(names, each) for each in files.split())] == []
    for name in names:
        head = (ROOT / name).read_bytes()[:400].decode(errors="replace")
        own = re.search(r"^\W*SPDX-License-Identifier: ([\w. -]+?)(?: \*/| -->|,|$)", head, re.MULTILINE)
        assert own is None or SPDX_NAMES.get(own[1], own[1]) == licence_of[name], name
    used = {part.partition(" with ")[0] for _, licence in stanzas for part in licence.split(" or ")}
    assert used == set(PROJECT["license"].split(" AND "))


def fnmatch_any(names: list[str], patterns: list[str]) -> list[str]:
    return [name for pattern in patterns for name in fnmatch.filter(names, pattern)]


def test_the_files_for_continuous_integration_have_the_same_settings_and_valid_scripts() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    github = yaml.safe_load((CI / "github-actions.yml").read_text())
    gitlab = yaml.safe_load((CI / "gitlab-ci.yml").read_text())["latency"]
    jenkins = (CI / "Jenkinsfile").read_text()
    assert github["env"] == gitlab["variables"] == dict(re.findall(r"^ +([A-Z_]+) = '([^']*)'", jenkins, re.MULTILINE))
    assert gitlab["allow_failure"]["exit_codes"] == [State.UNDECIDED.exit_code]
    assert f"if (code == {State.UNDECIDED.exit_code}) {{\n                        unstable(" in jenkins
    steps = [step["run"] for step in github["jobs"]["latency"]["steps"] if "run" in step]
    for script in (*steps, "\n".join(gitlab["script"]), *re.findall(r"'''\n(.*?)'''", jenkins, re.DOTALL)):
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
