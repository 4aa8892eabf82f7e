# SPDX-License-Identifier: Apache-2.0
"""The page that leads a newcomer through the code names files that are there, and every package."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_path_on_the_page_is_there() -> None:
    paths = re.findall(r"`((?:src|agent|tools|docs)/[\w/.-]+)`", PAGE)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_each_walk_names_a_file_in_every_step() -> None:
    for walk in PAGE.split("\n## ")[1:]:
        steps = re.split(r"\n\d+\. ", walk)[1:]
        assert len(steps) == 9
        assert [step for step in steps if not re.search(r"`(src|agent)/[\w/]+\.(py|c)`", step)] == []
