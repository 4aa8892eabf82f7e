# SPDX-License-Identifier: Apache-2.0
"""The Python API: runs and archives over what the command line does, and the models of their results.

``import rtproof`` offers its names, and those alone are public. docs/python describes them.
"""

from rtproof.api.measuring import RunInterrupted, run
from rtproof.api.opened_run import Explanation, Run, Thread, open  # noqa: A004 - as the builtin open
from rtproof.api.results import Distribution, Figures, Quantile, Summary
from rtproof.api.samples import SampleChunk, Samples
from rtproof.api.several_runs import Archive, Change, Comparison, History, compare, history, open_archive
from rtproof.compare.comparison_model import FactDifference as Difference
from rtproof.compare.comparison_model import MetricEffect as Effect
from rtproof.core.errors import RtproofError
from rtproof.explain.budget import BudgetPart, LateActivation
from rtproof.explain.budget import TimeBudget as Budget
from rtproof.explain.causes import NamedCause
from rtproof.explain.coincidence import MovedCount as Coincidence
from rtproof.explain.explanation import CauseRow as Cause
from rtproof.judge.analysis_model import Episode, State, Verdict
from rtproof.record.requirement import Requirement
from rtproof.summary.summary_model import Doubt

__all__ = [
    "Archive",
    "Budget",
    "BudgetPart",
    "Cause",
    "Change",
    "Coincidence",
    "Comparison",
    "Difference",
    "Distribution",
    "Doubt",
    "Effect",
    "Episode",
    "Explanation",
    "Figures",
    "History",
    "LateActivation",
    "NamedCause",
    "Quantile",
    "Requirement",
    "RtproofError",
    "Run",
    "RunInterrupted",
    "SampleChunk",
    "Samples",
    "State",
    "Summary",
    "Thread",
    "Verdict",
    "compare",
    "history",
    "open",
    "open_archive",
    "run",
]
