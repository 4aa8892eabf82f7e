# SPDX-License-Identifier: Apache-2.0
"""The table of profiles in docs/profiles.md, from results to Markdown, and what is said of it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
MARKS = "before\n<!-- tools/profile_table.py writes from here -->\nold\n<!-- to here: the profiles -->\nafter\n"
RT, PLAIN = "debian-6.1-rt", "debian-6.1 preempt=none"


def analysis(largest_ns: int, out_of_band: int = 0) -> dict[str, Any]:
    return {
        "record": {"kernel_release": "6.1.0-rt" if largest_ns < 10_000 else "6.1.0"},
        "pooled": {"observed": {"max_ns": largest_ns}},
        "stages": [{"field": "top", "observed": {"max_ns": 1_000}}, {"field": "end", "observed": {"max_ns": 2_000}}],
        "cycles": {"short_count": out_of_band, "long_count": 1, "counted_count": 1_800},
    }


def cell(key: str, *article: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    results = [{"system": RT, "analysis": analysis(6_249)}, {"system": PLAIN, "analysis": analysis(1_234_567, 40)}]
    return {"key": key, "results": results, "article": [{"key": name, "figures": found} for name, found in article]}


def us(value: int, at_least: bool = False) -> dict[str, Any]:
    return {"value": value * 1_000, "at_least": at_least}


def count(value: int) -> dict[str, Any]:
    return {"value": value, "at_least": False}


def cycles(below: int, above: int) -> dict[str, Any]:
    return {"below": count(below), "above": count(above), "count": count(11_000)}


GPIO = (("gpio-rt", {"max": us(608)}), ("gpio-g45-rt", {"max": us(618)}), ("gpio-plain", {"max": us(30_000, True)}))
THREADS = ("imx6-rt", {"thread 0.max": us(166), "thread 1.max": us(187)})
RESULTS = {
    "bootlin-gpio": [cell("loaded", *GPIO)],
    "bootlin-timer": [cell("clock-nanosleep", ("g20-rt", {"max": us(177)})), cell("posix-timer")],
    "bootlin-xenomai": [cell("user")],
    "akamina": [cell("loaded")],
    "ten-ms": [cell("fifo--stress", ("fifo", cycles(0, 0))), cell("other--stress", ("other", cycles(3, 2)))],
    "simple-rt-app": [cell("loaded", ("plain", {"top.max": us(1_642)}), ("rt", {"top.max": us(546)}))],
    "toradex": [cell("loaded", THREADS, ("imx6-voluntary", {"thread 0.max": us(23_350)}))],
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "docs").mkdir()
    for name in ("profile_table.py", "lab_table.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    (tmp_path / "docs" / "profiles.md").write_text(MARKS)
    for name, cells in RESULTS.items():
        (tmp_path / "found" / name).mkdir(parents=True)
        (tmp_path / "found" / name / "result.json").write_text(json.dumps({"cells": cells}))
    return tmp_path


def write(checkout: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(checkout / "tools" / "profile_table.py"), str(checkout / "found")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_results_become_a_table_between_the_marks(checkout: Path) -> None:
    assert write(checkout).returncode == 0
    text = (checkout / "docs" / "profiles.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    rows = {line.split(" | ")[0]: line for line in text.splitlines() if line.startswith("| ")}
    assert rows["| bootlin-gpio, edge to answer"].endswith(" | 6.2 | 1,234.6 | 608 to 618 | > 30,000 |")
    assert rows["| bootlin-timer, clock_nanosleep"].endswith(" | 6.2 | 1,234.6 | 177 |  |")
    assert rows["| simple-rt-app, top of loop"].endswith(" | 1.0 | 1.0 | 546 | 1,642 |")
    assert rows["| toradex, random interrupts (plain: voluntary, full)"].endswith(" | 187 | 23,350 |")
    (ten,) = (row for name, row in rows.items() if name.startswith("| ten-ms"))
    assert ten.endswith(" | 1 of 1,800 | 41 of 1,800 | 0 of 11,000 | 5 of 11,000 |")
    assert "Made with 6.1.0, 6.1.0-rt." in text


def test_without_the_marks_nothing_is_written(checkout: Path) -> None:
    (checkout / "docs" / "profiles.md").write_text("no marks\n")
    done = write(checkout)
    assert done.returncode == 1
    assert done.stderr == "profiles.md does not have the marks any more\n"
    assert (checkout / "docs" / "profiles.md").read_text() == "no marks\n"


MARKED = (ROOT / "docs" / "profiles.md").read_text().partition("profile_table.py writes from here")[2]
TABLE = [
    [part.strip() for part in line.strip("|").split("|")]
    for line in MARKED.partition("to here: the profiles")[0].splitlines()
    if line.startswith("| ") and "---" not in line and not line.startswith("| profile, us")
]


def numbers(text: str) -> list[float]:
    """Largest values of each system, or how many cycles were out of the band."""
    return [float(each.replace(",", "")) for each in re.findall(r"[\d,]+(?:\.\d+)?", text.partition(" of ")[0])]


@pytest.mark.parametrize("row", TABLE, ids=[row[0].split(",")[0] for row in TABLE])
def test_every_profile_tells_the_plain_kernel_from_preempt_rt(row: list[str]) -> None:
    label, rt, *plain = row[0], *numbers(row[1]), *numbers(row[2].replace(", ", " "))
    assert rt < min(plain), label


def test_every_profile_has_a_row() -> None:
    assert {row[0].split(",")[0] for row in TABLE} == set(RESULTS)
