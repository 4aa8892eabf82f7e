# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from export_cases import limited_record, small_analysis

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.exporters import exceedances
from rtproof.judge.analyse import analyse
from rtproof.record.run_folder import open_run

EXPECTED = """limit_ns,thread,cpu,activation,due_ns,latency_ns
1000000,0,0,1,1000000,3002500
1000000,0,0,6,6000000,1900000
1000000,1,3,4,500,1000001
50000,0,0,9,9000000,70000
"""


def test_every_exceedance_of_a_limit_is_a_line_and_what_is_not_listed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.exceedances.csv"
    said = exceedances.export(analyse(limited_record()), path, {})
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
