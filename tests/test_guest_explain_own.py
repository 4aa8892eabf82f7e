# SPDX-License-Identifier: Apache-2.0
"""What a program does to itself, and which limit makes it wait, is the first cause: guests in virtual time."""

from dataclasses import replace
from pathlib import Path

import disturbed_guests
import lab_kernels
import own_doings
import probe_guest
import pytest
from agent_process import agent
from own_doings import Doing, Told

from rtproof.agents.build import build_agent
from rtproof.explain.causes import Cause
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

KERNELS = ("debian-6.1", "debian-6.1-rt", "debian-6.12")
ARM, ON_ARM = "debian-6.1-arm64", ("one-page", "pages", "cow", "compute")
"""A kernel without any event of page faults, and kinds that have some."""
PAGE_FAULT_NS = 20_000
TIMES = 12
WAITS = ("udp", "exec", "ptrace", "fair", "robust")
"""Those of the kinds that wait for others which other tests do not have."""
MAY_BE_HIDDEN = {"udp": 1}
"""How often the cause may be another: a tick whose softirq runs together with that of the packet hides who sent it."""
DOINGS = [
    replace(doing, times=min(TIMES, doing.times))
    for doing in own_doings.DOINGS
    if doing.kind in WAITS or doing.cause in (*own_doings.MAY_BE_OWN, Cause.THROTTLED, Cause.TIMER_SLACK)
]


def victim(architecture: str = "x86_64") -> Path:
    agent()  # skips the test if nothing here can build programs
    return disturbed_guests.victim(architecture)


@pytest.fixture(scope="module", params=KERNELS)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> probe_guest.Guest:
    kernel: str = request.param
    return probe_guest.run(
        kernel, own_doings.script(own_doings.doings_on(kernel, DOINGS)), tmp_path_factory, 1, ("/victim", victim())
    )


def told_of(guest: probe_guest.Guest, doing: Doing) -> list[Told]:
    return own_doings.read_doing(doing, guest.folder)


@pytest.mark.parametrize("doing", DOINGS, ids=lambda doing: doing.kind)
def test_the_first_cause_is_what_the_program_did(guest: probe_guest.Guest, doing: Doing) -> None:
    if doing not in own_doings.doings_on(guest.name, DOINGS):
        pytest.skip(f"{guest.name} has no such limit")
    told = told_of(guest, doing)
    assert len(told) >= doing.times // 2
    wrong = [each for each in told if not each.is_right(doing)]
    assert [each.budget.first.words() for each in wrong[MAY_BE_HIDDEN.get(doing.kind, 0) :]] == []


def test_probes_tell_page_faults_where_the_kernel_has_no_event_of_them(tmp_path: Path) -> None:
    machine = Machine(lab_kernels.kernel(ARM))
    doings = [doing for doing in DOINGS if doing.kind in ON_ARM]
    files = (("/agent", build_agent("aarch64")), ("/victim", victim("aarch64")))
    outcome = run_job(machine, Job(own_doings.script(doings), files), tmp_path / "out")
    assert outcome.exit_code == 0, outcome.said
    for doing in doings:
        told = own_doings.read_doing(doing, tmp_path / "out")
        assert len(told) >= doing.times // 2
        others = [each.budget.first.words() for each in told if not each.is_right(doing)]
        assert len(others) <= 1, (doing.kind, others)


def test_a_page_fault_has_its_own_length_only(guest: probe_guest.Guest) -> None:
    for each in told_of(guest, DOINGS[0]):
        faults_ns = [part.length_ns for part in each.budget.parts if part.cause.cause is Cause.PAGE_FAULT]
        assert faults_ns
        assert sum(faults_ns) <= PAGE_FAULT_NS


def test_the_time_that_a_limit_takes_is_that_without_a_cpu(guest: probe_guest.Guest) -> None:
    """What other threads and interrupts took is in the program's waiting too."""
    for doing in own_doings.doings_on(guest.name, DOINGS):
        for each in told_of(guest, doing) if doing.waited_ns else ():
            throttled_ns = sum(part.length_ns for part in each.budget.parts if part.cause.cause is Cause.THROTTLED)
            assert 0.5 * each.waited_ns < throttled_ns < 1.01 * each.waited_ns
