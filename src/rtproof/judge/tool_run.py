# SPDX-License-Identifier: Apache-2.0
"""Judge a run in which another tool measured (probe exec): its histogram, and what the agent saw of the system.

The counts are judged like a file of that tool. The record adds what a file lacks: how the tool ended, the policy and
the CPUs of its threads, the loads, the clock. What only the agent's own measuring threads can note is missing, and a
doubt says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rtproof.core.phrases import duration, quantity
from rtproof.core.units import format_cpus, parse_cpus
from rtproof.judge.analysis_model import Analysis, State, Verdict
from rtproof.judge.checks import counting, load_work, rival_threads_and_budgets, target_state
from rtproof.judge.checks.case import INVALID, REAL_TIME, WARNING, Check, CheckedRun, sentence_list
from rtproof.judge.histogram_only import analyse_histogram, fewest_episodes
from rtproof.judge.plain_limit import without_rate
from rtproof.judge.requirement import Requirement
from rtproof.judge.verdict import deciding_verdict
from rtproof.judge.verdict_sentences import NO_PROBABILITY, verdict_lines
from rtproof.judge.worst_first import worst_first
from rtproof.record.contents import EndReason, Record
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.recorded_facts import requested_duration_ns, signed_number, virtual_time_clock
from rtproof.summary.summary_model import Doubt
from rtproof.summary.target_threads import REAL_TIME_PATH, TargetThread, read_real_time_threads, real_time_threads
from rtproof.summary.tool_output import ToolOutput, threads_of_tool

EARLY_NS = 1_000_000_000
"""A tool that ends this much before its time did not measure to its end."""
CLOCK_ERROR = 1.01
"""A tool's clock may run faster than the agent's by a hundredth."""
UNSEEN_NS = 5_000_000_000
"""The agent looks at the threads once a second, and may itself be late for it."""
MOST_THREADS = 16
POLICIES = {"FF": "fifo", "RR": "rr", "DLN": "deadline"}
OF_COKERNEL = ("latency", "latmus")
"""Tools whose threads belong to a co-kernel, so that they do not wait for Linux."""
UNSEEN = (
    "rtproof saw the policy, priority and CPUs of its threads once a second, and not at each activation; page faults, "
    "missed activations and the times of single values are in no figure"
)


@dataclass(frozen=True)
class ToolRun:
    """A record, what its tool printed, and what an importer made of it."""

    record: Record
    output: ToolOutput
    imported: ImportedHistogram


def analyse_tool_run(run: ToolRun, requirements: Sequence[Requirement], limits: int = 0) -> Analysis:
    """Judge the histogram. Doubts that make the run INVALID stand above all that its counts show."""
    case = CheckedRun(run.record, (), tuple(requirements), (), ())
    found = list(chain(*(check(run) for check in TOOL_CHECKS), *(check(case) for check in _record_checks(run))))
    invalid = [doubt.what for doubt in found if doubt.severity is INVALID]
    imported = replace(run.imported, facts=(*run.imported.facts, *_thread_facts(run)))
    analysis = analyse_histogram(imported, requirements, invalid=invalid, limits=limits)
    own = [doubt for doubt in analysis.doubts if doubt.code != "not-checked"]
    if virtual_time_clock(run.record):
        verdicts = tuple(_in_virtual_time(imported, verdict) for verdict in analysis.verdicts)
        analysis = replace(analysis, verdict=deciding_verdict(verdicts), verdicts=verdicts)
    return replace(analysis, record=run.record, doubts=worst_first([*found, *own]))


def _in_virtual_time(imported: ImportedHistogram, verdict: Verdict) -> Verdict:
    """The verdict says what was seen in a run without chance: it is never PROVEN, and has no confidence."""
    asked, above = verdict.requirement, verdict.above
    if asked and asked.plain:
        return without_rate(verdict)
    if verdict.state in (State.INVALID, State.NOT_ASKED) or asked is None or above is None:
        return replace(verdict, deterministic=True)
    least = fewest_episodes(imported, asked, above.least)
    often = least * asked.at_most_ns > (imported.duration_ns or 0) and least > 0
    reasons = (f"{verdict.reasons[0]}, in virtual time", NO_PROBABILITY)
    kept = tuple(line for line in verdict.sentences if line[0] in ("LIMIT", "MAX"))
    state = State.REFUTED if often else State.UNDECIDED
    sentences = (*verdict_lines(state, reasons), *kept)
    return replace(
        verdict, state=state, reasons=reasons, sentences=sentences, alpha=None, kind=None, deterministic=True
    )


def _record_checks(run: ToolRun) -> tuple[Check, ...]:
    core = target_state.COKERNEL_CHECKS if run.output.tool not in OF_COKERNEL else ()
    ends = (counting.truncated, counting.ended_early, counting.damage, counting.events_dropped, counting.trace_lost)
    hidden = rival_threads_and_budgets.hidden
    return (*core, *ends, *target_state.SYSTEM_CHECKS, hidden, *load_work.LOAD_CHECKS)


def ended_badly(run: ToolRun) -> Iterator[Doubt]:
    """A tool that failed, that ended before its time, or whose end is not in the record."""
    output = run.output
    name, code = output.command[0], output.exit_code
    detail = f"{name}: {output.lines[-1].text[:200]}" if output.lines else name
    if code is None and run.record.end is not None:
        yield Doubt("tool-ended", INVALID, "the record does not tell how the tool ended", "measure again", name)
    elif code is not None and code < 0:
        yield Doubt("tool-ended", INVALID, f"signal {-code} ended the tool", "find what sent it", detail)
    elif code:
        yield Doubt("tool-ended", INVALID, f"the tool ended with exit code {code}", "run it by itself", detail)
    elif _ended_early(run):
        times = duration(output.ran_ns or 0), duration(requested_duration_ns(run.record) or 0)
        yield Doubt("tool-ended", INVALID, f"the tool ran {times[0]} of {times[1]}", "find why it ended", detail)


def _ended_early(run: ToolRun) -> bool:
    """Whether the tool ended by itself before its time."""
    end, ran_ns = run.record.end, run.output.ran_ns
    if ran_ns is None or (end is not None and end.reason is not EndReason.AS_ASKED):
        return False
    return ran_ns < (requested_duration_ns(run.record) or 0) - EARLY_NS


def longer_than_it_ran(run: ToolRun) -> Iterator[Doubt]:
    """A tool that tells a longer measurement than the agent saw it run."""
    told_ns, ran_ns = run.imported.duration_ns, run.output.ran_ns
    if told_ns and ran_ns is not None and told_ns > CLOCK_ERROR * ran_ns + EARLY_NS:
        what = f"the tool tells {duration(told_ns)}, and ran {duration(ran_ns)}"
        yield Doubt("tool-ended", INVALID, what, "see what printed it", run.output.command[0])


@dataclass(frozen=True)
class _Schedule:
    """The policy and priority that were asked for, and the threads of the tool that the agent saw."""

    policy: str
    priority: int | None
    threads: tuple[TargetThread, ...]

    @property
    def fitting(self) -> list[TargetThread]:
        return [t for t in self.threads if POLICIES[t.policy] == self.policy and t.priority == self.priority]

    @property
    def seen(self) -> str:
        return f"seen were {_named_all(self.threads)}" if self.threads else "none had a real-time policy"


def _schedule(run: ToolRun) -> _Schedule:
    policy, priority = run.record.fact("policy") or "", signed_number(run.record.fact("priority"))
    return _Schedule(policy, priority, threads_of_tool(run.record, run.output))


def other_policy(run: ToolRun) -> Iterator[Doubt]:
    """Threads of the tool that had another policy or priority than asked."""
    if not any(file.path == REAL_TIME_PATH and not file.errno for file in run.record.files):
        what = "the policy of the tool is unknown"
        yield Doubt(
            "policy", WARNING, what, "run where /proc shows all threads", "the target does not show its threads"
        )
        return
    found, wanted = _schedule(run), max(len(run.imported.parts), 1)
    if not found.threads and (run.output.ran_ns or 0) < EARLY_NS:
        return  # It was gone before anybody looked, which another doubt says.
    if found.policy not in REAL_TIME and found.threads:
        what = f"{quantity(len(found.threads), 'thread')} of the tool did not run as {found.policy}"
        yield Doubt("policy", INVALID, what, "leave --policy out", _named_all(found.threads))
    if found.policy in REAL_TIME and len(found.fitting) < wanted:
        what = f"{len(found.fitting)} of {quantity(wanted, 'thread')} ran as {found.policy} {found.priority}"
        detail = f"{found.seen}; let the tool set its policy alone"
        yield Doubt("policy", INVALID, what, "give the tool real-time privilege", detail)


def late_policy(run: ToolRun) -> Iterator[Doubt]:
    """A tool whose threads got the policy that was asked for only after it had begun to measure."""
    found, output = _schedule(run), run.output
    fitting = {thread.id for thread in found.fitting}
    if found.policy not in REAL_TIME or not fitting or output.ended_ns is None or output.ran_ns is None:
        return
    first_ns = min(
        (file.time_ns for file in run.record.files if file.path == REAL_TIME_PATH and _names(file.content, fitting)),
        default=output.began_ns,
    )
    began_ns = output.ended_ns - min(requested_duration_ns(run.record) or 0, output.ran_ns)
    if first_ns > began_ns + UNSEEN_NS:
        late = duration(first_ns - output.began_ns)
        what = f"the tool was not {found.policy} {found.priority} in its first {late}"
        yield Doubt("policy", INVALID, what, "let it set its policy at once")


def _names(content: bytes, threads: set[int]) -> bool:
    return any(thread.id in threads for thread in read_real_time_threads(content.decode(errors="replace")))


def other_cpus(run: ToolRun) -> Iterator[Doubt]:
    """Threads of the tool that may run where nobody asked it to."""
    cpus = _cpus_asked(run)
    astray = [each for each in _schedule(run).fitting if each.cpus is not None and cpus and not each.cpus <= cpus]
    if astray:
        what = f"{quantity(len(astray), 'thread')} of the tool may run on other CPUs"
        yield Doubt("cpu", INVALID, what, "name its CPUs in --cpus", _named_all(astray))


def _cpus_asked(run: ToolRun) -> frozenset[int]:
    return frozenset(parse_cpus(run.record.fact("cpus") or ""))


def rivals(run: ToolRun) -> Iterator[Doubt]:
    """Other real-time threads that could run before the tool's."""
    found = _schedule(run)
    if found.policy not in REAL_TIME or run.output.tool in OF_COKERNEL:
        return
    own, measured = {thread.id for thread in found.threads}, _cpus_asked(run)
    others = [thread for thread in real_time_threads(run.record) if thread.id not in own]
    early = [thread for thread in others if thread.urgency >= (found.priority or 1) and thread.may_run_on(measured)]
    yield from rival_threads_and_budgets.rival_doubt(list(filter(_delays, early)))


def _delays(thread: TargetThread) -> bool:
    """Whether a thread ran that not every system has."""
    return not thread.everywhere and rival_threads_and_budgets.thread_ran(thread)


def unseen(run: ToolRun) -> Iterator[Doubt]:
    """What nobody saw, because the agent's own threads did not measure."""
    yield Doubt("tool-unseen", WARNING, "another tool measured", "measure with a probe of rtproof", UNSEEN)


TOOL_CHECKS = (ended_badly, longer_than_it_ran, other_policy, late_policy, other_cpus, rivals, unseen)


def _named_all(threads: Sequence[TargetThread]) -> str:
    return sentence_list(map(_named, threads))


def _named(thread: TargetThread) -> str:
    priority = "" if thread.priority is None else f" {thread.priority}"
    allowed = "" if thread.cpus is None else f", allowed on {format_cpus(tuple(sorted(thread.cpus)))}"
    return f"{thread.name} (TID {thread.id}, {POLICIES[thread.policy]}{priority}{allowed})"


def _thread_facts(run: ToolRun) -> list[tuple[str, str]]:
    threads = threads_of_tool(run.record, run.output)
    more = [("more threads", f"{len(threads) - MOST_THREADS:,}")] if len(threads) > MOST_THREADS else []
    return [*(("real-time thread", _named(each)) for each in threads[:MOST_THREADS]), *more]
