# SPDX-License-Identifier: Apache-2.0
"""The text is read back by a small parser, which first proves itself on what cyclictest 2.4 itself printed."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from analysis_records import block, record
from export_cases import small_analysis, summary_analysis

from rtproof.core.errors import UserError
from rtproof.exporters import cyclictest
from rtproof.judge.analyse import analyse

PRINTED = """# Histogram
000000 000000\t000000
000001 000001\t000000
000002 000086\t000063
# Total: 000000087 000000063
# Min Latencies: 00001 00002
# Avg Latencies: 00035 00113
# Max Latencies: 00067 03258
# Histogram Overflows: 00013 00003
# Histogram Overflow at cycle number:
# Thread 0: 00025 00026 # 00011 others
# Thread 1: 00000 00001 00002

"""
ROW = re.compile(r"\d{6} \d{6,}(\t\d{6,})*")
FOOTER = re.compile(r"# (Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows):((?: \d{5,})+)")
CYCLES = re.compile(r"# Thread (\d+):((?: \d{5,})*)(?: # (\d{5,}) others)?")


@dataclass
class Parsed:
    rows: list[list[int]]
    footer: dict[str, list[int]]
    cycles: list[list[int]]
    others: list[int]


def parse(text: str) -> Parsed:
    lines = text.split("\n")
    assert lines[0] == "# Histogram"
    assert lines[-2:] == ["", ""]
    assert "# Histogram Overflow at cycle number:" in lines
    rows = [[int(n) for n in line.replace("\t", " ").split()] for line in lines if ROW.fullmatch(line)]
    footer = {m[1]: [int(n) for n in m[2].split()] for line in lines if (m := FOOTER.fullmatch(line))}
    cycles = [m for line in lines if (m := CYCLES.fullmatch(line))]
    assert len(lines) == len(rows) + len(footer) + len(cycles) + 4
    return Parsed(rows, footer, [[int(n) for n in m[2].split()] for m in cycles], [int(m[3] or 0) for m in cycles])


def test_the_parser_reads_what_cyclictest_prints() -> None:
    parsed = parse(PRINTED)
    assert parsed.rows[2] == [2, 86, 63]
    assert parsed.footer["Max Latencies"] == [67, 3258]
    assert (parsed.cycles, parsed.others) == ([[25, 26], [0, 1, 2]], [11, 0])


def test_the_small_run(tmp_path: Path) -> None:
    sentence = cyclictest.export(small_analysis(), tmp_path / "a", {"bins": "5"})
    parsed = parse((tmp_path / "a").read_text())
    assert parsed.rows == [[0, 2, 3], [1, 1, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]]
    assert parsed.footer == {
        "Total": [3, 3],
        "Min Latencies": [0, 0],
        "Avg Latencies": [828, 0],
        "Max Latencies": [3002, 0],
        "Histogram Overflows": [3, 0],
    }
    assert parsed.cycles == [[1, 3, 5], []]
    assert "3 latencies are beyond the scale" in sentence
    assert "1 wake-ups before their due time stand at 0" in sentence
    assert "4 missed activations are not in it" in sentence


def test_no_more_cycles_are_named_than_there_are_bins(tmp_path: Path) -> None:
    late = analyse(record([block([50_000] * 10)]))
    cyclictest.export(late, tmp_path / "a", {"bins": "3"})
    parsed = parse((tmp_path / "a").read_text())
    assert (parsed.cycles, parsed.others) == ([[0, 1, 2]], [7])


def test_400_bins_are_usual(tmp_path: Path) -> None:
    cyclictest.export(small_analysis(), tmp_path / "a", {})
    assert [row[0] for row in parse((tmp_path / "a").read_text()).rows] == list(range(400))


def test_a_summary_serves_but_knows_no_cycles(tmp_path: Path) -> None:
    sentence = cyclictest.export(summary_analysis(), tmp_path / "a", {"bins": "10"})
    parsed = parse((tmp_path / "a").read_text())
    assert parsed.footer["Total"] == [2]
    assert (parsed.cycles, parsed.others) == ([[]], [1])
    assert "known to one part in 1024" in sentence


@pytest.mark.parametrize("bins", ["0", "-1", "few", ""])
def test_bins_that_make_no_sense_are_refused(tmp_path: Path, bins: str) -> None:
    with pytest.raises(UserError, match="is not a whole number from 1 to"):
        cyclictest.export(small_analysis(), tmp_path / "a", {"bins": bins})
