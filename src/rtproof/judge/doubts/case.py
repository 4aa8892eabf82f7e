# SPDX-License-Identifier: Apache-2.0
"""The input of every check (``CheckedRun``), how it reads facts and files, and words that the checks share."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rtproof.record.contents import WHOLE_RUN, Event, Moment, Record, Series
from rtproof.record.requirement import Requirement
from rtproof.summary import recorded_facts
from rtproof.summary.recorded_facts import fact_number
from rtproof.summary.summary_model import Doubt, Severity, Summary, Switch

INVALID, WARNING = Severity.INVALID, Severity.WARNING
REAL_TIME = ("fifo", "rr", "deadline")
UNAVAILABLE = "unavailable"
TOLERANCE = 0.001
"""This share of the activations may be missing or wrong. Above it the run did not measure what was asked."""


@dataclass(frozen=True)
class CheckedRun:
    """A run as the checks see it.

    summaries: one for each thread, of the field that a limit judges. every: one for each series, so for each field of
    each thread. requirements: those to judge. switches: the differences between neighbouring stages.
    """

    record: Record
    summaries: tuple[Summary, ...]
    requirements: tuple[Requirement, ...]
    every: tuple[Summary, ...]
    switches: tuple[Switch, ...]

    def fact(self, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> str | None:
        return self.record.fact(key, moment, thread)

    def number(self, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> int | None:
        """A fact as a whole number; None if the fact is missing, or only says why the agent could not get it."""
        return fact_number(self.record, key, moment, thread)

    def file(self, path: str, moment: Moment) -> str | None:
        """The content of a file of the target, without white space at both ends; None if it could not be read."""
        found = recorded_facts.file_text(self.record, path, moment)
        return None if found is None else found.strip()

    def events(self, *kinds: str) -> list[Event]:
        return [event for event in self.record.events if event.kind in kinds]


Check = Callable[[CheckedRun], Iterable[Doubt]]


def thread_name(thread: int) -> str:
    """The name of a thread in a sentence."""
    return "the run" if thread == WHOLE_RUN else f"thread {thread}"


def name_threads(threads: Sequence[int]) -> str:
    """A short list of threads: "threads 0, 1 and 6 more"."""
    if len(threads) <= 2:
        return f"thread{'s' * (len(threads) > 1)} {' and '.join(map(str, threads))}"
    return f"threads {threads[0]}, {threads[1]} and {len(threads) - 2} more"


def severity_of(gone: int, whole: int) -> Severity:
    """INVALID if more than ``TOLERANCE`` of the whole is missing or wrong, otherwise WARNING."""
    return INVALID if gone > TOLERANCE * whole else WARNING


def series_name(case: CheckedRun, series: Series) -> str:
    """The name of a series: its thread and, if threads have several fields, the field."""
    several = len(case.every) > len(case.summaries)
    return f"thread {series.thread}" + (f" ({series.field})" if several else "")


def sentence_list(items: Iterable[str]) -> str:
    """A text with at most four items, and the number of the others."""
    some = list(items)
    shown = "; ".join(some[:4])
    return shown if len(some[4:]) == 0 else f"{shown}; and {len(some) - 4} more"


def cpu_count(told: str | None) -> int | None:
    """The number of CPUs in a list such as 0-3,5; None if it is no such list."""
    words = (told or "").split(",")
    try:
        ends = [list(map(int, word.split("-"))) for word in words]
    except ValueError:
        return None
    return sum(each[-1] - each[0] + 1 for each in ends)
