# SPDX-License-Identifier: Apache-2.0
"""The guard of virtual time: a library that is preloaded into QEMU, and into nothing else (qemu_guard/).

QEMU marks a processor as halted before it has counted the processor's last instructions. When its main loop sees the
mark meanwhile, it moves the clock too early, and the guest's bytes then depend on the host's scheduler. The guard makes
the main loop wait until the instructions are counted.
"""

import functools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rtproof.agents.build import ProgramSources, build_program, source_folder
from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.core.scratch import scratch_folder
from rtproof.vm.emulators import program_state, run_to_end

GUARD_NAME = "rtproof-qemu-guard.so"
GUARD_REVISION = 1
"""Part of the keys of snapshots and cells. It grows when the guard changes so that bytes of guests may differ."""
REPORT_FILE = "guard"
"""File in QEMU's working folder to which the guard writes what it does."""
LOADED, GUARDS = "loaded", "guards"
"""The lines of that file: QEMU has loaded the guard; its main loop waits for the thread of the processors."""
TRIAL_S = 20
MOST_SHOWN = 200


@dataclass(frozen=True)
class ClockGuard:
    """The guard for one QEMU. ``library``: what to preload; None if it is off. ``fault``: why it is off, or ""."""

    library: Path | None
    fault: str = ""

    @property
    def state(self) -> str:
        """``on``, or ``off`` with the reason."""
        return "on" if self.library else f"off: {self.fault}"

    @property
    def identity(self) -> str:
        """What tells guests with this guard from others."""
        return f"guard {GUARD_REVISION}" if self.library else "no guard"

    def words(self, report: Path) -> tuple[str, ...]:
        """Words before QEMU's own that preload the guard; none if it is off. ``report``: the file for its lines."""
        if not self.library:
            return ()
        before = os.environ.get("LD_PRELOAD", "")
        preload = f"{self.library}:{before}" if before else str(self.library)
        return (
            "env",
            f"LD_PRELOAD={preload}",
            f"RTPROOF_GUARD_PRELOAD={before}",
            f"RTPROOF_GUARD_REPORT={report.absolute()}",
        )


def clock_guard(qemu: str) -> ClockGuard:
    """The guard for the QEMU at a path, built unless the cache has it, and tried with this QEMU."""
    try:
        state = program_state(qemu)
    except OSError as error:
        return ClockGuard(None, f"{qemu} cannot be run: {error.strerror}")
    return _tried_guard(qemu, state)


@functools.cache
def _tried_guard(qemu: str, _state: tuple[int, int]) -> ClockGuard:
    """As ``clock_guard``, tried once for each state of the program's file."""
    try:
        sources = ProgramSources(GUARD_NAME, "the guard of virtual time", source_folder("qemu_guard"), library=True)
        guard = ClockGuard(build_program(sources))
    except UserError as error:
        return ClockGuard(None, f"the guard cannot be built ({error})")
    with scratch_folder() as folder:
        report = folder / REPORT_FILE
        try:
            said = run_to_end((*guard.words(report), qemu, "--version"), TRIAL_S).stderr
        except (OSError, subprocess.TimeoutExpired) as error:
            said = str(error)
        if LOADED in report_lines(report):
            return guard
    why = f" ({one_line(said, MOST_SHOWN)})" if said.strip() else ""
    return ClockGuard(
        None, f"{qemu} does not load the guard{why}: it is static, or does not export qemu_in_vcpu_thread"
    )


def report_lines(report: Path) -> list[str]:
    """The lines that the guard has written; none if it was not loaded."""
    try:
        return report.read_text().splitlines()
    except OSError:
        return []
