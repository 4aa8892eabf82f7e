# SPDX-License-Identifier: Apache-2.0
"""What checks say of what they read: names and CPUs in words, and judgements of what is missing."""

from collections.abc import Collection, Iterable, Sequence

from rtproof.audit.check import Check, Judgement, Outcome, Severity
from rtproof.audit.facts import Facts, Reading, State
from rtproof.core.printable import clean
from rtproof.core.units import format_cpus
from rtproof.record.contents import Moment

COUNT_FELL = "A count went down, so that the two looks do not belong together."
MOST_NAMES = 5


def unknown(readings: Sequence[Reading], sentence: str = "") -> Judgement:
    """UNKNOWN, because of the first of the readings that is not known."""
    if not sentence:
        bad = next((reading for reading in readings if not reading.here), readings[0])
        sentence = f"{clean(bad.path)} could not be read: {clean(bad.reason)}."
    return Judgement(Outcome.UNKNOWN, sentence, readings)


def not_understood(reading: Reading) -> Judgement:
    """UNKNOWN, because a text means nothing to this version."""
    return unknown([reading], f"{clean(reading.path)} holds what this version does not understand.")


def finding(
    sentence: str, read: Sequence[Reading], severity: Severity | None = None, named: Iterable[object] = ()
) -> Judgement:
    """A finding. severity: None for that of the check. named: as in a Judgement, each once."""
    return Judgement(Outcome.FINDING, sentence, read, severity, tuple(dict.fromkeys(map(str, named))))


def good(sentence: str, read: Sequence[Reading]) -> Judgement:
    """GOOD; the sentence may be "" if the readings say all. UNKNOWN if nobody knows any of them."""
    if len(hidden(read)) == len(read):
        return unknown(read, "" if read else "Nothing was read.")
    return Judgement(Outcome.GOOD, sentence, read)


def not_applicable(sentence: str, read: Sequence[Reading] = ()) -> Judgement:
    """NOT_APPLICABLE, because of what the sentence says."""
    return Judgement(Outcome.NOT_APPLICABLE, sentence, read)


def hidden(read: Iterable[Reading]) -> list[Reading]:
    """Those of the readings that nobody knows."""
    return [reading for reading in read if not reading.here and not reading.absent]


def missing(check: Check, readings: Sequence[Reading]) -> Judgement:
    """The judgement of readings of which none is HERE: ABSENT only if all are, else UNKNOWN."""
    if any(not reading.absent for reading in readings):
        return unknown(sorted(readings, key=lambda reading: reading.absent))
    sentence = check.absent_means or f"The system has no {clean(readings[0].path)}."
    return Judgement(check.if_absent, sentence, readings)


def read_source(facts: Facts, source: str) -> tuple[Reading, ...]:
    """What ``read`` of a check names: ``config:OPTION``, ``boot:PARAMETER``, or the files of a path or a pattern."""
    kind, colon, name = source.partition(":")
    if colon and kind == "config":
        return (facts.option(name),)
    if colon and kind == "boot":
        return (facts.parameter(name),)
    return facts.match(source)


def again(facts: Facts, reading: Reading) -> Reading:
    """The same file at the end."""
    if (end := facts.read(reading.path, Moment.END)).state is not State.NOT_COLLECTED:
        return end
    return Reading(reading.path, State.NOT_COLLECTED, "", "it was read at one moment only, so that no change shows")


def only(reading: Reading, text: str) -> Reading:
    """The reading with the part of its text that counts, for the result to show."""
    return Reading(reading.path, reading.state, text, reading.reason)


def first_names(names: Iterable[str]) -> str:
    """The first few of the names, each once, and how many more there are."""
    once = list(dict.fromkeys(map(clean, names)))
    more = len(once) - MOST_NAMES
    return ", ".join(once[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def cpu_words(cpus: Collection[int]) -> str:
    """CPU 3, or CPUs 2-3,8."""
    return f"CPU{'s' if len(cpus) != 1 else ''} {format_cpus(cpus)}"
