# SPDX-License-Identifier: Apache-2.0
"""The Buildroot tree and the Yocto layer: what they name is there, and agrees with the sources."""

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from rtproof import __version__
from rtproof.agents.build import c_files_of

ROOT = Path(__file__).parent.parent
BUILDROOT = ROOT / "packaging" / "buildroot"
LAYER = ROOT / "packaging" / "yocto" / "meta-rtproof"
RECIPES = sorted(LAYER.rglob("*.bb"))
LICENCES = {"rtproof-agent": ROOT / "LICENSE", "rtproof-kmod": ROOT / "kmod" / "LICENSE"}


def variables(makefile: Path) -> dict[str, str]:
    """The variables that a package of Buildroot sets, without the name of the package before them."""
    prefix = makefile.stem.upper().replace("-", "_")
    return dict(re.findall(rf"^{prefix}_(\w+) \+?= (.*)$", makefile.read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", LICENCES)
def test_a_package_of_buildroot_agrees_with_the_sources(name: str) -> None:
    folder = BUILDROOT / "package" / name
    found = variables(folder / f"{name}.mk")
    assert found["VERSION"] == __version__
    assert found["SITE_METHOD"] == "local"
    source = ROOT / found["SITE"].rpartition("/")[2]
    assert (source / "Makefile").is_file()
    assert f'source "$BR2_EXTERNAL_RTPROOF_PATH/package/{name}/Config.in"' in (BUILDROOT / "Config.in").read_text()
    assert f"config BR2_PACKAGE_{name.upper().replace('-', '_')}\n" in (folder / "Config.in").read_text()


@pytest.mark.parametrize("name", LICENCES)
def test_the_hash_of_the_licence_is_right_in_buildroot(name: str) -> None:
    *_, line = (BUILDROOT / "package" / name / f"{name}.hash").read_text().splitlines()
    assert line == f"sha256  {hashlib.sha256(LICENCES[name].read_bytes()).hexdigest()}  LICENSE"


def test_the_makefile_builds_the_sources_that_the_program_builds(tmp_path: Path) -> None:
    """Buildroot and Yocto call make, rtproof calls the compiler itself."""
    made = subprocess.run(
        ["make", "-s", "-C", ROOT / "agent", "sources", f"O={tmp_path}"], capture_output=True, text=True, check=True
    )
    assert [word for word in made.stdout.split() if not word.startswith("/")] == c_files_of(ROOT / "agent")


def test_what_a_link_leads_to_outside_of_the_agents_folder_is_copied_too() -> None:
    """Both build systems copy the folder, and the link would lead nowhere."""
    links = [path for path in (ROOT / "agent").rglob("*") if path.is_symlink()]
    outside = [path for path in links if not path.resolve().is_relative_to(ROOT / "agent")]
    makefile = (BUILDROOT / "package/rtproof-agent/rtproof-agent.mk").read_text()
    recipe = RECIPES[0].read_text()
    assert outside
    for path in outside:
        there, file = path.relative_to(ROOT / "agent"), path.resolve().relative_to(ROOT)
        assert f"cp --remove-destination $(RTPROOF_AGENT_SITE)/../{file} \\\n\t\t$(@D)/{there}" in makefile
        assert f"file://{file} " in recipe, "beside the folder the link leads to it"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_agrees_with_the_sources(recipe: Path) -> None:
    text = recipe.read_text()
    sources = [ROOT / name for name in re.findall(r"(?:^SRC_URI = \"| {11})file://(\S+?)[ \"]", text, re.MULTILINE)]
    assert sources
    assert all(path.exists() for path in sources)
    licence = LICENCES["rtproof-agent" if "agent" in recipe.name else "rtproof-kmod"]
    digest = hashlib.md5(licence.read_bytes(), usedforsecurity=False).hexdigest()
    assert re.findall(r"LIC_FILES_CHKSUM = \"file://\S*LICENSE;md5=(\w+)\"", text) == [digest]
