# SPDX-License-Identifier: Apache-2.0
"""The bar of a late activation: its parts in order of time; and who was waited for."""

from explain_cases import HOG, OTHER, Cpu, begun, traced_run

from rtproof.explain.budget import BudgetPart, Phase, TimeBudget
from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.explanation import Explanation, explain
from rtproof.exporters import perfetto

LATENCY_NS = 550_000


def waited() -> Explanation:
    """At 10 us the victim blocks on what the hog has; another thread keeps the hog from the CPU."""
    cpu: Cpu = begun().timer(1_000).to_victim(7_000).switch(10_000, HOG, state=2)
    cpu.switch(20_000, OTHER, 50).switch(520_000, HOG, state=1).waking(540_000).to_victim(545_000)
    return explain(traced_run([LATENCY_NS], cpu), 100_000)


def test_perfetto_has_the_holder_on_a_track_below_its_activation() -> None:
    events = list(perfetto.trace_events(waited()))
    slices = [event for event in events if (event["ph"], event["pid"], event["tid"]) == ("X", perfetto.BUDGETS, 2)]
    assert [event["name"] for event in slices] == [f"hog/{HOG}"]


def test_a_holder_that_waits_for_another_is_named_before_it() -> None:
    parts = [
        BudgetPart(0, 1, Phase.C, NamedCause(Cause.BLOCKED, "a", 1), 0),
        BudgetPart(1, 2, Phase.C, NamedCause(Cause.BLOCKED, "b", 2), 0, waits_for=("a/1",)),
        BudgetPart(2, 3, Phase.C, NamedCause(Cause.THREAD, "c", 3), 0, waits_for=("a/1", "b/2")),
        BudgetPart(3, 4, Phase.C, NamedCause(Cause.BLOCKED), 0),
        BudgetPart(4, 5, Phase.C, NamedCause(Cause.SLEEP, "a", 1), 0),
    ]
    found = waited().budgets[0]
    assert TimeBudget(found.activation, tuple(parts), None, None).waits == (
        (0, 1, ("a/1",)),
        (1, 3, ("a/1", "b/2")),
        (4, 5, ("a/1",)),
    )
