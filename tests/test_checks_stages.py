# SPDX-License-Identifier: Apache-2.0
"""Doubts about records with several fields, and that the others are neither said twice nor of the wrong field."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from analysis_records import MS, SECOND, block, fact
from doubt_cases import N, clean, facts, files, said_of
from stage_records import GPIO, KERNEL, VIRTUAL, fields_of, source_file, stimuli

from rtproof.judge.analyse import doubts_about_run
from rtproof.record.contents import End, EndReason, Moment, Record, SeriesTotals
from rtproof.summary.fields import series_by_field, stage_switches
from rtproof.summary.series import summarise
from rtproof.summary.summary_model import Doubt, Severity

SERIES = tuple(replace(each, cpu=2) for each in fields_of(KERNEL, 0, ("irq", "task")))
IRQ, TASK = SERIES


def staged(irq: Sequence[int] = (2_000,) * N, task: Sequence[int] = (9_000,) * N) -> Record:
    """A clean run with two fields."""
    blocks = (block(irq, series=IRQ), block(task, series=TASK))
    totals = (SeriesTotals(0, len(irq), 0, 0), SeriesTotals(1, len(task), 0, 0))
    end = End(N * MS, EndReason.AS_ASKED, "", totals)
    made = replace(clean(blocks, TASK), series=SERIES, end=end)
    refs = tuple(replace(ref, series=one.series) for ref, one in zip(made.chunk_refs, blocks, strict=True))
    return replace(made, chunk_refs=refs)


def said(made: Record) -> dict[str, Doubt]:
    found = doubts_about_run(made, summarise(made, 1), None, stage_switches(made, series_by_field(made)))
    assert len({doubt.code for doubt in found}) == len(found)
    return {doubt.code: doubt for doubt in found}


def test_a_clean_run_with_several_fields_leaves_no_doubt() -> None:
    assert said(staged()) == {}


def test_a_fault_of_a_thread_is_told_once_and_not_for_each_field() -> None:
    broken = replace(
        staged(),
        facts=facts({("cpu", Moment.END): "1", ("policy", Moment.END): "other", ("warmup_ns", Moment.ASKED): "0"}),
    )
    found = said(broken)
    assert set(found) == {"cpu", "policy", "warm-up"}
    assert found["policy"].what.count("thread 0") == 1


def test_only_the_judged_field_is_counted_against_what_was_due() -> None:
    half = said(staged(task=[9_000] * (N // 2), irq=[2_000] * (N // 2)))
    assert f"thread 0: {N // 2:,} of {N:,} activations" in half["activations-missing"].what
    assert set(half) == {"activations-missing"}
    coarse = said(staged(irq=[2_000] * N, task=[MS // 2] * N))
    assert set(coarse) == {"coarse-timer"}


def test_the_agents_totals_are_checked_for_every_field() -> None:
    made = staged()
    assert made.end is not None
    wrong = replace(made.end, totals=(SeriesTotals(0, N + 100, 0, 0), made.end.totals[1]))
    found = said(replace(made, end=wrong))
    assert set(found) == {"totals"}
    assert found["totals"].what.startswith("thread 0 (irq): the agent counted 100 activations more than")


def test_a_task_that_ran_before_its_interrupt_is_impossible() -> None:
    once = said(staged(irq=[2_000] * (N - 1) + [9_700]))
    assert set(once) == {"stage-order"}
    assert once["stage-order"].what.startswith("task came before irq in 1 of 3,000 activations, by 700 ns at most")
    assert once["stage-order"].severity is Severity.WARNING
    often = said(staged(irq=[9_001] * N))
    assert often["stage-order"].severity is Severity.INVALID


def test_a_field_that_lacks_values_is_named() -> None:
    found = said(replace(staged(irq=[2_000] * (N - 5)), end=None))
    assert found["stages-differ"].what == ("thread 0 (irq) has 2,995 values and 0 missed, task has 3,000 and 0")
    assert "stages-differ" not in said(replace(staged(), end=None))


def test_a_source_that_lost_nothing_and_saw_nothing_larger_is_no_doubt() -> None:
    told = (source_file("irq", count=N, max=2_000), source_file("task", count=N + 1, max=9_000, lost=0))
    assert said(replace(staged(), files=(*files({}), *told))) == {}


def test_a_source_that_counted_more_than_the_record_says_so_with_both_maxima() -> None:
    told = source_file("task", count=N + 40, lost=40, max=77_000)
    found = said(replace(staged(), files=(*files({}), told)))
    assert set(found) == {"source-differs"}
    assert found["source-differs"].what == (
        "thread 0 (task): its source counted 3,040 values up to 77 us, of which 40 were lost on the way; "
        "the record has 3,000 up to 9 us"
    )
    larger = source_file("irq", count=N, max=2_001)
    assert set(said(replace(staged(), files=(*files({}), larger)))) == {"source-differs"}
    uncounted = source_file("irq", count=N + 2, max=1)
    assert set(said(replace(staged(), files=(*files({}), uncounted)))) == {"source-differs"}
    empty = source_file("irq", count=0)
    assert said(replace(staged(), files=(*files({}), empty))) == {}


def test_stimuli_from_outside_have_no_period_to_keep() -> None:
    slow = [(at * SECOND, 40 * MS, 50 * MS) for at in range(20)]
    quick = [(at * MS, 200, 900) for at in range(2_000)]
    for answers in (slow, quick):
        made = replace(stimuli(answers), facts=(fact("duration_ns", 20 * SECOND), fact("warmup_ns", SECOND)))
        assert GPIO.period_ns == made.series[0].period_ns
        assert said(made) == {}


def test_a_clock_that_counts_instructions_is_said_in_place_of_the_guest() -> None:
    guest = files({("/proc/cpuinfo", Moment.START): "flags : hypervisor"})
    assert set(said_of(clean(files=guest))) == {"guest"}
    found = said_of(clean(files=guest, facts=(*facts({}), VIRTUAL)))
    assert set(found) == {"virtual-time"}
    assert found["virtual-time"].severity is Severity.WARNING
    assert "qemu icount shift=0" in found["virtual-time"].what


@pytest.mark.parametrize(
    ("file", "content", "count"),
    [
        ("/sys/devices/system/cpu/online", "0-1\n", 2),
        ("/sys/devices/system/cpu/online", "0,2-3\n", 3),
        ("/proc/cpuinfo", "processor\t: 0\n\nprocessor\t: 1\n", 2),
    ],
)
@pytest.mark.parametrize("moment", [Moment.START, Moment.END])
def test_processors_that_take_turns_make_virtual_time_invalid(
    file: str, content: str, count: int, moment: Moment
) -> None:
    guest = files({(file, moment): content})
    found = said_of(clean(files=guest, facts=(*facts({}), VIRTUAL)))
    assert found["virtual-smp"].severity is Severity.INVALID
    assert f"in virtual time {count} processors share one stream of instructions" in found["virtual-smp"].what
    assert "virtual-smp" not in said_of(clean(files=guest))


@pytest.mark.parametrize("online", ["0", "3", "", "nonsense"])
def test_one_processor_in_virtual_time_takes_no_turns(online: str) -> None:
    guest = files({("/sys/devices/system/cpu/online", Moment.START): online})
    assert "virtual-smp" not in said_of(clean(files=guest, facts=(*facts({}), VIRTUAL)))
