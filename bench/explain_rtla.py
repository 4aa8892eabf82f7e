# SPDX-License-Identifier: Apache-2.0
"""rtla's auto-analysis beside our explanation, of the same late wake-ups of timerlat's thread: who named what.

A guest with PREEMPT_RT and the timerlat tracer is disturbed in one known way by rtproof_disturb. rtla stops at the
first thread latency above a threshold and says why; it is started again and again. Our agent traces all the while, and
what it recorded explains the same wake-up of the same thread. Before and after each run of rtla the guest writes a mark
into our trace. The first wake-up between two marks that fits what rtla says is the one at which it stopped.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disturbances import Answer, answers, read_truth
from explain_parts import Bound, Details, Figure, Items, Part, percent, quantile

from rtproof.core.errors import TargetError
from rtproof.explain import explanation
from rtproof.explain.budget import LateActivation
from rtproof.explain.trace_events import TraceEvent
from rtproof.explain.trace_source import trace_source
from rtproof.lab import kernel_catalogue
from rtproof.lab.debian_packages import Archive, Package, unpack_package
from rtproof.record.contents import Record
from rtproof.record.reading import open_record
from rtproof.summary import kernel_trace
from rtproof.summary.trace_text import MARK
from rtproof.vm.cache_folders import lab_cache
from rtproof.vm.guest import Job, run_job
from rtproof.vm.initramfs import build_guest_agent
from rtproof.vm.machine import Machine

KERNEL = "debian-6.12-rt"
MODULE = "rtproof_disturb"
SUITES = ("bookworm-backports", "bookworm")
PACKAGES = ("rtla", "libtracefs1", "libtraceevent1", "libc6")
LOADER = "ld-linux-x86-64.so.2"
LIBRARIES = ("libtracefs.so.1", "libtraceevent.so.1", "libc.so.6", LOADER)
THRESHOLD_US, PERIOD_US, SECONDS, TIMEOUT_S = 60, 1_000, 12, 600.0
BEHIND_US = (-3.0, 12.0)
"""How much more rtla says than our trace has: it reads the clock in the thread, behind its own tracing."""
EVENTS = (
    "sched_switch+sched_waking+irq:irq_handler_*+irq:softirq_entry+irq:softirq_exit+irq_vectors:*+"
    "hrtimer_expire_*+hrtimer_start"
)
RTLA = f"/{LOADER} --library-path / /rtla"
SCRIPT = """\
mount -t tracefs none /sys/kernel/tracing
mount -t debugfs none /sys/kernel/debug
/agent run --period 100ms --duration {seconds}s --trace events={events},buffer_kib=65536 -o /out/record 2> /out/said &
agent=$!
while ! [ -s /out/record ]; do usleep 20000; [ -d /proc/$agent ] || exit; done
usleep 200000
mark=$(echo /sys/kernel/tracing/instances/*-trace/trace_marker)
insmod /{module}.ko only={kind} period_ms=20 origin_ns=$(od -A n -t d8 -j 48 -N 8 /out/record | tr -d ' ') || exit
for i in $(seq 100); do
    [ -d /proc/$agent ] || break
    echo "rtla begins $i" > $mark || break
    {rtla} timerlat top -T {threshold} -p {period} -k -c 0 -q -d 2s > /out/rtla.$i 2>&1
    echo "rtla ends $i" > $mark || break
done 2> /out/marks
wait $agent
cat /proc/{module} > /out/truth
"""
RIGHT_LINES = {
    "irqs-off": ("IRQ handler delay",),
    "preempt-off": ("Blocking thread",),
    "raw-spinlock": ("Blocking thread",),
    "hard-irq": ("Previous IRQ interference", "IRQ interference"),
    "other-timer": ("Previous IRQ interference", "IRQ interference", "Timerlat IRQ duration"),
    "urgent-task": ("Thread interference", "Blocking thread"),
}
"""The line of rtla's analysis that must be the largest for it to be right, by kind of disturbance.

rtla calls the thread that the timer's interrupt hit "blocking", whether it is more urgent or has preemption off.
"""
CULPRITS = {
    "hard-irq": "irq_work",
    "other-timer": "timer_fires",
    "urgent-task": "rtproof_urgent",
}
"""What is in the name of who did it; of the other kinds it is that of the module's task."""
TOTALS = ("Thread latency", "IRQ latency", "Max timerlat IRQ latency from idle")
"""Lines that are no part of the latency: sums, and the largest of other wake-ups."""
_LINE = re.compile(
    r"^\s*(?P<what>[A-Z][A-Za-z ]+?):\s+(?:exit from idle|up to)?\s*(?P<us>[\d.]+) us(?:\s+\((?P<share>[\d.]+) ?%\))?"
)
_NAMED = re.compile(r"^\s+(?P<name>\S.*?):(?P<number>\d+)\s+(?P<us>[\d.]+) us")
_MARK = re.compile(r"rtla (?P<what>begins|ends) (?P<number>\d+)\s*")


@dataclass(frozen=True)
class Analysis:
    """What rtla said of one stop. lines: us by the name of the line. names: who it named, by line, with us."""

    lines: Mapping[str, float]
    names: tuple[tuple[str, str, float], ...]
    text: str

    @property
    def latency_us(self) -> float:
        return self.lines.get("Thread latency", 0.0)

    @property
    def parts(self) -> dict[str, float]:
        return {what: us for what, us in self.lines.items() if what not in TOTALS}

    @property
    def first(self) -> str:
        return max(self.parts, key=lambda what: self.parts[what], default="")

    @property
    def not_charged_us(self) -> float:
        """The thread latency less its parts; below 0 if they overlap."""
        return self.latency_us - sum(self.parts.values())

    def names_culprit(self, kind: str) -> bool:
        """Whether rtla named the thread, the timer or the interrupt that did it, anywhere."""
        return any(CULPRITS.get(kind, MODULE) in name for _, name, _ in self.names)


def parse_analysis(text: str) -> Analysis | None:
    """The auto-analysis in what rtla printed; None if it did not stop."""
    if "hit stop tracing" not in text:
        return None
    lines: dict[str, float] = {}
    names, section = [], ""
    for line in text.splitlines():
        named, found = _NAMED.match(line), _LINE.match(line)
        if found:
            section = found["what"]
            lines[section] = max(lines.get(section, 0.0), float(found["us"]))
        elif named:
            names.append((section, named["name"].strip(), float(named["us"])))
    return Analysis(lines, tuple(names), text)


@dataclass(frozen=True)
class Wake:
    """A wake-up of timerlat's thread. woken_ns: from the due time to the waking in the timer's interrupt."""

    activation: LateActivation
    woken_ns: int


def measure(kind: str) -> dict[str, Any]:
    """What rtla and we say of each stop in a guest that is disturbed in this way."""
    with tempfile.TemporaryDirectory() as folder:
        run_guest(kind, Path(folder))
        return {"kernel": KERNEL, "threshold_us": THRESHOLD_US, "period_us": PERIOD_US, **stops_of(Path(folder))}


def stops_of(out: Path) -> dict[str, Any]:
    """Each stop of rtla with our answer to the same wake-up, and what rtla said at stops without a known wake-up."""
    record = open_record(out / "record")
    truth = read_truth((out / "truth").read_text(), record.begin.origin_monotonic_ns)
    wakes = list(timerlat_wakes(record))
    said = {number: parse_analysis((out / f"rtla.{number}").read_text(errors="replace")) for number in marks(record)}
    stops = {number: analysis for number, analysis in said.items() if analysis}
    matched = {number: matching(stops[number], within(wakes, marks(record)[number])) for number in stops}
    known = {number: wake.activation for number, wake in matched.items() if wake}
    budgets = {each.activation: each for each in explanation.explain_activations(record, list(known.values()))}
    met = {number: answers([budgets[one]], truth)[0] for number, one in known.items() if one in budgets}
    return {
        "runs_of_rtla": len(said),
        "disturbances": len(truth),
        "wakes": len(wakes),
        "stops": [stop(stops[number], some[0]) for number, some in met.items() if some],
        "unmatched": [stops[number].text for number in stops if not met.get(number)],
    }


def stop(said: Analysis, ours: Answer) -> dict[str, Any]:
    """One stop as a row of the file, in us. What rtla said is read anew whenever figures are made."""
    return {
        "rtla": said.text,
        "ours": {
            "latency_us": ours.found.activation.latency_ns / 1000,
            "first": ours.found.first.words(),
            "cause": ours.cause.value,
            "length_us": next(iter(ours.found.by_cause.values())) / 1000,
            "right": ours.right,
            "names_culprit": ours.name_right,
        },
        "truth": {"kind": ours.truth.kind, "length_us": ours.overlap_ns / 1000},
    }


def said_at(row: Details) -> dict[str, Any]:
    """What rtla said at a stop, with the keys of ours."""
    text, kind = row["rtla"], row["truth"]["kind"]
    said = parse_analysis(text) or Analysis({}, (), text)
    return {
        "cause": said.first,
        "length_us": said.parts.get(said.first, 0.0),
        "right": said.first in RIGHT_LINES[kind],
        "names_culprit": said.names_culprit(kind),
        "not_charged_us": said.not_charged_us,
    }


def matching(said: Analysis, wakes: Sequence[Wake]) -> Wake | None:
    """The wake-up at which rtla stopped: the first of which both latencies fit."""
    pairs = ((wake.activation.latency_ns, wake.woken_ns, wake) for wake in wakes)
    return next(
        (
            wake
            for latency_ns, woken_ns, wake in pairs
            if _fits(said.latency_us, latency_ns) and _fits(said.lines.get("IRQ latency", said.latency_us), woken_ns)
        ),
        None,
    )


def _fits(said_us: float, ns: int) -> bool:
    return BEHIND_US[0] <= said_us - ns / 1000 <= BEHIND_US[1]


def within(wakes: Sequence[Wake], bounds: tuple[int, int]) -> list[Wake]:
    return [wake for wake in wakes if bounds[0] <= wake.activation.due_ns < bounds[1]]


def marks(record: Record) -> dict[int, tuple[int, int]]:
    """By the number of a run of rtla: its begin and its end, in ns from the record's origin.

    The last run ends behind the trace.
    """
    events, writer = kernel_trace.trace_events(record)
    found: dict[tuple[str, int], int] = {}
    for event in events:
        if event.layout and event.layout.name == MARK:
            mark = _MARK.fullmatch(str(writer.values(event).get("buf", "")))
            if mark:
                found[mark["what"], int(mark["number"])] = event.time_ns - record.begin.origin_monotonic_ns
    last_ns = max(found.values(), default=0) + 1_000_000_000 * SECONDS
    begun = [number for what, number in found if what == "begins"]
    return {number: (found["begins", number], found.get(("ends", number), last_ns)) for number in begun}


def timerlat_wakes(record: Record) -> Iterator[Wake]:
    """The wake-ups of timerlat's threads: from what their timer was set to until the thread runs."""
    source = trace_source(record, record.begin.origin_monotonic_ns)
    due: dict[int, int] = {}
    woken: dict[int, int] = {}
    for index, event in enumerate(event for cpu in source.cpus for event in source.events(cpu)):
        values = event.values
        if event.name == "hrtimer_start":
            due[event.pid] = int(str(values["softexpires"])) - record.begin.origin_monotonic_ns
        elif event.name == "sched_waking":
            woken[int(str(values["pid"]))] = event.time_ns
        elif _to_timerlat(event):
            tid = int(str(values["next_pid"]))
            due_ns = due.pop(tid, event.time_ns)
            if due_ns < woken.get(tid, 0) < event.time_ns:
                activation = LateActivation(0, 0, tid, index, due_ns, event.time_ns - due_ns)
                yield Wake(activation, woken[tid] - due_ns)


def _to_timerlat(event: TraceEvent) -> bool:
    return event.name == "sched_switch" and str(event.values.get("next_comm", "")).startswith("timerlat/")


def figures(items: Items) -> list[Figure]:
    """Who named what, by kind of disturbance and over all."""
    rows = {kind: list(one["stops"]) for kind, one in items.items()}
    all_stops = {kind: len(one["stops"]) + len(one["unmatched"]) for kind, one in items.items()}
    found = [figure for kind, some in rows.items() for figure in _figures_of(kind, some, all_stops[kind])]
    return [*found, *_figures_of("", [each for some in rows.values() for each in some], sum(all_stops.values()))]


def _figures_of(kind: str, stops: Sequence[Details], of: int) -> list[Figure]:
    n = len(stops)
    lengths_us = [each["truth"]["length_us"] for each in stops]
    rtla, ours = [said_at(each) for each in stops], [each["ours"] for each in stops]
    found = [Figure(kind, "stops of rtla with our explanation beside", percent(n, of), "%", of)]
    for who, told, bound in (("rtla", rtla, None), ("ours", ours, Bound(99))):
        pairs = zip(told, lengths_us, strict=True)
        errors_us = [abs(each["length_us"] - length_us) for each, length_us in pairs if each["right"]]
        named = sum(each["names_culprit"] for each in told)
        found += [
            Figure(kind, f"{who}: largest part is what was done", percent(len(errors_us), n), "%", n, bound),
            Figure(kind, f"{who}: names who did it", percent(named, n), "%", n),
            Figure(kind, f"{who}: |error| of its length, median", quantile(errors_us, 0.5), "us", len(errors_us)),
        ]
    apart_us = [abs(each["not_charged_us"]) for each in rtla]
    return [*found, Figure(kind, "rtla: its lines miss the latency by, median", quantile(apart_us, 0.5), "us", n)]


TABLE_HEAD = """\
| disturbance | stops | rtla right | rtla names it | its largest line | ours right | ours names it | our first cause |
|---|---:|---:|---:|---|---:|---:|---|"""


def lines(items: Items) -> list[str]:
    """A table with a row for each kind; docs/explain.md has its sums."""
    return ["", TABLE_HEAD, *(_row(kind, list(one["stops"]), len(one["unmatched"])) for kind, one in items.items())]


def _row(kind: str, stops: Sequence[Details], unmatched: int) -> str:
    cells = [kind, f"{len(stops)} of {len(stops) + unmatched}"]
    for told in ([said_at(each) for each in stops], [each["ours"] for each in stops]):
        cells += [str(sum(each[key] for each in told)) for key in ("right", "names_culprit")]
        cells.append(", ".join(f"{name} {n}" for name, n in Counter(each["cause"] for each in told).most_common()))
    return f"| {' | '.join(cells)} |"


# What needs a network, a guest and a compiler.


def run_guest(kind: str, out: Path) -> None:
    """Run the guest, which leaves its files in the folder. TargetError if its job failed."""
    programs = rtla_files()
    module = kernel_catalogue.module_for_kernel(KERNEL, MODULE)
    machine = Machine(kernel_catalogue.fetch_kernel(KERNEL), cpus=1)
    files = (("/agent", build_guest_agent("x86_64")), (f"/{MODULE}.ko", module), *programs)
    script = SCRIPT.format(
        seconds=SECONDS, events=EVENTS, module=MODULE, kind=kind, rtla=RTLA, threshold=THRESHOLD_US, period=PERIOD_US
    )
    outcome = run_job(machine, Job(script, files), out, TIMEOUT_S)
    if outcome.exit_code or not (out / "truth").exists():
        raise TargetError(f"the guest with {kind} failed: {outcome.said.strip()[-300:]}")


def rtla_files() -> list[tuple[str, Path]]:
    """rtla of 6.12 and its libraries, from Debian, with their places in the guest."""
    root = lab_cache() / "rtla"
    if not (root / "usr" / "bin" / "rtla").exists():
        with tempfile.TemporaryDirectory() as folder:
            for _, file in Archive(SUITES, "amd64").collect(_wanted, Path(folder)):
                unpack_package(file, root)
    found = [(f"/{name}", next(root.rglob(name)).resolve()) for name in LIBRARIES]
    return [("/rtla", root / "usr" / "bin" / "rtla"), *found]


def _wanted(archive: Archive) -> list[Package]:
    return [archive.named(name) for name in PACKAGES]


PART = Part(
    asked="6: rtla's auto-analysis beside ours, of the same wake-ups in a guest with PREEMPT_RT",
    items=lambda: list(RIGHT_LINES),
    measure=measure,
    figures=figures,
    lines=lines,
)
