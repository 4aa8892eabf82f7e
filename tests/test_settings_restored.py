# SPDX-License-Identifier: Apache-2.0
"""Settings of a run are as before, byte for byte, after SIGKILL of the agent, of its control group, or of everything.

``RTPROOF_KILLS`` sets how often, ``RTPROOF_SEED`` when. In a guest, because others use this machine, and because some
of the settings are dangerous.
"""

import random
from pathlib import Path

import lab_kernels
import pytest
from agent_process import agent
from restored_states import KILLS, SEED, STATE, Killed, counts, differences

from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

pytestmark = pytest.mark.slow
TRIALS = max(4, KILLS * 4 // 5)
LONGEST_S = 300 + 30 * TRIALS
WAYS = ("agent", "group", "contained", "all")
"""group: the agent's, which the keeper has left; contained: a group that the keeper cannot leave, as in a container;
all: the agent and the keeper, in one group."""
MEASURES = "/out/record"
MILESTONES = ("/proc", "/var/lib/rtproof", MEASURES)
"""What is there first: the agent may not have begun; it has a journal; it measures, with everything set."""
SETTINGS = (
    "/proc/sys/vm/stat_interval=7",
    "/proc/sys/vm/swappiness=3",
    "/proc/sys/vm/dirty_background_ratio=3",
    "/proc/sys/kernel/printk=1",
    "/proc/sys/kernel/timer_migration=0",
    "/proc/sys/kernel/sched_rt_runtime_us=-1",
    "/sys/kernel/mm/transparent_hugepage/enabled=never",
    "/sys/devices/virtual/workqueue/cpumask=1",
    "/proc/irq/[0-9]*/smp_affinity_list=0",
    "/proc/irq/default_smp_affinity=1",
    "threads:ksoftirqd/*:policy=fifo:1",
    "threads:*:cpus=0",
)
GROUPS = (
    "controller:cpuset=on",
    "mkdir:/sys/fs/cgroup/tuned",
    "/sys/fs/cgroup/tuned/cpuset.cpus=1",
    "/sys/fs/cgroup/tuned/cpuset.cpus.partition=isolated",
    "join:/sys/fs/cgroup/tuned",
)
"""A container has none."""
SCRIPT = """\
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /var/lib /out/states /sys/fs/cgroup/victim /sys/fs/cgroup/doomed
mount --make-rprivate /
start() {
    echo 0 > /sys/fs/cgroup/victim/cgroup.procs
    [ $1 = contained ] || exec /agent run --cpus 1 -o /out/record --duration 1h SETTINGS GROUPS
    mount --bind /sys/fs/cgroup/victim /sys/fs/cgroup
    exec /agent run --cpus 1 -o /out/record --duration 1h SETTINGS
}
kill_group() {
    echo 1 > /sys/fs/cgroup/$1/cgroup.kill
}
trial() {
    if [ $2 = contained ]; then unshare -m sh -c '. /start; start contained' & else (start $2) & fi
    until [ -e $4 ] || ! kill -0 $!; do usleep 10000; done
    sleep $3
    group=
    if [ $4 = MEASURES ]; then
        keeper=$(grep -lsa keep $(ours | sed 's,.*,/proc/&/cmdline,') | cut -d / -f 3)
        group=$(cut -d : -f 3 /proc/$keeper/cgroup)
    fi
    journal=$(journals | wc -l)
    case $2 in
        group) kill_group tuned; kill_group victim ;;
        contained) kill_group victim ;;
        all) doomed="$! $(ours)"
            until [ -z "$doomed" ]; do
                for pid in $doomed; do echo $pid > /sys/fs/cgroup/doomed/cgroup.procs; done
                kill_group doomed
                doomed=$(ours)
            done ;;
    esac
    kill -9 $!
    wait
    while [ -n "$(ours)" ]; do sleep 0.1; done
    echo $2 $journal $(journals | wc -l) $group >> /out/killed
    echo "trial $1 $2" >> /out/told
    /agent undo 2>> /out/told || echo "undo failed" >> /out/told
    rm -f /out/record
    state /out/states/$1
} 2> /dev/null
sed '/^trial()/,$d' "$0" > /start
state /out/states/0
"""


def words(settings: tuple[str, ...]) -> str:
    return " ".join(f'--set "{one}"' for one in settings)


def test_everything_is_as_before_whatever_is_killed(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    delays = [draw.random() * draw.choice((0.1, 0.5, 3)) for _ in range(TRIALS)]
    trials = [
        (n, WAYS[n % len(WAYS)], delay, MILESTONES[(n + n // len(WAYS)) % 3]) for n, delay in enumerate(delays, 1)
    ]
    script = STATE + SCRIPT.replace("MEASURES", MEASURES)
    script = script.replace("SETTINGS", words(SETTINGS)).replace("GROUPS", words(GROUPS))
    script += "".join(f"trial {n} {way} {delay:.3f} {place}\n" for n, way, delay, place in trials)
    machine = Machine(lab_kernels.kernel("debian-6.1"), cpus=2, in_virtual_time=False)
    outcome = run_job(machine, Job(script, (("/agent", Path(agent())),)), tmp_path / "out", LONGEST_S)
    assert outcome.exit_code == 0, outcome.said
    states = tmp_path / "out" / "states"
    found = {f"{n} {way}": changed for n, way, *_ in trials if (changed := differences(states / "0", states / str(n)))}
    told = (tmp_path / "out" / "told").read_text()
    assert not found, f"{found}\n{told}"
    assert "undo failed" not in told
    killed = [
        Killed(way, journal != "0", left != "0", "".join(keeper))
        for way, journal, left, *keeper in map(str.split, (tmp_path / "out" / "killed").read_text().splitlines())
    ]
    assert [each.way for each in killed] == [way for _, way, *_ in trials]
    counts(killed)
    for each, (*_, place) in zip(killed, trials, strict=True):
        if place != MEASURES:
            continue
        assert each.journal, (each, told)
        assert each.left == (each.way in {"contained", "all"}), (each, told)
        assert each.keeper == ("/victim" if each.way == "contained" else "/"), each
    assert "is again" in told
    assert "there is nothing to restore" in told
