# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows of a tuning while it measures: the plan, what can be found, and one line for each run."""

from collections.abc import Collection

from rtproof.core.phrases import duration, quantity
from rtproof.report.pages.tuning_page import lowered_by
from rtproof.tune.tuning import MOST_TOGETHER, PILOT_RUNS, Plan, Tuning


def plan_lines(plan: Plan, missing: int, run_ns: int, takes_s: float) -> list[str]:
    """How many knobs, how many runs, how long. missing: knobs that the target lacks. takes_s: one run, in s."""
    others = missing + len(plan.left_out)
    of_all = (
        f"{quantity(len(plan.knobs), 'knob')} of {len(plan.knobs) + others}"
        if others
        else quantity(len(plan.knobs), "knob")
    )
    longest = duration(1e9 * plan.runs * takes_s, up=True)
    stages = [quantity(PILOT_RUNS, "run") + " with no knob on"]
    if plan.pairs:
        stages.append(f"{2 * plan.pairs} runs with half of the knobs on")
    few = f"the {plan.most_together} best" if plan.pairs else "all knobs" if plan.most_together > 1 else "the knob"
    stages.append(f"at most {plan.blocks << plan.most_together} runs with each combination of {few} on")
    return [
        f"{of_all} will be tried, in at most {plan.runs} runs of {duration(run_ns)}. That takes at most {longest}.",
        f"The runs: {', then '.join(stages)}. Each run puts everything back.",
    ]


def detectable_lines(found: Tuning) -> list[str]:
    """What difference can be found, once the first runs have shown how much runs differ; nothing before."""
    ratios = found.detectable_ratios()
    if not ratios:
        return []
    return [
        f"{lowered_by(ratios[1])} or more: a knob that lowers the {found.metric} by so much is found in 4 of 5 tunings "
        "like this one. A longer --budget finds smaller effects."
    ]


def run_line(number: int, most: int, left_s: float, on: Collection[str], knobs: int) -> str:
    """What is on in a run, and how long is left. number: of the run, 1 to ``most``. knobs: how many there are."""
    if not on:
        what = "no knob"
    elif len(on) <= MOST_TOGETHER:
        what = ", ".join(sorted(on))
    else:
        what = f"{len(on)} of {knobs} knobs"
    return f"run {number} of at most {most}, at most {duration(1e9 * left_s, up=True)} left, on: {what}"
