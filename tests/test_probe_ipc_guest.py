# SPDX-License-Identifier: Apache-2.0
"""The probe ipc in virtual time, where the kernel alone makes a value; and what a guest tells of itself."""

import probe_guest
import pytest
from probe_guest import Guest, facts, invalid, values
from test_probe_ipc import METHODS, account, totals

from rtproof.summary.kernel_model import preemption_model
from rtproof.summary.thread_table import target_threads

RT, PLAIN = "debian-6.1-rt", "debian-6.1"
SCRIPT = f"""\
mount -t debugfs none /sys/kernel/debug
/agent list > /out/list
for method in {" ".join(METHODS)}; do run $method --probe ipc --method $method; done
cat /proc/sysvipc/sem > /out/semaphores
true
"""
SAMPLES = 500


@pytest.fixture(scope="module", params=[RT, PLAIN])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run(request.param, SCRIPT, tmp_path_factory)


def test_every_post_is_answered_before_the_next(guest: Guest) -> None:
    for method in METHODS:
        record = guest.record(method)
        assert totals(record) == [(SAMPLES, 0, 0)], method
        (wake,) = values(record).values()
        assert wake.min() > 0
        assert account(record)["skipped"] == "0"
        assert facts(record, "policy") == {"fifo"}
        assert invalid(record) == []


def test_the_same_is_measured_again(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Another boot: the instructions from post to answer are the kernel's and not a matter of chance."""
    again = probe_guest.run(guest.name, f"{SCRIPT}# again\n", tmp_path_factory)
    for method in METHODS:
        (first,), (second,) = (values(each.record(method)).values() for each in (guest, again))
        assert float(abs(first.min() - second.min())) <= 0.02 * float(first.min()), method


def test_no_semaphore_is_left(guest: Guest) -> None:
    assert len(guest.text("semaphores").splitlines()) == 1


def test_the_guest_tells_its_model(guest: Guest) -> None:
    found = preemption_model(guest.record("futex"))
    assert found.built.value == ("rt" if guest.name == RT else "dynamic")
    assert found.effective.value == ("rt" if guest.name == RT else "voluntary")
    assert found.core.value == "linux"
    assert found.disagreements == ()


def test_its_threads_are_listed_with_their_policies(guest: Guest) -> None:
    found = {thread.name: thread for thread in target_threads(guest.record("futex"))}
    assert (found["rtproof-0"].policy, found["rtproof-0"].priority) == ("FF", 80)
    assert found["kthreadd"].of_kernel
    assert any(thread.interrupt for thread in found.values()) == (guest.name == RT)
