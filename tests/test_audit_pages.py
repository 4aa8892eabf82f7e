# SPDX-License-Identifier: Apache-2.0
"""The pages of the checks: for a terminal and in docs/checks, and the page on the audit itself."""

import re
import shlex
from pathlib import Path

import check_pages
import click
import pytest

from rtproof.audit.check_file import all_checks
from rtproof.cli.commands.audit import command
from rtproof.cli.main import cli

DOCS = Path(__file__).parent.parent / "docs"
PAGE, TABLE = ((DOCS / name).read_text() for name in ("audit.md", "checks/all-checks.md"))


def test_the_pages_are_up_to_date() -> None:
    assert check_pages.out_of_date() == [], "run tools/check_pages.py --write"


def test_every_link_of_the_table_leads_to_the_heading_of_its_check() -> None:
    rows = re.findall(r"^\| `(\S+)` \|.*\[\w+\]\((\w+\.md)#(\w+)\) \|$", TABLE, re.MULTILINE)
    assert [name for name, _, _ in rows] == [check.id for check in all_checks()]
    for name, page, anchor in rows:
        assert f"\n## {name}\n" in (DOCS / "checks" / page).read_text()
        assert anchor == name.replace(".", "")


@pytest.mark.parametrize("line", re.findall(r"^    rtproof (audit.*)$", PAGE, re.MULTILINE))
def test_the_commands_of_the_page_exist(line: str) -> None:
    with click.Context(command, **cli.context_settings) as context:
        command.make_parser(context).parse_args(shlex.split(line)[1:])
