# SPDX-License-Identifier: Apache-2.0

import pytest
from analysis_records import MS, block, record

from rtproof.judge.analyse import analyse
from rtproof.report import cumulative_curves


def cells(n: int, threads: int = 1) -> dict[str, str]:
    summary = analyse(record([block([1_000] * (n - 2) + [2_000, 3_000])]), workers=1).pooled
    assert (summary.series.period_ns, len(summary.threads)) == (MS, threads)
    table = cumulative_curves.threshold_table("caption", [("task", summary)])
    return dict(zip(table.header, table.rows[0], strict=True))


@pytest.mark.parametrize(("n", "threshold"), [(99_999, "unknown: n below 100,000"), (100_000, "2.000")])
def test_the_threshold_needs_a_hundred_thousand_values(n: int, threshold: str) -> None:
    found = cells(n)
    assert found["99.999 % threshold [us]"] == threshold
    assert found["maximum [us]"] == "3.000"


def test_an_exceedance_is_expected_once_per_hundred_thousand_periods() -> None:
    assert cells(100)["one value exceeds it every"] == "1 min 40 s"


def test_nothing_measured_is_unknown() -> None:
    summary = analyse(record([]), workers=1).pooled
    assert cumulative_curves.threshold_table("caption", [("task", summary)]).rows[0][2] == "unknown"
