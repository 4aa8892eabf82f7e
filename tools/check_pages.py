# SPDX-License-Identifier: Apache-2.0
"""usage: check_pages.py [--write]    says which pages of the audit's checks are out of date, or writes them

Writes docs/checks/SUBJECT.md, and docs/checks/all-checks.md with a row for each check, from src/rtproof/audit/checks.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap

from rtproof.audit.check import Check, CheckFile
from rtproof.audit.check_file import check_files
from rtproof.report.pages.audit_page import check_rows, severity_text

MARKDOWN_WIDTH = 130
DOCS = Path(__file__).parent.parent / "docs"
WRITTEN = "<!-- tools/check_pages.py writes this page from src/rtproof/audit/checks -->"


def pages(docs: Path = DOCS) -> dict[Path, str]:
    """Return the content of the page of each subject and of the table of all checks, by its path."""
    files = check_files()
    by_subject = {
        docs / "checks" / f"{subject}.md": (
            f"# Checks of the audit: {file.title}\n\n{WRITTEN}\n\n"
            "[The page on the audit](../audit.md) says what the rows mean.\n\n" + checks_markdown(file)
        )
        for subject, file in files.items()
        if file.check
    }
    table = f"# All checks of the audit\n\n{WRITTEN}\n\n{table_markdown(files)}"
    return by_subject | {docs / "checks" / "all-checks.md": table}


def checks_markdown(file: CheckFile) -> str:
    """The page of a subject in Markdown, with a heading for each check."""
    return "\n".join(f"## {check.id}\n\n{_check_markdown(check, file.title)}" for check in file.check)


def _check_markdown(check: Check, subject: str) -> str:
    rows = [(label, text) for label, text in check_rows(check, subject) if label not in ("subject", "why")]
    about = wrap(
        _escaped(f"{check.title}. {check.why}"), MARKDOWN_WIDTH, break_long_words=False, break_on_hyphens=False
    )
    lines = [*about, "", "| | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {label} | {_cell(label, text)} |" for label, text in rows)]) + "\n"


def table_markdown(files: Mapping[str, CheckFile]) -> str:
    """A table of all checks in Markdown, with links to their pages."""
    lines = ["| check | what | severity | page |", "|---|---|---|---|"]
    for subject, file in files.items():
        for check in file.check:
            link = f"{subject}.md#{check.id.replace('.', '')}"
            lines.append(f"| `{check.id}` | {_escaped(check.title)} | {severity_text(check)} | [{subject}]({link}) |")
    return "\n".join(lines) + "\n"


_CODE = ("reads", "change now", "at boot", "at build", "good")
_SENTENCE = re.compile(r"[A-Z][a-z]* [a-z]")
_COMMAND = re.compile(r"(.*) \((rtproof .*)\)$", re.DOTALL)


def _cell(label: str, text: str) -> str:
    """A cell of a table in Markdown: commands and paths as code, addresses as links."""
    if text.startswith("https://"):
        return f"<{text}>"
    measured = _COMMAND.match(text) if label == "measured" else None
    if measured:
        return f"{_escaped(measured[1])} (`{measured[2]}`)"
    if label in _CODE and _SENTENCE.match(text):
        return _escaped(text)
    if label in _CODE or (not label and " " not in text):
        return f"`{text}`".replace("|", "\\|")
    return _escaped(text)


def _escaped(text: str) -> str:
    """Text in which Markdown sees no marks."""
    for mark in "\\|*_<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text


def write(docs: Path = DOCS) -> None:
    """Write all pages. Pages of subjects that are gone are deleted."""
    (docs / "checks").mkdir(exist_ok=True)
    wanted = pages(docs)
    for page in set((docs / "checks").glob("*.md")) - set(wanted):
        page.unlink()
    for page, content in wanted.items():
        page.write_text(content)


def out_of_date(docs: Path = DOCS) -> list[str]:
    """Return the names of the pages that are not as they would be written."""
    wanted = pages(docs)
    there = {page: page.read_text() for page in (docs / "checks").glob("*.md")}
    return sorted(page.name for page in there.keys() | wanted if there.get(page) != wanted.get(page))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    elif out_of_date():
        raise SystemExit(f"out of date: {', '.join(out_of_date())}; run tools/check_pages.py --write")
