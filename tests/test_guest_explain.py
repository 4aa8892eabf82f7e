# SPDX-License-Identifier: Apache-2.0
"""Causes that were put in are the causes that come out: nine kinds of disturbance in guests, in virtual time."""

from dataclasses import dataclass

import lab_kernels
import probe_guest
import pytest
from disturbances import KINDS, Answer, Disturbance, answers, confusion, in_order, quantile_of, read_truth

from rtproof.explain.budget import TimeBudget
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import Explanation, explain

LIMIT_NS = 20_000
LEAST_OF_A_KIND = 15
EVENTS = (
    "sched_switch+sched_waking+irq:irq_handler_*+irq:softirq_entry+irq:softirq_exit+irq_vectors:local_timer_*+"
    "irq_vectors:resched*+irq_vectors:call_func*+irq_vectors:irq_work*+hrtimer_expire_*+sys_exit_clock_nanosleep"
)
SCRIPT = f"""\
mount -t tracefs none /sys/kernel/tracing
mount -t debugfs none /sys/kernel/debug
disturb() {{
    run $1 --samples 2500 --trace events={EVENTS},buffer_kib=8192 & measures=$!
    while ! [ -s /out/$1 ]; do usleep 20000; done
    usleep 300000
    insmod /rtproof_disturb.ko period_ms=7 origin_ns=$(od -A n -t d8 -j 48 -N 8 /out/$1 | tr -d ' ')
    wait $measures
    cat /proc/rtproof_disturb > /out/$1.truth
    rmmod rtproof_disturb
}}
"""
"""The origin of CLOCK_MONOTONIC is the first i64 behind the run id and the origin of the date in the first chunk."""
PLAIN_SCRIPT = """\
for model in none full; do
    echo $model > /sys/kernel/debug/sched/preempt
    disturb $model
done
"""
NEVER_LATE = {
    "none": set(),
    "full": {"kernel-code"},
    "rt": {"kernel-code", "bh-off", "tasklet"},
}
"""What such a kernel preempts, so that nobody is late."""


@dataclass(frozen=True)
class Disturbed:
    """What an explanation says of each disturbance. alone: late activations that no disturbance meets."""

    model: str
    explanation: Explanation
    truth: list[Disturbance]
    met: list[Answer]
    alone: list[TimeBudget]


@pytest.fixture(scope="module", params=["none", "full", "rt"])
def disturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Disturbed:
    model = request.param
    kernel, script = ("debian-6.1-rt", "disturb rt\n") if model == "rt" else ("debian-6.1", PLAIN_SCRIPT)
    module = ("/rtproof_disturb.ko", lab_kernels.module(kernel, "rtproof_disturb"))
    guest = probe_guest.run(kernel, SCRIPT + script, tmp_path_factory, 1, module)
    record = guest.record(model)
    found = explain(record, LIMIT_NS)
    truth = read_truth(guest.text(f"{model}.truth"), record.begin.origin_monotonic_ns)
    return Disturbed(model, found, truth, *answers(found.budgets, truth))


def test_every_kind_of_cause_is_named(disturbed: Disturbed) -> None:
    table = confusion(disturbed.met)
    right = sum(each.right for each in disturbed.met)
    assert right >= 0.99 * len(disturbed.met), table
    for kind in set(KINDS) - NEVER_LATE[disturbed.model]:
        named = [each for each in disturbed.met if each.truth.kind == kind]
        assert len(named) >= LEAST_OF_A_KIND, table
        assert sum(each.right for each in named) >= 0.95 * len(named), table


def test_nothing_is_named_that_kept_nobody(disturbed: Disturbed) -> None:
    named = {each.truth.kind for each in disturbed.met}
    assert named & NEVER_LATE[disturbed.model] == set()
    assert {each.kind for each in disturbed.truth} == set(KINDS)
    assert in_order(disturbed.truth)


def test_who_it_was_is_named_too(disturbed: Disturbed) -> None:
    wrong = [each for each in disturbed.met if each.right and not each.name_right]
    assert [(each.truth.kind, each.found.first.who) for each in wrong] == []
    threads = [each for each in disturbed.met if each.right and each.truth.tid and each.truth.kind != "tasklet"]
    assert threads
    assert all(each.found.first.tid == each.truth.tid for each in threads)


def test_the_lengths_are_those_of_the_truth(disturbed: Disturbed) -> None:
    """One instruction takes a nanosecond here, so the length does not depend on this machine."""
    errors = [abs(each.error_ns) for each in disturbed.met if each.right]
    assert quantile_of(errors, 0.95) <= 5_000
    assert max(errors) <= 10_000


def test_hardly_any_time_is_unexplained(disturbed: Disturbed) -> None:
    assert disturbed.explanation.share_of(Cause.UNEXPLAINED) <= 0.01
    assert disturbed.explanation.outside == 0
    assert len(disturbed.alone) <= 0.05 * len(disturbed.met)
    for each in (*disturbed.explanation.budgets, *disturbed.explanation.ordinary):
        assert sum(part.length_ns for part in each.parts) == each.activation.latency_ns
