# SPDX-License-Identifier: Apache-2.0
"""Other tools as probes: ``--probe exec:tool=NAME``. Writes the tool's command line, and reads what it printed.

rtproof chooses what decides about the figures: period, policy, priority, CPUs, the length, the width of a bin and the
number of bins. The command stands in the record, with everything that the tool printed.
"""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rtproof import importers
from rtproof.agents import DURATION_DEFAULT, PERIOD_DEFAULT
from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, unknown_name
from rtproof.importers import cyclictest, rtla, xenomai
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.requirement import Requirement
from rtproof.judge.tool_run import ToolRun, analyse_tool_run
from rtproof.record.contents import Record
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedInterval, ImportedPart
from rtproof.summary.recorded_facts import fact_number, requested_duration_ns
from rtproof.summary.tool_output import PROBE, ToolLine, ToolOutput, threads_of_tool, tool_output

SECOND_NS, US_NS = 1_000_000_000, 1_000
SHORTEST_S = 2
"""The agent looks at the tool's threads once a second."""
BINS, MOST_BINS = 10_000, 100_000
"""Of one microsecond each."""
PRIORITY = 80
OPTIONS = ("tool", "bins", "mode", "more")
DOES_NOT_TAKE = {
    "samples": "--samples",
    "method": "--method",
    "period_step": "--period-step",
    "phase": "--phase",
    "warmup": "--warmup",
    "allow_unprivileged": "--allow-unprivileged",
    "until_decided": "--until-decided",
}
"""Options that no such tool has, or whose end nobody sees before the tool has ended."""


@dataclass(frozen=True)
class ToolOrder:
    """What a tool is asked for. cpus: as typed, "" for all. threads: 0 for one a CPU. dma_latency: "" for the usual."""

    seconds: int
    period_us: int
    policy: str
    priority: int
    bins: int
    cpus: str = ""
    threads: int = 0
    dma_latency: str = ""
    mode: str = ""


@dataclass(frozen=True)
class ForeignTool:
    """A tool that can measure. command: its words for an order. asked: it prints how it stands at SIGUSR1.

    intervals: what the lines that came while it measured tell; given the time at which the tool began.
    readers: importers of what it prints, in the order in which they are tried. modes: what its option mode may be.
    one_thread: it measures with one thread, on one CPU.
    """

    help: str
    command: Callable[[ToolOrder], list[str]]
    readers: tuple[Callable[[str], ImportedHistogram | None], ...]
    intervals: Callable[[Sequence[ToolLine], int], Iterator[ImportedInterval]] = lambda _lines, _began_ns: iter(())
    asked: bool = False
    one_thread: bool = False
    modes: Mapping[str, str] = field(default_factory=dict)


def _cyclictest(order: ToolOrder) -> list[str]:
    where = ["-S"]
    if order.cpus or order.threads:
        count = order.threads or len(units.parse_cpus(order.cpus))
        where = ["-t", str(count), "-a", *([order.cpus] if order.cpus else []), "-d", "0"]
    idle = {"": [], "off": ["--laptop"]}.get(order.dma_latency, [f"--latency={order.dma_latency}"])
    urgent = [f"--priority={order.priority}"] if order.priority else []
    length = ["-i", str(order.period_us), "-D", str(order.seconds), "-h", str(order.bins)]
    return ["cyclictest", "-q", "-m", *where, f"--policy={order.policy}", *urgent, *length, *idle]


def _rtla(order: ToolOrder) -> list[str]:
    kind = {"fifo": "f", "rr": "r", "other": "o"}[order.policy]
    where = ["-c", order.cpus] if order.cpus else []
    idle = [] if order.dma_latency == "off" else ["--dma-latency", order.dma_latency or "0"]
    length = ["-p", str(order.period_us), "-d", f"{order.seconds}s", "-E", str(order.bins), "-b", "1"]
    return ["rtla", "timerlat", "hist", "-P", f"{kind}:{order.priority}", *where, *length, *idle]


def _latency(order: ToolOrder) -> list[str]:
    where = ["-c", order.cpus] if order.cpus else []
    length = [f"-p{order.period_us}", f"-T{order.seconds}", "-h", f"-H{order.bins}", "-B1000"]
    return ["latency", f"-t{order.mode or 0}", f"-P{order.priority}", *where, *length]


def _latmus(order: ToolOrder) -> list[str]:
    where = ["-c", order.cpus] if order.cpus else []
    length = [f"-p{order.period_us}", f"-T{order.seconds}", f"-H{order.bins}", "-g"]
    return ["latmus", "-m", order.mode or "-u", f"-P{order.priority}", *where, *length]


def _importer(name: str) -> Callable[[str], ImportedHistogram | None]:
    return lambda text: importers.read_text(text, name)


def _lines_of_latency(text: str) -> ImportedHistogram | None:
    return xenomai.read(text, width_known=True) if xenomai.looks_like(text) else None


def _cyclictest_intervals(lines: Sequence[ToolLine], began_ns: int) -> Iterator[ImportedInterval]:
    """cyclictest tells the largest value so far: of a part without a larger one, its own largest is not known."""
    before: dict[int, tuple[int, int, int]] = {}
    for line in lines:
        if told := cyclictest.line_at(line.time_ns, line.text):
            time_ns, thread, count, largest_ns = told
            begin_ns, earlier, so_far_ns = before.get(thread, (began_ns, 0, -1))
            before[thread] = (time_ns, count, largest_ns)
            own = largest_ns if largest_ns > so_far_ns else None
            yield ImportedInterval(thread, begin_ns, time_ns, max(count - earlier, 0), own, largest_ns)


def _latency_intervals(lines: Sequence[ToolLine], began_ns: int) -> Iterator[ImportedInterval]:
    for line in lines:
        if told := xenomai.line_at(line.text):
            yield ImportedInterval(0, began_ns, line.time_ns, None, *told)
            began_ns = line.time_ns


TOOLS: dict[str, ForeignTool] = {
    "cyclictest": ForeignTool(
        "rt-tests' cyclictest", _cyclictest, (_importer("cyclictest"),), _cyclictest_intervals, asked=True
    ),
    "rtla": ForeignTool("rtla timerlat hist", _rtla, (_importer("rtla"),)),
    "latency": ForeignTool(
        "Xenomai's latency",
        _latency,
        (_lines_of_latency,),
        one_thread=True,
        modes={"user": "0", "kernel": "1", "irq": "2"},
    ),
    "latmus": ForeignTool(
        "EVL's latmus",
        _latmus,
        (_importer("latmus"), _lines_of_latency),
        _latency_intervals,
        one_thread=True,
        modes={"user": "-u", "kernel": "-k", "irq": "-i"},
    ),
}
KNOWN = frozenset((cyclictest.MICROSECONDS, rtla.NO_SETTING))
"""Notes on what a file does not tell, and the command line does."""


def with_tool_command(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a command's options for the agent, which gets the tool's command line as an option of the probe.

    UserError for a tool that there is not, and for what a tool cannot be asked for.
    """
    options = _options(str(values["probe"]))
    if "tool" not in options:
        raise UserError(f"--probe exec needs a tool, such as exec:tool=cyclictest; there are: {', '.join(TOOLS)}")
    if options["tool"] not in TOOLS:
        raise UserError(unknown_name("tool", options["tool"], TOOLS))
    tool = TOOLS[options["tool"]]
    for name, option in DOES_NOT_TAKE.items():
        if values.get(name):
            raise UserError(f"{option} does not go with --probe exec: another tool does not take it")
    order = _order(values, options, tool)
    words = [*tool.command(order), *_more(options.get("more", ""))]
    if bad := next((word for word in words if set(word) & set("+; ")), None):
        raise UserError(f"the word {bad!r} of the tool's command has a space, '+' or ';', which --probe cannot hold")
    run = "+".join(words).replace(",", ";")
    probe = f"{PROBE}:tool={options['tool']},run={run}" + (",ask=1" if tool.asked else "")
    return {**values, "probe": probe, "warmup": "0s", "record": "summary", "threads": 1, "priority": _urgency(order)}


def _urgency(order: ToolOrder) -> int | None:
    return order.priority or None


def _options(probe: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in probe.partition(":")[2].split(",") if pair]
    for at, (name, _, value) in enumerate(pairs):
        if name in [each[0] for each in pairs[:at]]:
            raise UserError(f"the option {name!r} of --probe exec is given twice")
        if name not in OPTIONS:
            raise UserError(unknown_name("option of --probe exec", name, OPTIONS))
        if not value:
            raise UserError(f"the option {name!r} of --probe exec needs a value, as in exec:tool=cyclictest")
    return {name: value for name, _, value in pairs}


def _more(text: str) -> list[str]:
    try:
        return shlex.split(text.replace("+", " "))
    except ValueError:
        raise UserError("the option 'more' of --probe exec has a quote that is not closed") from None


def _order(values: Mapping[str, Any], options: Mapping[str, str], tool: ForeignTool) -> ToolOrder:
    policy, cpus, mode = values.get("policy") or "fifo", values.get("cpus") or "", options.get("mode", "")
    if policy == "deadline":
        raise UserError("--policy deadline does not go with --probe exec; give fifo, rr or other")
    if tool.one_thread:
        # UserError if a tool with one thread shall have several threads or CPUs, or another policy.
        name = options["tool"]
        if (values.get("threads") or 0) > 1 or len(units.parse_cpus(values.get("cpus") or "0")) > 1:
            raise UserError(f"{name} measures with one thread on one CPU: give --cpus with one CPU, or leave it out")
        if policy != "fifo":
            raise UserError(f"{name} measures with policy fifo only")
    if mode and mode not in tool.modes:
        raise UserError(unknown_name(f"mode of {options['tool']}", mode, tool.modes))
    return ToolOrder(
        seconds=_seconds(values),
        period_us=_period_us(values),
        policy=policy,
        priority=0 if policy == "other" else values.get("priority") or PRIORITY,
        bins=_bins(options.get("bins", "")),
        cpus=cpus,
        threads=values.get("threads") or 0,
        dma_latency=_idle(values),
        mode=tool.modes.get(mode, ""),
    )


def _idle(values: Mapping[str, Any]) -> str:
    given = values.get("dma_latency")
    return "" if given is None else str(given)


def _seconds(values: Mapping[str, Any]) -> int:
    length_ns = units.parse_duration(values.get("duration") or DURATION_DEFAULT)
    if length_ns % SECOND_NS or length_ns < SHORTEST_S * SECOND_NS:
        raise UserError(
            f"another tool measures for whole seconds, at least {SHORTEST_S}, not {duration(length_ns)}: "
            f"give --duration {max(math.ceil(length_ns / SECOND_NS), SHORTEST_S)}s"
        )
    return length_ns // SECOND_NS


def _period_us(values: Mapping[str, Any]) -> int:
    period_ns = units.parse_duration(values.get("period") or PERIOD_DEFAULT)
    if period_ns % US_NS:
        raise UserError(f"another tool takes a period of whole microseconds, not {duration(period_ns)}")
    return period_ns // US_NS


def _bins(text: str) -> int:
    if text and not (text.isdecimal() and 1 <= int(text[:12]) <= MOST_BINS):
        raise UserError(f"bins takes a number from 1 to {MOST_BINS:,} (each is 1 us wide), not {text!r}")
    return int(text) if text else BINS


def is_tool_run(record: Record) -> bool:
    """Whether another tool measured in this record."""
    return record.fact("probe") == PROBE


def analyse_tool_record(record: Record, requirements: tuple[Requirement, ...], limits: int = 0) -> Analysis:
    """The analysis of a record in which another tool measured. What it printed is read by its importer.

    Output that makes no sense makes the run INVALID.
    """
    output = tool_output(record)
    assert output is not None
    return analyse_tool_run(ToolRun(record, output, _imported(record, output)), requirements, limits)


def _imported(record: Record, output: ToolOutput) -> ImportedHistogram:
    name = output.tool if output.tool in TOOLS else output.command[0]
    try:
        found = _read(output)
    except UserError as problem:
        return _empty(record, output, f"what {name} printed cannot be read: {problem}")
    if found is None:
        said = next((line.text.strip()[:80] for line in output.lines if line.text.strip()), "")
        told = f"what {name} printed is no measurement: {said!r}" if said else f"{name} printed nothing"
        return _empty(record, output, told)
    return _with_request(_with_threads(found, record, output), record, output)


def _with_threads(found: ImportedHistogram, record: Record, output: ToolOutput) -> ImportedHistogram:
    """The measurement with the CPUs of its threads, and with what the tool told while it measured."""
    # The CPU of each of cyclictest's threads that may run on one CPU only, by the thread's number.
    seen = {each.id: each.cpus for each in threads_of_tool(record, output) if each.cpus and len(each.cpus) == 1}
    numbers = cyclictest.thread_ids(output.text) if output.tool == "cyclictest" else {}
    cpus = {number: next(iter(seen[tid] or ())) for number, tid in numbers.items() if tid in seen}
    return replace(
        found,
        parts=tuple(_with_cpu(part, cpus) for part in found.parts or _only_thread(record, found)),
        intervals=tuple(TOOLS[output.tool].intervals(output.lines, output.began_ns)),
        recorded=True,
        started_s=record.begin.origin_realtime_ns // SECOND_NS or None,
    )


def _with_request(found: ImportedHistogram, record: Record, output: ToolOutput) -> ImportedHistogram:
    """The measurement with what the tool does not tell and its command line does."""
    period_ns, asked_ns = fact_number(record, "period_ns"), requested_duration_ns(record) or 0
    ran_ns = min(asked_ns, output.ran_ns or 0) // SECOND_NS * SECOND_NS
    return replace(
        found,
        notes=tuple(note for note in found.notes if note not in KNOWN),
        asked_duration_ns=asked_ns or None,
        duration_ns=found.duration_ns or ran_ns or None,
        shortest_period_ns=found.shortest_period_ns or period_ns,
        period_ns=found.period_ns or period_ns,
        facts=(("command", shlex.join(output.command)), ("bin width", "1 us"), *found.facts),
    )


def _only_thread(record: Record, found: ImportedHistogram) -> tuple[ImportedPart, ...]:
    """The thread of a tool that has one, with the figures of the whole."""
    cpus = record.fact("cpus") or ""
    figures = (found.count, found.min_ns, found.mean_ns, found.max_ns, found.overflow, found.histogram)
    return (ImportedPart(0, int(cpus) if cpus.isdecimal() else None, *figures, period_ns=found.period_ns),)


def _with_cpu(part: ImportedPart, cpus: Mapping[int, int]) -> ImportedPart:
    return replace(part, cpu=cpus.get(part.number, part.cpu))


def _read(output: ToolOutput) -> ImportedHistogram | None:
    if output.tool not in TOOLS:
        return None
    return next((found for read in TOOLS[output.tool].readers if (found := read(output.text)) is not None), None)


def _empty(record: Record, output: ToolOutput, fault: str) -> ImportedHistogram:
    facts = (("command", shlex.join(output.command)),)
    return ImportedHistogram(
        output.tool or PROBE,
        "",
        facts=facts,
        faults=(fault,),
        recorded=True,
        period_ns=fact_number(record, "period_ns"),
    )
