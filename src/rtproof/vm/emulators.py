# SPDX-License-Identifier: Apache-2.0
"""Choose the QEMU that runs a guest: the system's, or the one that the lab has fetched beside it.

With one processor the system's QEMU comes first, so that figures stay what they are when another one is fetched.
Several processors in virtual time need a QEMU that shares the instructions between them.
"""

import functools
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rtproof.core.errors import TargetError, UserError
from rtproof.vm.cache_folders import lab_cache

OLDEST_QEMU = (6, 2)
OLDEST_QEMU_SHARING_TIME = (8, 1)
"""The first QEMU that shares virtual time between a guest's processors. Older ones give it all to the first one."""
PACER_PARTS = (("-object", "filter-buffer"), ("-netdev", "hubport"))
"""The options of QEMU that pace the turns of processors, and what each of them must offer."""


@dataclass(frozen=True)
class Emulator:
    """A QEMU. ``version``: the line in which it prints its version. ``numbers``: the first two, None if it told none.

    ``origin``: ``system`` (on PATH), ``fetched`` (by the lab) or ``asked`` (named by the user).
    """

    path: str
    version: str
    numbers: tuple[int, int] | None
    origin: str

    @property
    def shares_time(self) -> bool:
        """Whether all processors of a guest in virtual time run."""
        return self.numbers is not None and self.numbers >= OLDEST_QEMU_SHARING_TIME


FETCHED = "fetched"
SYSTEM = "system"


def fetched_qemu_folder() -> Path:
    """The folder of the QEMU that the lab has fetched, with its programs in usr/bin."""
    return lab_cache() / "qemu" / platform.machine()


def emulators(program: str) -> list[Emulator]:
    """All QEMUs here that have this program (``qemu-system-x86_64``), the system's first."""
    places = ((shutil.which(program), SYSTEM), (str(fetched_qemu_folder() / "usr" / "bin" / program), FETCHED))
    return [_emulator(path, origin) for path, origin in places if path and Path(path).exists()]


def choose_emulator(program: str, package: str, cpus_share_time: bool, asked: str = "") -> Emulator:
    """The QEMU for a guest. ``package``: of Debian, for messages. ``asked``: system, fetched or a program's path.

    ``cpus_share_time``: the guest has several processors in virtual time. TargetError if there is no QEMU that fits;
    UserError if there is one, but none for several processors.
    """
    found = _asked(program, asked) if asked else emulators(program)
    if not found:
        raise TargetError(f"the lab needs {program}, which is not installed (Debian: apt-get install {package})")
    if not cpus_share_time:
        return _not_too_old(found[0])
    sharing = next((each for each in found if each.shares_time), None)
    if sharing is None:
        raise UserError(
            f"several processors in virtual time need QEMU {_dotted(OLDEST_QEMU_SHARING_TIME)} or newer, and "
            f"{found[-1].path} is {_told(found[-1])}, in which only the first one runs: fetch one with "
            "rtproof lab qemu --fetch"
        )
    _refuse_without_pacer(sharing)
    return sharing


def _asked(program: str, asked: str) -> list[Emulator]:
    if asked in (SYSTEM, FETCHED):
        found = [each for each in emulators(program) if each.origin == asked]
        if not found and asked == FETCHED:
            raise UserError(f"the lab has fetched no {program}: fetch it with rtproof lab qemu --fetch")
        return found
    path = Path(asked) / program if Path(asked).is_dir() else Path(asked)
    if not path.is_file():
        raise UserError(f"there is no QEMU at {path}")
    return [_emulator(str(path), "asked")]


def _not_too_old(emulator: Emulator) -> Emulator:
    if emulator.numbers is None or emulator.numbers < OLDEST_QEMU:
        raise TargetError(f"{emulator.path} is {_told(emulator)}; the lab needs QEMU {_dotted(OLDEST_QEMU)} or newer")
    return emulator


def _refuse_without_pacer(emulator: Emulator) -> None:
    for option, part in PACER_PARTS:
        # Without a board the programs for ARM do not say it.
        if part not in _printed(emulator.path, "-M", "none", option, "help"):
            raise UserError(
                f"{emulator.path} was built without {part}, which paces the turns of a guest's processors: "
                "take another QEMU, or one processor"
            )


def _emulator(path: str, origin: str) -> Emulator:
    version = _version(path)
    found = re.search(r"version (\d+)\.(\d+)", version)
    return Emulator(path, version, (int(found[1]), int(found[2])) if found else None, origin)


def _told(emulator: Emulator) -> str:
    return f"version {_dotted(emulator.numbers)}" if emulator.numbers else repr(emulator.version)


def _dotted(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


def _version(path: str) -> str:
    lines = _printed(path, "--version").splitlines()
    return lines[0] if lines else ""


@functools.cache
def _printed(path: str, *arguments: str) -> str:
    try:
        result = subprocess.run([path, *arguments], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetError(f"{path} cannot be run: {error}") from error
    return result.stdout
