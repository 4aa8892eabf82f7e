# SPDX-License-Identifier: Apache-2.0
"""Guests in which a program makes itself late by its own doings and by limits, and what an explanation says of that.

The guest's time is virtual: an instruction is a nanosecond.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from disturbances import NESTED, Disturbance, read_truth

from rtproof.explain.budget import BudgetPart, LateActivation, Phase, TimeBudget
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain, explain_activations
from rtproof.record.reading import open_record

TIMES = 30
LEAST_NS = 100_000
"""A time of which the program was hardly late at all says nothing."""


@dataclass(frozen=True)
class Doing:
    """One kind. times: how often. before: commands of the guest's script.

    cause: the right one. name: how its name begins. waited_ns: by a limit, which the kernel looks at in each tick only,
    so it may not have been reached each time. timed: whether the program tells how long the cause was at work.
    waits: the cause took all the time for which the thread had no CPU.
    """

    kind: str
    cause: Cause
    name: str = ""
    times: int = TIMES
    before: str = ""
    waited_ns: int = 0
    timed: bool = True
    waits: bool = False


CPU_MAX = """\
mkdir -p /cg && mount -t cgroup2 none /cg && echo +cpu > /cg/cgroup.subtree_control && mkdir /cg/g || exit
echo '10000 100000' > /cg/g/cpu.max || exit
"""
DOINGS = (
    Doing("one-page", Cause.OWN_CODE),
    Doing("pages", Cause.PAGE_FAULT),
    Doing("call", Cause.SYSTEM_CALL, "read"),
    Doing("signal", Cause.SIGNAL_HANDLER, "SIGUSR1"),
    Doing("compute", Cause.OWN_CODE),
    Doing("cpu-max", Cause.THROTTLED, "cpu.max", 4, CPU_MAX, waited_ns=5_000_000, timed=False),
    Doing("deadline", Cause.THROTTLED, "its DEADLINE budget", waited_ns=5_000_000, timed=False),
    Doing("rt-runtime", Cause.THROTTLED, "sched_rt_runtime_us", 3, waited_ns=30_000_000, timed=False),
    Doing("slack", Cause.TIMER_SLACK),
    Doing("became-urgent", Cause.THREAD, "became_urgent"),
    Doing("mutex", Cause.BLOCKED, "partner", waits=True),
    Doing("pi-chain", Cause.BLOCKED, "partner"),
    Doing("barrier", Cause.SLEEP, "partner"),
    Doing("robust", Cause.BLOCKED, "dying", waits=True),
    Doing("pipe", Cause.BLOCKED, "partner", waits=True),
    Doing("udp", Cause.BLOCKED, "partner", waits=True),
    Doing("child", Cause.BLOCKED, "child", waits=True),
    Doing("exec", Cause.BLOCKED, "answerer", waits=True),
    Doing("ptrace", Cause.BLOCKED, "partner", waits=True),
    Doing("fifo-hog", Cause.THREAD, "hog"),
    Doing("fair", Cause.THREAD, "crowd", timed=False),
    Doing("fork", Cause.SYSTEM_CALL, "clone"),
    Doing("cow", Cause.PAGE_FAULT),
    Doing("new-memory", Cause.PAGE_FAULT),
)
HITS = (*NESTED, Cause.PAGE_FAULT)
WITHOUT_THREADS = ("fifo-hog", "slack")
"""The kinds whose ``took_ns`` is the cause's own time: a CPU time, or a sleep without the wait for a CPU."""
OWN = (Cause.OWN_CODE, Cause.OWN_CODE_OR_KERNEL)
MAY_BE_OWN = (Cause.OWN_CODE, Cause.PAGE_FAULT, Cause.SYSTEM_CALL, Cause.SIGNAL_HANDLER)
"""What a thread does itself."""
OF_PROBE = ("became-urgent",)
"""The kinds that make the probe beside the program late, and not the program."""
IN_GROUP = "sh -c 'echo $$ > /cg/g/cgroup.procs; exec /victim own cpu-max 4'"


def doings_on(kernel: str, doings: Sequence[Doing] = DOINGS) -> list[Doing]:
    """The kinds that a kernel of the catalogue has: from Linux 6.12 on nothing throttles real-time threads."""
    return [doing for doing in doings if doing.kind != "rt-runtime" or not kernel.startswith("debian-6.12")]


def script(doings: Sequence[Doing]) -> str:
    """The guest's job: leaves the record /out/KIND and the program's list /out/KIND.truth of each kind."""
    return "".join(map(_script_of, doings))


def _script_of(doing: Doing) -> str:
    program = IN_GROUP if doing.kind == "cpu-max" else f"/victim own {doing.kind} {doing.times}"
    return f"""\
mount -t tracefs none /sys/kernel/tracing 2> /dev/null
{doing.before}/agent run --warmup 100ms --samples 100000 --trace explain,calls_of=victim,buffer_kib=4096 \\
    -o /out/{doing.kind} & measures=$!
while ! [ -s /out/{doing.kind} ]; do usleep 20000; done
usleep 200000
{program} > /out/{doing.kind}.truth || exit
usleep 20000
kill -INT $measures
wait $measures || exit
"""


@dataclass(frozen=True)
class Told:
    """A budget, and when the program did what made it late.

    ran_ns: how long it had a CPU. took_ns: how long the cause took for certain, by the program's own clocks. waits: as
    in ``Doing``.
    """

    truth: Disturbance
    budget: TimeBudget
    ran_ns: int = 0
    from_ns: int = 0
    to_ns: int = 0
    took_ns: int = 0
    waits: bool = False

    @property
    def waited_ns(self) -> int:
        return self.truth.end_ns - self.truth.begin_ns - self.ran_ns

    def is_right(self, doing: Doing) -> bool:
        """Whether the first cause is right; of a thread that was throttled, the first but its own work."""
        causes = [
            cause for cause in self.budget.by_cause if doing.cause is not Cause.THROTTLED or cause.cause not in OWN
        ]
        return bool(causes) and causes[0].cause is doing.cause and causes[0].name.startswith(doing.name)

    def leaves_open(self, doing: Doing) -> bool:
        """Whether the first cause says "or", and the right one is among its words or close to it."""
        firsts = self.budget.possible_firsts
        near = [cause for cause in firsts if cause.cause is doing.cause and cause.name.startswith(doing.name)]
        return bool(near) or doing.cause in firsts[0].cause.may_be

    @property
    def error_ns(self) -> int:
        """How much longer the budget says than the program, without what hit the cause."""
        late, told_ns = self.budget.activation, self.budget.by_cause[self.budget.first]
        if self.waits:
            return told_ns + sum(part.length_ns for part in self._others if _in_a_wait(part)) - self.waited_ns
        by_itself = self.truth.kind in WITHOUT_THREADS
        begin_ns, end_ns = max(self.from_ns, late.due_ns), min(self.to_ns, late.end_ns)
        within = (
            min(part.to_ns, end_ns) - max(part.from_ns, begin_ns)
            for part in self._others
            if part.cause.cause is not Cause.THREAD or not by_itself
        )
        took_ns = self.took_ns if by_itself else end_ns - begin_ns
        return told_ns + sum(max(0, length_ns) for length_ns in within) - took_ns

    @property
    def _others(self) -> list[BudgetPart]:
        """The parts of what may hit a thread while the first cause is at work."""
        return [part for part in self.budget.parts if part.cause.cause in HITS and part.cause != self.budget.first]


def _in_a_wait(part: BudgetPart) -> bool:
    return bool(part.waits_for) or part.cause.cause is Cause.THREAD or part.phase is not Phase.C


def read_doing(doing: Doing, folder: Path) -> list[Told]:
    """What the record of a kind says of each time that the program, or the probe beside it, was late."""
    late = [each for each in read_all(doing, folder) if each.budget.activation.latency_ns > LEAST_NS]
    return [each for each in late if not doing.waited_ns or each.waited_ns > doing.waited_ns]


def read_all(doing: Doing, folder: Path) -> list[Told]:
    """The same of each time that is in the trace, however late it was."""
    record = open_record(folder / doing.kind)
    lines = [line.split() for line in (folder / f"{doing.kind}.truth").read_text().splitlines()]
    text = "\n".join(" ".join((kind, begin, end, tid)) for kind, tid, begin, end, *_ in lines)
    measured = [[int(word) for word in line[4:]] for line in lines]
    origin_ns = record.begin.origin_monotonic_ns
    truth = read_truth(text, origin_ns)
    if doing.kind in OF_PROBE:
        budgets = explain(record, LEAST_NS).budgets
        return [
            Told(one, each, 0, one.begin_ns, one.end_ns, took_ns)
            for one, (*_, took_ns) in zip(truth, measured, strict=True)
            for each in budgets
            if _meet(one, each.activation)
        ]
    marked = doing.kind != "slack"
    activations = [
        LateActivation(0, 0, one.tid, index, one.begin_ns, one.end_ns - one.begin_ns, marked)
        for index, one in enumerate(truth)
    ]
    found = {each.activation.index: each for each in explain_activations(record, activations)}
    return [
        Told(one, found[index], ran_ns, from_ns - origin_ns, to_ns - origin_ns, took_ns, doing.waits)
        for index, (one, (ran_ns, from_ns, to_ns, took_ns)) in enumerate(zip(truth, measured, strict=True))
        if index in found
    ]


def _meet(truth: Disturbance, late: LateActivation) -> bool:
    return truth.begin_ns < late.due_ns and late.end_ns < truth.end_ns + LEAST_NS
