# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import SECOND

from rtproof.judge.analysis_model import Requirement, State
from rtproof.judge.histogram_only import (
    after_the_data,
    count_above,
    impossible_figures,
    summarise_histogram,
    with_overflow,
)
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.imported_histogram import ImportedHistogram

US = 1_000
HOUR = 3_600 * SECOND


def bins(**counts: int) -> Counts:
    """bins(us20=3): three values between 20 and 21 us."""
    low = np.array([int(name[2:]) * US for name in counts], np.int64)
    return Counts(low, low + US - 1, np.array(list(counts.values()), np.int64))


FILE = ImportedHistogram(
    "tool",
    "",
    count=1_000,
    min_ns=20 * US,
    mean_ns=25 * US,
    max_ns=90 * US,
    histogram=bins(us20=900, us30=98, us90=2),
    overflow=0,
    resolution_ns=US,
)
SATURATED = replace(
    FILE, max_ns=400 * US, histogram=bins(us20=900, us30=90), overflow=10, scale_ns=50 * US, duration_ns=1_000 * SECOND
)


def test_number_above_a_limit_is_exact_where_no_bin_holds_it() -> None:
    found = count_above(FILE, Requirement(89_999))
    assert found
    assert (found.least, found.most, found.n) == (2, 2, 1_000)


def test_a_bin_that_holds_the_limit_may_lie_above_it_or_not() -> None:
    found = count_above(FILE, Requirement(90_500))
    assert found
    assert (found.least, found.most) == (0, 2)


def test_the_share_is_bounded_as_by_clopper_and_pearson() -> None:
    stats = pytest.importorskip("scipy.stats")
    found = count_above(FILE, Requirement(50 * US))
    assert found
    assert found.share_high == pytest.approx(stats.beta.ppf(0.95, 3, 998), rel=1e-9)
    assert found.share_low == pytest.approx(stats.beta.ppf(0.05, 2, 999), rel=1e-9)


def test_beyond_the_scale_only_the_maximum_is_known() -> None:
    low, within, on_scale = (count_above(SATURATED, Requirement(limit * US)) for limit in (45, 100, 400))
    assert low
    assert within
    assert on_scale
    assert (low.least, low.most) == (10, 10)
    assert (within.least, within.most) == (1, 10)
    assert (on_scale.least, on_scale.most) == (0, 10)


def test_nothing_exceeds_what_is_larger_than_the_maximum_can_be() -> None:
    assert count_above(SATURATED, Requirement(401 * US)) == count_above(SATURATED, Requirement(HOUR))
    found = count_above(SATURATED, Requirement(401 * US))
    assert found
    assert found.most == 0
    assert found.share_high == pytest.approx(0.0029912, rel=1e-4)


def test_without_the_number_beyond_the_scale_there_is_no_upper_bound() -> None:
    found = count_above(replace(SATURATED, overflow=None), Requirement(100 * US))
    assert found
    assert (found.least, found.most, found.share_high) == (1, None, None)


def test_without_a_histogram_minimum_and_maximum_are_what_is_left() -> None:
    bare = replace(FILE, histogram=None)
    low, within, over = (count_above(bare, Requirement(limit * US)) for limit in (10, 50, 100))
    assert low
    assert within
    assert over
    assert [(x.least, x.most) for x in (low, within, over)] == [(1_000, 1_000), (1, 1_000), (0, 0)]


def test_file_that_does_not_tell_how_many_values_it_has_says_so() -> None:
    (judged,) = summarise_histogram(replace(FILE, count=None, histogram=None), [Requirement(US)]).judged
    assert judged.above is None
    assert "how many samples" in judged.reason


def test_values_beyond_the_scale_lie_between_its_end_and_the_maximum() -> None:
    counts = with_overflow(SATURATED)
    assert counts.total == 1_000
    assert (int(counts.lo[-1]), int(counts.hi[-1]), int(counts.n[-1])) == (50 * US, 401 * US - 1, 10)


def test_quantiles_up_to_saturation_and_none_beyond() -> None:
    said = summarise_histogram(SATURATED, shares=(0.5, 0.985, 0.995))
    assert said.beyond == pytest.approx(0.99)
    assert [q.value for q in said.quantiles] == [21 * US - 1, 31 * US - 1, 401 * US - 1]


def test_no_number_of_exceedances_refutes_a_rate_because_they_may_be_one_episode() -> None:
    many = replace(FILE, histogram=bins(us20=500, us90=500), duration_ns=HOUR)
    said = summarise_histogram(many, [Requirement(50 * US, HOUR)])
    assert said.state is State.UNDECIDED
    assert "one episode" in said.judged[0].reason


def test_one_episode_anywhere_refutes_where_the_run_is_short_enough() -> None:
    """E- is 20 at r0 T = 0.0035 with one episode: 12.6 s for once per hour, and the tool may have rounded by 1 s."""
    short = replace(FILE, duration_ns=11 * SECOND)
    assert summarise_histogram(short, [Requirement(50 * US, HOUR)]).state is State.REFUTED
    assert (
        summarise_histogram(replace(short, duration_ns=16 * SECOND), [Requirement(50 * US, HOUR)]).state
        is State.UNDECIDED
    )
    assert summarise_histogram(short, [Requirement(50 * US, HOUR // 100)]).state is State.UNDECIDED
    assert summarise_histogram(replace(short, duration_ns=None), [Requirement(50 * US, HOUR)]).state is State.UNDECIDED
    both = summarise_histogram(short, [Requirement(50 * US, HOUR), Requirement(91 * US, HOUR)])
    assert [one.state for one in both.judged] == [State.UNDECIDED, State.UNDECIDED], "each at half of alpha"


def test_bin_that_holds_the_limit_refutes_nothing() -> None:
    short = replace(FILE, duration_ns=5 * SECOND)
    assert summarise_histogram(short, [Requirement(90_500, HOUR)]).state is State.UNDECIDED


def test_a_clean_histogram_proves_nothing() -> None:
    long = replace(FILE, duration_ns=1_000 * HOUR)
    said = summarise_histogram(long, [Requirement(100 * US, HOUR)])
    assert said.state is State.UNDECIDED
    assert "no sample exceeded" in said.judged[0].reason


def test_contradictions_make_it_invalid_and_come_first() -> None:
    short = replace(FILE, duration_ns=5 * SECOND, faults=("its figures differ",))
    said = summarise_histogram(short, [Requirement(50 * US, HOUR)])
    assert (said.state, said.judged[0].reason) == (State.INVALID, "its figures differ")
    assert summarise_histogram(replace(FILE, faults=("its figures differ",))).state is State.INVALID


def test_limit_chosen_after_the_data_decides_nothing() -> None:
    said = after_the_data(
        summarise_histogram(replace(FILE, duration_ns=5 * SECOND), [Requirement(50 * US, HOUR)]), "chosen late"
    )
    assert said.state is State.UNDECIDED
    assert said.judged[0].reason == "chosen late"


def test_every_statement_that_is_impossible_has_its_reason() -> None:
    usual = dict(impossible_figures(summarise_histogram(FILE)))
    assert {"episodes and their rate", "a forecast", "missed activations", "PROVEN"} <= set(usual)
    assert "no time order" in usual["episodes and their rate"]
    assert "order unknown" in usual["a forecast"]
    assert "quantiles beyond the scale" not in usual
    saturated = dict(impossible_figures(summarise_histogram(SATURATED)))
    assert "10 values" in saturated["quantiles beyond the scale"]
    assert "how much lies beyond the scale" in dict(
        impossible_figures(summarise_histogram(replace(FILE, overflow=None)))
    )
    assert "quantiles and shares" in dict(impossible_figures(summarise_histogram(replace(FILE, histogram=None))))
    exact = replace(FILE, resolution_ns=1, overruns=0, histogram=counts_of_values(np.array([5, 6], np.int64)))
    assert not {"differences below its resolution", "missed activations"} & set(
        dict(impossible_figures(summarise_histogram(exact)))
    )


def test_without_a_limit_nothing_is_asked() -> None:
    assert summarise_histogram(FILE).state is State.NOT_ASKED
