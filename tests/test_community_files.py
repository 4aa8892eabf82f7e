# SPDX-License-Identifier: Apache-2.0
"""The files that a stranger meets first: CHANGELOG, CITATION.cff, and the templates of issues."""

import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version

import rtproof

ROOT = Path(__file__).parent.parent
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
"""The headings of Keep a Changelog 1.1.0, in its order."""
CITATION_KEYS = {
    "cff-version",
    "title",
    "message",
    "type",
    "authors",
    "version",
    "license",
    "abstract",
    "keywords",
}
"""None of them is an address, because the project has no public one yet."""
TOLD_COMMAND = re.compile(r"`rtproof ([^`]+)`")


def versions(text: str) -> list[tuple[str, str]]:
    """The title and the text of each version of a changelog."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def changelog_problems(text: str) -> list[str]:
    """What is against the form of Keep a Changelog 1.1.0."""
    problems = []
    if not versions(text):
        return ["there is no version"]
    released = []
    for number, (title, body) in enumerate(versions(text)):
        found = re.fullmatch(r"Unreleased(?: \(([\d.]+)\))?|\[?([\d.]+)\]? - (\d{4}-\d{2}-\d{2})", title)
        if not found:
            problems.append(f"{title!r} is neither Unreleased nor VERSION - DATE")
        elif found[3]:
            date.fromisoformat(found[3])
            released.append(Version(found[2]))
        elif number:
            problems.append("Unreleased is not the first")
        kinds = re.findall(r"^### (.*)$", body, re.MULTILINE)
        if not kinds or kinds != [kind for kind in KINDS if kind in kinds]:
            problems.append(f"{title}: the kinds of changes are {kinds}")
        for line in body.splitlines():
            if line and not re.match(r"\* |  +\S|### ", line):
                problems.append(f"{title}: {line!r} belongs to no item")
    if released != sorted(released, reverse=True):
        problems.append("the newest version is not the first")
    return problems


def test_the_changelog_has_the_form_that_it_names() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changelog_problems(text) == []
    assert rtproof.__version__ in versions(text)[0][0], "the first version is the one that the package has"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# Changes\n", "there is no version"),
        ("## 1.0\n### Added\n* a\n", "'1.0' is neither"),
        ("## 1.0 - 2026-01-01\n### New\n* a\n", "the kinds of changes are ['New']"),
        ("## 1.0 - 2026-01-01\n### Fixed\n* a\n### Added\n* b\n", "the kinds of changes are"),
        ("## 1.0 - 2026-01-01\n### Added\nprose\n", "'prose' belongs to no item"),
        ("## 1.0 - 2026-01-01\n### Added\n* a\n## Unreleased\n### Added\n* b\n", "Unreleased is not the first"),
        ("## 1.0 - 2026-01-01\n### Added\n* a\n## 1.1 - 2026-01-02\n### Added\n* b\n", "the newest version"),
    ],
)
def test_a_changelog_of_another_form_is_found(text: str, problem: str) -> None:
    assert any(problem in found for found in changelog_problems(text)), changelog_problems(text)


def test_the_citation_names_the_version_the_licences_and_no_address() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == rtproof.__version__
    assert " AND ".join(citation["license"]) == project["license"]
    assert citation["authors"] == project["authors"]
    assert citation["title"].endswith(project["description"][1:])
    assert set(citation) <= CITATION_KEYS
    assert "http" not in str(citation)
    page = (ROOT / "docs/how-to/cite-rtproof.md").read_text(encoding="utf-8")
    assert f"{citation['authors'][0]['name']}: *{citation['title']}*. Version {citation['version']}." in page
    assert f"version {citation['version']}}}" in page


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*_*.yml")), ids=lambda path: path.name)
def test_the_forms_of_both_services_ask_for_the_same(path: Path) -> None:
    """Each question that GitHub's form requires is a heading of GitLab's template."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    other = {"wrong_verdict": "Wrong-verdict", "new_board": "Board"}[path.stem]
    text = (ROOT / ".gitlab/issue_templates" / f"{other}.md").read_text(encoding="utf-8")
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    asked = [each for each in form["body"] if each.get("validations", {}).get("required")]
    assert asked
    for question in asked:
        assert f"## {question['attributes']['label']}" in text


FORMS = [*(ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"), *(ROOT / ".gitlab/issue_templates").glob("*.md")]


def test_the_commands_that_the_forms_name_exist() -> None:
    told = {words for path in FORMS for words in TOLD_COMMAND.findall(path.read_text(encoding="utf-8"))}
    assert {"doctor --json", "--version", "agent files", "audit"} <= told
    for words in sorted(told):
        command = [word for word in words.split() if not word.isupper()]
        asked = [sys.executable, "-m", "rtproof", *command, *(() if "--version" in command else ("--help",))]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"rtproof {words}: {done.stderr}"
