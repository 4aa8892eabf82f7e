# SPDX-License-Identifier: Apache-2.0
"""A thread that waits for a child, which waits for a disk: the disk is named, and the child is the way to it."""

import re

import agent_process
import disturbed_guests
import lab_kernels
import probe_guest
import pytest
from disturbances import answers, read_victim
from probe_guest import Guest

from rtproof.experiment.stored_runs import open_run
from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.explanation import Explanation, explain, explain_activations
from rtproof.record.reading import open_record

READS = 12
REQUEST_NS = 20_000_000
"""The disk of the module null_blk answers so late, by a timer."""
SCRIPT = f"""\
T=/sys/kernel/tracing
mount -t tracefs none $T 2> /dev/null
insmod /configfs.ko && insmod /null_blk.ko irqmode=2 completion_nsec={REQUEST_NS} gb=1 submit_queues=1 || exit
[ -b /dev/nullb0 ] || mknod /dev/nullb0 b $(sed 's/:/ /' /sys/block/nullb0/dev) || exit
sed 's/^/disk /' /sys/block/nullb0/dev > /out/disk
/agent run -o /out/read --probe foreign --trace explain,whole,keep_mib=16 --begin 'marker:begin*' --end marker:end \\
    --duration 3s & agent=$!
until cat $T/instances/*/tracing_on $T/tracing_on 2> /dev/null | grep -q 1 && [ -e /out/read ]; do usleep 10000; done
usleep 200000
for i in $(seq {READS}); do
    echo begin $i > $T/trace_marker
    dd if=/dev/nullb0 of=/dev/null bs=4096 count=1 skip=$((i * 1000)) 2> /dev/null
    echo end > $T/trace_marker
    usleep 10000
done
wait $agent
"""


@pytest.fixture(scope="module", params=["debian-6.1", "debian-6.1-rt"])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    lab_kernels.kernel(request.param)
    modules = lab_kernels.fetched(request.param).image.parent.parent.glob("lib/modules/*/kernel/*/**/*.ko")
    files = [(f"/{path.name}", path) for path in modules if path.name in ("configfs.ko", "null_blk.ko")]
    return probe_guest.run(request.param, SCRIPT, tmp_path_factory, 1, *files)


@pytest.fixture(scope="module")
def found(guest: Guest) -> Explanation:
    return explain(open_run(guest.folder / "read").record, REQUEST_NS // 2)


def test_the_disk_is_what_was_waited_for(guest: Guest, found: Explanation) -> None:
    disk = guest.text("disk").strip()
    assert len(found.budgets) >= READS - 1
    for each in found.budgets:
        first = each.first
        assert first.cause is Cause.INTERRUPT_WAIT, first
        assert re.match(rf"{disk}, timer null_cmd_timer_expired", first.name), first
        assert each.by_cause[first] > REQUEST_NS // 2


def test_the_child_that_reads_is_the_way_to_the_disk_and_has_its_own_name(found: Explanation) -> None:
    for each in found.budgets:
        kept = {part.waits_for for part in each.parts if part.cause == each.first}
        assert all(re.fullmatch(r"dd/\d+", threads[0]) for threads in kept), kept


VICTIMS = 60
ON_TWO_CPUS = f"""\
/agent run --warmup 100ms --cpus 0 --samples {VICTIMS * 4 + 600} --trace explain,buffer_kib=8192 \\
    -o /out/beside & measures=$!
while ! [ -s /out/beside ]; do usleep 20000; done
usleep 200000
/victim $(od -A n -t d8 -j 48 -N 8 /out/beside | tr -d ' ') {VICTIMS} > /out/victim || exit
wait $measures
"""


@pytest.fixture(scope="module")
def on_two_cpus(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    agent_process.agent()  # skips the test if nothing here can build programs
    return probe_guest.run(
        "debian-6.1", ON_TWO_CPUS, tmp_path_factory, 2, ("/victim", disturbed_guests.victim("x86_64"))
    )


def test_a_holder_on_another_cpu_is_followed_to_the_hog_there(on_two_cpus: Guest) -> None:
    """A lock that hands priorities on is left out: while its holder runs, the kernel spins without an event."""
    record = open_record(on_two_cpus.folder / "beside")
    activations, truth = read_victim(on_two_cpus.text("victim"), record.begin.origin_monotonic_ns)
    met, _ = answers(explain_activations(record, activations), truth)
    inversions = [each for each in met if each.truth.kind == "inversion"]
    assert len(inversions) >= VICTIMS // 5 - 1
    for each in inversions:
        assert each.found.first == NamedCause(Cause.THREAD, "rtproof_hog", each.truth.tid)
        assert {part.cpu for part in each.found.parts if part.cause == each.found.first} == {1}
    slept = [each for each in met if each.truth.kind.endswith("-sleep")]
    assert all(each.right and each.name_right for each in slept)
    assert len(slept) >= 2 * (VICTIMS // 5 - 1)
