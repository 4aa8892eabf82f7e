# SPDX-License-Identifier: Apache-2.0
"""Choose the QEMU that runs a guest: the system's, or the one that the lab has fetched beside it.

With one processor the system's QEMU comes first, so that figures stay what they are when another one is fetched.
Several processors in virtual time need a QEMU that shares the instructions between them.
"""

import functools
import os
import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rtproof.agents.build import ProgramSources, build_program, source_folder
from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.core.printable import one_line
from rtproof.core.scratch import scratch_folder
from rtproof.vm.cache_folders import find_stored, lab_cache

OLDEST_QEMU = (6, 2)
OLDEST_QEMU_SHARING_TIME = (8, 1)
"""The first QEMU that shares virtual time between a guest's processors. Older ones give it all to the first one."""


def _dotted(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


OLDEST_SHARING = f"QEMU {_dotted(OLDEST_QEMU_SHARING_TIME)} or newer"
PATIENCE_S = 20
"""How long a QEMU may take to print its version (measured: 0.03 s)."""
MOST_SHOWN = 300
"""So many characters of a path or of what a program printed are quoted."""

SYSTEM = "system"
FETCHED = "fetched"
ASKED = "asked"
FETCH = "rtproof lab qemu --fetch"


@dataclass(frozen=True)
class Emulator:
    """A QEMU. version: the line in which it prints its version. numbers: the first two, None if it told none.

    origin: ``system`` (on PATH), ``fetched`` (by the lab) or ``asked`` (by the user). fault: why it cannot be used, or
    "".
    """

    path: str
    version: str
    numbers: tuple[int, int] | None
    origin: str
    fault: str = ""


def fetched_qemu_folder() -> Path:
    """The folder of the QEMU that the lab has fetched, with its programs in usr/bin."""
    return lab_cache() / "qemu" / platform.machine()


def emulators(program: str) -> list[Emulator]:
    """All QEMUs here that have this program (``qemu-system-x86_64``), the system's first, also those with a fault."""
    return list(_of_origins(program, (SYSTEM, FETCHED)))


def _of_origins(program: str, origins: Sequence[str]) -> Iterator[Emulator]:
    """The QEMUs of some origins. None is looked at before it is asked for."""
    for origin in origins:
        folder = fetched_qemu_folder()
        path = shutil.which(program) if origin == SYSTEM else str(folder / "usr" / "bin" / program)
        if path is None or (origin == FETCHED and not folder.exists()):
            continue
        if origin == FETCHED and find_stored(folder) is None:
            fault = f"the fetched QEMU in {folder} is damaged: fetch it again with {FETCH}"
            yield Emulator(path, "", None, FETCHED, fault)
        else:
            yield read_emulator(path, origin)


def choose_emulator(program: str, package: str, cpus_share_time: bool, asked: str = "") -> Emulator:
    """The QEMU for a guest. package: of Debian, for messages.

    asked: system, fetched, or the path of a program or its folder. cpus_share_time: the guest has several processors in
    virtual time; the first QEMU is taken that can do it. TargetError if there is no QEMU or it cannot be run; UserError
    if it does not fit.
    """
    own_path = asked and asked not in (SYSTEM, FETCHED)
    origins = (asked,) if asked else (SYSTEM, FETCHED)
    refusal: RtproofError | None = None
    for emulator in [_at_path(program, asked)] if own_path else _of_origins(program, origins):
        refusal = _why_not(emulator, cpus_share_time)
        if refusal is None:
            return emulator
        if not cpus_share_time:
            break
    if refusal:
        raise refusal
    if asked == FETCHED:
        raise UserError(f"the lab has fetched no QEMU: fetch it with {FETCH}")
    then = ""
    if cpus_share_time:
        then = f"; several processors in virtual time need {OLDEST_SHARING}: if Debian's is older, {FETCH}"
    raise TargetError(f"the lab needs {program}, which is not installed (Debian: apt-get install {package}){then}")


def _at_path(program: str, asked: str) -> Emulator:
    # QEMU is started in another folder. A link keeps its name, because some programs act by their names.
    path = Path(os.path.abspath(asked))  # noqa: PTH100 - resolve() would follow the link
    try:
        path = path / program if path.is_dir() else path
        found = path.is_file()
    except OSError:
        found = False
    if not found:
        shown = one_line(str(path), MOST_SHOWN)
        raise UserError(
            f"there is no QEMU at {shown}: give {SYSTEM}, {FETCHED}, or the path of a program or its folder"
        )
    if path.name.startswith("qemu-") and path.name != program:
        raise UserError(f"{path} is not the {program} that this guest needs: give that one, or the folder of both")
    return read_emulator(str(path), ASKED)


def _why_not(emulator: Emulator, cpus_share_time: bool) -> RtproofError | None:
    """Why a QEMU cannot run a guest, or None."""
    if emulator.fault:
        return TargetError(emulator.fault)
    numbers = emulator.numbers
    told = f"no QEMU that tells its version (it says {one_line(emulator.version, MOST_SHOWN)!r})"
    if numbers:
        told = f"version {_dotted(numbers)}"
    another = f"fetch one with {FETCH} and take --qemu {FETCHED}, or give one with --qemu PATH"
    if numbers is None or numbers < OLDEST_QEMU:
        needed = f"the lab needs QEMU {_dotted(OLDEST_QEMU)} or newer"
        return TargetError(f"{emulator.path} is {told}; {needed}: {another}")
    if cpus_share_time and numbers < OLDEST_QEMU_SHARING_TIME:
        return UserError(
            f"several processors in virtual time need {OLDEST_SHARING}, and {emulator.path} is {told}, in which "
            f"only the first one runs: {another}"
        )
    return None


def fits(emulator: Emulator, cpus_share_time: bool) -> bool:
    """Whether ``choose_emulator`` would take a QEMU for one processor, or for several in virtual time."""
    return _why_not(emulator, cpus_share_time) is None


_MENDED = f": install QEMU again (Debian: qemu-system-x86), fetch one with {FETCH}, or give one with --qemu PATH"


def read_emulator(path: str, origin: str) -> Emulator:
    """The QEMU at a path. If it cannot be run, its ``fault`` says why."""
    try:
        version = _version_line(path, program_state(path))
    except OSError as error:
        return Emulator(path, "", None, origin, f"{path} cannot be run: {error.strerror}{_MENDED}")
    except TargetError as error:
        return Emulator(path, "", None, origin, f"{error}{_MENDED}")
    # Other programs of QEMU, such as qemu-img, say their own names instead of "emulator".
    found = re.match(r"QEMU emulator version (\d{1,4})\.(\d{1,4})", version)
    return Emulator(path, version, (int(found[1]), int(found[2])) if found else None, origin)


@functools.cache
def _version_line(path: str, _state: tuple[int, int]) -> str:
    """The first line of ``--version``, asked for once for each state of the file. TargetError if there is none."""
    try:
        ended = run_to_end((path, "--version"), PATIENCE_S)
    except OSError as error:
        raise TargetError(f"{path} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise TargetError(f"{path} cannot be run: it did not end within {PATIENCE_S} s") from error
    if ended.returncode:
        said = one_line(ended.stderr, MOST_SHOWN) or f"exit code {ended.returncode}"
        raise TargetError(f"{path} cannot be run ({said})")
    return next(iter(ended.stdout.splitlines()), "")


def program_state(path: str) -> tuple[int, int]:
    """What changes with the file of a program. OSError if there is none."""
    status = Path(path).stat()
    # Not the time of its content: a package keeps that of its files, in whole seconds.
    return status.st_ino, status.st_ctime_ns


def run_to_end(command: Sequence[str], longest_s: float) -> subprocess.CompletedProcess[str]:
    """Run a command, and end it with what it started if it takes longer. OSError, TimeoutExpired.

    If this process is killed, the kernel kills the command (where there is setpriv of util-linux).
    """
    launcher = shutil.which("setpriv")
    popen = subprocess.Popen(
        [launcher, "--pdeathsig", "KILL", *command] if launcher else command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with popen:
        try:
            out, complaint = popen.communicate(timeout=longest_s)
        except BaseException:
            # What the program has started would hold the pipes open.
            with suppress(ProcessLookupError):
                os.killpg(popen.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, popen.returncode, out, complaint)


# The guard of virtual time: a library that is preloaded into QEMU, and into nothing else (qemu_guard/).
#
# QEMU marks a processor as halted before it has counted the processor's last instructions. When its main loop sees the
# mark meanwhile, it moves the clock too early, and the guest's bytes then depend on the host's scheduler. The guard
# makes the main loop wait until the instructions are counted.


GUARD_NAME = "rtproof-qemu-guard.so"
GUARD_REVISION = 1
"""Part of the keys of snapshots and cells. It grows when the guard changes so that bytes of guests may differ."""
REPORT_FILE = "guard"
"""File in QEMU's working folder to which the guard writes what it does."""
LOADED, GUARDS = "loaded", "guards"
"""The lines of that file: QEMU has loaded the guard; its main loop waits for the thread of the processors."""
TRIAL_S = 20


@dataclass(frozen=True)
class ClockGuard:
    """The guard for one QEMU. ``library``: what to preload; None if it is off. ``fault``: why it is off, or ""."""

    library: Path | None
    fault: str = ""

    @property
    def state(self) -> str:
        return "on" if self.library else f"off: {self.fault}"

    @property
    def identity(self) -> str:
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
        return _tried_guard(qemu, program_state(qemu))
    except OSError as error:
        return ClockGuard(None, f"{qemu} cannot be run: {error.strerror}")


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
