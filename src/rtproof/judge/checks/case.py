# SPDX-License-Identifier: Apache-2.0
"""What every check is given, and how it reads facts and files."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rtproof.judge.analysis_model import Requirement
from rtproof.record.contents import WHOLE_RUN, Event, Moment, Record, Series
from rtproof.summary import recorded_facts
from rtproof.summary.recorded_facts import fact_number
from rtproof.summary.summary_model import Doubt, Severity, Summary, Switch

INVALID, WARNING = Severity.INVALID, Severity.WARNING
REAL_TIME = ("fifo", "rr", "deadline")
UNAVAILABLE = "unavailable"
TOLERANCE = 0.001
"""Share of the activations that may be without a trace before a run is no measurement of what was asked."""


@dataclass(frozen=True)
class CheckedRun:
    """summaries: one per thread, of the field that is judged. every: of all series, so of all fields of all threads."""

    record: Record
    summaries: tuple[Summary, ...]
    requirements: tuple[Requirement, ...]
    every: tuple[Summary, ...]
    switches: tuple[Switch, ...]

    def fact(self, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> str | None:
        return self.record.fact(key, moment, thread)

    def number(self, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> int | None:
        """A fact that is a whole number; None if there is none, or only the reason why it could not be had."""
        return fact_number(self.record, key, moment, thread)

    def file(self, path: str, moment: Moment) -> str | None:
        """Content of a file of the target, without white space at its ends; None if it could not be read."""
        found = recorded_facts.file_text(self.record, path, moment)
        return None if found is None else found.strip()

    def events(self, *kinds: str) -> list[Event]:
        return [event for event in self.record.events if event.kind in kinds]


Check = Callable[[CheckedRun], Iterable[Doubt]]


def thread_name(thread: int) -> str:
    return "the run" if thread == WHOLE_RUN else f"thread {thread}"


def severity_of(gone: int, whole: int) -> Severity:
    """How grave it is that so many of the whole are gone or wrong."""
    return INVALID if gone > TOLERANCE * whole else WARNING


def series_name(case: CheckedRun, series: Series) -> str:
    """The thread and, where it has several fields, which one."""
    several = len(case.every) > len(case.summaries)
    return f"thread {series.thread}" + (f" ({series.field})" if several else "")


def sentence_list(items: Iterable[str]) -> str:
    """At most four items, and how many more there are."""
    some = list(items)
    shown = "; ".join(some[:4])
    return shown if len(some[4:]) == 0 else f"{shown}; and {len(some) - 4} more"
