# SPDX-License-Identifier: Apache-2.0
"""The order of doubts: the worst first. What every run on a machine has comes last."""

from collections import Counter
from collections.abc import Iterable

from rtproof.judge.analysis_model import Analysis
from rtproof.summary.summary_model import Doubt, Severity

OF_GENERATOR = "generator: "
"""Of a run on two boards: begins the doubts of the board that gave the edges."""
FOREMOST_CODES = ("in-band", "core-unseen", "limits-differ")
"""They change the meaning of every figure."""
LOSS_CODES = (
    *("truncated", "damage", "lost", "ended-early", "late-start", "totals", "stages-differ", "source-differs"),
    *("samples-dropped", "lines-unread", "larger-elsewhere", "events-dropped", "trace-lost", "trace-refused"),
)
"""Data are missing, and the figures do not show it."""
FIGURE_CODES = (
    *("contradiction", "tool-ended", "nothing-measured"),
    *("samples-missing", "samples-surplus", "sums", "distribution", "lengths", "backlog"),
    *("stage-order", "clock-changed", "clock-slewed", "granularity", "drift"),
    *("beyond-scale", "overruns", "conclusion"),
)
"""Figures of this run are wrong or say something else than they seem to."""
CONDITION_CODES = (
    *("guard", "throttled", "budget-stops", "stalled", "stopped", "traced", "mode-switches"),
    *("policy", "unprivileged", "priority", "policy-changed", "policy-between", "priority-between", "nice-changed"),
    *("cpu", "affinity", "placement", "run-delay", "rt-threads", "page-faults", "kernel-log"),
    *("load-died", "load-unproven", "load-idle", "load-faded", "load-late", "load-paused", "load-part-idle"),
    *("load-slight", "load-lessened", "load-strayed", "load-few-cycles", "load-unsteady"),
    *("load-shorter", "not-unloaded", "unequal-load", "unlike", "command", "link-load"),
    *("rt-budget", "io-calls", "warm-up", "limit-after-data", "limit-stated", "gap-short", "zero-is-no-bound"),
    *("limit", "clock-stepped", "runs-differ", "nice", "timer-slack", "memory-unlocked", "dma-latency"),
    *("ended-by-value", "smi", "told-cause", "limits-unrecorded"),
)
"""This run was not as it was asked for, or something disturbed it."""
TOOL_CODES = ("tool-unseen", "not-checked", "stated", "format")
"""Every file of this tool has them."""
MACHINE_CODES = {
    "virtual-smp": "several virtual processors",
    "virtual-time": "virtual time",
    "virtual-turns": "processors by turns",
    "simulated": "a simulated process",
    "guest": "a virtual machine",
    "steal": "a host that takes CPU time",
    "clock-source": "the clock source",
    "no-kernel-log": "no kernel log",
    "threads-hidden": "hidden threads",
}
"""Every run on this machine has them: in a few words, for one line of them all."""
EVERY_RUN = "always on this machine"
"""Begins the line on what each run on this machine has."""
_RANK = {
    code: rank
    for rank, code in enumerate(
        (*FOREMOST_CODES, *LOSS_CODES, *FIGURE_CODES, *CONDITION_CODES, *TOOL_CODES, *MACHINE_CODES)
    )
}


def worst_first(found: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """These doubts, those that make the run INVALID first. Doubts of one kind keep their order."""
    return tuple(sorted(found, key=lambda doubt: (doubt.severity is not Severity.INVALID, _RANK.get(doubt.code, 0))))


def kinds_worst_first(analysis: Analysis) -> tuple[tuple[Doubt, int], ...]:
    """One doubt of each kind, the worst, and how many there are of it. Of two boards each has its own kinds."""
    every = [(doubt, (doubt.code, doubt.what.startswith(OF_GENERATOR))) for doubt in analysis.doubts]
    count = Counter(kind for _, kind in every)
    worst: dict[tuple[str, bool], Doubt] = {}
    for doubt, kind in every:
        worst.setdefault(kind, doubt)
    return tuple((doubt, count[kind]) for kind, doubt in worst.items())


def briefs_worst_first(kinds: Iterable[Doubt]) -> list[str]:
    """A line for each doubt. Of those that every run on this machine has, several share the last line."""
    every = list(kinds)
    usual = [each for each in every if each.code in MACHINE_CODES and each.severity is not Severity.INVALID]
    if len(usual) < 2:
        return [each.brief for each in every]
    words = [MACHINE_CODES[code] for code in dict.fromkeys(each.code for each in usual)]
    return [*(each.brief for each in every if each not in usual), f"{EVERY_RUN}: {', '.join(words)}"]
