# SPDX-License-Identifier: Apache-2.0
"""Every doubt: the checks of a run by its record, and the rules for rows of figures, published or measured.

A row is a ``ResultClaim``; ``row_of_run`` makes one of a run. A rule gets all rows and never doubts because a figure is
missing. A new check is named in its file's ..._CHECKS, a new rule in RULES. Its code needs a place in ``worst_first``
and a line in docs/json-schema.md; a test compares the three.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rtproof.core.phrases import duration, quantity, value
from rtproof.judge.doubts import (
    counting,
    load_work,
    measuring_threads,
    rival_threads_and_budgets,
    row_distribution,
    row_statements,
    row_sums,
    target_state,
)
from rtproof.judge.doubts.case import Check, CheckedRun
from rtproof.judge.doubts.result_row import ResultClaim, RowRule, of_each, row_of_import
from rtproof.judge.worst_first import worst_first
from rtproof.record.contents import Record
from rtproof.record.requirement import Requirement
from rtproof.summary.fields import judged_series, summaries_of_field
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.summary_model import Doubt, Severity, Summary, Switch

CHECKS: tuple[Check, ...] = (
    *target_state.COKERNEL_CHECKS,
    *measuring_threads.SCHEDULING_CHECKS,
    *measuring_threads.CONDITION_CHECKS,
    *rival_threads_and_budgets.BUDGET_CHECKS,
    *counting.COUNTING_CHECKS,
    *counting.STAGE_CHECKS,
    *target_state.SYSTEM_CHECKS,
    *rival_threads_and_budgets.RIVAL_CHECKS,
    *load_work.LOAD_CHECKS,
    *target_state.LINK_CHECKS,
)


def doubts_about_run(
    record: Record,
    every: tuple[Summary, ...],
    asked: Requirement | tuple[Requirement, ...] | None,
    switches: tuple[Switch, ...] = (),
) -> tuple[Doubt, ...]:
    """Every doubt about a run, the worst first.

    every: the summaries of all series of the record. asked: one requirement, or several that are judged together.
    switches: the differences between neighbouring stages.
    """
    several = () if asked is None else (asked,) if isinstance(asked, Requirement) else asked
    case = CheckedRun(record, summaries_of_field(every, judged_series(record)), several, every, switches)
    found = [doubt for check in CHECKS for doubt in check(case)]
    return worst_first(found)


_UNUSABLE = "use none of them"
RULES: Mapping[str, RowRule] = {
    "samples-missing": row_sums.samples_missing,
    "samples-surplus": row_sums.samples_surplus,
    "granularity": of_each(
        Doubt("granularity", Severity.WARNING, "the values show the tick of a clock", "use a finer clock"),
        row_sums.tick,
    ),
    "load-unproven": row_statements.load_unproven,
    "load-shorter": row_statements.load_shorter,
    "command": row_statements.command,
    "unequal-load": row_statements.unequal_load,
    "unlike": row_statements.unlike,
    "not-unloaded": row_statements.not_unloaded,
    "priority": row_statements.impossible_priority,
    "sums": row_sums.sums,
    "distribution": of_each(Doubt("distribution", Severity.INVALID, "", _UNUSABLE), row_distribution.distribution),
    "lengths": of_each(Doubt("lengths", Severity.INVALID, "", _UNUSABLE), row_sums.lengths),
    "backlog": of_each(Doubt("backlog", Severity.WARNING, "", "measure again"), row_sums.backlog),
    "zero-is-no-bound": row_statements.zero_is_no_bound,
    "conclusion": of_each(
        Doubt("conclusion", Severity.WARNING, "its figures contradict its conclusion", "conclude what they allow"),
        row_statements.against_conclusion,
    ),
}
"""The rules by their codes, in the order of their doubts."""
SAID_BY_CHECKS = {
    "load-unproven": ("load-died", "load-idle", "load-paused", "load-late", "load-part-idle", "load-slight"),
    "sums": ("totals",),
}
"""By the code of a rule, other codes of checks that say the same of a run: it leaves a row with such a doubt alone."""
CLOCK_ERROR, CLOCK_STEP_NS = 1.01, 2 * 10**9
"""How much longer than told a measurement may have been: by a hundredth, and by its ends in whole seconds."""
CONDITIONS = (
    *("throttled", "budget-stops", "clock-changed", "link-load", "page-faults", "kernel-log"),
    *("cpu", "affinity", "placement"),
    *("policy", "unprivileged", "policy-changed", "policy-between", "priority-between", "nice-changed"),
)
"""Doubts about a measured run that speak against its row, too, and that no rule has."""


def doubts_about_rows(rows: Sequence[ResultClaim]) -> tuple[Doubt, ...]:
    """All doubts about these rows, in the order of the rules. Rows of the same group are also compared.

    The doubts that a row already has stand for the rules that say the same.
    """
    found: list[Doubt] = []
    for code, rule in RULES.items():
        known = list(_doubts_of_runs(rows, (code, *SAID_BY_CHECKS.get(code, ()))))
        doubted = {name for doubt in known for name in doubt.rows}
        found += [*known, *rule([row for row in rows if row.name not in doubted])]
    return (*found, *_doubts_of_runs(rows, CONDITIONS))


def _doubts_of_runs(rows: Sequence[ResultClaim], codes: Sequence[str]) -> Iterator[Doubt]:
    for row in rows:
        yield from (replace(doubt, rows=(row.name,)) for doubt in row.doubts if doubt.code in codes)


def doubts_about_figures(row: ResultClaim) -> tuple[Doubt, ...]:
    """The doubts about one run or file that its row has not got yet."""
    found = (replace(doubt, rows=()) for doubt in doubts_about_rows([row]))
    return tuple(doubt for doubt in found if doubt not in row.doubts)


def doubts_about_file(imported: ImportedHistogram) -> tuple[Doubt, ...]:
    """The doubts about the figures of a file."""
    return doubts_about_figures(row_of_import(imported, "this file"))


def contradicted(imported: ImportedHistogram, found: Sequence[Doubt] | None = None) -> ImportedHistogram:
    """The file with the contradictions between its figures (found, if known) as faults, unless it has some already."""
    if imported.faults:
        return imported
    doubts = doubts_about_file(imported) if found is None else found
    faults = (each.detail for each in doubts if each.severity is Severity.INVALID)
    return replace(imported, faults=(*_lines_beyond_the_end(imported), *faults))


def _lines_beyond_the_end(imported: ImportedHistogram) -> Iterator[str]:
    """Why the lines that the tool printed while it measured cannot be those of the figures at its end."""
    for each in imported.lines:
        least, most = int(each.least_ns.min()), int(each.most_ns.max())
        if imported.max_ns is not None and most > imported.max_ns:
            yield f"a line has a maximum of {value(most)}, and all values one of {value(imported.max_ns)}"
        if imported.min_ns is not None and least < imported.min_ns:
            yield f"a line has a minimum of {value(least)}, and all values one of {value(imported.min_ns)}"
        took_ns = imported.duration_ns
        if took_ns is not None and each.end_ns[-1] > CLOCK_ERROR * took_ns + CLOCK_STEP_NS:
            yield f"it has {quantity(each.end_ns.size, 'line')}, and says that all took {duration(took_ns)}"
