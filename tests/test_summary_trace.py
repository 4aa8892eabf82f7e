# SPDX-License-Identifier: Apache-2.0
"""The effect of tracing, in runs in which it was put in; and what a trace tells of itself, as numbers and as text."""

import struct
from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from analysis_records import BEGIN, MS, SERIES, block, fact, record
from trace_cases import COMMON, FILES, HEADER_PAGE, LAYOUTS, PRINT_FORMAT, entry, page, parse_line, traced

from rtproof.core.errors import UserError
from rtproof.judge.analyse import analyse
from rtproof.record.contents import WHOLE_RUN, Block, ChunkRef, Event, Int64Array, Record
from rtproof.summary import kernel_trace
from rtproof.summary.kernel_trace import lost_trace_events, page_layout, print_addresses, trace_summary
from rtproof.summary.trace_pages import PageLayout
from rtproof.summary.trace_text import EventFormat, EventWriter, Functions, RawEvent, event_format
from rtproof.summary.tracing_effect import EFFECT_CONFIDENCE, TracingEffects, tracing_effects

BLOCK_NS = 100 * MS
EACH = BLOCK_NS // MS
SWITCH_NS = 3 * MS
"""How long the switching takes, in which latencies are wild."""


def is_on(number: int) -> bool:
    return (number % 4 in (1, 2)) == (number // 4 % 3 == 0)


def drawn(seed: int, number: int) -> bool:
    """An order in which chance says for every four blocks which way round they are."""
    return (number % 4 in (1, 2)) == bool(np.random.default_rng((seed, number // 4)).integers(2))


def turn(number: int, late_ns: int = SWITCH_NS, on: bool | None = None) -> Event:
    kind = "trace_on" if (is_on(number) if on is None else on) else "trace_off"
    return Event(number * BLOCK_NS + late_ns, WHOLE_RUN, kind, f"block={number}; took_ns={late_ns}")


def run(seed: int, shift_ns: int, blocks: int = 40) -> Record:
    """Latencies with a heavy tail that drift over the run; tracing adds a shift, and each switch is a mess."""
    random = np.random.default_rng(seed)
    n = blocks * EACH
    values = 5_000 + random.gamma(2, 1_000, n) + np.where(random.random(n) < 0.01, random.pareto(1.5, n) * 5_000, 0)
    values += np.linspace(0, 3_000, n)
    on = np.repeat([is_on(number) for number in range(blocks)], EACH)
    values += shift_ns * on
    values += 500_000 * (np.arange(n) % EACH < SWITCH_NS // MS)
    samples = block(values.astype(np.int64))
    facts = (fact("trace_blocks_ns", BLOCK_NS),)
    return record([samples], facts=facts, events=tuple(turn(number) for number in range(blocks)))


def least(runs: int) -> float:
    """Of so many runs, intervals that must hold: 95 % less three standard deviations."""
    return runs * EFFECT_CONFIDENCE - 3 * sqrt(runs * EFFECT_CONFIDENCE * (1 - EFFECT_CONFIDENCE))


def compared(made: Record) -> TracingEffects:
    found = tracing_effects(made)
    assert found is not None
    return found


def test_of_a_long_run_no_more_is_read_than_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtproof.summary.tracing_effect.MOST_BLOCKS", 40)
    whole = run(1, 2_000, blocks=400)
    (values,) = (piece.values for piece in whole.blocks(SERIES.id))
    made = record([block(values[at : at + EACH], first_index=at) for at in range(0, values.size, EACH)])
    read: list[int] = []

    def noted(wanted: tuple[ChunkRef, ...]) -> Iterator[Block]:
        for piece in made.read_blocks(wanted):
            read.append(piece.values.size)
            yield piece

    found = compared(replace(whole, chunk_refs=made.chunk_refs, read_blocks=noted))
    assert (found.sets, found.refused) == (10, "")
    assert sum(read) <= 41 * EACH


def test_a_shift_that_was_put_in_is_found() -> None:
    found = compared(run(1, 2_000))
    assert (found.blocks, found.sets, found.refused) == (40, 10, "")
    assert found.left_out_ns == SWITCH_NS + BLOCK_NS // 10
    assert [effect.statistic for effect in found.effects] == ["mean", "median", "maximum"]
    assert (found.field, found.unit) == ("latency", "ns")
    for effect in found.effects[:2]:
        assert effect.low <= 2_000 <= effect.high
        assert effect.low > 0
        assert effect.difference == pytest.approx(2_000, abs=500)
        assert effect.with_trace > effect.without


@pytest.mark.parametrize("shift_ns", [0, 1_500])
def test_the_interval_has_its_coverage(shift_ns: int) -> None:
    """Of all statistics together: at least 95 % of the runs, less three standard deviations, and not all of them."""
    runs = 300
    covered = 0
    for seed in range(runs):
        effects = compared(run(seed, shift_ns)).effects
        assert len(effects) == 3
        covered += all(effect.low <= shift_ns <= effect.high for effect in effects)
    assert least(runs) <= covered < runs, "an interval that is never wrong would say nothing"


def disturbed(seed: int, blocks_ns: Int64Array) -> Record:
    """A run in which tracing does nothing, and something else has turns of its own."""
    blocks = blocks_ns.size
    values = np.random.default_rng(seed).gamma(2, 1_000, blocks * EACH) + np.repeat(blocks_ns, EACH)
    turns = tuple(turn(number, on=drawn(seed, number)) for number in range(blocks))
    return record([block(values.astype(np.int64))], facts=(fact("trace_blocks_ns", BLOCK_NS),), events=turns)


@pytest.mark.parametrize("every", [2, 4, 8])
def test_what_comes_in_every_nth_block_is_not_taken_for_the_effect_of_tracing(every: int) -> None:
    """As the rounds of a load that begin with the run do; it is the order by chance that keeps them apart."""
    runs = 200
    load_ns = 3_000 * (np.arange(40) % every == 0)
    effects = [compared(disturbed(seed, load_ns)).effects for seed in range(runs)]
    covered = sum(all(effect.low <= 0 <= effect.high for effect in found) for found in effects)
    assert covered >= least(runs)


def test_what_wanders_widens_the_interval_and_is_covered() -> None:
    runs = 200
    wandering = [
        np.cumsum(np.random.default_rng((seed, 1)).normal(0, 500, 40)).astype(np.int64) for seed in range(runs)
    ]
    found = [compared(disturbed(seed, blocks)).effects for seed, blocks in enumerate(wandering)]
    still = compared(disturbed(0, np.zeros(40, np.int64))).effects[1]
    covered = sum(all(effect.low <= 0 <= effect.high for effect in effects) for effects in found)
    assert covered >= least(runs)
    assert np.median([effects[1].high - effects[1].low for effects in found]) > still.high - still.low


def test_blocks_that_were_switched_late_or_not_at_all_leave_their_set_out() -> None:
    made = run(1, 2_000)
    late = turn(4, 30 * MS)
    events = tuple(late if event.text.startswith("block=4;") else event for event in made.events)
    without = tuple(event for event in events if not event.text.startswith("block=10;"))
    found = compared(replace(made, events=without))
    assert (found.blocks, found.sets) == (38, 8)
    assert found.left_out_ns == SWITCH_NS + BLOCK_NS // 10


MARK_ID = 5
OTHER_ID = 312
ADDRESS = 0xFFFFFFFF81498950


def test_a_record_tells_the_layout_or_is_refused() -> None:
    assert page_layout(traced()) == PageLayout("<", 4096, 8, 8, 16)
    assert page_layout(
        traced(about="endian big\n", header_page=HEADER_PAGE.replace("size:8;\tsigned:1", "size:4;"))
    ) == (PageLayout(">", 4096, 8, 4, 16))
    for damaged in ("nothing", HEADER_PAGE.replace("offset:8", "offset:999999"), HEADER_PAGE.replace(":16", ":4")):
        with pytest.raises(UserError, match="lacks the layout"):
            page_layout(traced(header_page=damaged))


def mark(of: PageLayout, address: int) -> bytes:
    return entry(of, struct.pack(f"{of.order}HxxIQ4s", MARK_ID, 7601, address, b"work"))


def other(of: PageLayout) -> bytes:
    return entry(of, struct.pack(f"{of.order}HxxI8x", OTHER_ID, 7601))


def test_marks_have_the_name_of_the_function_at_their_address() -> None:
    of = LAYOUTS[1]
    raw = page(of, other(of), mark(of, ADDRESS)).decode("latin-1")
    changes = {"events/ftrace/print/format": PRINT_FORMAT, "cpu0/raw": raw}
    assert print_addresses(traced(**changes)) == {ADDRESS: "tracing_mark_write"}
    assert print_addresses(traced(**changes, kallsyms=f"{ADDRESS - 8:x} t writes")) == {ADDRESS: "writes"}
    assert print_addresses(traced()) == {}


ORIGIN_NS = 23553_413_000_000


def made(**changes: str) -> Record:
    events = (
        Event(300_000, WHOLE_RUN, "trace_on", "loop=begins; took_ns=30000"),
        Event(900_000, WHOLE_RUN, "trace_off", "loop=ends; took_ns=40000"),
    )
    return replace(traced(**changes), begin=replace(BEGIN, origin_monotonic_ns=ORIGIN_NS), events=events)


def test_numbers_of_a_trace() -> None:
    found = trace_summary(made())
    assert found.clock == "mono"
    assert found.kinds["sched_waking"] == 2
    assert found.missing == ("spi_*", "sys_enter_nanosleep*")
    assert (found.entries, found.overrun, found.dropped) == (5, 4, 1)
    assert (found.oldest_ns, found.newest_ns) == (148_000, 155_000)


def test_it_is_whole_from_the_oldest_event_of_the_cpu_that_forgot() -> None:
    """CPU 1 lost four, and what is left of it begins at 154 us."""
    assert trace_summary(made()).whole_from_ns == 154_000
    assert trace_summary(made(**{"cpu1/stats": FILES["cpu0/stats"]})).whole_from_ns is None


def test_what_would_have_been_enough_is_that_of_the_busiest_cpu() -> None:
    """CPU 1 has two events left of six in 64 KiB."""
    assert trace_summary(made()).enough_kib == 192
    assert trace_summary(made(**{"cpu1/stats": FILES["cpu0/stats"]})).enough_kib is None
    assert trace_summary(made(about="endian little\n")).enough_kib is None
    assert trace_summary(made(**{"cpu0/stats": "entries: 0\noverrun: 9\n"})).enough_kib == 192


def test_what_is_gone_is_known() -> None:
    assert lost_trace_events(made()) == (4, 1)
    whole = {"cpu1/stats": FILES["cpu0/stats"]}
    assert lost_trace_events(made(**whole)) == (0, 0)
    assert [doubt.code for doubt in analyse(made(**whole)).doubts if doubt.code == "trace-lost"] == []
    (told,) = (doubt for doubt in analyse(made()).doubts if doubt.code == "trace-lost")
    assert "later ones overwrote 4, 1 were dropped" in told.detail


FIELDS = """\
\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;
\tfield:u64 function;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char comm[8];\toffset:24;\tsize:8;\tsigned:0;
"""
KALLSYMS = (
    "ffffffff81000100 t hrtimer_wakeup\nffffffff81000200 T tracing_mark_write\nffffffffc0000000 t of_module\t[one]\n"
)
CONTENT = struct.pack("<HBBiiIQ8s", 7, 0x0D, 0x21, 42, -3, (5 << 16) | 32, 0xFFFFFFFF81000150, b"task") + b"eth0\0"


def made_up(printed: str) -> EventFormat:
    found = event_format("made/made_up", f"name: made_up\nID: 7\nformat:\n{COMMON}\n{FIELDS}\nprint fmt: {printed}\n")
    assert found is not None
    return found


def text_line(printed: str, content: bytes = CONTENT) -> str:
    record = traced(header_page=HEADER_PAGE)
    writer = EventWriter(kernel_trace.page_layout(record), {42: "sh"}, Functions(KALLSYMS))
    return writer.line(RawEvent(1_999_999_600, 3, made_up(printed), memoryview(content)))


def test_a_line_begins_as_the_kernels_own_and_has_the_fields() -> None:
    said = text_line('"irq=%d name=%s", REC->irq, __get_str(name)')
    assert said == (
        "              sh-42      [003] dNh12     2.000000: made_up: irq=-3 name=eth0 function=hrtimer_wakeup comm=task"
    )
    assert parse_line(said) == ("sh", 42, 3, 2_000_000_000, "made_up")


def test_a_number_has_the_name_that_the_kernel_prints_for_it() -> None:
    printed = '"%d [%s]", REC->irq, __print_symbolic(REC->irq, { 6, "SIX" }, { 5, "FIVE, OF" })'
    assert "irq=FIVE, OF name" in text_line(printed, CONTENT.replace(struct.pack("<i", -3), struct.pack("<i", 5)))
    assert "irq=-3 name" in text_line(printed)


def test_an_event_that_is_cut_off_or_unknown_has_a_line_too() -> None:
    assert text_line("", CONTENT[:9]).endswith(": made_up: ")
    assert text_line("", CONTENT[:3]).startswith("           <...>--1")
    writer = EventWriter(kernel_trace.page_layout(traced()), {}, Functions(""))
    assert writer.line(RawEvent(5, 0, None, memoryview(b"\x07\0"))).endswith(": unknown: 0700")


def test_functions_are_named_by_the_nearest_address_below() -> None:
    known = Functions(KALLSYMS)
    assert [known.name(at) for at in (0xFFFFFFFF810000FF, 0xFFFFFFFF81000100, 0xFFFFFFFFC0000008)] == [
        *(None, "hrtimer_wakeup", "of_module")
    ]
    assert known.name(0xFFFFFFFFC0010000) is None  # a program of BPF, say, which is in no table
