# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows of a tuning while it measures: the plan, what can be found, and one line for each run."""

import math
import shutil
import textwrap
from collections.abc import Collection, Iterable

import click

from rtproof.core.phrases import duration, quantity
from rtproof.report.pages.tuning_page import found_if, runs_differ
from rtproof.report.text_table import WIDTH
from rtproof.run.live_view import clock_text
from rtproof.tune.tuning import MOST_TOGETHER, PILOT_RUNS, Plan, Tuning


def say(sentences: Iterable[str]) -> None:
    """Print sentences to standard error, each on lines of its own."""
    width = min(shutil.get_terminal_size().columns, WIDTH)
    for each in sentences:
        click.echo(textwrap.fill(each, width, subsequent_indent="  "), err=True)


def plan_sentences(plan: Plan, missing: int, run_ns: int, takes_s: float) -> list[str]:
    """How many knobs, how many runs, how long. missing: knobs that the target lacks. takes_s: one run, in s."""
    knobs, others = len(plan.knobs), missing + len(plan.left_out)
    of_all = f"{quantity(knobs, 'knob')} of {knobs + others}" if others else quantity(knobs, "knob")
    longest = duration(1e9 * plan.runs * takes_s, up=True)
    stages = [f"{PILOT_RUNS} with no knob on"]
    if plan.pairs:
        stages.append(f"{2 * plan.pairs} with half of the knobs on")
    last = f"at most {plan.blocks << plan.most_together} with"
    if plan.most_together == 1:
        stages.append(f"{last} the {'best knob' if plan.pairs else 'knob'} on or off")
    else:
        few = f"{plan.most_together} best " if plan.pairs else ""
        stages.append(f"{last} the {few}knobs on or off in every combination")
    return [
        f"{of_all} will be tried, in at most {plan.runs} runs of {duration(run_ns)}. That takes at most {longest}.",
        f"First {', then '.join(stages)}. Each run puts everything back.",
    ]


def detectable_sentences(found: Tuning) -> list[str]:
    """What difference can be found, once the first runs have shown how much runs differ; nothing before."""
    ratio = found.detectable_ratio()
    if ratio is None or found.deviation is None:
        return []
    said = [f"{found_if(ratio, found.metric)} in 4 of 5 tunings like this one. A longer --budget finds less."]
    return [*said, runs_differ(math.exp(found.deviation), found.metric)]


def run_line(number: int, most: int, left_s: float, on: Collection[str], knobs: int) -> str:
    """What is on in a run, and how long is left. number: of the run, 1 to ``most``. knobs: how many there are."""
    if not on:
        what = "no knob"
    elif len(on) <= MOST_TOGETHER:
        what = ", ".join(sorted(on))
    else:
        what = f"{len(on)} of {knobs} knobs"
    return f"run {number} of at most {most}, at most {clock_text(round(1e9 * left_s))} left, on: {what}"
