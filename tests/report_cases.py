# SPDX-License-Identifier: Apache-2.0
"""Analyses of every shape that a report must cope with, made of plain numbers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from analysis_records import MS, SECOND, SERIES, block, fact, record
from app_cases import TABLE, app_record
from export_cases import summary_analysis
from stage_records import LOOP, VIRTUAL, source_file, staged, stimuli, usual

from rtproof import report
from rtproof.core.plugins import load_plugin, plugin_names
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record import activations
from rtproof.record.contents import Counter, Event, Fact, Moment, Record, Series, Slice, SystemFile
from rtproof.record.requirement import Requirement
from rtproof.report import formats
from rtproof.report.blocks import Block, HeatMap, Plot, Section, Table, Text

LIMIT = Requirement(500_000)
FORMATS_WITH_WORDS = tuple(
    name for name in plugin_names(formats) if not {"ONLY_PLOTS", "ONLY_PART"} & vars(load_plugin(formats, name)).keys()
)
LATE = 2_500_000
HOSTILE = '</script><img src="http://bad.example/x" onerror=alert(1)><!-- & \' \x1b[31m\u202e " --> ${x}'

FACTS = (
    fact("args", "run -o run.rtrec --duration 20s"),
    fact("policy", "fifo"),
    fact("priority", "80"),
    fact("period_ns", "1000000"),
    fact("phase_ns", "-1"),
    fact("memory_locked", "yes", Moment.START),
    fact("policy", "fifo", Moment.START, 0),
    fact("policy", "other", Moment.END, 0),
    fact("minor_faults", "1234567", Moment.END, 0),
    fact("cpu_time_ns", "139415000", Moment.END, 0),
)
INTERRUPTS = """           CPU0       CPU1
  0:        {0}         10   IO-APIC    2-edge      timer
LOC:       {1}        300   Local timer interrupts
ERR:        {2}
"""


def thread_series(thread: int) -> Series:
    return replace(SERIES, id=thread, thread=thread, cpu=thread, first_due_ns=thread * MS // 4)


def values(count: int, thread: int = 0) -> list[int]:
    """Latencies as they come: most near 5 us, some in a tail, one far out."""
    drawn = np.random.default_rng(thread).gamma(2, 900, count).astype(np.int64) + 3_000
    drawn[count // 2] = LATE * (thread + 1) // 4
    return [int(each) for each in drawn]


def system_file(path: str, content: str, moment: Moment = Moment.START, errno: int = 0) -> SystemFile:
    return SystemFile(0, moment, path, errno, False, content.encode())


def interrupts(*counts: int, moment: Moment) -> SystemFile:
    return system_file("/proc/interrupts", INTERRUPTS.format(*counts), moment)


def work(*readings: int) -> Counter:
    times = np.arange(len(readings), dtype=np.int64) * SECOND
    return Counter(0, True, "load.sched", "messages", times, np.array(readings, np.int64))


def whole_record(threads: int = 2, count: int = 3_000, facts: tuple[Fact, ...] = FACTS) -> Record:
    """A run with everything that a record can hold."""
    series = [thread_series(thread) for thread in range(threads)]
    blocks = [block(values(count, each.thread), series=each) for each in series]
    files = (
        interrupts(100, 1_000, 0, moment=Moment.START),
        interrupts(107, 4_000, 0, moment=Moment.END),
        system_file("/proc/cmdline", "quiet isolcpus=1\n"),
        system_file("/proc/cpuinfo", "processor: 0\nmodel name\t: A processor\nmodel name\t: A processor\n"),
        system_file("/proc/modules", "", errno=2),
    )
    events = (Event(SECOND, 0, "kernel", "a line of the log"), Event(2 * SECOND, 0xFFFF, "clock_stepped", "by 1 s"))
    counters = (work(0, 1_000, 3_000),)
    return record(blocks, series, facts=facts, files=files, events=events, counters=counters)


def normal() -> Analysis:
    return analyse(whole_record(), LIMIT, 1)


def no_limit() -> Analysis:
    return analyse(whole_record(), None, 1)


def missed() -> Analysis:
    """Two stalls of 400 ms, of which each activation behind is charged with its lateness."""
    stalled = block(
        [5_000] * 1_000 + [400 * MS] + [6_000] * 2_000 + [400 * MS] + [7_000] * 10, {1_000: 399, 3_001: 399}
    )
    return analyse(record([stalled]), LIMIT, 1)


def one_sample() -> Analysis:
    return analyse(record([block([4_321])]), LIMIT, 1)


def negative() -> Analysis:
    """A timer that fires early, as article 1 saw it on the AT91."""
    early = [-3_835, -2_000, -2_000, -1, 0, 1, 700, 1_500, 1_500, 9_000]
    return analyse(record([block(early * 30)]), LIMIT, 1)


def all_negative() -> Analysis:
    return analyse(record([block([-3_835, -2_000, -5] * 10)]), LIMIT, 1)


def all_equal() -> Analysis:
    return analyse(record([block([5_000] * 3_000)]), LIMIT, 1)


def wide() -> Analysis:
    """From one nanosecond to days."""
    return analyse(record([block([1, 10, 1_000, 10**6, 10**9, 10**12, 10**14] * 5)]), LIMIT, 1)


def nothing() -> Analysis:
    return analyse(record([], ()), LIMIT, 1)


def cut_off() -> Analysis:
    return analyse(replace(whole_record(), end=None), LIMIT, 1)


def many_threads() -> Analysis:
    return analyse(whole_record(threads=20, count=300), LIMIT, 1)


def off_the_grid() -> Analysis:
    series = replace(SERIES, on_grid=False)
    return analyse(record([block(values(2_000), series=series)], (series,)), LIMIT, 1)


def hostile() -> Analysis:
    """Every string of a record is somebody else's."""
    whole = whole_record(facts=(*FACTS, fact(HOSTILE, HOSTILE), fact(HOSTILE, HOSTILE, Moment.END, 0)))
    begin = replace(whole.begin, machine=HOSTILE, kernel_release=HOSTILE, kernel_version=HOSTILE, agent_version=HOSTILE)
    end = whole.end and replace(whole.end, text=HOSTILE)
    series = tuple(replace(each, probe=HOSTILE, method=HOSTILE, field=f"{HOSTILE}{each.id}") for each in whole.series)
    bad = replace(
        whole,
        path=HOSTILE,
        begin=begin,
        end=end,
        series=series,
        files=(*whole.files, system_file(HOSTILE, HOSTILE)),
        events=(Event(0, 0, HOSTILE, HOSTILE),),
        counters=(replace(work(0, 5), name=HOSTILE, unit=HOSTILE),),
    )
    return analyse(bad, LIMIT, 1)


def summary_only() -> Analysis:
    return summary_analysis()


def several_fields() -> Analysis:
    """Interrupt and task of the same activations, in virtual time, with the kernel's own account."""
    told = source_file("irq", count=3_003, lost=3, max=9_000)
    return analyse(staged(usual(), usual(thread=1), facts=(VIRTUAL,), files=(told,)), LIMIT, 1)


def several_summaries() -> Analysis:
    """The same without samples, so that no stage can be held against the other event by event."""
    made = several_fields().record
    bare = tuple(replace(each, has_samples=False) for each in made.series)
    parts = [part for each in made.series for part in summarised(made, each)]
    return analyse(replace(made, series=bare, chunk_refs=(), slices=tuple(parts)), LIMIT, 1)


def summarised(made: Record, series: Series) -> list[Slice]:
    """What an agent says of a series that it keeps no samples of."""
    (whole,) = made.blocks(series.id)
    none = np.zeros_like(whole.values)
    return activations.slices_of_views(
        series, activations.number_activations(series, 0, whole.first_due_ns, whole.values, none)
    )


def loop() -> Analysis:
    """Article 2's loop under a load that delays it, in the end for good."""
    late = [int(each) for each in np.random.default_rng(2).gamma(1, 3 * MS, 3_000)]
    told = Event(60 * SECOND, 0, "stalled", f"the thread did not run any more; since_ns={30 * SECOND}")
    return analyse(record([block(late, series=LOOP)], [LOOP], events=(told,)), None, 1)


def application() -> Analysis:
    return analyse(app_record(TABLE * 300, TABLE, comment="words"), Requirement(3 * MS), 1)


def response() -> Analysis:
    """Edges every 30 ms and a bit, all answered but number 40."""
    edges = [(at * 30_010_000, 20_000 + at * 10, 33_000 + at * 15) for at in range(100)]
    return analyse(stimuli(edges, unanswered=40), LIMIT, 1)


CASES: dict[str, Callable[[], Analysis]] = {
    case.__name__: case
    for case in (
        *(normal, no_limit, missed, one_sample, negative, all_negative, all_equal, wide, nothing, cut_off),
        *(many_threads, off_the_grid, hostile, summary_only),
        *(several_fields, several_summaries, loop, response, application),
    )
}


def sections_of(analysis: Analysis, command: str | None = None) -> dict[str, Section]:
    return {section.name: section for section in report.compose(analysis, None, command)}


def tables(blocks: list[Block] | tuple[Block, ...]) -> dict[str, Table]:
    """By the first words of the caption."""
    return {block.caption.split(":")[0].split(" (")[0]: block for block in blocks if isinstance(block, Table)}


def tables_of(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table)]


def plots(blocks: list[Block]) -> list[Plot]:
    return [block for block in blocks if isinstance(block, Plot)]


def only_plot(blocks: list[Block]) -> Plot:
    (found,) = plots(blocks)
    return found


def heat_maps(blocks: list[Block]) -> list[HeatMap]:
    return [block for block in blocks if isinstance(block, HeatMap)]


def words(blocks: list[Block]) -> str:
    texts = [block for block in blocks if isinstance(block, Text)]
    terms = [" ".join(term) for block in texts for term in block.terms]
    return "\n".join([*(line for block in texts for line in (block.headline, *block.paragraphs)), *terms])


def row(table: Table, name: str) -> dict[str, str]:
    """A row by what its first cell says, as heading and cell."""
    found = next(each for each in table.rows if each[0] == name)
    return dict(zip(table.header, found, strict=True))


def pairs(table: Table) -> dict[str, str]:
    """A table of two columns as a dictionary."""
    return {each[0]: each[1] for each in table.rows}
