# SPDX-License-Identifier: Apache-2.0
"""Rules on the load of a row: whether its line can have run, and what the load averages and counters say."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import quantity
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim, RowKind
from rtproof.summary.summary_model import Doubt

# Can a line be a shell command at all? This is no shell. It knows operators, quotes, and where a command has to begin.
#
# It takes what it does not know as correct, so that it never calls a valid line faulty.


_TOKEN = re.compile(
    r"""[ \t\r]+ | \\\n | (?<![^\s;&|()<>])\#[^\n]*
    | (?P<operator> && | \|\| | ;; | &>>? | >> | <<<? | >& | <& | >\| | [;&|()<>\n] )
    | (?P<word> (?: \\. | '[^']*' | "(?:\\.|[^"\\])*" | [^\s;&|()<>'"\\] )+ )""",
    re.VERBOSE | re.DOTALL,
)
_ENDS = ("&", ";", "|", "&&", "||")
"""Each needs a command in front of it."""
_GO_ON = ("|", "&&", "||")
"""Each needs a command behind it as well."""
_BEGIN = ("do", "then", "else", "elif", "if", "while", "until", "{", "(")
"""A command has to follow each of these."""
_BEYOND = ("case", "esac", "function", "select", "[[", "((", "<<", "coproc")
"""A line with one of these is taken as correct, because this module does not know their syntax."""


def shell_fault(line: str) -> str | None:
    """The fault in the quotation or in the order of operators and words of a line; None if there is none.

    before: the token after which a command has to begin; empty once it has begun.
    """
    tokens, at = [], 0
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:
            return "a quotation mark is not closed"
        tokens += [token for token in (found["operator"], found["word"]) if token]
        at = found.end()
    before = start = "the start"
    for token in tokens if not set(tokens) & set(_BEYOND) else ():
        if token in _ENDS and before:
            return f"{token!r} directly after {before if before is start else repr(before)}"
        if token in _ENDS or (before and token in _BEGIN):
            before = token
        elif token == "\n":  # noqa: S105
            before = before or start
        else:
            before = ""
    return f"nothing after {before!r}" if before in _GO_ON else None


def load_unproven(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """The claimed load cannot have run, or nothing shows that it ran.

    Rows whose lines have the same fault share one objection.
    """
    faulty: dict[str, list[ResultClaim]] = defaultdict(list)
    for claim in claims:
        fault = shell_fault(claim.load_line) if claim.load_line else None
        if fault:
            faulty[fault].append(claim)
    for fault, same in faulty.items():
        names = tuple(claim.name for claim in same)
        detail = f"{fault}, so nothing shows that there was any load: {same[0].load_line}"
        yield Doubt(
            "load-unproven", WARNING, "the load's line is no shell command", "correct it, measure again", detail, names
        )


TASKS, RATIO = 1.0, 1.5
WORK_RATIO = 2.0
AVERAGES_NS = (60_000_000_000, 300_000_000_000, 900_000_000_000)
"""The lengths of the kernel's three load averages."""
FORGETS = 3


def unequal_load(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Rows are compared, but their systems were not equally loaded. Then the load may cause the difference.

    Counted loads differ if one did less than half of another's work. A different kernel costs a load less than that.
    For the load average, the rule takes the longest one that depends on the run alone. An average forgets 95 % of what
    came before in three times its length. Averages scatter: that of a minute by about 0.2, for tasks that come and go
    and are sampled every 5 s. So two averages differ only if one is larger by more than a whole task, and by more than
    half.
    """
    groups: dict[str, list[ResultClaim]] = defaultdict(list)
    for claim in claims:
        if claim.group:
            groups[claim.group].append(claim)
    for same in groups.values():
        yield from _names(same)
        yield from _work(same)
        yield from _averages(same)


def _names(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    measured = [claim for claim in claims if claim.measured]
    if len({frozenset(claim.loads) for claim in measured}) > 1:
        told = "; ".join(f"{claim.name}: {', '.join(sorted(claim.loads)) or 'none'}" for claim in measured)
        yield _objection(measured, "not the same loads ran", told)


def _work(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    for load in sorted({load for claim in claims for load in claim.loads}):
        rates = {claim.name: rate for claim in claims if (rate := claim.loads.get(load)) is not None}
        if len(rates) > 1 and max(rates.values()) > WORK_RATIO * min(rates.values()):
            told = "; ".join(f"{name}: {rate:,.4g}/s" for name, rate in rates.items())
            yield _objection(
                [claim for claim in claims if claim.name in rates], "a load did unequal work", f"{load}: {told}"
            )


def _averages(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    known = [claim for claim in claims if len(claim.loadavg) == len(AVERAGES_NS)]
    place = _covered(min((claim.span.shortest_ns for claim in claims if claim.span), default=FORGETS * AVERAGES_NS[0]))
    if len(known) < 2 or place is None:
        return
    values = [claim.loadavg[place] for claim in known]
    if max(values) - min(values) > TASKS and max(values) > RATIO * min(values):
        minutes = AVERAGES_NS[place] // AVERAGES_NS[0]
        told = "; ".join(f"{claim.name}: {claim.loadavg[place]:.2f}" for claim in known)
        yield _objection(known, f"the load average of {minutes} min differs", told)


def _covered(length_ns: int) -> int | None:
    """The index of the longest average that depends on a run of this length alone; None if none does."""
    return max((place for place, over_ns in enumerate(AVERAGES_NS) if FORGETS * over_ns <= length_ns), default=None)


def _objection(claims: Sequence[ResultClaim], what: str, detail: str) -> Doubt:
    return Doubt("unequal-load", WARNING, what, "load all of them alike", detail, tuple(claim.name for claim in claims))


TICK_NS = 5_010_000_000
"""The time between two counts of the tasks by the kernel: 5 s and one tick. The longest tick is 10 ms."""
FEWEST_LOOKS = 3
"""The kernel must have counted this often. A single count may meet tasks that run only for a moment."""


def not_unloaded(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """A row is said to be unloaded, but more tasks wanted to run, or waited for a disk, than there are CPUs.

    The rule allows for each measuring thread as if it had always run, because the same tick may wake it and count the
    tasks. It also allows for one more task per CPU. Some drivers let kernel threads wait in a way that counts as a task
    and loads nothing.
    """
    for claim in claims:
        cpus, least = claim.online_count, least_average(claim) if claim.said_idle else None
        own = max(1, sum(each.kind is RowKind.LATENCY for each in claim.figures))
        if cpus is not None and least is not None and least > cpus + own:
            what = f"the load average was {least:.2f} without a load"
            detail = (
                f"at least, with {quantity(cpus, 'CPU')} and {quantity(own, 'measuring thread')}: something else ran"
            )
            yield Doubt("not-unloaded", WARNING, what, "end the other work", detail, (claim.name,))


def least_average(claim: ResultClaim) -> float | None:
    """The smallest possible average number of tasks during the run; None if the load averages cannot show it.

    With load averages of both ends, the earlier load is subtracted: as much of it as the shortest possible length of
    the run leaves. If the average fell to its end value, this subtraction gives the result; if it rose, the end value
    does. With an average of the end alone, the run must be so long that the average has forgotten the time before.
    """
    if claim.span is None:
        return None
    length_ns = claim.span.shortest_ns
    if len(claim.loadavg_before) < len(AVERAGES_NS) or len(claim.loadavg) < len(AVERAGES_NS):
        return _average_of_run(claim)
    place = _covered(length_ns) or 0
    looks = length_ns // TICK_NS
    if looks < FEWEST_LOOKS:
        return None
    left = math.exp(-looks * 5e9 / AVERAGES_NS[place])
    before, after = claim.loadavg_before[place], claim.loadavg[place]
    return min(after, (after - before * left) / (1 - left))


def _average_of_run(claim: ResultClaim) -> float | None:
    """The longest load average at the end that depends on the run alone; None if no average does."""
    place = _covered(claim.span.shortest_ns) if claim.span and len(claim.loadavg) == len(AVERAGES_NS) else None
    return None if place is None else claim.loadavg[place]
