# SPDX-License-Identifier: Apache-2.0
"""Rows that are said to be unloaded, under averages as a kernel works them out of the tasks that there were."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import SERIES, block, file, record
from campaign_cases import shortened
from hypothesis import given
from hypothesis import strategies as st
from test_cli_campaign import FIGURES

from rtproof import articles
from rtproof.core.errors import UserError
from rtproof.judge.analyse import analyse
from rtproof.judge.objections import Figures, ResultClaim, claim_of, objections
from rtproof.judge.objections.result_row import exact_span
from rtproof.judge.objections.rules.busy import least_average
from rtproof.record.contents import Moment
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_outcomes import CellOutcome

SECOND = 10**9
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
    span, was = exact_span(int(length_s * SECOND)), (round(before, 2),) * 3
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
    told = objections([claim])
    assert [each.code for each in told] == ["not-unloaded"] * found
    assert all("with 4 CPUs and 4 measuring threads" in each.what for each in told)
    assert objections([replace(claim, said_idle=False), replace(claim, online_count=None)]) == ()


@given(st.floats(0, 200), st.floats(0, 200), st.floats(1, 4000), st.floats(0, 5), st.floats(0, 30))
def test_it_never_tells_of_more_than_there_was(
    before: float, tasks: float, length_s: float, late_s: float, more_s: float
) -> None:
    """Wherever the looks fall, and however much longer the readings are apart than the run; up to what is printed."""
    told = averages(before, tasks, length_s + more_s, late_s)
    claim = ResultClaim(
        "row", span=exact_span(int(length_s * SECOND)), loadavg=told, loadavg_before=(round(before, 2),) * 3
    )
    least = least_average(claim)
    assert least is None or least <= tasks + 0.06


@pytest.mark.parametrize(
    ("minutes", "least"), [(2, None), (3, 9.0), (14, 9.0), (15, 5.0), (44, 5.0), (45, 2.0), (600, 2.0)]
)
def test_of_a_published_row_an_average_counts_that_has_forgotten_the_time_before(
    minutes: int, least: float | None
) -> None:
    row = ResultClaim("row", span=exact_span(minutes * 60 * SECOND), loadavg=(9.0, 5.0, 2.0))
    assert least_average(row) == least
    assert least_average(replace(row, loadavg=())) is None
    assert least_average(replace(row, span=None)) is None


ROW = 'kernel = "4.19"\nload = "{load}"\nasked = "30 min"\nloadavg = "3.07 3.11 2.51"\n{cpus}'


@pytest.mark.parametrize(
    ("load", "cpus", "found"),
    [
        ("none", 1, True),
        ("Idle", 1, True),
        ("", 1, False),
        ("stress", 1, False),
        ("none", 3, False),
        ("none", 0, False),
    ],
)
def test_an_article_that_says_none_is_held_to_it(tmp_path: Path, load: str, cpus: int, found: bool) -> None:
    place = tmp_path / "own.toml"
    told = ROW.format(load=load, cpus=f"cpus = {cpus}\n" if cpus else "")
    place.write_text(FIGURES.replace('kernel = "4.19"\n', told).replace("count = 5", "count = 1800000"))
    codes = [each.code for each in objections(articles.claims(articles.read(place)))]
    assert ("not-unloaded" in codes) is found


@pytest.mark.parametrize("cpus", [0, -1, 65_537])
def test_a_number_of_cpus_that_no_board_has_is_refused(tmp_path: Path, cpus: int) -> None:
    place = tmp_path / "own.toml"
    place.write_text(FIGURES.replace('kernel = "4.19"\n', ROW.format(load="none", cpus=f"cpus = {cpus}\n")))
    with pytest.raises(UserError, match="cpus: a board has between 1 and 65,536"):
        articles.read(place)


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
    own, _ = campaign_page.campaign_objections(profile, outcomes, None)
    hit = [each for each in own if each.code == "not-unloaded"]
    assert [each.claims for each in hit] == [("unloaded, a board",)]
    assert "at least 10.00 with 4 CPUs and 1 measuring thread:" in hit[0].what
    assert claim_of(measured, "alone").said_idle is False
