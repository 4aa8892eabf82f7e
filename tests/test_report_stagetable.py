# SPDX-License-Identifier: Apache-2.0

from report_cases import normal, response

from rtproof.report.stage_tables import ENDS, HEADINGS, is_response, stage_ends, stage_numbers
from rtproof.summary.counts import NO_COUNTS
from rtproof.summary.summary_model import NO_MOMENTS, Moments


def test_a_number_for_each_heading() -> None:
    summary = normal().pooled
    assert len(stage_numbers(summary.observed_counts, summary.observed)) == len(HEADINGS)
    assert stage_ends(Moments(2, 1_000, 2_500, 3_500, 0)) == ("2", "1.000", "1.750", "2.500")
    assert len(ENDS) == 4


def test_the_ends_of_nothing_are_unknown() -> None:
    assert stage_numbers(NO_COUNTS, NO_MOMENTS) == ("0", *["unknown"] * 5)


def test_the_names_of_the_values_say_what_is_a_response() -> None:
    assert (is_response(response()), is_response(normal())) == (True, False)
