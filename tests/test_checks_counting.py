# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, array, block, end, fact
from app_cases import app_record
from doubt_cases import BLOCKS, N, clean, facts, files, said_of, with_facts
from export_cases import slice_of_values
from msgspec import structs
from stage_records import GPIO, KERNEL, VIRTUAL, fields_of, source_file, stimuli

from rtproof.judge.analyse import analyse
from rtproof.judge.doubts.case import name_threads
from rtproof.judge.doubts.registry import doubts_about_run
from rtproof.lab.kernel_comparison import turns_sentence
from rtproof.record.contents import (
    Block,
    Damage,
    End,
    EndReason,
    Event,
    Moment,
    Record,
    Seconds,
    SeriesTotals,
    SystemFile,
    Top,
)
from rtproof.summary.fields import series_by_field, stage_switches
from rtproof.summary.series import summarise
from rtproof.summary.summary_model import Doubt, Severity

ASKED = Moment.ASKED
INVALID, WARNING = Severity.INVALID, Severity.WARNING
FREE = replace(SERIES, on_grid=False)


def cut(n: int) -> tuple[Block, ...]:
    return (block([9000] * n),)


def totals(obtained: int, lost: int = 0, blocks: tuple[Block, ...] = BLOCKS) -> End:
    return replace(end(blocks), totals=(SeriesTotals(0, obtained, 0, lost),))


@pytest.mark.parametrize(
    ("threads", "named"),
    [((3,), "thread 3"), ((0, 1), "threads 0 and 1"), (range(8), "threads 0, 1 and 6 more")],
)
def test_threads_are_named_as_a_list_in_english(threads: Sequence[int], named: str) -> None:
    assert name_threads(threads) == named


def gone(n: int) -> tuple[Block, ...]:
    """Two blocks, with so many activations gone between them."""
    return (block([9000] * 1000), block([9000] * (2000 - n), first_index=1000 + n))


STRAY = Damage(70, 64, "at offset 70, 64 bytes are no valid chunk")
DAMAGE = (STRAY, Damage(200, 0, "chunk 7 is gone", lost=True))
CUT_OFF = (Damage(1000, 0, "the record was cut off: there is no END after its 5 chunks"),)
STALLED = (Event(3 * SECOND, 0, "stalled", f"the thread did not run any more; since_ns={SECOND}"),)
LATE = (block([9000] * (N - 2), first_index=2),)
SLOW_TIMER = (block([100_000, 2_441_000, 3_861_000] * (N // 3)),)
FALLING_BEHIND = (Block(0, 0, 0, np.full(N - 170, 60_000), array(), array()),)


@pytest.mark.parametrize(
    ("made", "expected", "says"),
    [
        (clean(cut(N - 1)), set(), ""),
        (clean(cut(N - 3)), set(), ""),
        (clean(cut(N - 4)), {("samples-missing", INVALID)}, "3,000 were due, 2,996 are accounted for"),
        (clean((block([9000] * (N - 401) + [401 * MS], {N - 401: 400}),)), set(), ""),
        (clean(cut(N + 3)), {("samples-surplus", WARNING)}, "3 activations too many"),
        (clean(cut(N + 30)), {("samples-surplus", INVALID)}, "30 activations too many"),
        (clean(gone(2), end=totals(N - 2, 2, gone(2))), {("lost", WARNING)}, "2 of 3,000 values"),
        (clean(gone(100), end=totals(N - 100, 100, gone(100))), {("lost", INVALID)}, "100 of 3,000 values"),
        (clean(LATE, end=totals(N - 2, 2, LATE)), {("late-start", WARNING)}, "2 activations"),
        (clean(end=totals(N + 50)), {("totals", INVALID)}, "the record lacks 50 activations"),
        (clean(cut(2000), end=None, damage=CUT_OFF), {("truncated", WARNING)}, "2.0 s of 3.0 s"),
        (clean(end=end(BLOCKS, EndReason.INTERRUPTED, "SIGINT")), {("ended-early", WARNING)}, ""),
        (clean(end=end(BLOCKS, EndReason.NO_SPACE)), {("ended-early", WARNING)}, ""),
        (clean(end=end(BLOCKS, EndReason.HOST_GONE)), {("ended-early", WARNING)}, ""),
        (clean(end=end(BLOCKS, EndReason.ERROR)), {("ended-early", INVALID)}, ""),
        (clean(damage=(STRAY,)), {("damage", WARNING)}, "64 bytes are no valid chunk; no chunk is missing"),
        (clean(gone(0), end=clean().end, damage=DAMAGE), {("damage", INVALID)}, "bytes 70 to 133 can't be read"),
        (clean(gone(3), end=clean().end, damage=DAMAGE), {("damage", INVALID)}, "3 of 3,000 activations are gone"),
        (clean(gone(500), end=clean().end, damage=DAMAGE), {("damage", INVALID)}, "500 of 3,000 activations"),
        (clean(cut(1000), end=end(cut(1000)), events=STALLED), {("stalled", WARNING)}, "after 1.0 s"),
        (clean(SLOW_TIMER), {("granularity", WARNING)}, "2,441 us late or more"),
        (clean(FALLING_BEHIND, FREE), {("drift", WARNING)}, "2,830 of 2,999"),
        (clean(events=(Event(5, 0, "dropped", ""),)), {("events-dropped", WARNING)}, ""),
        (clean(facts=facts({("warmup_ns", ASKED): "0"})), {("warm-up", WARNING)}, ""),
    ],
)
def test_what_is_missing_or_too_much(made: Record, expected: set[tuple[str, Severity]], says: str) -> None:
    found = said_of(made)
    assert {(each.code, each.severity) for each in found.values()} == expected
    assert not says or says in next(iter(found.values())).whole


def test_a_fifth_of_the_periods_gone_without_a_trace() -> None:
    """Article 1, third row: 79.5 % of the samples, and nothing in the table shows it."""
    found = said_of(clean(cut(N * 8 // 10), end=clean().end))
    assert found["samples-missing"].severity is INVALID
    assert "3,000 were due, 2,400 are" in found["samples-missing"].whole
    assert "totals" in found


def test_parts_of_a_record_that_tell_another_largest_latency() -> None:
    """The SUMMARY had 300 us, and PROVEN stood beside it."""
    second, none = np.array([0]), np.array([], np.int64)
    told = slice_of_values(SERIES, [300_000])
    seconds = {SERIES.id: Seconds(second, second + N, second, second + 9_000)}
    found = said_of(clean(slices=(told,), seconds=seconds))["contradiction"]
    assert (found.severity, found.detail) == (INVALID, "thread 0: SUMMARY 300 us, SECONDS 9 us")
    top = {SERIES.id: Top(8, none, none, none)}
    assert "contradiction" not in said_of(clean(slices=(told,), top=top)), "an empty part tells nothing"


def test_the_number_of_samples_asked_for() -> None:
    asked = {("duration_ns", ASKED): None, ("samples", ASKED): str(2 * N)}
    assert "6,000 were due, 3,000 are" in with_facts(asked)["samples-missing"].whole
    half_period = {**asked, ("period_ns", ASKED): str(MS // 2)}
    assert "samples-missing" in with_facts(half_period)
    assert with_facts({**half_period, ("period_step_ns", ASKED): str(MS // 2)}) == {}, "this thread's is twice as long"


def test_a_thread_that_ended_before_the_others() -> None:
    other = replace(SERIES, id=1, thread=1)
    blocks = [block([9000] * 5000), block([9000] * 2000, series=other)]
    made = replace(clean(tuple(blocks)), series=(SERIES, other), end=end(blocks, EndReason.INTERRUPTED))
    found = said_of(replace(made, facts=facts({("duration_ns", ASKED): str(9000 * MS)})))
    assert set(found) == {"samples-missing", "ended-early"}
    assert "lacks 60 % of thread 1's" in found["samples-missing"].whole


def test_a_thread_without_a_value() -> None:
    assert "nothing-measured" in said_of(clean(()))
    assert "nothing-measured" in said_of(replace(clean(()), series=()))


def test_work_is_no_coarse_timer_but_a_late_top_is() -> None:
    """The loop works for most of its period; then the same with tops that late."""
    busy = analyse(app_record([(4, 5, 4_000)] * 40), None, 1)
    late = analyse(app_record([(3_000, 3_001, 4_000)] * 40), None, 1)
    assert "granularity" not in {doubt.code for doubt in busy.doubts}
    assert "granularity" in {doubt.code for doubt in late.doubts}


def test_a_limit_that_the_user_set_ends_a_run_as_asked() -> None:
    asked, event = fact("samples", "1000"), Event(200 * MS, 0, "limit", "a loop began 600.000 us late")
    made = app_record([(4, 5, 6)] * 40)
    short = analyse(replace(made, facts=(*made.facts, asked)), None, 1)
    ended = analyse(replace(made, facts=(*made.facts, asked), events=(event,)), None, 1)
    assert "samples-missing" in {doubt.code for doubt in short.doubts}
    assert {"samples-missing", "limit"} & {doubt.code for doubt in ended.doubts} == {"limit"}


# Doubts about records with several fields, and that the others are neither said twice nor of the wrong field.


SERIES_STAGES = tuple(replace(each, cpu=2) for each in fields_of(KERNEL, 0, ("irq", "task")))
IRQ, TASK = SERIES_STAGES


def staged(irq: Sequence[int] = (2_000,) * N, task: Sequence[int] = (9_000,) * N) -> Record:
    """A clean run with two fields."""
    blocks = (block(irq, series=IRQ), block(task, series=TASK))
    totals = (SeriesTotals(0, len(irq), 0, 0), SeriesTotals(1, len(task), 0, 0))
    end = End(N * MS, EndReason.AS_ASKED, "", totals)
    made = replace(clean(blocks, TASK), series=SERIES_STAGES, end=end)
    refs = tuple(structs.replace(ref, series=one.series) for ref, one in zip(made.chunk_refs, blocks, strict=True))
    return replace(made, chunk_refs=refs)


def said(made: Record) -> dict[str, Doubt]:
    found = doubts_about_run(made, summarise(made, 1), None, stage_switches(made, series_by_field(made)))
    assert len({doubt.code for doubt in found}) == len(found)
    return {doubt.code: doubt for doubt in found}


BROKEN = facts({("cpu", Moment.END): "1", ("policy", Moment.END): "other", ("warmup_ns", Moment.ASKED): "0"})
WRONG_TOTALS = replace(
    staged(), end=replace(totals(N + 100), totals=(*totals(N + 100).totals, SeriesTotals(1, N, 0, 0)))
)


def with_sources(*told: SystemFile) -> Record:
    return replace(staged(), files=(*files({}), *told))


@pytest.mark.parametrize(
    ("made", "expected", "says"),
    [
        (staged(), {}, ""),
        (replace(staged(), facts=BROKEN), {"cpu": INVALID, "policy": INVALID, "warm-up": WARNING}, ""),  # each once
        (staged(task=[9_000] * (N // 2), irq=[2_000] * (N // 2)), {"samples-missing": INVALID}, ""),
        (staged(irq=[2_000] * N, task=[MS // 2] * N), {"granularity": WARNING}, ""),
        (WRONG_TOTALS, {"totals": INVALID}, "(irq)"),
        (
            staged(irq=[2_000] * (N - 1) + [9_700]),
            {"stage-order": WARNING},
            "task came before irq in 1 of 3,000 activations, by 700 ns at most",
        ),
        (staged(irq=[9_001] * N), {"stage-order": INVALID}, ""),
        # A source that lost nothing and saw nothing larger is no doubt, and one that counted more than the record is.
        (with_sources(source_file("irq", count=N, max=2_000), source_file("task", count=N + 1, max=9_000)), {}, ""),
        (with_sources(source_file("task", count=N + 40, lost=40, max=77_000)), {"source-differs": WARNING}, ""),
        (with_sources(source_file("irq", count=N, max=2_001)), {"source-differs": WARNING}, ""),
        (with_sources(source_file("irq", count=N + 2, max=1)), {"source-differs": WARNING}, ""),
        (with_sources(source_file("irq", count=0)), {}, ""),
    ],
)
def test_a_doubt_about_one_of_several_fields(made: Record, expected: dict[str, Severity], says: str) -> None:
    found = said(made)
    assert {code: doubt.severity for code, doubt in found.items()} == expected
    assert says in "".join(doubt.whole for doubt in found.values())


def test_a_field_that_lacks_values_is_named() -> None:
    found = said(replace(staged(irq=[2_000] * (N - 5)), end=None))
    assert "2,995" in found["stages-differ"].whole
    assert "stages-differ" not in said(replace(staged(), end=None))


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
    assert "qemu icount shift=0" in found["virtual-time"].whole


def of_turns(online: str, *told: tuple[str, str], clock: bool = True) -> dict[str, Doubt]:
    """The doubts about a guest with these CPUs on line, by code. told: its facts; clock: in virtual time."""
    guest = files({("/sys/devices/system/cpu/online", Moment.START): online})
    more = [fact(name, text, Moment.START) for name, text in told]
    return said_of(clean(files=guest, facts=(*facts({}), *((VIRTUAL,) if clock else ()), *more)))


@pytest.mark.parametrize("moment", [Moment.START, Moment.END])
def test_processors_that_take_turns_make_virtual_time_invalid(moment: Moment) -> None:
    online, cpuinfo = "/sys/devices/system/cpu/online", "/proc/cpuinfo"
    for path, content, count in (
        (online, "0-1\n", 2),
        (online, "0,2-3\n", 3),
        (cpuinfo, "processor\t: 0\n\nprocessor\t: 1\n", 2),
    ):
        guest = files({(path, moment): content})
        found = said_of(clean(files=guest, facts=(*facts({}), VIRTUAL)))
        assert found["virtual-smp"].severity is INVALID
        assert f"{count} processors" in found["virtual-smp"].whole
        assert "virtual-smp" not in said_of(clean(files=guest))


@pytest.mark.parametrize("online", ["0", "3", "", "nonsense"])
def test_one_processor_in_virtual_time_takes_no_turns(online: str) -> None:
    assert "virtual-smp" not in of_turns(online)


PACED, SOAKED = ("turn_us", "4"), ("soakers", "2")


def test_processors_that_take_short_turns_and_are_kept_busy_are_only_told() -> None:
    found = of_turns("0-1", PACED, SOAKED, ("cpu_shares", "0.615 0.385"))
    assert "virtual-smp" not in found
    assert found["virtual-turns"].severity is WARNING
    assert "CPU 0 has 61.5 %, CPU 1 38.5 %" in found["virtual-turns"].whole
    assert not {"virtual-smp", "virtual-turns"} & set(of_turns("0-1", PACED, ("soakers", "1"), clock=False))


@pytest.mark.parametrize("turn_us", [1, 10, 11, 100])
def test_long_turns_are_said_to_be_in_the_latencies(turn_us: int) -> None:
    found = of_turns("0-1", ("turn_us", str(turn_us)), SOAKED)["virtual-turns"].whole
    assert ("shorter pace" in found) == (turn_us > 10)
    assert ("shorter pace" in turns_sentence(2, turn_us, soakers=True)) == (turn_us > 10)


@pytest.mark.parametrize(
    "shares",
    ["", "0.615", "0.6 0.3 0.1", "nan inf", "1e9 -1", "0.6150 0.385", "99 1", "\x1b[2J 0.385", "0." + "6" * 5000],
)
def test_shares_that_make_no_sense_are_left_out(shares: str) -> None:
    found = of_turns("0-1", PACED, SOAKED, ("cpu_shares", shares))
    assert "of the instructions" not in found["virtual-turns"].whole


@pytest.mark.parametrize(
    "told",
    [
        (SOAKED,),
        *((("turn_us", text), SOAKED) for text in ("0", "-4", "often", "\u0664", "9" * 5000, "101")),
        (PACED,),
        *((PACED, ("soakers", text)) for text in ("0", "all", "1", "3")),
        (PACED, SOAKED, ("cpu_shares", "1.000 0.000")),
    ],
)
def test_processors_whose_speeds_depend_on_each_other_make_virtual_time_invalid(
    told: tuple[tuple[str, str], ...],
) -> None:
    found = of_turns("0-1", *told)
    assert "virtual-turns" not in found
    assert found["virtual-smp"].severity is INVALID


def test_a_kernel_that_runs_one_of_several_processors_makes_the_run_invalid() -> None:
    assert of_turns("0", PACED)["virtual-smp"].severity is INVALID
