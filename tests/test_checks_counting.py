# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, array, block, end, fact
from app_cases import app_record
from doubt_cases import BLOCKS, N, clean, facts, said_of, with_facts

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Block, Damage, EndReason, Event, Moment, SeriesTotals
from rtproof.summary.summary_model import Severity

ASKED = Moment.ASKED
FREE = replace(SERIES, on_grid=False)


def cut(n: int) -> tuple[Block, ...]:
    return (block([9000] * n),)


def test_a_fifth_of_the_periods_gone_without_a_trace() -> None:
    """Article 1, third row: 79.5 % of the samples, and nothing in the table shows it."""
    found = said_of(clean(cut(N * 8 // 10), end=clean().end))
    assert found["activations-missing"].severity is Severity.INVALID
    assert found["activations-missing"].what.startswith("thread 0: 2,400 of 3,000 activations")
    assert "totals" in found


@pytest.mark.parametrize(("n", "doubted"), [(N - 1, False), (N - 3, False), (N - 4, True)])
def test_a_thousandth_is_tolerated(n: int, doubted: bool) -> None:
    assert ("activations-missing" in said_of(clean(cut(n)))) is doubted


def test_missed_activations_have_left_a_trace() -> None:
    assert said_of(clean((block([9000] * (N - 401) + [401 * MS], {N - 401: 400}),))) == {}


def test_the_number_of_samples_asked_for() -> None:
    found = with_facts({("duration_ns", ASKED): None, ("samples", ASKED): str(2 * N)})
    assert "3,000 of 6,000" in found["activations-missing"].what


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
    assert "thread 1: 2,000 of 5,000" in found["activations-missing"].what


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
    damage = Damage(1000, 0, "the record was cut off: there is no END behind its 5 chunks")
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
