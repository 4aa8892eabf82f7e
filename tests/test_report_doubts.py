# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from report_cases import all_equal

from rtproof.judge.analyse import CHECKS
from rtproof.report.blocks import Text
from rtproof.report.sections import verdict
from rtproof.summary.summary_model import Doubt, Severity

INVALID = Doubt("policy", Severity.INVALID, "thread 0 ran as other", "run it as root")
WARNING = Doubt("guest", Severity.WARNING, "this is a virtual machine", "")


def test_no_doubt_is_said_with_the_number_of_checks() -> None:
    (said,) = verdict.doubts_section(replace(all_equal(), doubts=()))
    assert said == Text((f"No doubts: {len(CHECKS)} checks of the run found nothing wrong with it.",), "good")
    assert len(CHECKS) > 10


def test_every_doubt_says_what_it_means_and_what_to_do() -> None:
    assert verdict.doubts_section(replace(all_equal(), doubts=(INVALID, WARNING))) == [
        Text(("thread 0 ran as other", "What to do: run it as root"), "bad", "Makes the run invalid (policy)"),
        Text(("this is a virtual machine",), "doubt", "Warning (guest)"),
    ]
