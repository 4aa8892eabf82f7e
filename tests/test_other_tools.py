# SPDX-License-Identifier: Apache-2.0
"""The comparison with other tools: each cell has evidence, and each command prints what the page says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import other_tools_pages
import pytest
from other_tools_pages import EVIDENCE_PAGE, TABLE_PAGE, Evidence

SOURCE = other_tools_pages.read_source()
EVIDENCE = other_tools_pages.evidence_of(SOURCE)
COMMANDS = [
    one
    for one in EVIDENCE.values()
    if one.command and not one.where and "sleep " not in one.command and not {"realtime", "root"} & set(one.needs)
]
"""Those that measure nothing: what a tool measures depends on the machine, and on what else it does."""
PATIENCE_S = 600.0
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.parametrize("one", COMMANDS, ids=lambda one: one.name)
def test_a_command_prints_what_the_page_says(one: Evidence, tmp_path: Path) -> None:
    if lacking := [need for need in one.needs if not shutil.which(need, path=f"{PATH}:/usr/sbin:/sbin")]:
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
    if os.geteuid() and "Unable to change scheduling policy" in ran.stdout:
        pytest.skip("cyclictest needs real-time policies, which are refused to this user")
    assert one.code in (None, ran.returncode), ran.stdout
    assert [pattern for pattern in one.prints if not re.search(pattern, ran.stdout)] == [], ran.stdout
    assert [pattern for pattern in one.absent if re.search(pattern, ran.stdout)] == []


def test_the_pages_are_up_to_date() -> None:
    pages = {TABLE_PAGE: other_tools_pages.table_page, EVIDENCE_PAGE: other_tools_pages.evidence_page}
    old = [page.name for page, text in pages.items() if page.read_text() != text(SOURCE)]
    assert old == [], "run tools/other_tools_pages.py"


def test_each_cell_has_evidence_that_is_there_and_all_evidence_is_used() -> None:
    for row in SOURCE["row"]:
        assert set(row) == {"name", *SOURCE["tools"]}
        for tool in SOURCE["tools"]:
            text, *names = row[tool]
            assert text
            assert names
            assert set(names) <= set(EVIDENCE)
    assert set(other_tools_pages.used_evidence(SOURCE)) == set(EVIDENCE)
    for one in EVIDENCE.values():
        ours = re.findall(r"\]\((?!https:)([^)]+)\)", one.document or "")
        assert [path for path in ours if not (EVIDENCE_PAGE.parent / path.partition("#")[0]).exists()] == []
