# SPDX-License-Identifier: Apache-2.0
"""What the runs' own clocks say of how a comparison came about."""

from dataclasses import replace

import pytest
from comparison_cases import in_time, side

from rtproof.compare.likeness import SAME_BOOT_NS, distinct_boots, measuring_conditions
from rtproof.compare.run_metrics import RunFigures, figures_of_histogram


def said(a: list[RunFigures], b: list[RunFigures]) -> str:
    return "\n".join(measuring_conditions((("new", a), ("old", b))))


def at_boot(runs: list[RunFigures], *times: int | None) -> list[RunFigures]:
    return [replace(run, booted_ns=time) for run, time in zip(runs, times, strict=True)]


def test_boots_are_counted_by_the_clocks() -> None:
    some = side(1, 3)
    assert distinct_boots(at_boot(some, 0, 1, SAME_BOOT_NS)) == 1
    assert distinct_boots(at_boot(some, 0, 10**15, 2 * 10**15)) == 3
    assert distinct_boots(at_boot(some, 0, None, 1)) is None
    assert distinct_boots([]) is None


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert said(side(1, 3), side(2, 3)) == ""


@pytest.mark.parametrize(("first", "named"), [((0, 10), "new"), ((10, 0), "old")])
def test_one_side_before_the_other(first: tuple[int, int], named: str) -> None:
    a, b = (in_time(side(n, 3), start, 1, boot_ns=start * 10**15) for n, start in enumerate(first))
    assert f"all runs of {named} came before those of" in said(a, b)
    assert "the runs of new are of one boot" in said(a, b)
    assert "the runs of old are of one boot" in said(a, b)


def test_turns_are_fine() -> None:
    a, b = in_time(side(1, 3), 0, 2), in_time(side(2, 3), 1, 2)
    assert said(a, b) == "all runs are of one boot, so how boots of one system differ is not in the scatter of the runs"


def test_one_run_each_has_no_order() -> None:
    assert "came before" not in said(in_time(side(1, 1), 0, 1), in_time(side(2, 1), 1, 1))


def test_the_schedule_has_the_missed_ones() -> None:
    missed = [replace(run, missed=2_000) for run in side(1, 2)]
    assert "4,000 activations of new never ran (9.1 % of those due)" in said(missed, side(2, 2))
    charged = [replace(run, facts={**run.facts, "view": "schedule"}) for run in missed]
    assert "never ran" not in said(charged, side(2, 2))


def test_what_files_do_not_tell_is_said() -> None:
    """A histogram counts nothing that never ran, and one that was cut off not what lay beyond its scale."""
    counts = side(1, 1)[0].counts
    cut, whole = (figures_of_histogram(name, counts, {}, overflow) for name, overflow in (("c", None), ("w", 0)))
    assert (cut.missed, cut.lost, cut.n, whole.unclear) == (None, None, counts.total, ())
    told = said([cut, whole], side(2, 2))
    assert "how many activations of new never ran is not known of 2 runs" in told
    assert "new, 1 run of 2: how many values lie beyond the scale of the histogram is not told" in told
    assert "of old" not in told
