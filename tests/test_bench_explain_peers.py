# SPDX-License-Identifier: Apache-2.0
"""``make bench-explain`` beside other programs: which of their figures belongs to which activation of the trace."""

from collections.abc import Sequence

import explain_foreign as foreign
import explain_rtla as rtla
import numpy as np
from explain_foreign import Own, Traced
from explain_parts import Items

from rtproof.explain.budget import LateActivation
from rtproof.explain.trace_events import TraceEvent

PERIOD_NS = 1_000_000


def traced(*latencies_ns: int) -> Traced:
    """One activation for each period."""
    due = np.arange(len(latencies_ns), dtype=np.int64) * PERIOD_NS
    return Traced(due, due + np.array(latencies_ns, np.int64))


def own(*wakes: tuple[int, int]) -> Own:
    """Begin and reading of each."""
    times = np.array(wakes, np.int64)
    return Own(times[:, 1] - times[:, 0], times[:, 1])


def pairs(places: tuple[foreign.Array, foreign.Array]) -> list[tuple[int, int]]:
    return list(zip(places[0].tolist(), places[1].tolist(), strict=True))


def test_a_figure_far_from_the_trace_keeps_its_partner() -> None:
    readings = own((0, 6_000), (PERIOD_NS, PERIOD_NS + 400_000), (2 * PERIOD_NS, 2 * PERIOD_NS + 7_000))
    assert pairs(foreign.by_time(readings, traced(5_000, 5_000, 5_000))) == [(0, 0), (1, 1), (2, 2)]


def test_who_did_not_sleep_has_no_partner_and_shifts_nobody() -> None:
    """The second message was there before the thread came back for it, so the trace has no waking."""
    readings = own((0, 10_000), (9_000, 12_000), (PERIOD_NS, PERIOD_NS + 6_000))
    assert pairs(foreign.by_time(readings, traced(9_500, 5_000))) == [(0, 0), (2, 1)]


def test_an_activation_that_the_trace_lost_leaves_its_figure_alone() -> None:
    readings = own((0, 6_000), (PERIOD_NS, PERIOD_NS + 6_000), (2 * PERIOD_NS, 2 * PERIOD_NS + 6_000))
    whole = traced(5_000, 5_000, 5_000)
    lost = Traced(np.delete(whole.due_ns, 1), np.delete(whole.end_ns, 1))
    assert pairs(foreign.by_time(readings, lost)) == [(0, 0), (2, 1)]


def test_figures_without_times_are_paired_by_the_number_of_their_due_time() -> None:
    """The program leaves two due times out behind its latest figure. It did not sleep for the last one but one."""
    latencies = Own(np.array([7_000, 2_900_000, 3_000, 8_000, 2_000, 4_000, 9_000], np.int64))
    whole = traced(1_000, 6_000, 2_000_000, 5_000, 5_000, 2_000, 7_000, 1_000, 3_000, 8_000)
    there = np.array([0, 1, 2, 5, 6, 8, 9])
    assert pairs(foreign.by_order(latencies, Traced(whole.due_ns[there], whole.end_ns[there]))) == [
        (0, 1), (1, 2), (2, 3), (3, 4), (5, 5), (6, 6),
    ]  # fmt: skip


def test_what_programs_print_is_read() -> None:
    app = foreign.read_app("5000 1005000\n0 0\n")
    assert (app.late_ns.tolist(), app.read_ns) == ([5000], np.array([1005000]))
    printed = "# /dev/cpu_dma_latency\n   0:       0:    5123\n   0:       1:       0\n"
    assert foreign.read_cyclictest(printed).late_ns.tolist() == [5123]
    log = """\
# Policy : SCHED_FIFO priority : 70
#idx perf run period start end rel_st slack c_duration c_period wu_lat
   0      200       35     1011     25408302549     25408303560    9244    922     20   1000   51
   0      200       33      983     25408303571     25408304554   14266      0     20   1000    0
"""
    found = foreign.read_rt_app(log)
    assert found.read_ns is not None
    assert (found.late_ns.tolist(), found.read_ns.tolist()) == ([51_000], [25408303560_000])
    assert foreign.read_rt_app("").late_ns.size == 0


def test_what_a_thread_met_in_a_long_part_is_told() -> None:
    def event(time_ns: int, name: str) -> TraceEvent:
        return TraceEvent(time_ns, 0, name, 0, 0, 7, {})

    events = [
        event(1_000, "sched_switch"),  # in a part that is short
        event(105_000, "irq_vectors/local_timer_entry"),
        event(206_000, "softirq_entry"),
        event(207_000, "sched_switch"),
    ]
    begins = np.array([0, 100_000, 200_000, 300_000], np.int64)
    met = foreign.met_in(events, begins, begins + np.array([10_000, 20_000, 20_000, 20_000]))
    assert met == {"an interrupt": 1, "another thread got its CPU": 1, "no event of the trace": 1}


SAID = """\
rtla timerlat hit stop tracing
## CPU 0 hit stop tracing, analyzing it ##
  IRQ handler delay:                                         5.10 us (0.53 %)
  IRQ latency:                                               7.20 us
  Timerlat IRQ duration:                                     3.00 us (0.31 %)
  Blocking thread:                                         940.00 us (97.92 %)
                 rtproof_disturb:171                       940.00 us
------------------------------------------------------------------------
  Thread latency:                                          960.00 us (100%)

Max timerlat IRQ latency from idle: 2.01 us in cpu 0
"""


def wakes(*latencies_us: float) -> Sequence[rtla.Wake]:
    """Wake-ups whose interrupt came after 5 us."""
    late = (LateActivation(0, 0, 9, at, at * PERIOD_NS, round(1000 * us)) for at, us in enumerate(latencies_us))
    return [rtla.Wake(each, 5_000) for each in late]


def test_what_rtla_says_is_read() -> None:
    found = rtla.parse_analysis(SAID)
    assert found is not None
    assert (found.first, found.latency_us) == ("Blocking thread", 960.0)
    named = {kind: found.names_culprit(kind) for kind in rtla.RIGHT_LINES}
    assert {kind for kind, told in named.items() if told} == {"irqs-off", "preempt-off", "raw-spinlock"}
    assert round(found.not_charged_us, 2) == 11.9
    assert found.names == (("Blocking thread", "rtproof_disturb", 940.0),)
    assert rtla.parse_analysis("Timer Latency\n") is None


def test_rtla_stopped_at_the_first_wake_that_fits_between_its_marks() -> None:
    said = rtla.parse_analysis(SAID)
    assert said is not None
    all_wakes = wakes(957, 8, 955, 956)
    assert rtla.matching(said, all_wakes) is all_wakes[0]
    after_first = rtla.within(all_wakes, (PERIOD_NS, 4 * PERIOD_NS))
    assert rtla.matching(said, after_first) is all_wakes[2]
    assert rtla.matching(said, wakes(8, 940, 970)) is None


def stop(kind: str, ours: bool) -> dict[str, object]:
    """rtla says "Blocking thread" at all of them, and names the task of the module."""
    told = {"right": ours, "names_culprit": ours, "length_us": 90.0, "cause": "y"}
    return {"rtla": SAID, "ours": told, "truth": {"kind": kind, "length_us": 100.0}}


def test_stops_are_counted_by_kind_and_in_all() -> None:
    some = {"stops": [stop("preempt-off", True), stop("preempt-off", False)], "unmatched": ["a", "b"]}
    other = {"stops": [stop("hard-irq", True)], "unmatched": []}
    none: dict[str, list[object]] = {"stops": [], "unmatched": []}
    items: Items = {"preempt-off": some, "hard-irq": other, "irqs-off": none}
    found = {(each.of, each.words): each for each in rtla.figures(items)}
    right, named = "{}: largest part is what was done", "{}: names who did it"
    assert [found["preempt-off", right.format(who)].value for who in ("rtla", "ours")] == [100, 50]
    assert [found["hard-irq", words.format("rtla")].value for words in (right, named)] == [0, 0]
    assert found["", "stops of rtla with our explanation beside"].value == 60
    assert found["", right.format("ours")].n == 3
    assert found["preempt-off", "rtla: |error| of its length, median"].value == 840
    assert round(found["", "rtla: its lines miss the latency by, median"].value or 0, 2) == 11.9
    nothing = found["irqs-off", right.format("ours")]
    assert (nothing.value, nothing.holds) == (None, False)
    assert rtla.lines({"preempt-off": some})[-1] == "| preempt-off | 2 of 4 | 2 | 2 | Blocking thread 2 | 1 | 1 | y 2 |"
