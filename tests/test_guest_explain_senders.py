# SPDX-License-Identifier: Apache-2.0
"""What CPU 0 does to a thread on CPU 1 is named with its thread and function, in guests of two CPUs."""

import re

import lab_kernels
import probe_guest
import pytest

from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.explanation import explain
from rtproof.record.reading import open_record

MODULE = "rtproof_disturb"
RUN = "/agent run --warmup 100ms --samples 200 --cpus 1 --trace explain,buffer_kib=8192 -o /out/"
SCHEDSTATS = "/proc/sys/kernel/sched_schedstats"
MOUNT = "mount -t tracefs none /sys/kernel/tracing 2> /dev/null\n"
KEY_SCRIPT = f"""\
{MOUNT}{RUN}twin || exit
(while :; do echo 1 > {SCHEDSTATS}; echo 0 > {SCHEDSTATS}; done) & changes=$!
taskset -p 1 $changes
{RUN}static-key || exit
kill $changes
"""
MODULE_SCRIPT = MOUNT + "".join(
    f"insmod /{MODULE}.ko period_ms=7 only={kind} || exit\n{RUN}{kind} || exit\nrmmod {MODULE} || exit\n"
    for kind in ("stop-machine", "call-function")
)


def causes(guest: probe_guest.Guest, name: str) -> set[NamedCause]:
    """All causes of all activations, in which everything above 1 us counts."""
    found = explain(open_record(guest.folder / name), 1_000)
    assert found.budgets
    return {part.cause for each in found.budgets for part in each.parts}


def from_other_cpus(found: set[NamedCause]) -> set[str]:
    return {
        each.asked_by for each in found if each.cause is Cause.HARDIRQ and each.name.startswith(("call", "resched"))
    }


def test_a_static_key_is_named_by_the_shell_that_changes_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    guest = probe_guest.run("debian-6.12", KEY_SCRIPT, tmp_path_factory, 2)
    assert not any("do_sync_core" in each for each in from_other_cpus(causes(guest, "twin")))
    senders = from_other_cpus(causes(guest, "static-key"))
    assert any(re.fullmatch(r"sent by sh/\d+ on CPU 0: do_sync_core\(\)", each) for each in senders), senders


@pytest.mark.parametrize("kernel", ["debian-6.1", "debian-6.12"])
def test_a_module_on_the_other_cpu_is_named(tmp_path_factory: pytest.TempPathFactory, kernel: str) -> None:
    """Linux 6.1 has no event that tells who sends an interrupt."""
    files = ((f"/{MODULE}.ko", lab_kernels.module(kernel, MODULE)),)
    guest = probe_guest.run(kernel, MODULE_SCRIPT, tmp_path_factory, 2, *files)
    stopped = {each.asked_by for each in causes(guest, "stop-machine") if each.name == "migration/1"}
    assert stopped
    assert all(re.fullmatch(rf"woken by {MODULE}/\d+ on CPU 0", each) for each in stopped), stopped
    senders = from_other_cpus(causes(guest, "call-function"))
    if kernel == "debian-6.1":
        assert senders == {""}
    else:
        assert any(re.fullmatch(rf"sent by {MODULE}/\d+ on CPU 0: call_runs\(\)", each) for each in senders), senders
