# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import numpy as np
from report_cases import normal, tables
from test_clusters import LIMIT, analysed

from rtproof.report.sections import timeline
from rtproof.schema.analysis_json import analysis_dict

CAPTION = "Activations above each level, as the agent counted them"


def test_a_row_for_each_level(tmp_path: Path) -> None:
    values = np.random.default_rng(2).gamma(4.0, 5_000.0, 100_000).astype(np.int64)
    values[70_000:70_004] = LIMIT + 1_000_000
    analysis = analysed(tmp_path / "a", values)
    rows = tables(timeline.levels_section(analysis))[CAPTION].rows
    assert [row[3] for row in rows] == ["limit", "99.9 % of 60,000 values", "99.99 % of 60,000 values"]
    assert rows[0][:3] == ("0", "2", "100.000")
    assert (rows[0][4], rows[0][7]) == ("100", "1")
    told = analysis_dict(analysis)["levels"]
    assert [each["learned"] for each in told] == [False, True, True]
    assert told[0]["above_observed_count"] == told[0]["listed_count"] == int(rows[0][5]) == 4
    assert [f"{each['dispersion_ratio']:,.2f}" for each in told] == [row[9] for row in rows]


def test_a_record_without_levels_has_no_section() -> None:
    assert timeline.levels_section(normal()) == []
