# SPDX-License-Identifier: Apache-2.0
"""For the tests of doubts: a run that leaves none, and what is said of it after one thing is changed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from analysis_records import MS, SERIES, block, fact, file, record

from rtproof.judge.doubts.registry import doubts_about_run
from rtproof.record.contents import Block, Fact, Moment, Record, Series, SystemFile
from rtproof.record.requirement import Requirement
from rtproof.summary.series import summarise
from rtproof.summary.summary_model import Doubt

CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
N = 3000
BLOCKS = (block([9000] * N),)
Changes = Mapping[tuple[str, Moment], str | None]
FACTS = {
    **{("policy", moment): "fifo" for moment in Moment},
    **{("priority", moment): "80" for moment in Moment},
    **{("cpu", moment): "2" for moment in (Moment.START, Moment.END)},
    ("duration_ns", Moment.ASKED): str(N * MS),
    ("warmup_ns", Moment.ASKED): "1000000000",
    ("lock_memory", Moment.ASKED): "yes",
    ("allow_unprivileged", Moment.ASKED): "no",
    ("loads", Moment.ASKED): "",
    ("memory_locked", Moment.START): "yes",
    ("dma_latency", Moment.START): "/dev/cpu_dma_latency held at 0 us",
    ("kmsg", Moment.START): "read once a second",
    ("clock_read_ns", Moment.START): "25",
    ("timer_slack_ns", Moment.START): "50000",
    ("minor_faults", Moment.END): "0",
    ("major_faults", Moment.END): "0",
    ("cpu_time_ns", Moment.END): str(30 * MS),
}
FILES = {
    (CLOCK, Moment.START): "tsc\n",
    (CLOCK, Moment.END): "tsc\n",
    ("/proc/stat", Moment.START): "cpu  1 0 1 9 0 0 0 5 0 0\ncpu0 1 0 1 9 0 0 0 5 0 0\n",
    ("/proc/stat", Moment.END): "cpu  9 0 9 99 0 0 0 5 0 0\ncpu0 9 0 9 99 0 0 0 5 0 0\n",
    ("/proc/cpuinfo", Moment.START): "processor\t: 0\nflags\t\t: fpu tsc nonstop_tsc\n",
    ("/proc/sys/kernel/sched_rt_runtime_us", Moment.START): "950000\n",
    ("/proc/sys/kernel/sched_rt_period_us", Moment.START): "1000000\n",
}
OF_A_THREAD = {"cpu", "timer_slack_ns", "minor_faults", "major_faults", "cpu_time_ns", "policy", "priority"}


def facts(changes: Changes) -> tuple[Fact, ...]:
    """The facts of a clean run with some changed; None takes one away."""
    return tuple(
        fact(key, text, moment, 0) if key in OF_A_THREAD and moment is not Moment.ASKED else fact(key, text, moment)
        for (key, moment), text in {**FACTS, **changes}.items()
        if text is not None
    )


def files(changes: dict[tuple[str, Moment], str]) -> tuple[SystemFile, ...]:
    return tuple(file(path, content, moment) for (path, moment), content in {**FILES, **changes}.items())


def clean(blocks: tuple[Block, ...] = BLOCKS, series: Series = SERIES, **parts: Any) -> Record:
    """A run without any doubt, with some parts replaced."""
    whole = record(blocks, [series], facts=facts({}), files=files({}), size=1000)
    return replace(whole, **parts)


def said_of(made: Record, limit_ns: int | None = 500_000) -> dict[str, Doubt]:
    """Doubts by code. No code may occur twice for one thread."""
    found = doubts_about_run(made, summarise(made), Requirement(limit_ns, 3_600_000_000_000) if limit_ns else None)
    assert_brief(found)
    by_code = {doubt.code: doubt for doubt in found}
    assert len(by_code) == len(found)
    return by_code


def with_facts(changes: Changes, **parts: Any) -> dict[str, Doubt]:
    return said_of(clean(facts=facts(changes), **parts))


def with_files(changes: dict[tuple[str, Moment], str]) -> dict[str, Doubt]:
    return said_of(clean(files=files(changes)))


def assert_brief(found: Iterable[Doubt]) -> None:
    """What an 80 column screen shows of each doubt is whole: what is wrong, and what to do about it."""
    for doubt in found:
        assert len(doubt.brief) <= 70, doubt.brief
        assert doubt.remedy
        assert ": " in doubt.brief
        assert "..." not in doubt.brief
        assert doubt.brief.isprintable()
