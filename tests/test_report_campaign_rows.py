# SPDX-License-Identifier: Apache-2.0
"""Numbers of the articles' tables and curves, computed once more from the exported samples, by numpy alone."""

import re
from dataclasses import replace
from pathlib import Path

import campaign_cases
import msgspec
import numpy as np
import pytest
from analysis_records import MS, SERIES, block, record
from report_cases import summarised
from report_cases import tables_of as tables
from stage_records import LOOP, staged

from rtproof import articles
from rtproof.exporters import csv
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.report.blocks import Plot, Section, Table
from rtproof.report.pages import campaign_curves, campaign_extras
from rtproof.report.pages.campaign_cells import CellOutcome, MeasuredCampaign

N = 200_000
BIN = 1 / 512
"""Values of a record that kept a summary are known to this share of them."""

Columns = dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]


def drawn(seed: int, scale: float = 1.0) -> dict[str, list[int]]:
    """Interrupt and task, each with a tail of its own."""
    random = np.random.default_rng(seed)
    irq = (scale * (1_500 + random.gamma(2, 300, N) + random.pareto(2.5, N) * 200)).astype(np.int64)
    task = irq + (scale * (4_500 + random.gamma(2, 200, N) + random.pareto(2, N) * 300)).astype(np.int64)
    return {"irq": irq.tolist(), "task": task.tolist()}


def exported(analysis: Analysis, folder: Path) -> Columns:
    """The latencies of each field as the file of ``rtproof export`` has them."""
    csv.export(analysis, folder / "a.csv", {})
    header, *lines = (line.split(",") for line in (folder / "a.csv").read_text().splitlines())
    values = np.array([int(line[header.index("latency_ns")]) for line in lines], np.int64)
    fields = np.array([line[header.index("field")] if "field" in header else "" for line in lines])
    return {str(name): values[fields == name] for name in np.unique(fields)}


def only_summary(made: Record) -> Record:
    """The same run, had it kept no sample."""
    series = tuple(replace(each, has_samples=False) for each in made.series)
    slices = [part for old, new in zip(made.series, series, strict=True) for part in summarised(made, old)]
    return replace(made, series=series, chunk_refs=(), slices=tuple(slices))


def page(name: str, article: str, told: list[CellOutcome]) -> dict[str, Section]:
    return campaign_cases.page(campaign_cases.shortened(name), told, article)


def cell(name: str, key: str, analysis: Analysis, stage: str = "") -> CellOutcome:
    told = campaign_cases.outcome(campaign_cases.shortened(name), key, analysis, way=1)
    return replace(told, way=msgspec.structs.replace(told.way, stage=stage)) if told.way else told


def us(text: str) -> float:
    return float(text.replace(",", "")) * 1_000


def near(shown: float, exact: float, summary: bool) -> bool:
    """A bin stands for its upper end."""
    return exact - 0.5 <= shown <= exact * (1 + BIN) + 0.5 if summary else abs(shown - exact) <= 0.5


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Columns]:
    made = staged(drawn(1))
    return made, exported(analyse(made, None, 1), tmp_path_factory.mktemp("exported"))


@pytest.mark.parametrize("summary", [False, True])
def test_maximum_threshold_and_context_switch(exact: tuple[Record, Columns], summary: bool) -> None:
    made, columns = exact
    analysis = analyse(only_summary(made) if summary else made, None, 1)
    found = page("akamina", "akamina", [cell("akamina", "unloaded", analysis, "task")])
    for table, name in zip(tables(found["thresholds"]), ("irq", "task"), strict=True):
        values = np.sort(columns[name])
        shown = table.rows[0]
        assert shown[1] == f"{N:,}"
        assert us(shown[2]) == values[-1]
        assert near(us(shown[3]), values[int(np.ceil(N * 0.99999)) - 1], summary)
    (switch,) = tables(found["switch"])
    told = switch.rows[0]
    bins = [np.bincount(columns[name] // width) for name, width in (("irq", 500), ("task", 2_000))]
    early, late = (int(each.argmax()) for each in bins)
    assert told[3] == f"{early * 0.5:g} to {early * 0.5 + 0.5:g}"
    assert told[5] == f"{late * 2} to {late * 2 + 2}"
    shares = [100 * each.max() / N for each in bins]
    assert [float(told[at].rstrip(" %")) for at in (4, 6)] == pytest.approx(shares, abs=0.5 if summary else 0.006)
    assert told[7] == f"{late * 2 - early * 0.5 - 0.5:g} to {late * 2 + 2 - early * 0.5:g}"


def test_bins_wider_than_the_values_hold_all_of_them() -> None:
    analysis = analyse(staged(drawn(2, scale=0.01)), None, 1)
    (switch,) = tables(page("akamina", "akamina", [cell("akamina", "unloaded", analysis, "task")])["switch"])
    assert switch.rows[0][3:] == ("0 to 0.5", "100 %", "0 to 2", "100 %", "0 to 2")


def test_article_3_s_table_and_loop_times(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    top = 300_000 + random.gamma(2, 20_000, 1_000).astype(np.int64)
    start, work = top + 5_000, 600_000 + random.gamma(2, 90_000, 1_000).astype(np.int64)
    fields = {"top": top.tolist(), "start": start.tolist(), "end": (start + work).tolist()}
    series = replace(SERIES, period_ns=5 * MS, probe="app", method="absolute")
    analysis = analyse(staged(fields, series=series), None, 1)
    columns = exported(analysis, tmp_path)
    tops = np.arange(1_000) * 5 * MS + columns["top"]
    parts = [columns["end"] - columns["start"], np.diff(tops), columns["top"]]
    found = page("simple-rt-app", "simple-rt-app", [cell("simple-rt-app", "loaded", analysis)])
    told = {name: us(shown) for name, shown in tables(found["result"])[0].rows[1:]}
    for name, values in zip(("work", "loop", "top"), parts, strict=True):
        shown = [told[f"{name} {figure} [us]"] for figure in ("min", "max", "avg", "sd")]
        exact = [values.min(), values.max(), values.mean(), values.std(ddof=1)]
        assert shown == pytest.approx(exact, abs=0.51)
    varying = [told[f"top varying, beyond its min, {figure} [us]"] for figure in ("avg", "max")]
    assert varying == pytest.approx([parts[2].mean() - parts[2].min(), np.ptp(parts[2])], abs=0.51)
    plot, *_ = (block for block in found["app"].blocks if isinstance(block, Plot))
    (curve,) = plot.curves
    assert np.abs(np.array(curve.y) * 1_000 - parts[1]).max() < 1e-6
    assert curve.x == tuple(range(999))


def test_article_2_s_counts(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    late = np.where(random.random(5_000) < 0.05, random.integers(2 * MS, 8 * MS, 5_000), 30_000)
    analysis = analyse(staged({"task": late.tolist()}, series=LOOP), None, 1)
    (latencies,) = exported(analysis, tmp_path).values()
    lengths = np.diff(np.arange(5_000) * 10 * MS + latencies)
    counted = lengths[(len(lengths)) // 10 :]
    short, long = counted < 8 * MS, counted > 12 * MS
    found = page("ten-ms", "ten-ms", [cell("ten-ms", "other--stress", analysis)])
    result = tables(found["result"])[0]
    told = dict(zip(result.header, result.rows[0], strict=True))
    assert told["cycles"] == f"{counted.size:,}"
    assert (told["below band"], told["above band"]) == (f"{short.sum():,}", f"{long.sum():,}")
    assert us(told["max [ms]"]) * 1_000 == pytest.approx(counted.max(), abs=501)
    assert us(told["min [ms]"]) * 1_000 == pytest.approx(counted.min(), abs=501)
    assert told["catch-up pairs"] == f"{int((long[:-1] & short[1:]).sum()):,}"
    assert float(told["correlation"]) == pytest.approx(np.corrcoef(counted[:-1], counted[1:])[0, 1], abs=0.01)


N_TAILS = 60_000


def outcome(place: int, system: str, drawn: np.ndarray[tuple[int], np.dtype[np.int64]]) -> CellOutcome:
    series = replace(SERIES, probe="timer")
    analysis = analyse(record([block(drawn.tolist(), series=series)], [series]), workers=1)
    return CellOutcome(system, campaign_cases.shortened("akamina").cells[place], analysis)


def usual(seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).gamma(3, 4_000, N_TAILS).astype(np.int64) + 2_000


def late(seed: int, share: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Quick as a rule, and the share beyond 70 us."""
    values = np.minimum(usual(seed), 60_000)
    values[np.random.default_rng(seed).choice(N_TAILS, int(N_TAILS * share), replace=False)] = 300_000
    return values


def told(*outcomes: CellOutcome) -> list[tuple[str, ...]]:
    section = campaign_curves.tails_section(
        MeasuredCampaign(campaign_cases.shortened("akamina"), outcomes, articles.load("akamina"))
    )
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    return list(table.rows)


def test_where_two_curves_cross_is_told() -> None:
    rt, plain = outcome(1, "rt", np.minimum(usual(1) + 6_000, 70_000)), outcome(1, "plain", late(2, 0.013))
    first, second, n, better, apart = told(rt, plain)[0]
    assert (first, second) == ("loaded (comms), rt", "loaded (comms), plain")
    assert better.startswith("loaded (comms), rt, above ")
    assert re.search(r", up to [67]\d(\.\d+)? us$", better)
    assert n.count(f"{N_TAILS:,} (") == 2
    assert "different" in apart


def test_in_virtual_time_a_distance_says_nothing_of_chance() -> None:
    profile, outcomes = campaign_cases.shortened("akamina"), campaign_cases.akamina()
    section = campaign_curves.tails_section(MeasuredCampaign(profile, outcomes))
    distances = [row[4] for block in section.blocks if isinstance(block, Table) for row in block.rows]
    assert distances
    assert [each for each in distances if " at " not in each or ";" in each] == []


def test_alike_curves_are_called_the_same_where_n_carries_it() -> None:
    ((_, _, _, better, apart), *_) = told(outcome(0, "a", usual(1)), outcome(1, "a", usual(2)))
    assert better == "neither, as far as chance does not decide"
    assert "the same, surely nowhere above" in apart
    few = told(outcome(0, "a", usual(1)[:300]), outcome(1, "a", usual(2)[:300]))[0][4]
    assert "undecided" in few


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, ("0", "20.0 s", "it held here")), (0.001, ("60", "", "it does not hold here"))]
)
def test_the_article_s_conclusion_is_judged_for_a_run(share: float, expected: tuple[str, str, str]) -> None:
    """Its preemption latency stays below 500 us: of 60,000 activations a share is later."""
    values = late(3, share) + np.where(late(3, share) > 200_000, 200_000, 0)
    found = campaign_extras.conclusions_section(
        MeasuredCampaign(campaign_cases.shortened("akamina"), [outcome(1, "rt", values)], articles.load("akamina"))
    )
    *article, here = next(block.rows for block in found.blocks if isinstance(block, Table))
    assert {row[5] for row in article} == {"1 h 23 min"}
    assert (here[2], *(here[at] for at in (3, 5, 6))) == (f"{N_TAILS:,}", *expected)
