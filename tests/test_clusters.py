# SPDX-License-Identifier: Apache-2.0
"""Counts above levels: those that come alone and those that come in bursts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import BEGIN, MS, SECOND, SERIES, array
from numpy.typing import ArrayLike

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.episodes import level_clusters
from rtproof.record.contents import End, EndReason, Int64Array, Series
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter, SeriesWriter

BARE = replace(SERIES, has_samples=False)
LIMIT = 100_000


def analysed(path: Path, values: Int64Array, *series: Series, gaps: tuple[ArrayLike, ArrayLike] = ((), ())) -> Analysis:
    with RecordWriter(path) as writer:
        writer.begin(replace(BEGIN, minor=2))
        for one in series or (BARE,):
            writer.series(one)
        totals = []
        for one in series or (BARE,):
            feed = SeriesWriter(writer, one, limits_ns=(LIMIT,))
            feed.add(values, *gaps)
            totals.append(feed.finish())
        writer.end(End(values.size * MS, EndReason.AS_ASKED, "", tuple(totals)))
    return analyse(open_record(path))


def test_counted_by_hand(tmp_path: Path) -> None:
    """Four above in the first second, two in the third, of five."""
    values = np.full(5_000, 10_000)
    values[[0, 5, 6, 999, 2_000, 2_999]] = LIMIT + 1
    (found,) = level_clusters(analysed(tmp_path / "a", values))
    assert (found.level.value, found.seconds, found.ran, found.missed, found.hit) == (LIMIT, 5, 6, 0, 2)
    assert found.size == 3.0
    assert found.dispersion == pytest.approx(np.var([4, 0, 2, 0, 0], ddof=1) / np.mean([4, 0, 2, 0, 0]))


def test_missed_ones_are_counted_apart(tmp_path: Path) -> None:
    values = np.full(3_000, 10_000)
    values[500] = 4 * MS + LIMIT + 1
    (found,) = level_clusters(analysed(tmp_path / "a", values, gaps=(array(500), array(4))))
    assert (found.ran, found.missed, found.hit, found.size, found.dispersion) == (1, 4, 1, 1.0, None)


def test_nothing_above(tmp_path: Path) -> None:
    (found,) = level_clusters(analysed(tmp_path / "a", np.full(3_000, LIMIT)))
    assert (found.ran, found.hit, found.size, found.dispersion) == (0, 0, None, None)


def test_bursts_show_and_chance_does_not(tmp_path: Path) -> None:
    """300 s of a Poisson process of 1 in 500 activations, and as many in bursts of ten."""
    random = np.random.default_rng(11)
    alone, bursts = np.full((2, 300_000), 10_000)
    alone[random.random(alone.size) < 0.002] = LIMIT + 1
    starts = np.flatnonzero(random.random(bursts.size - 10) < 0.0002)
    bursts[(starts[:, None] + np.arange(10)).reshape(-1)] = LIMIT + 1
    (by_chance, *_), (in_bursts, *_) = (
        level_clusters(analysed(tmp_path / name, values)) for name, values in (("alone", alone), ("bursts", bursts))
    )
    assert by_chance.dispersion is not None
    assert in_bursts.dispersion is not None
    assert 0.7 < by_chance.dispersion < 1.35
    assert in_bursts.dispersion > 5
    assert in_bursts.size is not None
    assert in_bursts.size > 9


def test_learned_levels_count_from_the_second_minute_on(tmp_path: Path) -> None:
    values = np.random.default_rng(2).gamma(4.0, 5_000.0, 100_000).astype(np.int64)
    found = level_clusters(analysed(tmp_path / "a", values, BARE, replace(BARE, id=1, thread=1)))
    assert [(each.series.thread, each.level.share) for each in found] == [
        (thread, share) for thread in (0, 1) for share in (0, 0.001, 0.0001)
    ]
    assert [each.seconds for each in found[:3]] == [100, 40, 40]
    assert found[1].level.since_ns == 60 * SECOND
    assert 10 < found[1].ran < 120
