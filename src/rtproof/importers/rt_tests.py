# SPDX-License-Identifier: Apache-2.0
"""The files that other programs of rt-tests write with --json: most of them hold no histogram.

cyclicdeadline measures as cyclictest does, in threads of the policy SCHED_DEADLINE. The others measure how long a
message takes from one thread to another: signaltest (a signal), pmqtest (a POSIX message queue), ptsematest (a POSIX
semaphore), svsematest (a System V semaphore), sigwaittest (sigwait). A file of these has the number of messages of a
pair of threads, and the shortest, the mean and the longest time. (Format: rt-tests, src/*/*.c, write_stats.)
"""

from collections.abc import Mapping

import msgspec

from rtproof.core.errors import UserError
from rtproof.importers._rt_tests import CLOCK, RtTestsResult, looks_like_rt_tests, option_length_ns, option_number
from rtproof.importers._tool_output import (
    ThreadTotals,
    decode_json,
    imported_measurement,
    imported_thread,
    notes_that_apply,
)
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedPart

TOOL = "rt-tests"
MESSAGES = {
    "signaltest": "a signal",
    "pmqtest": "a message in a POSIX queue",
    "ptsematest": "a POSIX semaphore",
    "svsematest": "a System V semaphore",
    "sigwaittest": "a signal to a thread in sigwait",
}
"""Of each program, what it sends from one thread to another."""
DEADLINE = "cyclicdeadline"
TAKES = "it measures how long {0} takes from one thread to another, not how late a timer wakes a thread"
NO_BINS = "it has no histogram: the number, the minimum, the mean and the maximum are all that is left"
TIMED_OUT = "{0:,} receptions timed out and are in no figure"
LETTERS = {
    "signaltest": "a::b:D:hl:mp:qSt:v",
    "pmqtest": "a::b:d:D:f:i:l:p:qSt::T:",
    "ptsematest": "a::b:d:i:l:D:p:qSt::h",
    "svsematest": "a::b:d:D:f::hi:l:p:qSt::",
    "sigwaittest": "a::b:d:D:f::hi:l:p:qt::",
    DEADLINE: "a::c:D:hi:s:t:b:q",
}
"""The options of each program in getopt's notation."""
LONG_NAMES = {"interval": "i", "duration": "D", "prio": "p", "priority": "p"}


class Sender(msgspec.Struct, frozen=True):
    samples: int
    interval: int = 0
    priority: int = 0
    cpu: int | None = None


class Receiver(msgspec.Struct, frozen=True):
    min: int
    max: int
    avg: float
    priority: int = 0
    cpu: int | None = None
    timeoutcount: int = 0


class RtTestsThread(msgspec.Struct, frozen=True):
    """A thread with its own figures, or a pair of threads with those of the receiver. Times are in microseconds."""

    cycles: int = 0
    min: int = 0
    max: int = 0
    avg: float = 0
    cpu: int | None = None
    histogram: dict[int, int] = {}
    sender: Sender | None = None
    receiver: Receiver | None = None


class OtherRtTestsResult(RtTestsResult, frozen=True, kw_only=True):
    thread: dict[int, RtTestsThread]


def looks_like(text: str) -> bool:
    return looks_like_rt_tests(text, DEADLINE, *MESSAGES)


def read(text: str) -> ImportedHistogram:
    """The measurement in the document; UserError if the document has another form."""
    document = decode_json(text, OtherRtTestsResult)
    if not document.thread:
        raise UserError("it has no thread")
    program = next(name for name in (DEADLINE, *MESSAGES) if looks_like_rt_tests(text, name))
    options = document.options(LETTERS[program], LONG_NAMES)
    width_ns = 1 if document.resolution_in_ns else 1_000
    parts = [_part(number, each, width_ns) for number, each in sorted(document.thread.items())]
    first = next(iter(document.thread.values()))
    return imported_measurement(
        TOOL,
        document.command,
        parts,
        width_ns,
        period_ns=_period_ns(program, first, options) if len(parts) == 1 else None,
        priority=_priority(program, first, options),
        duration_ns=document.duration_ns,
        asked_duration_ns=option_length_ns(options.get("D", "")),
        started_s=document.times_s[0],
        facts=document.facts,
        notes=_notes(program, document, parts),
        faults=document.faults,
    )


def _part(number: int, told: RtTestsThread, width_ns: int) -> ImportedPart:
    sent, got = told.sender, told.receiver
    if (sent is None) != (got is None):
        raise UserError(f"pair {number} has a sender or a receiver only")
    if sent and got:
        totals = ThreadTotals(number, got.cpu, sent.samples, got.min, got.max, got.avg)
        return imported_thread(totals, {}, width_ns, None)
    totals = ThreadTotals(number, told.cpu, told.cycles, told.min, told.max, told.avg)
    return imported_thread(totals, told.histogram, width_ns, None)


def _period_ns(program: str, first: RtTestsThread, options: Mapping[str, str]) -> int | None:
    if program == DEADLINE:
        period_us = option_number(options.get("i", "1000"))
    else:
        period_us = first.sender.interval if first.sender else 0
    return period_us * 1_000 if period_us and 0 < period_us < 10**12 else None


def _priority(program: str, first: RtTestsThread, options: Mapping[str, str]) -> int | None:
    """None for cyclicdeadline, because SCHED_DEADLINE has no priorities."""
    if program == DEADLINE:
        return None
    return first.receiver.priority if first.receiver else option_number(options.get("p", "0"))


def _notes(program: str, document: OtherRtTestsResult, parts: list[ImportedPart]) -> tuple[str, ...]:
    late = sum(each.receiver.timeoutcount for each in document.thread.values() if each.receiver)
    told = {
        CLOCK: True,
        TAKES.format(MESSAGES.get(program)): program in MESSAGES,
        NO_BINS: any(part.histogram is None for part in parts),
        TIMED_OUT.format(late): late > 0,
    }
    return notes_that_apply(told)
