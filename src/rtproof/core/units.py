# SPDX-License-Identifier: Apache-2.0
"""Parse and format durations, rates, CPU lists and percentages, and the numbers of a claim.

No other module has a parser for them.
"""

import re
from collections.abc import Iterable
from fractions import Fraction

from rtproof.core.errors import UserError

UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
ALIASES = {"µs": "us", "μs": "us", "sec": "s", "hour": "h", "day": "d"}
UNIT_NAMES = "ns, us, ms, s, min, h or d"
LONGEST_NS = 2**63 - 1
LEAST_AT_MOST_NS = 10**9
"""Of a rate that a limit allows: once per second is as often as can be asked for."""
LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.999999
LEAST_GAP_NS, MOST_GAP_NS = 10**6, 600 * 10**9
MOST_BUNCHES = 100.0
MOST_CPUS = 65_536
MOST_CHARACTERS = 60
"""Longest text of a number that is a time or a share. No person writes a longer one, and parsing it takes long."""
MOST_DIGITS = 20
"""Of a whole number in a file or a fact: 2^64 - 1 has as many."""

_NUMBER_AND_UNIT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[^\s0-9.]*)")
_CPU_RANGE = re.compile(r"(?P<first>[0-9]{1,6})(?:-(?P<last>[0-9]{1,6}))?")


def _unit_ns(unit: str) -> int | None:
    return UNITS_NS.get(ALIASES.get(unit, unit))


def parse_duration(text: str) -> int:
    """The nanoseconds of a text such as "500us", "1.5ms" or "2h".

    UserError for a number without a unit, because a wrong guess would be wrong by a factor of a thousand.
    """
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise UserError(f"{text!r} is not a duration: write a number and its unit ({UNIT_NAMES}), such as 500us")
    factor = _unit_ns(match["unit"])
    if factor is None:
        fault = f"has the unknown unit {match['unit']!r}" if match["unit"] else "has no unit"
        raise UserError(f"the duration {text!r} {fault}: write one of {UNIT_NAMES}")
    if len(match["number"]) > MOST_CHARACTERS:
        raise UserError(f"the duration {text[:MOST_CHARACTERS]!r}... is no time: it has {len(text):,} characters")
    exact = Fraction(match["number"]) * factor
    if exact.denominator != 1:
        raise UserError(f"the duration {text!r} is not a whole number of nanoseconds")
    if exact > LONGEST_NS:
        raise UserError(f"the duration {text!r} is too long: the longest is 292 years")
    return int(exact)


def parse_length(text: str) -> int:
    """The nanoseconds of a duration that is longer than 0; UserError otherwise."""
    length_ns = parse_duration(text)
    if not length_ns:
        raise UserError(f"{text!r} must be longer than 0")
    return length_ns


def format_duration(duration_ns: int) -> str:
    """The shortest exact form: 1000000 is "1ms", 1500 is "1500ns". parse_duration gives the same number back."""
    for unit, factor in reversed(UNITS_NS.items()):
        if duration_ns and duration_ns % factor == 0:
            return f"{duration_ns // factor}{unit}"
    return f"{duration_ns}ns"


def parse_at_most(text: str) -> int:
    """The nanoseconds per event of a rate such as "1/h", "1/day" or "1/12h" (once in 12 hours)."""
    count, slash, period = text.replace(" ", "").partition("/")
    if not slash or count != "1":
        raise UserError(f"{text!r} is not a rate: write once per some time, such as 1/h, 1/day or 1/12h")
    period_ns = _unit_ns(period) or parse_duration(period)
    if period_ns == 0:
        raise UserError(f"the rate {text!r} has a period of 0: write once per some time, such as 1/h")
    return period_ns


NEVER = 0
"""The at_most_ns of a limit that is never to be exceeded."""


def parse_judged_rate(text: str) -> int:
    """The nanoseconds per event of a rate that a limit may allow, 0 for "never"; once per second at the most."""
    if text == "never":
        return NEVER
    at_most_ns = parse_at_most(text)
    if at_most_ns < LEAST_AT_MOST_NS:
        raise UserError(f"{text!r} is too often: ask for once per 1s or longer")
    return at_most_ns


def parse_confidence(text: str) -> float:
    """A confidence from 0.5 to 0.999999, the range in which the sequential test works."""
    try:
        confidence = float(text)
    except ValueError:
        confidence = -1.0
    if not LEAST_CONFIDENCE <= confidence <= MOST_CONFIDENCE:
        raise UserError(f"{text!r} is not a confidence from {LEAST_CONFIDENCE} to {MOST_CONFIDENCE}, such as 0.95")
    return confidence


def parse_gap(text: str) -> int:
    """Nanoseconds. A gap longer than 600s would join events with different causes to one episode."""
    gap_ns = parse_duration(text)
    if not LEAST_GAP_NS <= gap_ns <= MOST_GAP_NS:
        raise UserError(f"{text!r} is not a gap between episodes from 1ms to 600s")
    return gap_ns


def parse_longest_episode(text: str) -> int:
    """The nanoseconds that an episode may last, at least 1ms."""
    longest_ns = parse_duration(text)
    if longest_ns < LEAST_GAP_NS:
        raise UserError(f"{text!r} is too short for the longest episode: give 1ms or more")
    return longest_ns


def parse_bunches(text: str) -> float:
    """How many episodes a bunch may bring on average, from 1 to 100."""
    try:
        bunches = float(text)
    except ValueError:
        bunches = 0.0
    if not 1 <= bunches <= MOST_BUNCHES:
        raise UserError(f"{text!r} is not a number of episodes that a bunch may bring on average, from 1 to 100")
    return bunches


def _cpu_range(text: str, whole: str) -> range:
    match = _CPU_RANGE.fullmatch(text.strip())
    if match is None:
        raise UserError(f"{whole!r} is not a list of CPUs: write numbers and ranges, such as 0,2-3")
    first, last = int(match["first"]), int(match["last"] or match["first"])
    if last < first:
        raise UserError(f"the CPU range {text!r} runs backwards: write {last}-{first}")
    if last >= MOST_CPUS:
        raise UserError(f"there is no CPU {last} on any machine: CPU numbers end at {MOST_CPUS - 1}")
    return range(first, last + 1)


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPU numbers of a list such as "0,2-3", sorted and without duplicates."""
    return tuple(sorted({cpu for part in text.split(",") for cpu in _cpu_range(part, text)}))


def format_cpus(cpus: Iterable[int]) -> str:
    """The shortest text from which ``parse_cpus`` reads the same CPUs: (0, 2, 3) is "0,2-3"."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)


def split_cpus(text: str) -> tuple[str, str]:
    """The text without the CPUs to which its end binds it, and these as written, with the @: ("mmap", "@0,2-3").

    The last @ counts, if nothing but digits, commas and hyphens follows it. Otherwise there are none: (text, "").
    """
    found = re.search(r"@[0-9,-]+\Z", text)
    return (text[: found.start()], found[0]) if found else (text, "")


def whole_number(text: str) -> int | None:
    """The whole number that a file or a fact tells in at most MOST_DIGITS decimal digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


def parse_percentage(text: str) -> Fraction:
    """The exact share of a text such as "99.999" or "99.999%". UserError unless above 0 and below 100 per cent."""
    number = text.strip().removesuffix("%").strip()
    if (
        len(number) > MOST_CHARACTERS
        or not re.fullmatch(r"[0-9]+(\.[0-9]+)?", number)
        or not 0 < Fraction(number) < 100
    ):
        raise UserError(f"{text!r} is not a percentage above 0 and below 100: write it such as 99.999")
    return Fraction(number) / 100
