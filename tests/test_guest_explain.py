# SPDX-License-Identifier: Apache-2.0
"""Causes that were put in are the causes that come out: known disturbances in guests, in virtual time."""

from pathlib import Path

import agent_process
import disturbed_guests
import explain_matrix as bench
import lab_kernels
import probe_guest
import pytest
from disturbances import OF_VICTIM, confusion, in_order
from disturbed_guests import ALL, MODULE, Disturbed, System
from part import quantile

from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain
from rtproof.record.reading import open_record

TESTED = ALL[:3]
"""``make bench-explain`` has the others."""


def victim() -> Path:
    agent_process.agent()  # skips the test if nothing here can build programs
    return disturbed_guests.victim("x86_64")


@pytest.fixture(scope="module", params=TESTED, ids=lambda system: system.name)
def disturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Disturbed:
    system: System = request.param
    files = ((f"/{MODULE}.ko", lab_kernels.module(system.kernel, MODULE)), ("/victim", victim()))
    guest = probe_guest.run(system.kernel, disturbed_guests.script(system), tmp_path_factory, 1, *files)
    return disturbed_guests.read_disturbed(system, guest.folder)


def test_every_kind_of_cause_is_named(disturbed: Disturbed) -> None:
    table, figures = confusion(disturbed.met), bench.figures(disturbed)
    assert figures["right_percent"] >= bench.RIGHT_PERCENT, table
    assert figures["least_of_a_kind"] >= bench.LEAST_OF_A_KIND, table
    assert figures["right_of_worst_kind_percent"] >= bench.RIGHT_OF_KIND_PERCENT, table


def test_nothing_is_named_that_kept_nobody(disturbed: Disturbed) -> None:
    named = {each.truth.kind for each in disturbed.met}
    assert named & disturbed.system.never_late == set()
    assert {each.kind for each in disturbed.truth} == set(disturbed.system.kinds)
    assert in_order([each for each in disturbed.truth if each.kind not in OF_VICTIM])


def test_who_it_was_is_named_too(disturbed: Disturbed) -> None:
    wrong = [each for each in disturbed.met if each.right and not each.name_right]
    assert [(each.truth.kind, each.found.first.who) for each in wrong] == []
    threads = [each for each in disturbed.met if each.right and each.truth.tid and each.truth.kind != "tasklet"]
    assert threads
    assert all(each.found.first.tid == each.truth.tid for each in threads)


def test_the_lengths_are_those_of_the_truth(disturbed: Disturbed) -> None:
    """One instruction takes a nanosecond here, so the length does not depend on this machine."""
    errors = [abs(each.error_ns) for each in disturbed.met if each.right]
    assert (quantile(errors, 0.95) or 0) <= 5_000
    assert max(errors) <= 10_000


def test_hardly_any_time_is_unexplained(disturbed: Disturbed) -> None:
    assert disturbed.unexplained <= 0.01
    assert disturbed.explanation.outside <= 1  # the trace may begin between a due time and its wake-up
    assert len(disturbed.alone) <= 0.05 * len(disturbed.met)
    for each in (*disturbed.explanation.budgets, *disturbed.explanation.ordinary, *disturbed.of_victim):
        assert sum(part.length_ns for part in each.parts) == each.activation.latency_ns


def test_a_tick_shows_the_function_where_the_kernel_has_no_preemption_point(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    system = ALL[0]
    begin, _, _ = disturbed_guests.script(system).partition(f"cat /proc/{MODULE}")
    script = begin.replace("--trace explain,", "--trace explain,stacks,").replace(
        "period_ms=7", "period_ms=5 only=kernel-code"
    )
    module = (f"/{MODULE}.ko", lab_kernels.module(system.kernel, MODULE))
    guest = probe_guest.run(system.kernel, script, tmp_path_factory, 1, module)
    found = explain(open_record(guest.folder / "record"), disturbed_guests.LIMIT_NS)
    parts = [part for each in found.budgets for part in each.parts if part.cause.cause is Cause.NO_POINT]
    hit = [part.stack for part in parts if part.stack and part.cause.name == MODULE]
    assert hit
    named = [stack for stack in hit if "disturb" in stack]  # the kernel's unwinder does not come through some thunks
    assert len(named) >= 0.8 * len(hit)
