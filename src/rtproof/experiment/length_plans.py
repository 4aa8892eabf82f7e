# SPDX-License-Identifier: Apache-2.0
"""How long a run has to be for a verdict on each limit, as text and as JSON."""

import json
from collections.abc import Sequence

from rtproof import report
from rtproof.judge import planning
from rtproof.judge.analysis_model import Requirement
from rtproof.judge.planning import LengthPlan
from rtproof.report.pages import histogram_page
from rtproof.schema.published import plan_dict


def plan_lengths(
    requirements: Sequence[Requirement], so_far: tuple[int, int], rates: Sequence[int]
) -> list[LengthPlan]:
    """A plan for each limit; all verdicts together are to be right.

    so_far: number of episodes that were measured, and in how many nanoseconds. rates: true rates to tell the chances
    of, each as nanoseconds per episode; by default some multiples of the rate that the limit allows.
    """
    return [
        planning.plan_length(
            each, len(requirements), so_far, tuple(each.at_most_ns / rate for rate in rates) or planning.RATES
        )
        for each in requirements
    ]


def plans_text(plans: list[LengthPlan]) -> str:
    """The plans for a terminal."""
    return report.render("text", "rtproof: plan", histogram_page.plan_sections(plans)).decode()


def plans_json(plans: list[LengthPlan]) -> str:
    """The plans in the documented schema."""
    return json.dumps(plan_dict(plans), indent=2)
