# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import array
from export_cases import FIRST, SECOND, small_analysis, small_record

from rtproof.analysis.analyse import analyse
from rtproof.cli.main import main
from rtproof.errors import UserError
from rtproof.exporters import exceedances
from rtproof.record import Level
from rtproof.record.rundir import open_run


def level(number: int, limit_ns: int, rows: list[tuple[int, int, int]], ran: int, missed: int = 0) -> Level:
    index, due_ns, above = (array(*column) for column in zip(*rows, strict=True))
    counts = (np.arange(1), array(ran), array(missed))
    return Level(number, limit_ns, False, 0, 0.0, 0, *counts, index, due_ns, above, len(rows) < ran)


LEVELS = {
    FIRST.id: (
        level(0, 1_000_000, [(1, 1_000_000, 3_002_500), (6, 6_000_000, 1_900_000)], ran=5, missed=2),
        level(1, 50_000, [(9, 9_000_000, 70_000)], ran=1),
        replace(level(2, 60_000, [(9, 9_000_000, 70_000)], ran=1), learned=True),
    ),
    SECOND.id: (level(0, 1_000_000, [(4, 500, 1_000_001)], ran=1),),
}
EXPECTED = """limit_ns,thread,cpu,activation,due_ns,latency_ns
1000000,0,0,1,1000000,3002500
1000000,0,0,6,6000000,1900000
1000000,1,3,4,500,1000001
50000,0,0,9,9000000,70000
"""


def test_every_exceedance_of_a_limit_is_a_line_and_what_is_not_listed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.exceedances.csv"
    said = exceedances.export(analyse(replace(small_record(), levels=LEVELS)), path, {})
    assert path.read_text() == EXPECTED
    assert said == (
        f"{path}: 4 activations above 1ms, 50us; 3 more were above, which full lists do not hold; "
        "2 that never ran were above as well, counted from their due times"
    )


def test_a_run_without_a_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="this run was given no limit before it began"):
        exceedances.export(small_analysis(), tmp_path / "a.csv", {})
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_kept_a_summary_lists_all_that_was_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    process = ["--target", "simulated", "--target-option", "episodes=1/min", "--threads", "2"]
    asked = ["--limit", "100us", "--duration", "1h", "--record", "summary", "--output", "r", "--no-report"]
    assert main(["run", *process, *asked]) in (0, 1, 4)
    assert main(["export", "r", "--format", "exceedances", "--output", "list.csv"]) == 0
    mark, _, *rows = Path("list.csv").read_text().splitlines()
    assert mark.startswith("# ")
    record = open_run("r").record
    assert len(rows) == sum(int(record.levels[series.id][0].ran.sum()) for series in record.series) > 20
    for row in rows:
        limit_ns, thread, _, activation, due_ns, latency_ns = map(int, row.split(","))
        series = record.series[thread]
        assert due_ns == series.first_due_ns + activation * series.period_ns
        assert latency_ns > limit_ns == 100_000
