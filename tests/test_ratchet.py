# SPDX-License-Identifier: Apache-2.0
"""The repository does not grow by itself: lines, data classes and files of each part stay within tools/ratchet.toml."""

import subprocess
import tomllib

import pytest
import ratchet

SLACK = 0.05
"""How far a figure may lie below the table before the table has to follow it."""


def test_no_part_has_more_lines_data_classes_or_files_than_the_table_allows() -> None:
    try:
        now = ratchet.figures()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout, so nothing says which files are the project's")
    allowed = tomllib.loads(ratchet.TABLE.read_text())
    risen = [
        f"{part}: {what} {figure}, the table has {limit}"
        for part, figures in now.items()
        for what, figure, limit in zip(
            ("lines", "data classes", "files"), figures, allowed.get(part, (0, 0, 0)), strict=True
        )
        if figure > limit
    ]
    assert not risen, "\n".join([*risen, "delete something, or run tools/ratchet.py and say why in the commit"])
    loose = [
        part
        for part, limits in allowed.items()
        if any(
            figure < limit * (1 - SLACK) - 20 for figure, limit in zip(now.get(part, (0, 0, 0)), limits, strict=True)
        )
    ]
    assert not loose, f"run tools/ratchet.py, because these have become smaller: {', '.join(loose)}"
