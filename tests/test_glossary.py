# SPDX-License-Identifier: Apache-2.0
"""Every word of docs/glossary.md is defined once, is used by the pages, and can be found from the README."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
TERMS = re.findall(r"^\* \*\*([^*]+)\*\*:", GLOSSARY, re.MULTILINE)
PAGES = "\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "glossary.md")
ASKED_FOR = (
    *(
        "activation",
        "due time",
        "latency",
        "missed",
        "lost",
        "episode",
        "limit",
        "verdict",
        "doubt",
        "objection",
        "run",
    ),
    *("cell", "profile", "load", "probe", "method", "target", "shift", "gap", "claim"),
)


def test_the_words_of_the_field_are_there_once() -> None:
    assert set(ASKED_FOR) <= set(TERMS)
    assert len(TERMS) == len(set(TERMS))


@pytest.mark.parametrize("term", TERMS)
def test_each_word_is_used_by_the_pages(term: str) -> None:
    assert re.search(rf"(?<![a-z]){term}(s|es)?(?![a-z])", PAGES.replace("\n", " "), re.IGNORECASE)


def test_the_readme_leads_to_it() -> None:
    assert "](docs/glossary.md)" in (ROOT / "README.md").read_text()
