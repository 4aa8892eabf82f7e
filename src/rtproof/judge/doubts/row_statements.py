# SPDX-License-Identifier: Apache-2.0
"""Rules on what is said of a row: its command and load, the rows that it is compared with, and conclusions."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.command_options import CYCLICTEST_LETTERS, CYCLICTEST_LONG_NAMES, options_of
from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, RowKind, of_parts, shown
from rtproof.statistics import share_upper
from rtproof.summary.summary_model import Doubt

CYCLICTEST = re.compile(r"(?:^|[\s/;&|])cyclictest(?=\s|$)([^;&|<>]*)")
METHODS = {
    ("x", False): ("posix_timer",),
    ("x", True): ("setitimer",),
    ("n", False): ("clock_nanosleep",),
    ("n", True): ("nanosleep",),
    ("", False): ("clock_nanosleep", "posix_timer"),
    ("", True): ("nanosleep", "setitimer"),
}
"""The methods of cyclictest by its option -x or -n, and whether -s is given. Versions of rt-tests differ without."""
SYNONYMS = {"timer_settime": "posix_timer", "timer_create": "posix_timer", "posix_timers": "posix_timer"}


def command(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """The options of cyclictest (rt-tests 0.40 to 2.9) choose another method than the row says, or another length.

    latency of Xenomai is held to its length too. A command that something else may end says no length.
    """
    wrong: dict[tuple[str, str], list[str]] = defaultdict(list)
    for claim in claims:
        if (asked_ns := _asked_ns(claim.command)) is not None and claim.span is not None:
            slack = asked_ns * SLACK + SLACK_NS
            if not claim.span.shortest_ns - slack <= asked_ns <= claim.span.longest_ns + slack:
                told = duration(claim.span.told_ns)
                says = f"{claim.command!r}: this runs for {duration(asked_ns)}, and the row says {told}"
                wrong[claim.command, says].append(claim.name)
        found, told = CYCLICTEST.findall(claim.command), claim.method_claimed or claim.method
        if len(found) != 1 or not any(_one_word(told) in each for each in METHODS.values()):
            continue
        options = options_of(found[0].split(), CYCLICTEST_LETTERS, CYCLICTEST_LONG_NAMES)
        methods = METHODS["x" if "x" in options else "n" if "n" in options else "", "s" in options]
        if _one_word(told) not in methods:
            says = f"{claim.command!r}: this measures with {' or '.join(methods)}, and the row says {told}"
            wrong[claim.command, says].append(claim.name)
    for (_, says), names in wrong.items():
        yield Doubt("command", WARNING, "the command contradicts the row", "correct the row", says, tuple(names))


ONE_END = re.compile(r"(?:^|[\s/])(?:cyclictest(?:\s[^;&|<>]*)?\s(?:-D|--duration)|latency(?:\s[^;&|<>]*)?\s-T)[= ]?")
OTHER_ENDS = re.compile(r"(?:^|[\s/])timeout\s|\s(?:-[lb]|--loops|--breaktrace)")


def _asked_ns(command: str) -> int | None:
    """How long a command runs by its own option; None if it has none, or if it may end in another way too."""
    ends = list(ONE_END.finditer(command))
    told = re.match(TIME, command[ends[0].end() :]) if len(ends) == 1 and not OTHER_ENDS.search(command) else None
    return round(float(told[1]) * TIMES_NS[told[2]]) if told and float(told[1]) else None


def _one_word(text: str) -> str:
    """One word for all spellings of a method, a policy or a load."""
    word = "_".join(text.casefold().removesuffix("()").replace("-", "_").split()).removeprefix("sched_")
    return SYNONYMS.get(word, word)


LONGER = 1.5
"""A run that is longer by this factor or more has seen clearly rarer events."""
CONFIDENCE = 0.95
CONDITIONS = ("load", "policy", "priority", "method", "period", "length")


def unlike(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Published rows are compared, but were not measured under the same conditions.

    The conditions are those of ``rtproof compare``. What a row does not tell is no reason, nor is what the article
    varies on purpose. Runs of a campaign share one plan, so this rule leaves measured rows alone.
    """
    groups: dict[str, list[ResultClaim]] = defaultdict(list)
    for claim in claims:
        if claim.group and not claim.measured:
            groups[claim.group].append(claim)
    for same in groups.values():
        varies = {name for claim in same for name in claim.varies}
        for name in CONDITIONS:
            if name not in varies and name == "length":
                yield from _lengths(same)
            elif name not in varies:
                told = [(claim, text) for claim in same if (text := _text(name, claim))]
                if len({_one_word(text) for _, text in told}) > 1:
                    yield _objection([claim for claim, _ in told], name, [text for _, text in told])


def _text(name: str, claim: ResultClaim) -> str:
    periods = sorted({each.period_ns for each in claim.figures if each.period_ns})
    if name == "period":
        return ", ".join(value(period) for period in periods)
    if name == "priority":
        return "" if claim.priority is None else str(claim.priority)
    return {"load": claim.load, "policy": claim.policy, "method": claim.method}[name]


def _lengths(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    """Runs of unequal length whose maxima are compared."""
    told = [
        (claim, claim.span)
        for claim in claims
        if claim.span is not None and any(each.max_ns is not None for each in claim.figures)
    ]
    if told and max(span.shortest_ns for _, span in told) >= LONGER * min(span.longest_ns for _, span in told):
        lengths = [duration(span.told_ns) for _, span in told]
        bound = duration(min(span.told_ns for _, span in told) / -math.log(1 - CONFIDENCE), up=True)
        lacks = f"the shortest may lack what comes less often than once per {bound} ({percent(CONFIDENCE)})"
        yield _objection([claim for claim, _ in told], "length", lengths, f"; {lacks}: compare equal times")


def _objection(claims: Sequence[ResultClaim], name: str, texts: Sequence[str], tail: str = "") -> Doubt:
    names, what = tuple(claim.name for claim in claims), f"the {name} of rows that are compared differs"
    told = "; ".join(f"{claim}: {text}" for claim, text in zip(names, texts, strict=True))
    return Doubt("unlike", WARNING, what, "compare like with like", f"{told}{tail}", names)


def against_conclusion(_claim: ResultClaim, each: Figures) -> Iterator[str]:
    """The author concludes that all values stay below a limit, or that not all do, and the figures contradict."""
    if says := contradiction(each):
        yield says


def contradiction(each: Figures) -> str:
    """How the figures contradict the conclusion about a limit; "" if they do not, or if there is none."""
    reached, name = max(_reached(each), default=(0.0, ""))
    if each.said_below_ns is not None and name and reached >= each.said_below_ns:
        return f"all values are said to stay below {shown(each.said_below_ns)}, and {name}"
    most = _most(each)
    if each.said_beyond_ns is not None and most is not None and most < each.said_beyond_ns:
        return f"not all values are said to stay below {shown(each.said_beyond_ns)}, and all are below {shown(most)}"
    return ""


def _reached(each: Figures) -> Iterator[tuple[float, str]]:
    """Values that the largest one surely reaches, with the figure that says so."""
    if each.max_ns is not None:
        step = 0 if each.at_least else each.step("max")
        yield each.max_ns - step, f"its maximum is {'more than ' * each.at_least}{shown(each.max_ns)}"
    for point in (*each.percentiles, *each.curve):
        if point.share + point.share_step < 1:
            told = f"{percent(1 - point.share)} of them are above {shown(point.value_ns)}"
            yield point.value_ns - point.value_step_ns, told
    if each.beyond and each.beyond_from_ns is not None:
        yield each.beyond_from_ns, f"{each.beyond:,} lie beyond its bins, which end at {shown(each.beyond_from_ns)}"
    if each.counts is not None and each.counts.n.size:
        start_ns = int(each.counts.lo[-1])
        yield start_ns, f"its last filled bin begins at {shown(start_ns)}"


def _most(each: Figures) -> float | None:
    """What the largest value surely does not exceed."""
    if each.max_ns is not None and not each.at_least:
        return each.max_ns + each.step("max")
    counts = each.counts
    return None if counts is None or not counts.n.size or each.beyond != 0 else int(counts.hi[-1]) + 1


def zero_is_no_bound(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """No violation was seen, and the row concludes that none will come. n samples bound the rate (rule of three)."""
    for claim in claims:
        if claim.judged:
            yield from _no_bound(claim, "out of band", [each for each in claim.figures if each.out_of_band == 0])
        held = [each for each in claim.figures if each.said_below_ns is not None and not contradiction(each)]
        for limit_ns in dict.fromkeys(each.said_below_ns or 0 for each in held):
            some = [each for each in held if each.said_below_ns == limit_ns]
            yield from _no_bound(claim, f"above {value(round(limit_ns))}", some)


def _no_bound(claim: ResultClaim, where: str, some: Sequence[Figures]) -> Iterator[Doubt]:
    """An objection to figures of which no value is where it should not be, with the share that stays possible."""
    found, values = [], sum(each.count or 0 for each in some)
    for each in some:
        if each.count:
            most = share_upper(0, each.count, CONFIDENCE)
            often = f", one every {duration(each.period_ns / most)}" if each.period_ns else ""
            sure = f"({percent(CONFIDENCE)} confidence, if values do not depend on each other)"
            found.append((each, f"a share of up to {most:.2g} is possible{often} {sure}"))
    what = f"0 of {values:,} values {where} prove no limit"
    yield from of_parts(Doubt("zero-is-no-bound", WARNING, what, "state the rate"), claim, found)


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
    """No shell can have run the line of the claimed load. Rows whose lines have the same fault share one objection."""
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


TIME = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)(?![\w.])"
ENDS_BY_ITSELF = re.compile(
    rf"\s*(?:(?:nohup|sudo|exec|time)\s+)*(?:timeout\s+{TIME}\s|"
    rf"(?:stress|stress-ng|iperf3?)\s(?:.*\s)?(?:-t|--timeout|--time)[= ]?{TIME})"
)
"""A command that says when it ends."""
NOT_ALONE = re.compile(r"[;|(){}\n]|&&")
REPEATS = re.compile(r"(?<!\S)(?:while|until|for|do)(?!\S)|[({]")
BESIDE = re.compile(r"(?<![&>])&(?![&>])")
TIMES_NS = {"": 10**9, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9}
SLACK, SLACK_NS = 0.01, 2 * 10**9
"""A run and its load may differ by this part of the run and this time: both are started by hand."""


def load_shorter(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """A load line, or a part of it in the background, ends by itself before the run does."""
    for claim in claims:
        lasts = load_length_ns(claim.load_line)
        if lasts is not None and claim.span and lasts < claim.span.shortest_ns * (1 - SLACK) - SLACK_NS:
            load = "a part of the load" if BESIDE.search(claim.load_line.rstrip(" &")) else "the load"
            what = f"{load} ended after {duration(lasts)} of {duration(claim.span.told_ns)}"
            detail = f"at the latest: {claim.load_line}"
            yield Doubt("load-shorter", WARNING, what, "let it last as long", detail, (claim.name,))


def load_length_ns(line: str) -> int | None:
    """The time after which the first part of a load line has ended; None if no part tells its length.

    Parts run side by side: "&" stands between them. A part of several commands may last for longer than one tells.
    """
    lengths = []
    for part in BESIDE.split(line) if not shell_fault(line) else ():
        if REPEATS.search(part):  # what a loop starts, it may start again
            break
        found = None if NOT_ALONE.search(part) else ENDS_BY_ITSELF.match(part)
        number, unit = [each for each in found.groups() if each is not None] if found else ("0", "")
        lengths += [round(float(number) * TIMES_NS[unit])] if float(number) else []
    return min(lengths, default=None)


PRIORITIES = {"other": range(1), "fifo": range(1, 100), "rr": range(1, 100)}


def impossible_priority(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """No thread can have both the policy and the priority that a row names."""
    for claim in claims:
        allowed = PRIORITIES.get(_one_word(claim.policy))
        if allowed and claim.priority is not None and claim.priority not in allowed:
            what = f"no thread has policy {claim.policy} and priority {claim.priority}"
            detail = f"{claim.policy} has priority {allowed[0]}" + (f" to {allowed[-1]}" if len(allowed) > 1 else "")
            yield Doubt("priority", WARNING, what, "find what changes it", detail, (claim.name,))


TASKS, RATIO = 1.0, 1.5
WORK_RATIO = 2.0
AVERAGES_NS = (60_000_000_000, 300_000_000_000, 900_000_000_000)
"""The lengths of the kernel's three load averages."""
FORGETS = 3


def unequal_load(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Rows are compared, but their systems were not equally loaded. Then the load may cause the difference.

    Counted loads differ if one did less than half of another's work. A different kernel costs a load less than that.
    The rule takes the longest load average that depends on the run alone: it forgets 95 % of what came before in three
    times its length. Averages scatter, so two differ only by more than a whole task, and by more than half.
    """
    groups: dict[str, list[ResultClaim]] = defaultdict(list)
    for claim in claims:
        if claim.group:
            groups[claim.group].append(claim)
    for same in groups.values():
        yield from _names(same)
        yield from _averages(same)


def _names(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    measured = [claim for claim in claims if claim.measured]
    if len({frozenset(claim.loads) for claim in measured}) > 1:
        told = "; ".join(f"{claim.name}: {', '.join(sorted(claim.loads)) or 'none'}" for claim in measured)
        yield _unequal(measured, "not the same loads ran", told)
    for load in sorted({load for claim in claims for load in claim.loads}):
        rates = {claim.name: rate for claim in claims if (rate := claim.loads.get(load)) is not None}
        if len(rates) > 1 and max(rates.values()) > WORK_RATIO * min(rates.values()):
            told = "; ".join(f"{name}: {rate:,.4g}/s" for name, rate in rates.items())
            counted = [claim for claim in claims if claim.name in rates]
            yield _unequal(counted, "a load did unequal work", f"{load}: {told}")


def _averages(claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    known = [claim for claim in claims if len(claim.loadavg) == len(AVERAGES_NS)]
    place = _covered(min((claim.span.shortest_ns for claim in claims if claim.span), default=FORGETS * AVERAGES_NS[0]))
    if len(known) < 2 or place is None:
        return
    values = [claim.loadavg[place] for claim in known]
    if max(values) - min(values) > TASKS and max(values) > RATIO * min(values):
        minutes = AVERAGES_NS[place] // AVERAGES_NS[0]
        told = "; ".join(f"{claim.name}: {claim.loadavg[place]:.2f}" for claim in known)
        yield _unequal(known, f"the load average of {minutes} min differs", told)


def _covered(length_ns: int) -> int | None:
    """The index of the longest average that depends on a run of this length alone; None if none does."""
    return max((place for place, over_ns in enumerate(AVERAGES_NS) if FORGETS * over_ns <= length_ns), default=None)


def _unequal(claims: Sequence[ResultClaim], what: str, detail: str) -> Doubt:
    return Doubt("unequal-load", WARNING, what, "load all of them alike", detail, tuple(claim.name for claim in claims))


TICK_NS = 5_010_000_000
"""The time between two counts of the tasks by the kernel: 5 s and one tick. The longest tick is 10 ms."""
FEWEST_LOOKS = 3
"""The kernel must have counted this often. A single count may meet tasks that run only for a moment."""


def not_unloaded(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """A row is said to be unloaded, but more tasks wanted to run, or waited for a disk, than there are CPUs.

    The rule allows for each measuring thread as if it had always run, and for one more task per CPU: some drivers let
    kernel threads wait in a way that counts as a task and loads nothing.
    """
    for claim in claims:
        cpus, least = claim.online_count, least_average(claim) if claim.said_idle else None
        own = max(1, sum(each.kind is RowKind.LATENCY for each in claim.figures))
        if cpus is not None and least is not None and least > cpus + own:
            what, beside = f"the load average was {least:.2f} without a load", quantity(own, "measuring thread")
            detail = f"at least, with {quantity(cpus, 'CPU')} and {beside}: something else ran"
            yield Doubt("not-unloaded", WARNING, what, "end the other work", detail, (claim.name,))


def least_average(claim: ResultClaim) -> float | None:
    """The smallest possible average number of tasks during the run; None if the load averages cannot show it.

    With load averages of both ends, the earlier load is subtracted, as much of it as the run leaves. With that of the
    end alone, the run must be so long that the average has forgotten the time before.
    """
    if claim.span is None or len(claim.loadavg) < len(AVERAGES_NS):
        return None
    place = _covered(claim.span.shortest_ns)
    if len(claim.loadavg_before) < len(AVERAGES_NS):
        return None if place is None else claim.loadavg[place]
    place, looks = place or 0, claim.span.shortest_ns // TICK_NS
    if looks < FEWEST_LOOKS:
        return None
    left = math.exp(-looks * 5e9 / AVERAGES_NS[place])
    before, after = claim.loadavg_before[place], claim.loadavg[place]
    return min(after, (after - before * left) / (1 - left))
