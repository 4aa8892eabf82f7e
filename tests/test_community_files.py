# SPDX-License-Identifier: Apache-2.0
"""The files that a stranger meets first: CHANGELOG, CITATION.cff, and the templates of issues."""

import re
import tomllib
from pathlib import Path

import pytest

import rtproof

ROOT = Path(__file__).parent.parent
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
"""The headings of Keep a Changelog 1.1.0, in its order."""


def versions(text: str) -> list[tuple[str, str]]:
    """The title and the text of each version of a changelog."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def test_the_changelog_has_the_form_that_it_names() -> None:
    found = versions((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert rtproof.__version__ in found[0][0], "the first version is the one that the package has"
    for number, (title, body) in enumerate(found):
        pattern = r"\[?[\d.]+\]? - \d{4}-\d{2}-\d{2}" if number else r"(Unreleased.*|\[?[\d.]+\]? - \d{4}-\d{2}-\d{2})"
        assert re.fullmatch(pattern, title)
        kinds = re.findall(r"^### (.*)$", body, re.MULTILINE)
        assert kinds
        assert kinds == [kind for kind in KINDS if kind in kinds], title


def test_the_citation_names_the_version_the_licences_and_no_address() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == rtproof.__version__
    assert " AND ".join(citation["license"]) == project["license"]
    assert citation["authors"] == project["authors"]
    assert citation["title"].endswith(project["description"][1:])
    assert "http" not in str(citation)
    page = (ROOT / "docs/how-to/cite-rtproof.md").read_text(encoding="utf-8")
    assert f"{citation['authors'][0]['name']}: *{citation['title']}*. Version {citation['version']}." in page
    assert f"version {citation['version']}}}" in page


def test_the_forms_of_both_services_ask_for_the_same() -> None:
    """Each question that GitHub's form requires is a heading of GitLab's template."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    for name, other in (("wrong_verdict", "Wrong-verdict"), ("new_board", "Board")):
        text = (ROOT / ".gitlab/issue_templates" / f"{other}.md").read_text(encoding="utf-8")
        form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
        required = [each for each in form["body"] if each.get("validations", {}).get("required")]
        assert required
        assert [each for each in required if f"## {each['attributes']['label']}" not in text] == []
