# SPDX-License-Identifier: Apache-2.0
"""Article 3's pulses seen from outside: a loop drives "work active" and "sleep active", and a second agent times them.

The chip of the module wires line 0 to line 1 and 2 to 3. The loop stands still for a while and drops those loops.
"""

import probe_guest
import pytest
from probe_guest import Guest, account, values

from rtproof.judge.analyse import analyse
from rtproof.summary.recorded_facts import probe_accounts

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
