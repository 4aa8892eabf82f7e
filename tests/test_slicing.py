# SPDX-License-Identifier: Apache-2.0
"""What an agent says about a stretch, against counting one by one as the format page has it."""

from itertools import pairwise

import numpy as np
import record_cases as cases
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import activations, histogram_bins
from rtproof.record.contents import Series, View

MS = cases.MS
VALUES = st.integers(-(10**5), 3 * MS) | st.integers(0, 2000)
ROWS = st.lists(st.tuples(VALUES, st.integers(0, 3)), min_size=1, max_size=40)
ANY_SERIES = st.sampled_from([cases.ON_GRID, cases.OFF_GRID, cases.EXTERNAL])


def stretch(series: Series, rows: list[tuple[int, int]]) -> activations.Activations:
    values, missed = np.array(rows, dtype=np.int64).T
    return activations.number_activations(series, 10, series.first_due_ns + 10 * MS, values, missed)


@given(ANY_SERIES, ROWS)
def test_due_times_follow_from_what_was_before(series: Series, rows: list[tuple[int, int]]) -> None:
    some = stretch(series, rows)
    index, due_ns = 10, series.first_due_ns + 10 * MS
    for place in range(len(rows)):
        assert (some.index[place], some.due_ns[place]) == (index, due_ns)
        steps = 1 + int(some.missed[place])
        index += steps
        due_ns += steps * MS if series.by_period else int(some.value[place]) + MS


@given(ANY_SERIES, ROWS)
def test_slices(series: Series, rows: list[tuple[int, int]]) -> None:
    some = stretch(series, rows)
    values = some.value.tolist()
    late = [
        (due_ns + j * MS, value - j * MS)
        for due_ns, value, missed in zip(some.due_ns.tolist(), values, some.missed.tolist(), strict=True)
        for j in range(1, missed + 1)
    ]
    found = {part.view: part for part in activations.slices_of_views(series, some)}
    views = {View.OBSERVED: list(zip(some.due_ns.tolist(), values, strict=True)), View.CHARGED: late}
    assert set(found) == {view for view, pairs in views.items() if pairs}
    for view, part in found.items():
        dues, numbers = zip(*views[view], strict=True)
        assert (part.series, part.first_due_ns, part.last_due_ns, part.count) == (
            series.id,
            dues[0],
            dues[-1],
            len(dues),
        )
        assert (part.min, part.max, part.sum) == (min(numbers), max(numbers), sum(numbers))
        assert part.sum_squares == sum(number * number for number in numbers)
        expected = sorted(histogram_bins.bin_of(numbers).tolist())
        assert np.repeat(part.bins, part.bin_counts).tolist() == expected


@given(ANY_SERIES, ROWS)
def test_neighbours(series: Series, rows: list[tuple[int, int]]) -> None:
    some = stretch(series, rows)
    woke = [due_ns + value for due_ns, value in zip(some.due_ns.tolist(), some.value.tolist(), strict=True)]
    cycles = [b - a for a, b in pairwise(woke)]
    observed = activations.slices_of_views(series, some)[0]
    assert observed.pairs == len(rows) - 1
    assert observed.sum_products == sum(a * b for a, b in pairwise(some.value.tolist()))
    assert observed.catch_up_pairs == sum(10 * a > 12 * MS and 10 * b < 8 * MS for a, b in pairwise(cycles))


def test_a_late_activation_that_is_caught_up() -> None:
    some = stretch(cases.ON_GRID, [(0, 0), (0, 0), (400_000, 0), (0, 0), (0, 0)])
    assert activations.slices_of_views(cases.ON_GRID, some)[0].catch_up_pairs == 1


@given(ROWS)
def test_seconds(rows: list[tuple[int, int]]) -> None:
    # A period of 0.3 s, so that there are few activations in each second.
    series = Series(0, 0, 0, True, True, 300 * MS, 0, "", "", "", "ns")
    values, missed = np.array(rows, dtype=np.int64).T
    some = activations.number_activations(series, 0, 0, values, missed)
    found = activations.seconds_of(series, some)
    ran = [due_ns // 10**9 for due_ns in some.due_ns.tolist()]
    gone = [due_ns // 10**9 for due_ns in activations.missed_activations(series, some)[0].tolist()]
    assert found.second.tolist() == list(range(min(ran + gone), max(ran + gone) + 1))
    for place, second in enumerate(found.second.tolist()):
        here = [value for value, when in zip(values.tolist(), ran, strict=True) if when == second]
        counts = (len(here), gone.count(second), max(here, default=0))
        assert (found.obtained[place], found.missed[place], found.max[place]) == counts


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_exact_dot(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert activations.exact_dot(a, b) == sum(x * y for x, y in pairs)
