# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, array, block, end, fact
from app_cases import app_record
from doubt_cases import BLOCKS, N, clean, facts, files, said_of, with_facts
from stage_records import GPIO, KERNEL, VIRTUAL, fields_of, source_file, stimuli

from rtproof.judge.analyse import analyse, doubts_about_run
from rtproof.lab.kernel_comparison import turns_sentence
from rtproof.record.contents import Block, Damage, End, EndReason, Event, Moment, Record, SeriesTotals
from rtproof.summary.fields import series_by_field, stage_switches
from rtproof.summary.series import summarise
from rtproof.summary.summary_model import Doubt, Severity

ASKED = Moment.ASKED
FREE = replace(SERIES, on_grid=False)


def cut(n: int) -> tuple[Block, ...]:
    return (block([9000] * n),)


def test_a_trace_that_could_not_be_had_is_told_with_its_reason() -> None:
    assert "trace-refused" not in said_of(clean())
    found = with_facts({("trace_refused", ASKED): "a trace needs root (Operation not permitted)"})
    assert found["trace-refused"].severity is Severity.WARNING
    assert found["trace-refused"].what.endswith("kernel's events: a trace needs root (Operation not permitted)")


def test_a_fifth_of_the_periods_gone_without_a_trace() -> None:
    """Article 1, third row: 79.5 % of the samples, and nothing in the table shows it."""
    found = said_of(clean(cut(N * 8 // 10), end=clean().end))
    assert found["activations-missing"].severity is Severity.INVALID
    assert found["activations-missing"].what.startswith(
        "thread 0: of 3,000 due activations, only 2,400 are accounted for"
    )
    assert "totals" in found


@pytest.mark.parametrize(("n", "doubted"), [(N - 1, False), (N - 3, False), (N - 4, True)])
def test_a_thousandth_is_tolerated(n: int, doubted: bool) -> None:
    assert ("activations-missing" in said_of(clean(cut(n)))) is doubted


def test_missed_activations_have_left_a_trace() -> None:
    assert said_of(clean((block([9000] * (N - 401) + [401 * MS], {N - 401: 400}),))) == {}


def test_the_number_of_samples_asked_for() -> None:
    found = with_facts({("duration_ns", ASKED): None, ("samples", ASKED): str(2 * N)})
    assert "of 6,000 due activations, only 3,000" in found["activations-missing"].what


def test_of_threads_with_longer_periods_as_many_are_due_as_come_meanwhile() -> None:
    asked = {("duration_ns", ASKED): None, ("samples", ASKED): str(2 * N), ("period_ns", ASKED): str(MS // 2)}
    assert "activations-missing" in said_of(replace(clean(), facts=facts(asked)))
    assert said_of(replace(clean(), facts=facts({**asked, ("period_step_ns", ASKED): str(MS // 2)}))) == {}


def test_a_thread_that_ended_before_the_others() -> None:
    other = replace(SERIES, id=1, thread=1)
    blocks = [block([9000] * 5000), block([9000] * 2000, series=other)]
    made = replace(clean(tuple(blocks)), series=(SERIES, other), end=end(blocks, EndReason.INTERRUPTED))
    found = said_of(replace(made, facts=facts({("duration_ns", ASKED): str(9000 * MS)})))
    assert set(found) == {"activations-missing", "ended-early"}
    assert "thread 1: of 5,000 due activations, only 2,000" in found["activations-missing"].what


@pytest.mark.parametrize(("more", "severity"), [(3, Severity.WARNING), (30, Severity.INVALID)])
def test_more_activations_than_periods(more: int, severity: Severity) -> None:
    """Article 1, Xenomai: 36,022,992 samples in ten hours at 1 kHz."""
    found = said_of(clean(cut(N + more)))
    assert found["activations-surplus"].severity is severity
    assert f"{more} more than the time allows" in found["activations-surplus"].what


@pytest.mark.parametrize(("gone", "severity"), [(2, Severity.WARNING), (100, Severity.INVALID)])
def test_values_that_could_not_be_kept(gone: int, severity: Severity) -> None:
    blocks = (block([9000] * 1000), block([9000] * (2000 - gone), first_index=1000 + gone))
    ended = replace(end(blocks), totals=(SeriesTotals(0, N - gone, 0, gone),))
    found = said_of(clean(blocks, end=ended))
    assert set(found) == {"lost"}
    assert found["lost"].severity is severity
    assert f"{gone} of 3,000 activations" in found["lost"].what


def test_a_late_warm_up() -> None:
    blocks = (block([9000] * (N - 2), first_index=2),)
    found = said_of(clean(blocks, end=replace(end(blocks), totals=(SeriesTotals(0, N - 2, 0, 2),))))
    assert set(found) == {"late-start"}
    assert "began 2 activations late" in found["late-start"].what


def test_totals_that_the_record_does_not_hold() -> None:
    ended = replace(end(BLOCKS), totals=(SeriesTotals(0, N + 50, 0, 0),))
    found = said_of(clean(end=ended))
    assert (set(found), found["totals"].severity) == ({"totals"}, Severity.INVALID)
    assert "50 activations more than" in found["totals"].what


def test_a_record_that_was_cut_off() -> None:
    damage = Damage(1000, 0, "the record was cut off: there is no END after its 5 chunks")
    found = said_of(clean(cut(2000), end=None, damage=(damage,)))
    assert (set(found), found["truncated"].severity) == ({"truncated"}, Severity.WARNING)
    assert found["truncated"].what == "the record was cut off: it covers 2.0 s of 3.0 s asked for"


@pytest.mark.parametrize(
    ("reason", "words", "severity"),
    [
        (EndReason.INTERRUPTED, "it was interrupted (SIGINT)", Severity.WARNING),
        (EndReason.NO_SPACE, "no space was left", Severity.WARNING),
        (EndReason.HOST_GONE, "the host went away", Severity.WARNING),
        (EndReason.ERROR, "something failed", Severity.INVALID),
    ],
)
def test_a_run_that_ended_early(reason: EndReason, words: str, severity: Severity) -> None:
    found = said_of(clean(end=end(BLOCKS, reason, "SIGINT")))
    assert (set(found), found["ended-early"].severity) == ({"ended-early"}, severity)
    assert words in found["ended-early"].what


def test_only_an_interrupted_run_was_ended_by_who_watched_it() -> None:
    watched = (*clean().facts, fact("until_decided", "yes"))
    stopped, failed = (
        said_of(clean(end=end(BLOCKS, reason), facts=watched))["ended-early"]
        for reason in (EndReason.INTERRUPTED, EndReason.ERROR)
    )
    assert stopped.what.endswith("because it was interrupted; it was to end as soon as its limits were decided")
    assert stopped.remedy.startswith("judge it by those limits")
    assert failed.what.endswith("because something failed")
    assert failed.remedy == "measure again to the end"


@pytest.mark.parametrize(("gone", "severity"), [(0, Severity.WARNING), (3, Severity.WARNING), (500, Severity.INVALID)])
def test_parts_of_the_file_that_are_no_record(gone: int, severity: Severity) -> None:
    blocks = (block([9000] * 1000), block([9000] * (2000 - gone), first_index=1000 + gone))
    damage = (Damage(70, 64, "at offset 70, 64 bytes are no valid chunk"), Damage(200, 0, "chunk 7 is gone"))
    found = said_of(clean(blocks, end=clean().end, damage=damage))
    assert (set(found), found["damage"].severity) == ({"damage"}, severity)
    assert "2 parts of the file could not be read (64 bytes" in found["damage"].what
    assert f"; {gone} of 3,000 activations are gone" in found["damage"].what


def test_a_stall_is_a_result_and_not_missing_data() -> None:
    event = Event(3 * SECOND, 0, "stalled", f"the thread did not run any more; since_ns={SECOND}")
    found = said_of(clean(cut(1000), end=end(cut(1000)), events=(event,)))
    assert (set(found), found["stalled"].severity) == ({"stalled"}, Severity.WARNING)
    assert "thread 0 did not run from 1.0 s" in found["stalled"].what


def test_a_thread_without_a_value() -> None:
    found = said_of(clean(()))
    assert found["nothing-measured"].what == "thread 0 measured nothing"
    assert said_of(replace(clean(()), series=()))["nothing-measured"].what == "the record has no thread"


def test_no_warm_up() -> None:
    assert set(with_facts({("warmup_ns", ASKED): "0"})) == {"warm-up"}


def test_a_timer_without_high_resolution() -> None:
    """Article 1, setitimer: 2,441 us late on average, at a period of 1 ms."""
    found = said_of(clean((block([100_000, 2_441_000, 3_861_000] * (N // 3)),)))
    assert set(found) == {"coarse-timer"}
    assert "2,441 us late or more, at a period of 1,000 us" in found["coarse-timer"].what


def test_a_method_that_falls_behind() -> None:
    values = np.full(N - 170, 60_000)
    found = said_of(clean((Block(0, 0, 0, values, array(), array()),), FREE))
    assert set(found) == {"drift"}
    assert "2,830 of 2,999 cycles" in found["drift"].what


def test_events_that_are_not_there() -> None:
    assert set(said_of(clean(events=(Event(5, 0, "dropped", ""),)))) == {"events-dropped"}


def test_work_is_no_coarse_timer_but_a_late_top_is() -> None:
    """The loop works for most of its period; then the same with tops that late."""
    busy = analyse(app_record([(4, 5, 4_000)] * 40), None, 1)
    late = analyse(app_record([(3_000, 3_001, 4_000)] * 40), None, 1)
    assert "coarse-timer" not in {doubt.code for doubt in busy.doubts}
    assert "coarse-timer" in {doubt.code for doubt in late.doubts}


def test_a_limit_that_the_user_set_ends_a_run_as_asked() -> None:
    asked, event = fact("samples", "1000"), Event(200 * MS, 0, "limit", "a loop began 600.000 us late")
    made = app_record([(4, 5, 6)] * 40)
    short = analyse(replace(made, facts=(*made.facts, asked)), None, 1)
    ended = analyse(replace(made, facts=(*made.facts, asked), events=(event,)), None, 1)
    assert "activations-missing" in {doubt.code for doubt in short.doubts}
    (said,) = (doubt for doubt in ended.doubts if doubt.code == "limit")
    assert said.severity is Severity.WARNING
    assert said.what == "the run ended after 200 ms, as asked: a loop began 600.000 us late"
    assert "activations-missing" not in {doubt.code for doubt in ended.doubts}


# Doubts about records with several fields, and that the others are neither said twice nor of the wrong field.


SERIES_STAGES = tuple(replace(each, cpu=2) for each in fields_of(KERNEL, 0, ("irq", "task")))
IRQ, TASK = SERIES_STAGES


def staged(irq: Sequence[int] = (2_000,) * N, task: Sequence[int] = (9_000,) * N) -> Record:
    """A clean run with two fields."""
    blocks = (block(irq, series=IRQ), block(task, series=TASK))
    totals = (SeriesTotals(0, len(irq), 0, 0), SeriesTotals(1, len(task), 0, 0))
    end = End(N * MS, EndReason.AS_ASKED, "", totals)
    made = replace(clean(blocks, TASK), series=SERIES_STAGES, end=end)
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
    assert f"thread 0: of {N:,} due activations, only {N // 2:,} are" in half["activations-missing"].what
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


def of_turns(online: str, *told: tuple[str, str]) -> dict[str, Doubt]:
    """The doubts about a guest in virtual time with these CPUs on line, by code. ``told``: facts of the guest."""
    guest = files({("/sys/devices/system/cpu/online", Moment.START): online})
    more = [fact(name, text, Moment.START) for name, text in told]
    return said_of(clean(files=guest, facts=(*facts({}), VIRTUAL, *more)))


PACED, SOAKED = ("turn_us", "4"), ("soakers", "2")


def test_processors_that_take_short_turns_and_are_kept_busy_are_only_told() -> None:
    found = of_turns("0-1", PACED, SOAKED, ("cpu_shares", "0.615 0.385"))
    assert "virtual-smp" not in found
    assert found["virtual-turns"].severity is Severity.WARNING
    assert "2 processors take turns of at most 4 us" in found["virtual-turns"].what
    assert "(CPU 0 has 61.5 %, CPU 1 38.5 % of the instructions)" in found["virtual-turns"].what


@pytest.mark.parametrize(("turn_us", "longer"), [(1, False), (4, False), (10, False), (11, True), (100, True)])
def test_long_turns_are_said_to_be_in_the_latencies(turn_us: int, longer: bool) -> None:
    found = of_turns("0-1", ("turn_us", str(turn_us)), SOAKED)["virtual-turns"].what
    assert found.endswith("make the largest latencies longer, so take a shorter pace") == longer
    assert turns_sentence(2, turn_us, soakers=True).endswith("longer, so take a shorter pace.") == longer


@pytest.mark.parametrize(
    "shares",
    ["", "0.615", "0.6 0.3 0.1", "nan inf", "1e9 -1", "0.6150 0.385", "99 1", "\x1b[2J 0.385", "0." + "6" * 5000],
)
def test_shares_that_make_no_sense_are_left_out(shares: str) -> None:
    found = of_turns("0-1", PACED, SOAKED, ("cpu_shares", shares))
    assert "of the instructions" not in found["virtual-turns"].what
    assert "only a part of the speed of one: the figures" in found["virtual-turns"].what


@pytest.mark.parametrize(
    ("told", "lack"),
    [
        ((SOAKED,), "nothing ends their turns"),
        ((("turn_us", "0"), SOAKED), "nothing ends their turns"),
        ((("turn_us", "-4"), SOAKED), "nothing ends their turns"),
        ((("turn_us", "often"), SOAKED), "nothing ends their turns"),
        ((("turn_us", "\u0664"), SOAKED), "nothing ends their turns"),
        ((("turn_us", "9" * 5000), SOAKED), "nothing ends their turns"),
        ((("turn_us", "101"), SOAKED), "their turns last up to 101 us"),
        ((PACED,), "no soakers keep each of them busy"),
        ((PACED, ("soakers", "0")), "no soakers keep each of them busy"),
        ((PACED, ("soakers", "all")), "no soakers keep each of them busy"),
        ((PACED, ("soakers", "1")), "1 soaker cannot keep each of them busy"),
        ((PACED, ("soakers", "3")), "3 soakers cannot keep each of them busy"),
        ((PACED, SOAKED, ("cpu_shares", "1.000 0.000")), "CPU 1 gets none"),
    ],
)
def test_processors_whose_speeds_depend_on_each_other_make_virtual_time_invalid(
    told: tuple[tuple[str, str], ...], lack: str
) -> None:
    found = of_turns("0-1", *told)
    assert "virtual-turns" not in found
    assert found["virtual-smp"].severity is Severity.INVALID
    assert f"2 processors share one stream of instructions, and {lack}: a latency" in found["virtual-smp"].what


def test_a_kernel_that_runs_one_of_several_processors_makes_the_run_invalid() -> None:
    found = of_turns("0", PACED)
    assert found["virtual-smp"].severity is Severity.INVALID
    assert "its kernel runs only one" in found["virtual-smp"].what


def test_a_clock_that_shows_time_has_no_turns() -> None:
    guest = files({("/sys/devices/system/cpu/online", Moment.START): "0-1"})
    told = (fact("turn_us", "4", Moment.START), fact("soakers", "1", Moment.START))
    assert not {"virtual-smp", "virtual-turns"} & set(said_of(clean(files=guest, facts=(*facts({}), *told))))
