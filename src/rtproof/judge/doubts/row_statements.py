# SPDX-License-Identifier: Apache-2.0
"""Rules on what an author says of a row: its command, policy, priority, what it is compared with, conclusions."""

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from rtproof.core.command_options import CYCLICTEST_LETTERS, CYCLICTEST_LONG_NAMES, options_of
from rtproof.core.phrases import duration, percent, value
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, RowKind, of_parts, shown
from rtproof.statistics import share_upper
from rtproof.summary.summary_model import Doubt

US = 1_000
CYCLICTEST_PERIOD_NS = 1_000_000
"""Without -i."""
LETTERS = {"cyclictest": CYCLICTEST_LETTERS, "latency": "H:p:T:P:t:l:g:c:B:"}
SYNONYMS = {
    "timer_settime": "posix_timer",
    "timer_create": "posix_timer",
    "posix_timers": "posix_timer",
    "posix_timer": "posix_timer",
    "clock_nanosleep": "clock_nanosleep",
    "nanosleep": "nanosleep",
    "setitimer": "setitimer",
    "user_task": "user_task",
    "kernel_task": "kernel_task",
    "timer_irq": "timer_irq",
}
LATENCY_METHODS = {"0": "user_task", "1": "kernel_task", "2": "timer_irq"}
POLICIES = {
    "fifo": "fifo",
    "sched_fifo": "fifo",
    "rr": "rr",
    "sched_rr": "rr",
    "other": "other",
    "sched_other": "other",
}


def command(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """The options of cyclictest or latency contradict what the row says of the run.

    Options are those of rt-tests (0.40 to 2.9) and of Xenomai 2 and 3. Where versions differ, the row may have either
    meaning. An option that is not known here says nothing.

    Rows with the same contradiction share one objection.
    """
    wrong: dict[tuple[str, str], list[str]] = defaultdict(list)
    for claim in claims:
        program, options = command_options(claim.command)
        of_program = {"cyclictest": _of_cyclictest, "latency": _of_latency}.get(program)
        says = "; ".join(of_program(claim, options)) if of_program else ""
        if says:
            wrong[claim.command, says].append(claim.name)
    for (command, says), names in wrong.items():
        yield Doubt(
            "command",
            WARNING,
            "the command contradicts the row",
            "correct the row",
            f"{command!r}: {says}",
            tuple(names),
        )


def command_options(command: str) -> tuple[str, Mapping[str, str]]:
    """The program, cyclictest or latency, and its options by their short names; ("", {}) if it is neither.

    An option without a value has "". A program behind chrt is left out, because chrt changes the policy. So are two
    programs in one line, of which the row may mean either.
    """
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|<>")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return "", {}
    if any(PurePosixPath(word).name == "chrt" for word in words):
        return "", {}
    if sum(PurePosixPath(word).name in LETTERS for word in words) > 1:
        return "", {}
    for at, word in enumerate(words):
        program = PurePosixPath(word).name
        if program in LETTERS:
            own = []
            for each in words[at + 1 :]:
                if re.fullmatch(r"[;&|<>]+", each):
                    break
                own.append(each)
            return program, options_of(own, LETTERS[program], CYCLICTEST_LONG_NAMES)
    return "", {}


def _of_cyclictest(claim: ResultClaim, options: Mapping[str, str]) -> Iterator[str]:
    priority = _whole(options.get("p", "0"))
    policy = POLICIES.get(options["y"].lower()) if "y" in options else "fifo" if priority else "other"
    # cyclictest chooses a priority for a real-time policy without one, and fifo for a priority with another policy.
    if priority or policy == "other":
        yield from _priority(claim, priority)
    if priority is not None:
        policy = "fifo" if priority and "y" in options and policy not in ("fifo", "rr") else policy
        told = known_policy(claim.policy)
        if policy and told and told != policy:
            yield f"this measures with the policy {policy}, and the row says {told}"
    yield from _period(claim, _whole(options["i"]) if "i" in options else CYCLICTEST_PERIOD_NS // US)
    if "x" in options:
        methods = {"setitimer"} if "s" in options else {"posix_timer"}
    elif "n" in options:
        methods = {"nanosleep"} if "s" in options else {"clock_nanosleep"}
    else:
        methods = {"setitimer", "nanosleep"} if "s" in options else {"posix_timer", "clock_nanosleep"}
    yield from _method(claim, methods)


def _of_latency(claim: ResultClaim, options: Mapping[str, str]) -> Iterator[str]:
    if "P" in options:
        yield from _priority(claim, _whole(options["P"]))
    if "p" in options:
        yield from _period(claim, _whole(options["p"]))
    method = LATENCY_METHODS.get(options.get("t", "0"))
    yield from _method(claim, {method} if method else set())


def _priority(claim: ResultClaim, asked: int | None) -> Iterator[str]:
    if claim.priority is not None and asked is not None and claim.priority != asked:
        yield f"this asks for priority {asked}, and the row says {claim.priority}"


def _period(claim: ResultClaim, asked_us: int | None) -> Iterator[str]:
    """The first thread has the period of the option. Others may have longer ones."""
    periods = [each.period_ns for each in claim.figures if each.period_ns and each.kind is RowKind.LATENCY]
    first = any(each.name in ("thread 0", "latency") for each in claim.figures) or len(periods) == 1
    if periods and asked_us and first and min(periods) != asked_us * US:
        yield f"its period is {value(asked_us * US)}, and the row says {value(min(periods))}"


def _method(claim: ResultClaim, methods: set[str]) -> Iterator[str]:
    """The method that the author named, if he named one that this module knows."""
    told = known_method(claim.method_claimed or claim.method)
    if told and methods and told not in methods:
        words = " or ".join(sorted(method.replace("_task", " task").replace("_irq", " IRQ") for method in methods))
        yield f"this measures with {words}, and the row says {claim.method_claimed or claim.method}"


def known_method(text: str) -> str | None:
    """The one name of a method that has several; None for a method that is not known here."""
    return SYNONYMS.get(text.strip().removesuffix("()").lower().replace(" ", "_").replace("-", "_"))


def known_policy(text: str) -> str | None:
    """The one name of a scheduling policy; None for a policy that is not known here."""
    return POLICIES.get(text.strip().lower().replace(" ", "_"))


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


LONGER = 1.5
"""A run that is longer by this factor or more has seen clearly rarer events."""
CONFIDENCE = 0.95
CONDITIONS = ("load", "policy", "priority", "method", "period", "length")


def unlike(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Published rows are compared, but were not measured under the same conditions.

    The conditions are those of ``rtproof compare``: load, period, policy, priority and method have to agree, and the
    maximum of a longer run has seen rarer events. What a row does not tell is no reason. What the article varies on
    purpose is none either: the row names it. Runs of a campaign share one plan, so this rule leaves measured rows
    alone.
    """
    groups: dict[str, list[ResultClaim]] = defaultdict(list)
    for claim in claims:
        if claim.group and not claim.measured:
            groups[claim.group].append(claim)
    for same in groups.values():
        varies = {name for claim in same for name in claim.varies}
        for name in CONDITIONS:
            if name not in varies:
                yield from _lengths(same) if name == "length" else _texts(name, same)


def _texts(name: str, claims: Sequence[ResultClaim]) -> Iterator[Doubt]:
    told = [(claim, text) for claim in claims if (text := _text(name, claim))]
    if len({_same_word(name, text) for _, text in told}) > 1:
        yield _objection([claim for claim, _ in told], name, [text for _, text in told])


def _same_word(name: str, text: str) -> str:
    """One word for all spellings of a condition."""
    known = {"policy": known_policy, "method": known_method}.get(name)
    return (known and known(text)) or " ".join(text.casefold().split())


def _text(name: str, claim: ResultClaim) -> str:
    if name == "period":
        periods = sorted({each.period_ns for each in claim.figures if each.period_ns})
        return ", ".join(value(period) for period in periods)
    if name == "priority":
        return "" if claim.priority is None else str(claim.priority)
    return str({"load": claim.load, "policy": claim.policy, "method": claim.method}[name])


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
    names = tuple(claim.name for claim in claims)
    told = "; ".join(f"{claim}: {text}" for claim, text in zip(names, texts, strict=True))
    return Doubt(
        "unlike",
        WARNING,
        f"the {name} of rows that are compared differs",
        "compare like with like",
        f"{told}{tail}",
        names,
    )


def conclusion(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """The author concludes that all values stay below a limit, or that not all do, and the figures contradict."""
    for claim in claims:
        found = ((each, says) for each in claim.figures if (says := contradiction(each)))
        yield from of_parts(
            Doubt("conclusion", WARNING, "its figures contradict its conclusion", "conclude what they allow"),
            claim,
            found,
        )


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
    """An objection to figures of which no value is where it should not be."""
    found = [(each, _possible_share(each.count, each.period_ns)) for each in some if each.count]
    values = sum(each.count or 0 for each, _ in found)
    yield from of_parts(
        Doubt("zero-is-no-bound", WARNING, f"0 of {values:,} values {where} prove no limit", "state the rate"),
        claim,
        found,
    )


def _possible_share(count: int, period_ns: int | None) -> str:
    """What none of ``count`` values leaves possible."""
    most = share_upper(0, count, CONFIDENCE)
    often = f", one every {duration(period_ns / most)}" if period_ns else ""
    sure = f"({percent(CONFIDENCE)} confidence, if values do not depend on each other)"
    return f"a share of up to {most:.2g} is possible{often} {sure}"
