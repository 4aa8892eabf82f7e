# SPDX-License-Identifier: Apache-2.0
"""What the tools draw and count of this repository is what is committed."""

import re
from pathlib import Path

import draw_structure
import pytest
import structure

ROOT = Path(__file__).parent.parent
PROFILES = ("akamina", "bootlin-gpio", "bootlin-timer", "bootlin-xenomai", "simple-rt-app", "ten-ms", "toradex")
MARKED = (ROOT / "docs" / "profiles.md").read_text().partition("profile_table.py writes from here")[2]
TABLE = [
    [part.strip() for part in line.strip("|").split("|")]
    for line in MARKED.partition("to here: the profiles")[0].splitlines()
    if line.startswith("| ") and "---" not in line and not line.startswith("| profile, us")
]


def numbers(text: str) -> list[float]:
    """Largest values of each system, or how many cycles were out of the band."""
    return [float(each.replace(",", "")) for each in re.findall(r"[\d,]+(?:\.\d+)?", text.partition(" of ")[0])]


def test_every_profile_tells_the_plain_kernel_from_preempt_rt() -> None:
    assert {row[0].split(",")[0] for row in TABLE} == set(PROFILES)
    for label, rt, plain in ((row[0], numbers(row[1]), numbers(row[2].replace(", ", " "))) for row in TABLE):
        assert rt[0] < min(plain), label


def test_the_committed_picture_shows_the_packages_and_arrows_of_the_source() -> None:
    committed = draw_structure.PICTURE.read_text(encoding="utf-8")
    drawn = draw_structure.draw(draw_structure.read_packages(structure.ROOT))
    if draw_structure.without_numbers(committed) != draw_structure.without_numbers(drawn):
        pytest.fail("packages or their imports have changed: run python tools/draw_structure.py")


def test_no_modules_import_each_other_in_a_circle() -> None:
    """``rtproof`` itself is left out: it names the Python API lazily, and every module may read its version."""
    imports = structure.host_imports(structure.host_modules(ROOT))
    assert len(imports) > 1_000
    arrows = [(each.importer, each.imported) for each in imports if each.importer != "rtproof"]
    assert structure.circles(structure.graph_of(arrows)) == []
