# SPDX-License-Identifier: Apache-2.0
"""Article 3's pulses seen from outside: a loop drives "work active" and "sleep active", and a second agent times them.

The chip of the module wires line 0 to line 1 and 2 to 3. The loop stands still for a while and drops those loops. Two
guests whose lines this host joins have a clock each.
"""

from contextlib import ExitStack, suppress
from pathlib import Path

import lab_kernels
import probe_guest
import pytest
from guest_gpio import GpioLines, gpio_lines
from probe_guest import Guest, account, values
from test_vm_edges import PATIENCE_S, aarch64_agent

from rtproof.core.errors import TargetError
from rtproof.judge.analyse import analyse
from rtproof.record.reading import open_record
from rtproof.summary.recorded_facts import probe_accounts
from rtproof.vm.guest import Job, started_guest, unpack_results, wait_until_over
from rtproof.vm.machine import Machine
from rtproof.vm.qemu_process import Guest as RunningGuest

MS = 1_000_000
PERIOD_NS, LOOPS, STOOD_MS = 5 * MS, 300, 83
DRIVING_NS = 50_000
"""The loop reads its clock before and behind both calls that drive the line."""
APP = "app:work=outputs+busy,busy_us=700,chip=rtproof-loop,lines=0+2+4"
SCRIPT = f"""\
insmod /rtproof.ko gpio=1 || exit
agent() {{ # NAME OPTION...
    name=$1; shift
    exec /agent run --period 5ms --threads 1 -o /out/$name "$@" 2> /out/$name.said
}}
watch() {{ # NAME LINE
    agent $1 --priority 90 --warmup 0s --duration 3s --method watch --probe gpio:chip=rtproof-loop,in=$2
}}
watch work 1 & watch sleep 3 &
agent app --priority 40 --warmup 500ms --samples {LOOPS} --method shift --probe {APP} & loop=$!
usleep 1000000
kill -STOP $loop; usleep {STOOD_MS}000; kill -CONT $loop
wait
"""


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory)


@pytest.mark.slow
def test_every_pulse_is_seen_and_is_as_long_as_the_work_by_the_loop_s_own_clock(guest: Guest) -> None:
    own, seen, slept = (guest.record(name) for name in ("app", "work", "sleep"))
    (counted,) = probe_accounts(own, "app").values()
    assert account(seen)["pulses"] == counted["pulses_work"]
    assert int(account(slept)["pulses"]) in (int(counted["pulses_sleep"]) - 1, int(counted["pulses_sleep"]))
    told, lengths = values(own), values(seen)["length"]
    work = (told["end"] - told["start"])[:-1]  # the last pulse is not whole: no other begins behind it
    around = work - lengths[-work.size :]
    assert ((around > 0) & (around < DRIVING_NS)).all()


@pytest.mark.slow
def test_the_pulses_of_the_time_in_which_the_loop_stood_are_missing(guest: Guest) -> None:
    record = guest.record("work")
    found = analyse(record)
    assert int(account(record)["missing"]) == found.pooled.missed == STOOD_MS * MS // PERIOD_NS
    longest_ns = values(record)["period"].max()
    assert STOOD_MS * MS <= longest_ns < STOOD_MS * MS + 2 * PERIOD_NS
    assert found.cycles is not None
    assert (found.cycles.long, found.cycles.max_ns) == (1, longest_ns)
    (stood,) = found.cycles.stalls
    assert not stood.over


LOOP = """\
/agent run --period 100ms --threads 1 --priority 40 --warmup 0s --samples 100 --method shift -o /out/record \
    --probe app:work=outputs+busy,busy_us=15000,chip=0,lines=1+2+3 & loop=$!
usleep 4000000
kill -STOP $loop; usleep 2000000; kill -CONT $loop
wait
"""
WATCH = """\
/agent run --period 100ms --threads 1 --priority 90 --warmup 0s --duration 25s --method watch -o /out/record \
    --probe gpio:chip=0,in=0
"""
STOOD_NS, SLOW_NS = 2_000 * MS, 100 * MS


@pytest.mark.slow
@pytest.mark.serial
def test_two_guests_joined_by_a_line_agree_on_a_loop_that_stood(tmp_path: Path) -> None:
    """A busy host may merge edges, so only what was planted is counted on."""
    machine = Machine(lab_kernels.kernel("debian-6.1-arm64"), in_virtual_time=False)

    def start(name: str, script: str) -> tuple[RunningGuest, GpioLines]:
        job = Job(script, (("/agent", aarch64_agent()),))
        running = stack.enter_context(started_guest(machine, job, tmp_path / f"{name}.log", PATIENCE_S))
        return running, stack.enter_context(gpio_lines(running))

    relayed = 0
    with ExitStack() as stack:
        (watch, theirs), (loop, ours) = start("watch", WATCH), start("loop", LOOP)
        with suppress(TargetError):  # the one that ends first ends the connection
            while loop.alive() and watch.alive():
                line, level = ours.change(1) or (0, False)
                if line == 1:
                    theirs.drive(0, level)
                    relayed += 1
        for name, running in (("loop", loop), ("watch", watch)):
            wait_until_over(running, PATIENCE_S)
            (tmp_path / name).mkdir()
            unpack_results(running.mailbox.results.getvalue(), tmp_path / name)
    seen, own = (open_record(tmp_path / name / "record") for name in ("watch", "loop"))
    (counted,) = probe_accounts(own, "app").values()
    assert 0 < int(account(seen)["pulses"]) <= relayed // 2 <= int(counted["pulses_work"])
    found = analyse(seen)
    assert found.cycles is not None
    stood = [each.duration_ns for each in found.cycles.stalls if each.over]
    assert max(stood) >= STOOD_NS
    assert found.pooled.missed >= STOOD_NS // SLOW_NS - 1
