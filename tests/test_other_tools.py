# SPDX-License-Identifier: Apache-2.0
"""The comparison with other tools: each cell has evidence, and each command prints what the page says."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import other_tools_pages
import pytest
from other_tools_pages import DOCS, EVIDENCE_PAGE, TABLE_PAGE, Evidence

SOURCE = other_tools_pages.read_source()
EVIDENCE = other_tools_pages.evidence_of(SOURCE)
COMMANDS = [one for one in EVIDENCE.values() if one.command and not one.where]
PATIENCE_S = 60.0


def _may_be_realtime() -> bool:
    """Whether this process may have a real-time policy; it gives the policy back at once."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return False
    os.sched_setscheduler(0, *before)
    return True


def _no_timerlat() -> bool:
    tracers = [Path(folder, "available_tracers") for folder in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")]
    return not any(each.exists() and "timerlat" in each.read_text() for each in tracers)


CONDITIONS: dict[str, Callable[[], bool]] = {
    "root": lambda: os.geteuid() == 0,
    "realtime": _may_be_realtime,
    "no timerlat": _no_timerlat,
    "debugfs": Path("/sys/kernel/debug/tracing/tracing_on").exists,
    "no debugfs": lambda: not Path("/sys/kernel/debug/tracing/tracing_on").exists(),
}
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def missing(one: Evidence) -> list[str]:
    """What a command needs and this machine lacks."""
    return [
        need
        for need in one.needs
        if not (CONDITIONS[need]() if need in CONDITIONS else shutil.which(need, path=f"{PATH}:/usr/sbin:/sbin"))
    ]


@pytest.mark.parametrize("one", COMMANDS, ids=lambda one: one.name)
def test_a_command_prints_what_the_page_says(one: Evidence, tmp_path: Path) -> None:
    if lacking := missing(one):
        pytest.skip(f"lacks {', '.join(lacking)}")
    ran = subprocess.run(
        ["bash", "-c", one.command],
        cwd=tmp_path,
        env={**os.environ, "PATH": PATH},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert one.code in (None, ran.returncode), ran.stdout
    assert [pattern for pattern in one.prints if not re.search(pattern, ran.stdout)] == [], ran.stdout
    assert [pattern for pattern in one.absent if re.search(pattern, ran.stdout)] == []


def test_the_pages_are_up_to_date() -> None:
    pages = {TABLE_PAGE: other_tools_pages.table_page, EVIDENCE_PAGE: other_tools_pages.evidence_page}
    old = [page.name for page, text in pages.items() if page.read_text() != text(SOURCE)]
    assert old == [], "run tools/other_tools_pages.py"


@pytest.mark.parametrize("row", SOURCE["row"], ids=lambda row: row["name"])
def test_each_cell_has_evidence_that_is_there(row: dict[str, list[str]]) -> None:
    assert set(row) == {"name", *SOURCE["tools"]}
    for tool in SOURCE["tools"]:
        text, *names = row[tool]
        assert text
        assert names
        assert set(names) <= set(EVIDENCE)


def test_all_evidence_is_used_and_shows_something() -> None:
    assert set(other_tools_pages.used_evidence(SOURCE)) == set(EVIDENCE)
    for one in EVIDENCE.values():
        assert bool(one.command) != bool(one.document), one.name
        assert one.document or one.prints or one.printed, one.name


def test_each_other_tool_is_better_at_something() -> None:
    assert [one["tool"] for one in SOURCE["better"]] == [tool for tool in SOURCE["tools"] if tool != "rtproof"]
    assert all(one["points"] for one in SOURCE["better"])
    assert set(SOURCE["versions"]) == set(SOURCE["tools"])


@pytest.mark.parametrize("one", [one for one in EVIDENCE.values() if one.document], ids=lambda one: one.name)
def test_a_document_of_ours_is_there(one: Evidence) -> None:
    ours = re.findall(r"\]\((?!https:)([^)]+)\)", one.document)
    assert [path for path in ours if not (EVIDENCE_PAGE.parent / path.partition("#")[0]).exists()] == []


def test_the_page_is_dated() -> None:
    assert SOURCE["date"] in TABLE_PAGE.read_text()
    assert SOURCE["date"] in EVIDENCE_PAGE.read_text()
    assert TABLE_PAGE.parent == DOCS
