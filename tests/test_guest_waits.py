# SPDX-License-Identifier: Apache-2.0
"""A thread that waits for a child, which waits for a disk: the disk is named, and the child is the way to it."""

import re

import lab_kernels
import probe_guest
import pytest
from probe_guest import Guest

from rtproof.experiment.stored_runs import open_run
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import Explanation, explain

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
