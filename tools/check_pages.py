# SPDX-License-Identifier: Apache-2.0
"""usage: check_pages.py [--write]    says which pages of the audit's checks are out of date, or writes them

Writes docs/checks/SUBJECT.md, and docs/checks/all-checks.md with a row for each check, from src/rtproof/audit/checks.
"""

import sys
from pathlib import Path

from rtproof.audit.check_file import check_files
from rtproof.report.pages.audit_check_page import checks_markdown, table_markdown

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
