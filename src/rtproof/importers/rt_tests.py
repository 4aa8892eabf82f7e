# SPDX-License-Identifier: Apache-2.0
"""What other programs of rt-tests print, and the files of their option --json: most of them hold no histogram.

cyclicdeadline measures as cyclictest does, in threads of the policy SCHED_DEADLINE. The others measure how long a
message takes from one thread to another: signaltest (a signal), pmqtest (a POSIX message queue), ptsematest (a POSIX
semaphore), svsematest (a System V semaphore), sigwaittest (sigwait). A file of these has the number of messages of a
pair of threads, and the shortest, the mean and the longest time. The text has the same figures, the mean in whole
microseconds. It has a line for the threads of a pair and one for its times, or one for each thread. The receiver has
the even number. Three programs print the same text. (Format: rt-tests, src/*/*.c, write_stats and print_stat.)
"""

import re
from collections.abc import Iterator, Mapping

from rtproof.core.errors import UserError
from rtproof.importers._pasted import tool_lines
from rtproof.importers._rt_tests import CLOCK, decode_result, figures_of, looks_like_rt_tests, option_number
from rtproof.importers._tool_output import imported_measurement, notes_that_apply, printed_thread, whole_number
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures

TOOL = "rt-tests"
US_NS = 1_000
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


_SENT = re.compile(
    r"^ *#(\d{1,5}): ID\d+, P(\d{1,3}), CPU(-?\d{1,5}), I(\d{1,12}); "
    r"#(\d{1,5}): ID\d+, P\d{1,3}, CPU-?\d{1,5},(?: TO (\d{1,12}),)? Cycles (\d{1,12})$",
    re.M,
)
_TIMES = re.compile(r"^ *#\d{1,5} -> #(\d{1,5}), Min +(\d+), Cur +\d+, Avg +(\d+), Max +(\d+)$", re.M)
_THREAD = re.compile(
    r"^ *T: *(\d{1,5}) \( *\d+\)(?: P: *(\d{1,3})| I: *(\d{1,12})) C: *(\d{1,12}) "
    r"Min: *(\d+) Act: *-?\d+ Avg: *(\d+) Max: *(\d+) *$",
    re.M,
)
LINES = tool_lines(r" *#\d+(?::| ->)| *T: *\d", [_SENT, _TIMES, _THREAD])
TEXT_OF = {"TO": "pmqtest", "": "ptsematest, svsematest or sigwaittest", "P": "signaltest", "I": DEADLINE}
"""The program by what only its text has."""
WHOLE_MEAN = "its mean is one of whole microseconds"


def looks_like(text: str) -> bool:
    return looks_like_rt_tests(text, DEADLINE, *MESSAGES) or bool(_TIMES.search(text) or _THREAD.search(text))


def read(text: str) -> ImportedHistogram:
    """The measurement in the text or in the document; UserError if its figures make no sense."""
    return _of_json(text) if text.lstrip().startswith("{") else _of_text(text)


def _of_text(text: str) -> ImportedHistogram:
    """The last figures of each pair or thread: each line holds the ones before it."""
    pairs, threads = {match[1]: match for match in _SENT.finditer(text)}, list(_THREAD.finditer(text))
    times = {match[1]: match for match in _TIMES.finditer(text)}
    if times and pairs.keys() != times.keys():
        raise UserError("the lines of its threads or those of its times are missing")
    mark = ("TO" if any(match[6] for match in pairs.values()) else "") if pairs else "P" if threads[0][2] else "I"
    rows = list(_pairs(pairs, times)) if pairs else list(_threads(threads))
    parts = [part for part, *_ in rows]
    _, priority, period_us = rows[0]
    return imported_measurement(
        TOOL,
        TEXT_OF[mark],
        parts,
        US_NS,
        period_ns=period_us * 1_000 or None if len(parts) == 1 else None,
        priority=priority,
        notes=notes_that_apply({TAKES.format("a message or a signal"): mark != "I", NO_BINS: True, WHOLE_MEAN: True}),
    )


def _pairs(
    pairs: Mapping[str, re.Match[str]], times: Mapping[str, re.Match[str]]
) -> Iterator[tuple[PrintedFigures, int | None, int]]:
    """Figures, priority and period of each pair; priority and CPU are those of the receiver."""
    for number, (receiver, sent) in enumerate(pairs.items()):
        least, mean, most = map(whole_number, times[receiver].groups()[1:])
        cpu = int(sent[3]) if int(sent[3]) >= 0 else None
        part = printed_thread(number, cpu, whole_number(sent[7]), (least, mean, most), US_NS)
        yield part, int(sent[2]), whole_number(sent[4])


def _threads(threads: list[re.Match[str]]) -> Iterator[tuple[PrintedFigures, int | None, int]]:
    """The same of each thread, of its last line."""
    for number, match in {int(match[1]): match for match in threads}.items():
        count, least, mean, most = map(whole_number, match.groups()[3:])
        priority = int(match[2]) if match[2] else None
        yield printed_thread(number, None, count, (least, mean, most), US_NS), priority, int(match[3] or 0)


def _of_json(text: str) -> ImportedHistogram:
    document = decode_result(text)
    program = next(name for name in (DEADLINE, *MESSAGES) if looks_like_rt_tests(text, name))
    options = document.options(LETTERS[program], LONG_NAMES)
    parts = [figures_of(number, each, document.width_ns) for number, each in sorted(document.thread.items())]
    first = next(iter(document.thread.values()))
    period_us = first.sender.interval if first.sender else 0
    priority = first.receiver.priority if first.receiver else option_number(options.get("p", "0"))
    if program == DEADLINE:  # the policy SCHED_DEADLINE has no priorities
        period_us, priority = option_number(options.get("i", "1000")) or 0, None
    late = sum(each.receiver.timeoutcount for each in document.thread.values() if each.receiver)
    return document.measurement(
        TOOL,
        parts,
        options.get("D", ""),
        period_ns=period_us * 1_000 if len(parts) == 1 and 0 < period_us < 10**12 else None,
        priority=priority,
        notes=notes_that_apply(
            {
                CLOCK: True,
                TAKES.format(MESSAGES.get(program)): program in MESSAGES,
                NO_BINS: any(part.histogram is None for part in parts),
                TIMED_OUT.format(late): late > 0,
            }
        ),
    )
