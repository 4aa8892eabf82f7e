# SPDX-License-Identifier: Apache-2.0
"""What several functions of checks say alike: of threads, of CPUs, and of lists of names."""

from collections.abc import Collection, Iterable, Sequence

from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check
from rtproof.audit.facts import Reading
from rtproof.audit.readings import hidden, missing, not_understood
from rtproof.audit.system_threads import ThreadsRead
from rtproof.core.printable import clean
from rtproof.core.units import format_cpus

MOST_NAMES = 5


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


def first_missing(readings: Sequence[Reading]) -> Reading | None:
    """The first reading that says nothing of the system: neither HERE nor ABSENT."""
    return next(iter(hidden(readings)), None)


def no_threads(check: Check, read: ThreadsRead) -> Judgement:
    """What it means that the threads are not known."""
    return not_understood(read.reading) if read.reading.here else missing(check, [read.reading])
