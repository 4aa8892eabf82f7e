# SPDX-License-Identifier: Apache-2.0
"""The pages of the checks: for a terminal and in docs/checks, and the page on the audit itself."""

import re
import shlex
import shutil
from contextvars import ContextVar
from pathlib import Path

import check_pages
import click
import msgspec
import pytest
from click.testing import CliRunner

from rtproof.audit import conditions
from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Change, Check, Form, Good, Severity
from rtproof.audit.check_file import all_checks, check_files, find_check
from rtproof.cli.commands.audit import command
from rtproof.report import text_table
from rtproof.report.pages.check_page import check_text

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "audit.md").read_text()


def told_text(check_id: str) -> str:
    """The page of a check as one line."""
    check = find_check(check_id)
    return " ".join(check_text(check, check_files()[check.subject].title).split())


def test_the_pages_are_up_to_date() -> None:
    assert check_pages.out_of_date() == [], "run tools/check_pages.py --write"


def test_a_page_that_is_old_missing_or_too_many_is_named(tmp_path: Path) -> None:
    shutil.copytree(DOCS / "checks", tmp_path / "checks")
    shutil.copy(DOCS / "audit.md", tmp_path)
    assert check_pages.out_of_date(tmp_path) == []
    (tmp_path / "checks" / "console.md").write_text("old")
    (tmp_path / "checks" / "hardware.md").unlink()
    (tmp_path / "checks" / "gone.md").write_text("of no subject")
    (tmp_path / "audit.md").write_text(PAGE.replace("| `con.printk` |", "| `con.printed` |"))
    assert check_pages.out_of_date(tmp_path) == ["audit.md", "console.md", "gone.md", "hardware.md"]
    check_pages.write(tmp_path)
    assert check_pages.out_of_date(tmp_path) == []


def test_every_link_of_the_table_leads_to_the_heading_of_its_check() -> None:
    rows = re.findall(r"^\| `(\S+)` \|.*\[\w+\]\((checks/\w+\.md)#(\w+)\) \|$", PAGE, re.MULTILINE)
    assert [name for name, _, _ in rows] == [check.id for check in all_checks()]
    for name, page, anchor in rows:
        assert f"\n## {name}\n" in (DOCS / page).read_text()
        assert anchor == name.replace(".", "")


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.id)
def test_a_page_says_all_that_the_check_does(check: Check) -> None:
    told = told_text(check.id)
    changes = [text for text in msgspec.structs.astuple(check.change) if text]
    for text in (check.title, check.why, check.advice, *check.read, *check.source, *changes):
        assert " ".join(text.replace("{path}", check.read[0]).split()) in told
    assert f"severity {check.severity.value}" in told


def test_every_part_of_a_check_has_its_row() -> None:
    made = Check(
        id="made.up",
        title="Made up",
        read=("/a", "config:B"),
        severity=Severity.LOW,
        why="Because.",
        source=("article 1",),
        advice="Do it.",
        form=Form.NUMBER,
        good=Good(at_least=3, at_most=1000, none_of=("7",)),
        every=True,
        needs=("bare-metal",),
        since="5.9",
        until="6.12",
        severity_for={"audio": Severity.HIGH},
        good_for={"telecom": Good(one_of=("4",))},
        change=Change(now="echo 3 > {path}", firmware="elsewhere"),
    )
    told = " ".join(check_text(made, "Kernel").split())
    for text in (
        "severity low (audio: high)",
        "only for bare metal",
        "kernels since 5.9 until 6.12",
        "reads /a config:B",
        "good a number, in every file: none of 7; at least 3; at most 1,000",
        "for telecom one of 4",
        "change now echo 3 > /a",
        "elsewhere elsewhere",
    ):
        assert text in told


def test_the_commands_list_and_explain() -> None:
    listed = CliRunner().invoke(command, ["--list"])
    assert listed.exit_code == 0
    assert re.findall(r"^  (\S+) ", listed.output, re.MULTILINE) == [check.id for check in all_checks()]
    explained = CliRunner().invoke(command, ["--explain", "con.printk"])
    assert explained.exit_code == 0
    assert explained.output.startswith("con.printk: Messages on a serial console\n")
    assert "there is no check 'con.nothing'" in str(CliRunner().invoke(command, ["--explain", "con.nothing"]).exception)


def test_the_page_explains_each_key_outcome_and_severity() -> None:
    keys = {field.name for struct in (Check, Good, Change) for field in msgspec.structs.fields(struct)} - {"subject"}
    told = set(re.findall(r"`(\w+)(?: = [^`]*)?`", PAGE.partition("## How to write a check")[2]))
    assert keys <= told, f"docs/audit.md does not explain {sorted(keys - told)}"
    for word in (*(outcome.value for outcome in Outcome), *(f"`{severity.value}`" for severity in Severity)):
        assert word in PAGE
    for form in Form:
        assert f"`{form.value}`" in PAGE


def test_conditions_of_checks_exist() -> None:
    assert {need for check in all_checks() for need in check.needs} <= set(conditions.CONDITIONS)


@pytest.mark.parametrize("line", re.findall(r"^    rtproof (audit.*)$", PAGE, re.MULTILINE))
def test_the_commands_of_the_page_exist(line: str) -> None:
    with click.Context(command) as context:
        command.make_parser(context).parse_args(shlex.split(line)[1:])


def test_the_page_of_a_check_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_table, "_columns", ContextVar("columns", default=40))
    for check in all_checks():
        lines = check_text(check, "Subject").splitlines()
        assert [line for line in lines if len(line) > 40 and " " in line[16:]] == [], check.id
