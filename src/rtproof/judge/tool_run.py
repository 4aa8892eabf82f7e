# SPDX-License-Identifier: Apache-2.0
"""Judge a run in which another tool measured (probe exec): its histogram, and what the agent saw of the system.

The counts are judged like a file of that tool. The record adds what a file lacks: how the tool ended, the policy of its
threads, the loads, the clock. What only the agent's own measuring threads can note is missing, and a doubt says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtproof.core.phrases import duration, quantity
from rtproof.core.units import parse_cpus
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.doubts import counting, load_work, rival_threads_and_budgets, target_state
from rtproof.judge.doubts.case import INVALID, REAL_TIME, WARNING, CheckedRun, sentence_list
from rtproof.judge.histogram_only import analyse_histogram
from rtproof.judge.worst_first import worst_first
from rtproof.record.contents import EndReason, Record
from rtproof.record.requirement import Requirement
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.recorded_facts import requested_duration_ns, signed_number
from rtproof.summary.summary_model import Doubt
from rtproof.summary.target_threads import REAL_TIME_PATH, real_time_threads
from rtproof.summary.tool_output import ToolOutput, threads_of_tool

EARLY_NS = 1_000_000_000
"""A tool that ends this much before its time did not measure to its end."""
POLICIES = {"FF": "fifo", "RR": "rr", "DLN": "deadline"}
OF_COKERNEL = ("latency", "latmus")
"""Tools whose threads belong to a co-kernel, so that they do not wait for Linux."""
UNSEEN = Doubt(
    "tool-unseen",
    WARNING,
    "another tool measured",
    "measure with a probe of rtproof",
    "rtproof saw the policy and priority of its threads once a second, and not at each activation; page faults, missed "
    "activations and the times of single values are in no figure",
)
RECORD_CHECKS = (
    *(counting.truncated, counting.ended_early, counting.damage, counting.events_dropped),
    *target_state.SYSTEM_CHECKS,
    rival_threads_and_budgets.hidden,
    *load_work.LOAD_CHECKS,
)


def analyse_tool_run(
    record: Record,
    output: ToolOutput,
    imported: ImportedHistogram,
    requirements: Sequence[Requirement],
    limits: int = 0,
) -> Analysis:
    """Judge the histogram. Doubts that make the run INVALID stand above all that its counts show.

    A run in virtual time is INVALID: the verdict on counts is one of probability, and there is no chance in it.
    """
    case, of_kernel = CheckedRun(record, (), tuple(requirements), (), ()), output.command[0] in OF_COKERNEL
    checks = RECORD_CHECKS if of_kernel else (*target_state.COKERNEL_CHECKS, *RECORD_CHECKS)
    found = [doubt for check in checks for doubt in check(case)]
    found = [replace(each, severity=INVALID) if each.code == "virtual-time" else each for each in found]
    found += [*_bad_end(record, output), *_other_policy(record, output, len(imported.threads)), UNSEEN]
    found += [] if of_kernel else _rivals(record, output)
    invalid = [doubt.what for doubt in found if doubt.severity is INVALID]
    analysis = analyse_histogram(imported, requirements, invalid=invalid, limits=limits)
    own = [doubt for doubt in analysis.doubts if doubt.code != "not-checked"]
    return replace(analysis, run_record=record, doubts=worst_first([*found, *own]))


def _bad_end(record: Record, output: ToolOutput) -> Iterator[Doubt]:
    """A tool that failed, that ended before its time, or whose end is not in the record."""
    code, end = output.exit_code, record.end
    interrupted = end is not None and end.reason is not EndReason.AS_ASKED
    asked_ns = 0 if interrupted else requested_duration_ns(record) or 0
    detail = ": ".join((output.command[0], *(line[:200] for line in output.text.splitlines()[-1:])))
    if code is None and end is not None:
        yield Doubt("tool-ended", INVALID, "the record does not tell how the tool ended", "measure again", detail)
    elif code is not None and code < 0:
        yield Doubt("tool-ended", INVALID, f"signal {-code} ended the tool", "find what sent it", detail)
    elif code:
        yield Doubt("tool-ended", INVALID, f"the tool ended with exit code {code}", "run it by itself", detail)
    elif output.ran_ns is not None and output.ran_ns < asked_ns - EARLY_NS:
        what = f"the tool ran {duration(output.ran_ns)} of {duration(asked_ns)}"
        yield Doubt("tool-ended", INVALID, what, "find why it ended", detail)


def _other_policy(record: Record, output: ToolOutput, wanted: int) -> Iterator[Doubt]:
    """Threads without the real-time policy and priority that were asked for. A command of the user sets its own."""
    policy, priority = record.fact("policy") or "", signed_number(record.fact("priority"))
    found = threads_of_tool(record, output)
    fitting = [each for each in found if POLICIES[each.policy] == policy and each.priority == priority]
    if policy not in REAL_TIME or (not found and (output.ran_ns or 0) < EARLY_NS):
        return  # What ended at once was gone before anybody looked.
    if not any(file.path == REAL_TIME_PATH and not file.errno for file in record.files):
        what, detail = "the policy of the tool is unknown", "the target does not show its threads"
        yield Doubt("policy", WARNING, what, "run where /proc shows all threads", detail)
    elif len(fitting) < wanted:
        what = f"{len(fitting)} of {quantity(wanted, 'thread')} ran as {policy} {priority}"
        names = sentence_list(f"{each.name} (TID {each.id}, {POLICIES[each.policy]} {each.priority})" for each in found)
        detail = f"seen were {names}" if found else "none had a real-time policy"
        yield Doubt("policy", INVALID, what, "give the tool real-time privilege", detail)


def _rivals(record: Record, output: ToolOutput) -> Iterator[Doubt]:
    """Other real-time threads that ran, that not every system has, and that could run before the tool's."""
    own, measured = threads_of_tool(record, output), frozenset(parse_cpus(record.fact("cpus") or "0"))
    if own:
        ids, least = {each.id for each in own}, min(each.urgency for each in own)
        others = [each for each in real_time_threads(record) if each.id not in ids and not each.everywhere]
        first = [each for each in others if each.urgency >= least and each.may_run_on(measured)]
        yield from rival_threads_and_budgets.rival_doubt(list(filter(rival_threads_and_budgets.thread_ran, first)))
