# SPDX-License-Identifier: Apache-2.0
"""The sentences that article 5 reads from its curves, of cells whose latencies are known."""

import re
from dataclasses import replace

import campaign_cases
import numpy as np
import pytest
from analysis_records import SERIES, block, record

from rtproof import articles
from rtproof.judge.analyse import analyse
from rtproof.report.blocks import Table
from rtproof.report.pages import campaign_curves
from rtproof.report.pages.campaign_outcomes import CellOutcome

N = 60_000


def outcome(place: int, system: str, drawn: np.ndarray[tuple[int], np.dtype[np.int64]]) -> CellOutcome:
    series = replace(SERIES, probe="timer")
    analysis = analyse(record([block(drawn.tolist(), series=series)], [series]), workers=1)
    return CellOutcome(system, campaign_cases.shortened("akamina").cells[place], analysis)


def usual(seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).gamma(3, 4_000, N).astype(np.int64) + 2_000


def late(seed: int, share: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Quick as a rule, and the share beyond 70 us."""
    values = np.minimum(usual(seed), 60_000)
    values[np.random.default_rng(seed).choice(N, int(N * share), replace=False)] = 300_000
    return values


def told(*outcomes: CellOutcome) -> list[tuple[str, ...]]:
    section = campaign_curves.tails_section(campaign_cases.shortened("akamina"), outcomes, articles.load("akamina"))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    return list(table.rows)


def test_where_two_curves_cross_is_told() -> None:
    rt, plain = outcome(1, "rt", np.minimum(usual(1) + 6_000, 70_000)), outcome(1, "plain", late(2, 0.013))
    first, second, n, better, apart = told(rt, plain)[0]
    assert (first, second) == ("loaded (comms), rt", "loaded (comms), plain")
    assert better.startswith("loaded (comms), rt, above ")
    assert re.search(r", up to [67]\d(\.\d+)? us$", better)
    assert n.count(f"{N:,} (") == 2
    assert "different" in apart


def test_alike_curves_are_called_the_same_where_n_carries_it() -> None:
    ((_, _, _, better, apart), *_) = told(outcome(0, "a", usual(1)), outcome(1, "a", usual(2)))
    assert better == "neither, as far as chance does not decide"
    assert "the same, surely nowhere above" in apart
    few = told(outcome(0, "a", usual(1)[:300]), outcome(1, "a", usual(2)[:300]))[0][4]
    assert "undecided" in few


def test_the_statements_of_the_article_stand_below() -> None:
    rows = told(outcome(0, "a", usual(1)), outcome(1, "a", usual(2)))[1:]
    assert rows == [
        (
            "article: Linux 2.6, loaded",
            "article: Linux 2.4, loaded",
            "",
            "Linux 2.6, loaded, above 70 us, the top 1.3 %",
            "",
        ),
        ("article: RTAI, loaded", "article: LXRT, loaded", "", "RTAI, loaded, the top 12 %", ""),
    ]


def test_pairs_of_one_cell_or_one_system_come_first() -> None:
    four = [outcome(place, system, usual(3)) for place in (0, 1) for system in ("rt", "plain")]
    pairs = [row[:2] for row in told(*four)[:6]]
    assert set(pairs[4:]) == {
        ("unloaded, rt", "loaded (comms), plain"),
        ("unloaded, plain", "loaded (comms), rt"),
    }


@pytest.mark.parametrize("name", ["ten-ms", "bootlin-timer"])
def test_a_profile_without_zooms_has_no_curves(name: str) -> None:
    profile = replace(campaign_cases.shortened(name), bins=(), zooms=())
    assert (
        campaign_curves.tails_section(profile, [outcome(0, "a", usual(1)), outcome(1, "a", usual(2))], None).blocks
        == ()
    )


def test_one_cell_and_cells_without_values_have_nothing_to_compare() -> None:
    profile = campaign_cases.shortened("akamina")
    failed = CellOutcome("a", profile.cells[0], failure="no")
    assert (
        campaign_curves.tails_section(profile, [failed, outcome(1, "a", usual(1))], articles.load("akamina")).blocks
        == ()
    )
