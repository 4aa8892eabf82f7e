# SPDX-License-Identifier: Apache-2.0
from report_cases import normal, response

from rtproof.analysis.counts import EMPTY
from rtproof.analysis.model import NO_MOMENTS, Moments
from rtproof.report.stagetable import ENDS, HEADINGS, ends, is_response, numbers


def test_a_number_for_each_heading() -> None:
    summary = normal().pooled
    assert len(numbers(summary.observed_counts, summary.observed)) == len(HEADINGS)
    assert ends(Moments(2, 1_000, 2_500, 3_500, 0)) == ("2", "1.000", "1.750", "2.500")
    assert len(ENDS) == 4


def test_the_ends_of_nothing_are_unknown() -> None:
    assert numbers(EMPTY, NO_MOMENTS) == ("0", *["unknown"] * 5)


def test_the_names_of_the_values_say_what_is_a_response() -> None:
    assert (is_response(response()), is_response(normal())) == (True, False)
