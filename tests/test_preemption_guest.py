# SPDX-License-Identifier: Apache-2.0
"""The preemption model of real kernels: of one that can be told another while it runs, and of PREEMPT_RT."""

import probe_guest
import pytest
from probe_guest import Guest

from rtproof.summary.kernel_model import Confidence, PreemptionModel, preemption_model
from rtproof.summary.system_facts import system_facts

DYNAMIC = """\
P=/sys/kernel/debug/sched/preempt
for model in none voluntary full; do
    echo $model > $P
    run $model
done
{ usleep 300000; echo none > $P; } &
run changed
wait
umount /sys/kernel/debug
run unmounted
"""
PLAIN = "run plain\n"


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1", DYNAMIC, tmp_path_factory)


@pytest.fixture(scope="module")
def rt(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", PLAIN, tmp_path_factory)


def model(guest: Guest, name: str) -> PreemptionModel:
    return preemption_model(guest.record(name))


@pytest.mark.parametrize("name", ["none", "voluntary", "full"])
def test_what_the_kernel_does_now_is_told_beside_what_it_was_built_for(dynamic: Guest, name: str) -> None:
    found = model(dynamic, name)
    assert (found.built.value, found.effective.value, found.effective.confidence) == (
        *("dynamic", name),
        Confidence.CERTAIN,
    )
    assert (found.core.value, found.disagreements) == ("linux", ())


def test_a_change_in_the_middle_of_the_run_is_told(dynamic: Guest) -> None:
    (said,) = model(dynamic, "changed").disagreements
    assert said.endswith("said full at the start of the run, and none at its end")


def test_without_debugfs_the_log_tells_which_has_every_change(dynamic: Guest) -> None:
    found = model(dynamic, "unmounted").effective
    assert (found.value, found.confidence) == ("none", Confidence.LIKELY)
    assert found.evidence[0] == "kernel's log: Dynamic Preempt: none"
    assert "could not be read" in found.evidence[1]


def test_a_kernel_with_preempt_rt_says_so_in_three_ways(rt: Guest) -> None:
    found = model(rt, "plain")
    assert (found.built.value, found.effective.value, found.disagreements) == ("rt", "rt", ())
    assert found.built.confidence is Confidence.CERTAIN
    assert len(found.built.evidence) == 3


def test_a_guest_tells_of_itself(rt: Guest) -> None:
    says = {fact.what: fact.says for fact in system_facts(rt.record("plain"))}
    assert says["high-resolution timers"] == "active"
    assert says["CPU frequency"] == "no CPU has a governor"
    assert says["display drivers"].startswith(("none", "framebuffer", "DRM"))
    assert says["console"].startswith("messages below level ")
    assert says["kernel's log before the run"].startswith('"scheduling while atomic": 0 lines')
