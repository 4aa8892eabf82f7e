# SPDX-License-Identifier: Apache-2.0
"""What a run gives to the rules, and which of it is said where."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, block, fact, file, record
from campaign_cases import shortened
from doubt_cases import BLOCKS, clean, facts
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed
from stage_records import LOOP, VIRTUAL
from test_cli_campaign import FIGURES

from rtproof import articles
from rtproof.judge.analyse import analyse
from rtproof.judge.doubts.registry import doubts_about_rows, doubts_about_run
from rtproof.judge.doubts.result_row import Figures, ResultClaim, RowKind, claim_of, exact_span, lattice_ns
from rtproof.judge.doubts.row_statements import least_average
from rtproof.record.contents import Counter, Moment, Record
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_cells import CellOutcome, MeasuredCampaign
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.loops import most_cycles_out_of_band
from rtproof.summary.series import summarise


def codes(made: Record) -> list[str]:
    return [each.code for each in doubts_about_rows([claim_of(analyse(made, workers=1), "run")])]


def with_facts(**changed: str) -> Record:
    """Facts of thread 0 at the end, changed."""
    return clean(facts=facts({(key, Moment.END): text for key, text in changed.items()}))


def test_a_claim_has_the_figures_and_the_circumstances_of_the_run() -> None:
    work = Counter(0, True, "load.cpu", "rounds", np.array([0, 2 * SECOND]), np.array([10, 510]))
    files = (
        file("/proc/loadavg", "4.31 4.29 3.71 5/114 6286", Moment.END),
        file("/sys/devices/system/cpu/online", "0-2,5", Moment.START),
    )
    made = clean(files=files, counters=(work,))
    claim = claim_of(analyse(made, workers=1), "mine", "group")
    (each,) = claim.figures
    assert claim.measured
    assert (claim.loadavg, claim.loads, claim.online_count) == ((4.31, 4.29, 3.71), {"cpu": 250.0}, 4)
    assert (each.count, each.period_ns) == (3_000, MS)
    assert each.counts is not None
    assert each.counts.total == 3_000
    assert (each.min_ns, each.mean_ns, each.max_ns) == (9_000, 9_000, 9_000)
    assert claim.span is not None
    assert claim.span.told_ns == 3_000 * MS


def test_a_wrong_policy_speaks_against_the_row_too() -> None:
    assert "policy" in codes(with_facts(policy="other"))


def test_missed_activations_are_in_no_figure_of_those_that_ran() -> None:
    gaps = block([9_000] * 2_400, dict.fromkeys(range(0, 2_400, 4), 1))
    made = clean((gaps,))
    assert codes(made) == ["samples-missing"]


def test_a_backlog_is_not_taken_for_a_tick() -> None:
    """A loop that is too slow for its period for a while: evenly late, with a median far below half a period."""
    backlog = [9_000] * 2_000 + list(range(9_000, 3 * MS, 3 * MS // 1_000))
    (each,) = claim_of(analyse(clean((block(backlog[:3_000]),)), workers=1), "a").figures
    published = ResultClaim("row", (replace(each, mean_ns=1.5 * MS, counts=None, lattice_ns=None),))
    assert {found.code for found in doubts_about_rows([published])} == {"granularity"}
    assert doubts_about_rows([changed(published, measured=True)]) == ()


def test_threads_put_on_the_only_cpu_that_they_were_given_are_no_objection() -> None:
    online = (file("/sys/devices/system/cpu/online", "0-3", Moment.START),)
    pair = [replace(SERIES, id=at, thread=at, cpu=2) for at in range(2)]
    shared = replace(record([block([9_000] * 100, series=each) for each in pair], pair), files=online)
    assert "placement" in {doubt.code for doubt in doubts_about_run(shared, summarise(shared), None)}
    given = replace(shared, facts=(fact("cpus", "2"),))
    assert "placement" not in {doubt.code for doubt in doubts_about_run(given, summarise(given), None)}


def test_the_cycles_of_a_loop_are_figures_too() -> None:
    made = record([block([0, 5 * MS, 0] * 10, series=LOOP)], [LOOP])
    cycles = claim_of(analyse(made, workers=1), "a").figures[1]
    assert (cycles.kind, cycles.count, cycles.out_of_band) == (RowKind.LENGTH, 27, 18)


def test_the_cycles_of_several_loops_fit_into_the_run_that_they_share() -> None:
    two = [replace(LOOP, id=at, thread=at) for at in range(2)]
    made = record([block([0] * 30, series=each) for each in two], two)
    assert "lengths" not in {found.code for found in doubts_about_rows([claim_of(analyse(made, workers=1), "a")])}


def test_cycles_in_virtual_time_bound_nothing_and_lack_no_bound() -> None:
    """Where the clock shows time, none out of the band draws the rule of three."""
    quiet = record([block([0] * 30, series=LOOP)], [LOOP])
    virtual = replace(quiet, facts=(*quiet.facts, VIRTUAL))
    assert claim_of(analyse(quiet, workers=1), "a").figures[1].out_of_band == 0
    found = analyse(virtual, workers=1)
    assert claim_of(found, "a").figures[1].out_of_band is None
    assert found.cycles is not None
    assert most_cycles_out_of_band(found.cycles) is None


def test_off_a_grid_nobody_knows_how_many_were_due() -> None:
    series = replace(SERIES, on_grid=False)
    claim = claim_of(analyse(clean(BLOCKS, series), workers=1), "a")
    assert claim.figures[0].period_ns is None
    assert not any(each.code.startswith("samples") for each in doubts_about_rows([claim]))


@pytest.mark.parametrize("content", ["", "x y z", "1"])
def test_files_of_nonsense_tell_nothing(content: str) -> None:
    files = (
        file("/proc/loadavg", content, Moment.END),
        file("/sys/devices/system/cpu/online", f"{content}-", Moment.START),
    )
    claim = claim_of(analyse(clean(files=files), workers=1), "a")
    assert len(claim.loadavg) < 3
    assert claim.online_count is None
    assert doubts_about_rows([changed(claim, group="g"), changed(claim, name="b", group="g")]) == ()


@given(st.integers(3, 10**7), st.integers(-(10**6), 10**6), st.sets(st.integers(0, 10**6), min_size=40, max_size=60))
def test_the_step_of_a_lattice_is_found(step: int, start: int, places: set[int]) -> None:
    """Of places with no common factor, which so many of them never have by chance."""
    values = np.array(sorted({*places, 0, 1}), np.int64) * step + start
    assert lattice_ns(counts_of_values(values)) == step


@given(st.floats(30.0, 1e6), st.integers(0, 1_000))
def test_a_lattice_of_parts_of_nanoseconds_is_found(step: float, start: int) -> None:
    values = np.floor(np.arange(60) * step).astype(np.int64) + start
    found = lattice_ns(counts_of_values(values))
    assert found is not None
    assert abs(found - step) <= 1


def test_values_without_a_step_and_values_in_bins_make_no_lattice() -> None:
    drawn = np.random.default_rng(2).integers(0, 10**6, 500)
    assert lattice_ns(counts_of_values(drawn)) is None
    edges = np.arange(30, dtype=np.int64) * 1_000
    assert lattice_ns(Counts(edges, edges + 999, np.ones(30, np.int64))) is None
    assert lattice_ns(counts_of_values(np.arange(5, dtype=np.int64) * 1_000)) is None
    far_apart = np.array([-(1 << 62), 1 << 62])[:, None] + np.arange(30) * 1_000
    assert lattice_ns(counts_of_values(far_apart.ravel())) is None, "their distance is no number of 64 bits"


SECOND_BUSY = 10**9
OVER_S = (60, 300, 900)
THREADS = tuple(Figures(f"thread {number}") for number in range(4))


def averages(before: float, tasks: float, length_s: float, late_s: float = 0.0) -> tuple[float, ...]:
    """Of a kernel that looks every 5.004 s, the first time late_s after the beginning, printed as it prints them."""
    looks = math.floor((length_s - late_s) / 5.004) + 1 if length_s >= late_s else 0
    return tuple(
        round(before * math.exp(-5 * looks / over) + tasks * (1 - math.exp(-5 * looks / over)), 2) for over in OVER_S
    )


def idle(before: float, tasks: float, length_s: float = 20.0) -> ResultClaim:
    """Four threads on four CPUs."""
    told = averages(before, tasks, length_s)
    span, was = exact_span(int(length_s * SECOND_BUSY)), (round(before, 2),) * 3
    return ResultClaim(
        "row", THREADS, True, span=span, loadavg=told, loadavg_before=was, said_idle=True, online_count=4
    )


@pytest.mark.parametrize(
    ("before", "tasks", "length_s", "found"),
    [
        (10.0, 10.0, 20, True),  # as busy as before
        (8.3, 8.3, 20, True),
        (7.9, 7.9, 20, False),  # four CPUs and four threads
        (37.0, 0.5, 20, False),  # what was before is not the run's
        (37.0, 12.0, 60, True),
        (0.1, 12.0, 20, False),  # it has not risen far enough to be sure
        (0.1, 12.0, 240, True),
        (10.0, 10.0, 14, False),  # the kernel has looked twice
        (0.0, 4.0, 3600, False),
    ],
)
def test_more_tasks_than_cpus_and_threads_are_no_idleness(
    before: float, tasks: float, length_s: float, found: bool
) -> None:
    claim = idle(before, tasks, length_s)
    told = doubts_about_rows([claim])
    assert [each.code for each in told] == ["not-unloaded"] * found
    assert doubts_about_rows([changed(claim, said_idle=False), changed(claim, online_count=None)]) == ()


@given(st.floats(0, 200), st.floats(0, 200), st.floats(1, 4000), st.floats(0, 5), st.floats(0, 30))
def test_it_never_tells_of_more_than_there_was(
    before: float, tasks: float, length_s: float, late_s: float, more_s: float
) -> None:
    """Wherever the looks fall, and however much longer the readings are apart than the run; up to what is printed."""
    told = averages(before, tasks, length_s + more_s, late_s)
    claim = ResultClaim(
        "row", span=exact_span(int(length_s * SECOND_BUSY)), loadavg=told, loadavg_before=(round(before, 2),) * 3
    )
    least = least_average(claim)
    assert least is None or least <= tasks + 0.06


@pytest.mark.parametrize(
    ("minutes", "least"), [(2, None), (3, 9.0), (14, 9.0), (15, 5.0), (44, 5.0), (45, 2.0), (600, 2.0)]
)
def test_of_a_published_row_an_average_counts_that_has_forgotten_the_time_before(
    minutes: int, least: float | None
) -> None:
    row = ResultClaim("row", span=exact_span(minutes * 60 * SECOND_BUSY), loadavg=(9.0, 5.0, 2.0))
    assert least_average(row) == least
    assert least_average(changed(row, loadavg=())) is None
    assert least_average(changed(row, span=None)) is None


ROW = 'kernel = "4.19"\nload = "{load}"\nasked = "30 min"\nloadavg = "3.07 3.11 2.51"\n{cpus}'


@pytest.mark.parametrize(("load", "cpus", "found"), [("none", 1, True), ("stress", 1, False), ("none", 3, False)])
def test_an_article_that_says_none_is_held_to_it(tmp_path: Path, load: str, cpus: int, found: bool) -> None:
    place = tmp_path / "own.toml"
    told = ROW.format(load=load, cpus=f"cpus = {cpus}\n" if cpus else "")
    place.write_text(FIGURES.replace('kernel = "4.19"\n', told).replace("count = 5", "count = 1800000"))
    codes = [each.code for each in doubts_about_rows(articles.claims(articles.read(place)))]
    assert ("not-unloaded" in codes) is found


def test_the_cell_without_a_load_of_a_profile_is_held_to_it_and_no_other_run_is() -> None:
    profile = shortened("akamina")
    busy = "10.00 9.00 9.00 12/99 1"
    files = (file("/sys/devices/system/cpu/online", "0-3"), file("/proc/loadavg", busy))
    whole = record(
        blocks=[block(range(1_000, 21_000))],
        series=(replace(SERIES, period_ns=1_000_000),),
        files=(*files, file("/proc/loadavg", busy, Moment.END)),
    )
    measured = analyse(whole, None, 1)
    outcomes = [CellOutcome("a board", profile.cell(key), measured) for key in ("unloaded", "loaded")]
    own, _ = campaign_page.campaign_objections(MeasuredCampaign(profile, outcomes))
    hit = [each for each in own if each.code == "not-unloaded"]
    assert [each.rows for each in hit] == [("unloaded, a board",)]
    assert claim_of(measured, "alone").said_idle is False
