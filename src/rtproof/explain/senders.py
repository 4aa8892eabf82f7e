# SPDX-License-Identifier: Apache-2.0
"""Who sent a CPU an interrupt, and who woke its stopper thread, where events prove it.

Linux 6.5 and newer say who queued a function for another CPU, and when it ran there. On ARM an interrupt and its sender
have the same reason. Some records also say who sent an interrupt to reschedule. rtproof does not ask for that, because
the wake-up that it is for has an event already.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rtproof.explain.causes import NamedCause
from rtproof.explain.cpu_contexts import STOPPERS, Change, Context, Layer, SentInterrupt, Stretch

RESCHEDULE = "reschedule"
CALLS = ("call_function", "call_function_single")
"""The vectors of x86 for interrupts from other CPUs."""
MOST_SENDERS = 2


@dataclass(frozen=True, eq=False)
class Senders:
    """Who sent what. calls: by the CPU and when the interrupt came that ran the function.

    sent: to a CPU, of a kind, in order of time. taken: when it took interrupts of that kind. woken: what happened to
    each thread.
    """

    calls: Mapping[tuple[int, int], Sequence[str]] = field(default_factory=dict)
    sent: Mapping[tuple[int, str | int], Sequence[SentInterrupt]] = field(default_factory=dict)
    taken: Mapping[tuple[int, str | int], Sequence[int]] = field(default_factory=dict)
    woken: Mapping[int, Sequence[Change]] = field(default_factory=dict)

    def of_interrupt(self, cpu: int, context: Context) -> str:
        """Who sent an interrupt; "" if no event tells."""
        called = self.calls.get((cpu, context.since_ns), ())
        if called or context.name in CALLS:
            return _listed(called)
        key = cpu, context.name if context.name == RESCHEDULE else context.key
        taken, sent = self.taken.get(key), self.sent.get(key)
        if not taken or not sent or context.layer is not Layer.INTERRUPT:
            return ""
        at = bisect_left(taken, context.since_ns)
        first = bisect_right(sent, taken[at - 1], key=_time) if at else 0
        return _listed([each.words for each in sent[first : bisect_right(sent, context.since_ns, key=_time)]])

    def of_stopper(self, stretch: Stretch) -> str:
        """Who woke the stopper thread that has the CPU; "" if no event tells, or if another thread has the CPU."""
        task = stretch.task
        if task is None or not task.name.startswith(STOPPERS):
            return ""
        changes = self.woken.get(task.tid, ())
        last = bisect_right(changes, stretch.task_since_ns, key=lambda change: change.time_ns)
        waking = next((change for change in reversed(changes[:last]) if change.what in ("waking", "out")), None)
        if waking is None or waking.what == "out":
            return ""
        context = waking.context
        by = f"{waking.by.name or 'a thread'}/{waking.by.tid}" if waking.by else ""
        by = by or (f"{context.layer.value} {context.name}" if context else "")
        return f"woken by {by} on CPU {waking.cpu}" if by else ""

    def named(self, cause: NamedCause, cpu: int, stretch: Stretch) -> NamedCause:
        """The cause with who asked for it."""
        asked_by = self.of_interrupt(cpu, stretch.top) if stretch.top else self.of_stopper(stretch)
        return replace(cause, asked_by=asked_by) if asked_by else cause


NO_SENDERS = Senders()


def find_senders(
    sent: Iterable[SentInterrupt],
    served: Iterable[tuple[int, int, int, int]],
    woken: Mapping[int, Sequence[Change]],
    taken: Mapping[tuple[int, str | int], list[int]],
) -> Senders:
    """sent, served: of all CPUs, as in ``WalkNotes``. woken, taken: as in Senders."""
    queued: dict[tuple[int, int], list[SentInterrupt]] = defaultdict(list)
    others: dict[tuple[int, str | int], list[SentInterrupt]] = defaultdict(list)
    for each in sorted(sent, key=_time):
        for cpu in each.targets:
            if each.call:
                queued[cpu, each.call].append(each)
            else:
                others[cpu, each.kind].append(each)
    calls: dict[tuple[int, int], list[str]] = defaultdict(list)
    for time_ns, cpu, since_ns, call in served:
        some = queued.get((cpu, call), [])
        if at := bisect_right(some, time_ns, key=_time):
            calls[cpu, since_ns].append(some[at - 1].words)
    return Senders(calls, others, taken, woken)


def _time(each: SentInterrupt) -> int:
    return each.time_ns


def _listed(words: Sequence[str]) -> str:
    """Two of them, and how many more; "" if there are none."""
    several = list(dict.fromkeys(words))
    more = f" and {len(several) - MOST_SENDERS} more" if len(several) > MOST_SENDERS else ""
    return f"sent by {' and '.join(several[:MOST_SENDERS])}{more}" if several else ""
