# SPDX-License-Identifier: Apache-2.0
"""Programs as loads that take more than they may, in guests: nothing of this machine is loaded or measured."""

import probe_guest
import pytest
from probe_guest import Guest

from rtproof.record.contents import EndReason, Moment

pytestmark = pytest.mark.slow

# Programs that take more than they may where there is no control group: their keeper counts, on their only CPU.


MOST = 30
CALM_COUNTED = "--period 10ms --policy other"
URGENT = "--period 10ms --policy fifo"
BOMB = f"bomb:processes={MOST} sh -c 'bomb() {{ bomb & bomb & wait; }}; bomb'"
HOG = "hog:memory_mib=20 sh -c 'for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=/dev/null bs=8M & done; wait'"
TALKERS = "--program \"errors sh -c 'yes >&2 & while :; do :; done'\" --program 'yes:count=3 yes'"
SCRIPT = f"""\
left() {{
    ls -d /tmp/rtproof-load-* 2> /dev/null > /out/$1.left
    ps | grep -E '[b]omb|[/]dev/zero|[y]es' >> /out/$1.left
}}
run bomb {CALM_COUNTED} --program "{BOMB}"; left bomb
run urgent {URGENT} --program "{BOMB}"; left urgent
run hog {CALM_COUNTED} --program "{HOG}"; left hog
echo -1 > /proc/sys/kernel/sched_rt_runtime_us
run talkers {CALM_COUNTED} --samples 100 {TALKERS}; left talkers
true
"""
SENTENCES = {
    "bomb": f"load bomb died: it wanted more than {MOST} processes",
    "urgent": f"load bomb died: it wanted more than {MOST} processes",
    "hog": "load hog died: it took more than 20 MiB of memory",
}


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory)


@pytest.mark.parametrize(("run", "sentence"), SENTENCES.items())
def test_who_takes_too_much_dies_with_a_sentence(guest: Guest, run: str, sentence: str) -> None:
    said = guest.said(run)
    if said.startswith("rtproof-agent: "):  # so soon that nothing was measured
        assert said == f"rtproof-agent: {sentence}\nexit 2\n"
    else:
        record = guest.record(run)
        assert record.end
        assert (record.end.reason, record.end.text) == (EndReason.LOAD_DIED, sentence)
        assert probe_guest.invalid(record)


@pytest.mark.parametrize("run", [*SENTENCES, "talkers"])
def test_nothing_is_left(guest: Guest, run: str) -> None:
    assert guest.text(f"{run}.left") == ""


def test_who_never_stops_talking_locks_nobody_out(guest: Guest) -> None:
    """Their keepers are more urgent than all else there, and nothing takes a real-time priority away from them."""
    record = guest.record("talkers")
    assert record.end
    assert record.end.reason is EndReason.AS_ASKED
    assert record.end.totals[0].obtained == 100
    note = record.fact("load.yes.note", Moment.START)
    assert note
    assert "there is no control group" in note


# Programs that take more than they may: a control group of the kernel's holds them, where one can be had.


HOG_HELD = "dd if=/dev/zero of=/dev/null bs=64M"
BOMB_HELD = "bomb() { bomb & bomb & wait; }; bomb"
HELD = "--period 10ms --policy other"
GROUPS = "/sys/fs/cgroup/rtproof-load-*"
SCRIPT_HELD = f"""\
mount -t cgroup2 none /sys/fs/cgroup
left() {{ ls -d {GROUPS} /tmp/rtproof-load-* 2> /dev/null > /out/$1.left; ps | grep 'sleep 9[789]' >> /out/$1.left; }}
echo '+memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
while [ ! -e /stop ]; do cat {GROUPS}/pids.current >> /out/processes; usleep 2000; done 2> /dev/null &
run bomb {HELD} --program "bomb:processes={MOST} sh -c '{BOMB_HELD}'"; left bomb
run hog {HELD} --program 'hog:memory_mib=20 {HOG_HELD}'; left hog
touch /stop
run calm {HELD} --samples 30 --program 'calm:processes=4 sh -c "sleep 98 & while :; do :; done"'; left calm
/agent run -o /out/killed {HELD} --samples 6000 --program 'killed sh -c "sleep 97 & while :; do :; done"' 2> /dev/null &
agent=$!
until cat {GROUPS}/cgroup.procs 2> /dev/null | grep -q .; do usleep 10000; done
usleep 100000
cat {GROUPS}/cgroup.procs > /out/killed.joined
kill -9 $agent
for i in $(seq 500); do ls -d {GROUPS} 2> /dev/null || break; usleep 10000; done
left killed
mkdir /sys/fs/cgroup/all
sh -c 'echo 0 > /sys/fs/cgroup/all/cgroup.procs; exec "$@"' - /agent run -o /out/together {HELD} --samples 6000 \\
    --load dd:mib=4 --program "together:space_mib=1 sleep 97" 2> /out/together.log &
for i in $(seq 500); do cat {GROUPS}/cgroup.procs 2> /dev/null | grep -q . && break; usleep 10000; done
echo 1 > /sys/fs/cgroup/all/cgroup.kill
wait
ls -d {GROUPS} /tmp/rtproof-load-* > /out/together.before
sleep 98 &
echo $! > $(echo {GROUPS})/cgroup.procs
run next {HELD} --samples 30; left next
true
"""


@pytest.fixture(scope="module")
def guest_held(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT_HELD, tmp_path_factory)


@pytest.mark.parametrize("run", ["bomb", "hog"])
def test_who_takes_too_much_dies_with_a_sentence_held(guest_held: Guest, run: str) -> None:
    test_who_takes_too_much_dies_with_a_sentence(guest_held, run, SENTENCES[run])


def test_the_kernel_lets_no_process_too_many_start(guest_held: Guest) -> None:
    counted = [int(line) for line in guest_held.text("processes").splitlines()]
    assert counted
    assert max(counted) <= MOST


@pytest.mark.parametrize("run", ["bomb", "hog", "calm", "killed", "next"])
def test_no_group_and_no_process_is_left(guest_held: Guest, run: str) -> None:
    assert guest_held.text(f"{run}.left") == ""


def test_where_all_was_killed_together_there_was_something_left(guest_held: Guest) -> None:
    left = [line.rpartition("/")[0] for line in guest_held.text("together.before").splitlines()]
    assert left.count("/sys/fs/cgroup") == 1
    assert left.count("/tmp") >= 1
