# SPDX-License-Identifier: Apache-2.0
"""usage: check_pages.py [--write]    says which pages of the audit's checks are out of date, or writes them

Writes docs/checks/SUBJECT.md, and the table in docs/audit.md, from src/rtproof/audit/checks.
"""

import sys
from pathlib import Path

from lab_table import put

from rtproof.audit.check_file import check_files
from rtproof.report.pages.check_page import checks_markdown, table_markdown

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- tools/check_pages.py writes from here -->\n", "<!-- to here: the checks -->"


def pages(docs: Path = DOCS) -> dict[Path, str]:
    """Return the content of the page of each subject, by its path."""
    return {
        docs / "checks" / f"{subject}.md": (
            f"# Checks of the audit: {file.title}\n\n"
            "<!-- tools/check_pages.py writes this page from src/rtproof/audit/checks -->\n\n"
            "[The page on the audit](../audit.md) says what the rows mean.\n\n" + checks_markdown(file)
        )
        for subject, file in check_files().items()
        if file.check
    }


def write(docs: Path = DOCS) -> None:
    """Write all pages, and the table in audit.md. Pages of subjects that are gone are deleted."""
    (docs / "checks").mkdir(exist_ok=True)
    wanted = pages(docs)
    for page in set((docs / "checks").glob("*.md")) - set(wanted):
        page.unlink()
    for page, content in wanted.items():
        page.write_text(content)
    put(docs / "audit.md", table_markdown(check_files()), BEGIN, END)


def out_of_date(docs: Path = DOCS) -> list[str]:
    """Return the names of the pages that are not as they would be written."""
    wanted = pages(docs)
    there = set((docs / "checks").glob("*.md"))
    old = [page.name for page in there | set(wanted) if page not in there or page.read_text() != wanted.get(page)]
    has_table = table_markdown(check_files()) in (docs / "audit.md").read_text()
    return sorted([*old, *([] if has_table else ["audit.md"])])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    elif out_of_date():
        raise SystemExit(f"out of date: {', '.join(out_of_date())}; run tools/check_pages.py --write")
