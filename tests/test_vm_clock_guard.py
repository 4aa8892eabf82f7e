# SPDX-License-Identifier: Apache-2.0
"""The guard of virtual time: with a stand-in for QEMU, and with guests whose QEMU is delayed on purpose."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import lab_guard as bench
import lab_kernels
import pytest
import vm_cases
from agent_process import eventually
from test_doctor import written_lives

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.vm import emulators
from rtproof.vm.emulators import GUARDS, LOADED, ClockGuard, report_lines
from rtproof.vm.machine import ARCHES

STAND_IN = r"""
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t big = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static __thread bool processors, locked;
static atomic_bool halted, counted, done;
bool qemu_in_vcpu_thread(void) { return processors; }
bool bql_locked(void) { return locked; }
static void take(void) { pthread_mutex_lock(&big); locked = true; }
static void give(void) { locked = false; pthread_mutex_unlock(&big); }

static void *run(void *unused)
{
	(void)unused;
	processors = true;
	take();
	while (!done) {
		while (halted && !done)
			pthread_cond_wait(&work, &big);
		give();
		counted = false;
		halted = true;
		pthread_mutex_lock(&other);	/* not the one that the main loop may take for the end */
		pthread_mutex_unlock(&other);
		usleep(2000);
		counted = true;
		take();
	}
	give();
	return NULL;
}

/* Each round wakes the processors, as a timer does. How many rounds saw a halted processor that was not counted? */
int main(void)
{
	const struct timespec soon = { 0, 300000 };
	pthread_t thread;
	int wrong = 0;

	take();
	counted = halted = true;
	pthread_create(&thread, NULL, run, NULL);
	for (int round = 0; round < 100; round++) {
		give();
		ppoll(NULL, 0, &soon, NULL);
		take();
		wrong += halted && !counted;
		if (halted && counted) {
			halted = false;
			pthread_cond_signal(&work);
		}
		ppoll(NULL, 0, &soon, NULL);	/* within a round, as some waits of QEMU are */
		pthread_mutex_lock(&other);
		pthread_mutex_unlock(&other);
	}
	done = true;
	pthread_cond_signal(&work);
	give();
	pthread_join(thread, NULL);
	printf("%d %s\n", wrong, getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "nothing");
	return 0;
}
"""
"""A main loop and a thread of processors, which halts 2 ms before its instructions are counted."""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler here")
    folder = tmp_path_factory.mktemp("stand-in")
    (folder / "qemu.c").write_text(STAND_IN)
    built = ["cc", "-rdynamic", "-pthread", str(folder / "qemu.c"), "-o", str(folder / "qemu")]
    subprocess.run(built, check=True, capture_output=True)
    return folder / "qemu"


def started(*command: str) -> tuple[int, str]:
    """How many rounds of the main loop went wrong, and what is preloaded into the programs that it starts."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wrong, preloaded = done.stdout.split()
    return int(wrong), preloaded


def test_the_main_loop_waits_until_the_instructions_are_counted(stand_in: Path, tmp_path: Path) -> None:
    assert started(str(stand_in))[0] > 0, "the stand-in has the race"
    guard = emulators.clock_guard(str(stand_in))
    assert guard.state == "on"
    assert started(*guard.words(tmp_path / "report"), str(stand_in)) == (0, "nothing")
    assert report_lines(tmp_path / "report") == [LOADED, GUARDS]


def test_what_was_preloaded_before_stays_and_a_script_passes_the_guard_on(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = emulators.clock_guard(str(stand_in))
    monkeypatch.setenv("LD_PRELOAD", "libpthread.so.0")
    script = vm_cases.program(tmp_path / "script", f"exec {stand_in}")
    assert started(*guard.words(tmp_path / "report"), str(script)) == (0, "libpthread.so.0")


def test_a_program_that_does_not_load_it_or_a_machine_that_cannot_build_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = vm_cases.program(tmp_path / "qemu", "exit 0")
    assert emulators.clock_guard(str(other)).state.startswith(f"off: {other} does not load the guard")
    assert emulators.clock_guard(str(tmp_path / "none")).state.startswith("off: ")

    def refuse(sources: object) -> Path:
        raise UserError("there is no compiler")

    monkeypatch.setattr(emulators, "build_program", refuse)
    os.utime(other)
    other.chmod(0o700)
    found = emulators.clock_guard(str(other))
    assert (found.state, found.identity) == ("off: the guard cannot be built (there is no compiler)", "no guard")
    assert found.words(tmp_path / "report") == ()


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = tmp_path / "pid"
    monkeypatch.setattr(emulators, "TRIAL_S", 5)
    hangs = vm_cases.program(tmp_path / "qemu", f"sleep 600 & echo $! > {begun}; wait")
    assert "timed out after 5 seconds" in emulators.clock_guard(str(hangs)).state
    assert eventually(lambda: not written_lives(begun))


def test_guests_with_the_guard_have_other_keys_than_those_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch)
    machine = vm_cases.machine(tmp_path)
    found = set()
    for guard in (ClockGuard(None, "why"), ClockGuard(Path("guard.so"))):
        monkeypatch.setattr("rtproof.vm.machine.clock_guard", lambda qemu, guard=guard: guard)
        found |= {machine.boot_identity, machine.identity}
    assert len(found) == 2


@pytest.mark.parametrize("program", sorted({arch.qemu for arch in ARCHES.values()}))
def test_the_qemus_of_this_machine_load_it(program: str) -> None:
    path = shutil.which(program)
    if not path:
        pytest.skip(f"{program} is not installed")
    assert emulators.clock_guard(path).state == "on"


CELL = bench.Wanted("debian-6.1", "none", "idle", 0)
LENGTHS = ("--preempt", "none", "--load", "idle", "--shifts", "1", "--warmup", "200ms", "--duration", "300ms")


def wrapped(tmp_path: Path, mark: str) -> Path:
    lab_kernels.kernel(CELL.kernel)
    program = shutil.which("qemu-system-x86_64")
    assert program
    return bench.wrapped_qemu(program, tmp_path / mark, mark)


@pytest.mark.slow
def test_delays_in_qemu_change_a_guest_without_the_guard_only(tmp_path: Path) -> None:
    """All of these guests resume from one snapshot. Within its first second the guest hardly halts."""
    qemu, delays = wrapped(tmp_path, "guarded"), bench.build_delays(tmp_path, most_us=200)
    ((_, cell),) = bench.guest_cells([CELL], 400_000_000)
    (undelayed,) = bench.repeated(cell, bench.QUIET, 1, qemu)["runs"]
    for guarded in (True, False):
        bench.take_way(qemu, delays, guarded=guarded)
        runs = bench.repeated(cell, bench.GUARD, 3, qemu)["runs"]
        assert {run["guarded"] for run in runs} == {guarded}
        assert all(run["sha256"] == undelayed["sha256"] for run in runs) is guarded


@pytest.mark.slow
@pytest.mark.parametrize("guarded", [True, False])
def test_results_say_whether_the_guard_was_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], guarded: bool
) -> None:
    """Without it, a cell is run until two runs agree."""
    qemu = wrapped(tmp_path, "guarded" if guarded else "unguarded")
    bench.take_way(qemu, None, guarded=guarded)
    monkeypatch.chdir(tmp_path)
    words = ["--kernel", "debian-6.1", *LENGTHS, "--qemu", str(qemu), "--json", "-o", "result"]
    assert main(["lab", "compare", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["systems"][0]["guard"] == "on") is guarded
    assert told["cost"]["unguarded_cells_count"] == int(not guarded)
    assert (told["cost"]["guest_runs_count"] > 1) is not guarded
    (info,) = Path("result", "cells").glob("*/run.json")
    assert f"The guard of virtual time was {'on' if guarded else 'off'}." in json.loads(info.read_text())["note"]
