# SPDX-License-Identifier: Apache-2.0
"""What a trace leaves alone, clears up and refuses; in guests, because a kernel has one tracefs and one lockdown."""

import re
from pathlib import Path

import lab_kernels
import probe_guest
import pytest
from agent_process import agent
from probe_guest import Guest
from trace_cases import parse_line

from rtproof.core.errors import TargetError
from rtproof.summary import kernel_trace
from rtproof.summary.kernel_trace import trace_summary
from rtproof.vm.guest import Job, started_guest, wait_until_over
from rtproof.vm.machine import Machine

SCRIPT = """\
T=/sys/kernel/tracing
state() {
    (cd $T; cat buffer_size_kb trace_clock tracing_on set_event current_tracer; grep -c : trace)
}
echo 64 > $T/buffer_size_kb
mount -t tmpfs -o ro none $T/instances
state > /out/top-before
/agent run --warmup 20ms --threads 1 -o /out/top --trace buffer_kib=8192 --samples 300 2> /out/top.said
state > /out/top-after
/agent run --threads 1 -o /out/top-killed --trace on --duration 1h 2> /out/top-killed.said & agent=$!
for i in $(seq 500); do [ -n "$(cat $T/set_event)" ] && break; usleep 10000; done
kill -9 $agent
for i in $(seq 100); do state > /out/top-put-back; cmp -s /out/top-put-back /out/top-before && break; usleep 10000; done
umount $T/instances
mkdir $T/instances/mine
echo 1024 > $T/buffer_size_kb # so that the mark stays, although the agent wakes threads while it collects facts
echo global > $T/trace_clock
echo 'prev_prio < 100' > $T/events/sched/sched_switch/filter
for place in $T $T/instances/mine; do
    echo 1 > $place/events/sched/sched_wakeup/enable
    echo 1 > $place/tracing_on
    echo "a mark of mine" > $place/trace_marker
done
settings() {
    for place in $T $T/instances/mine; do
        grep . $place/tracing_on $place/set_event $place/current_tracer $place/trace_clock $place/buffer_size_kb \\
            $place/trace_options $place/events/sched/sched_switch/filter
        grep -c "a mark of mine" $place/trace
    done
    ls $T/instances
}
settings > /out/before
run traced --trace on
settings > /out/after
cat $T/trace > /out/own-trace

/agent run --trace recorder,explain,stacks,calls_of=agent --duration 1h -o /out/killed & agent=$!
until grep -q late_ns $T/instances/rtproof-${agent}_*-trace/events/synthetic/rtproof_*/trigger; do usleep 10000; done
keeper=$(ps | sed -n 's/^ *\\([0-9]*\\) .*rtproof-agent undo$/\\1/p')
kill -9 $keeper $agent
wait
(ls $T/instances; cat $T/synthetic_events) > /out/left
cat $T/kprobe_events > /out/left.probes
run next --trace on
(ls $T/instances; cat $T/synthetic_events $T/kprobe_events) > /out/cleared

/agent run --trace recorder,explain,stacks --duration 1h -o /out/orphan 2> /out/orphan.said & agent=$!
until grep -q late_ns $T/instances/rtproof-${agent}_*-trace/events/synthetic/rtproof_*/trigger; do usleep 10000; done
kill -9 $(ps | sed -n 's/^ *\\([0-9]*\\) .*rtproof-agent undo$/\\1/p') && echo killed > /out/ended
date -s 2031-01-01 > /dev/null
kill -INT $agent
wait $agent
(ls $T/instances; cat $T/synthetic_events) >> /out/ended

mkdir /small
mount -t tmpfs -o size=600k none /small
/agent run --trace on --samples 500 -o /small/record 2> /out/small.said || echo "exit $?" >> /out/small.said
ls /small $T/instances > /out/small

umount $T
run debugfs-only --trace on
"""
LOCKED = """\
mount -t securityfs none /sys/kernel/security
echo confidentiality > /sys/kernel/security/lockdown
run plain
run traced --trace on
run marked --probe app:work=outputs,marks=yes
umount /sys/kernel/tracing
run unmounted --trace on
cat /out/plain.said /out/traced.said /out/marked.said /out/unmounted.said
ls /out
"""
LOCKED_OUT = (
    "tracefs can't be used, maybe because the kernel is locked down or this is a container: Operation not permitted"
)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory)


def test_where_there_are_no_instances_the_top_is_used_and_put_back(guest: Guest) -> None:
    """A kernel before 3.10 has none; here nobody can make one."""
    assert guest.text("top-before") == guest.text("top-after")
    record = guest.record("top")
    assert kernel_trace.trace_information(record)["place"] == "top"
    assert trace_summary(record).kinds["sys_exit_clock_nanosleep"] > 280
    assert guest.text("top-put-back") == guest.text("top-before"), "after an agent that was killed"


def test_a_trace_of_the_users_own_goes_on_untouched(guest: Guest) -> None:
    assert guest.text("before") == guest.text("after")
    kinds = trace_summary(guest.record("traced")).kinds
    assert kinds["sys_exit_clock_nanosleep"] >= 500
    own = [line for line in map(parse_line, guest.text("own-trace").splitlines()) if line]
    assert {event for *_, event in own} == {"print", "sched_wakeup"}, "events of ours are not in it"


def test_what_nobody_is_left_to_put_back_the_next_trace_removes(guest: Guest) -> None:
    left = guest.text("left").split()
    ours = {name[:8] for name in left if name not in ("mine", "s64", "late_ns")}
    assert ours == {"rtproof-", "rtproof_"}, "instances, and an event"
    assert re.fullmatch(r"r100:rtproof_\d+_\d+/fault_end handle_mm_fault\n", guest.text("left.probes"))
    assert guest.text("cleared").split() == ["mine"]
    assert guest.text("ended").split() == ["killed", "mine"], "by another keeper"
    assert "late-timers" in kernel_trace.trace_information(guest.record("orphan"))["stacks"]
    assert kernel_trace.has_trace(guest.record("next"))


def test_a_disk_that_has_no_room_for_the_trace_is_told_before_anything_is_switched(guest: Guest) -> None:
    said = guest.said("small")
    assert said.startswith("rtproof-agent: the record needs up to ")
    assert said.endswith("or with a smaller buffer_kib of --trace\nexit 2\n")
    assert "mine" in guest.text("small")
    assert "rtproof" not in guest.text("small")
    assert "record" not in guest.text("small")


def test_a_tracefs_within_debugfs_will_do(guest: Guest) -> None:
    assert trace_summary(guest.record("debugfs-only")).entries > 500


def test_a_kernel_that_is_locked_down_has_no_trace_and_is_measured_all_the_same(tmp_path: Path) -> None:
    """Lockdown shuts the way on which guests send their files, too: all that comes out is what the job has said."""
    machine = Machine(lab_kernels.kernel("debian-6.1-rt"))
    job = Job(probe_guest.RUN + LOCKED, (("/agent", Path(agent())),))
    with pytest.raises(TargetError), started_guest(machine, job, tmp_path / "log", 600) as inside:
        wait_until_over(inside, 600)
    said = inside.mailbox.said.decode().splitlines()
    refused = [line for line in said if line.startswith("rtproof-agent:")]
    assert [line.partition(": ")[2] for line in refused] == [
        LOCKED_OUT,
        "marks can't be written to the kernel's trace, which needs root and tracefs: Operation not permitted",
        LOCKED_OUT,
    ]
    assert said.count("exit 2") == len(refused)
    assert "plain" in said
    assert not {"traced", "marked", "unmounted"} & set(said)
