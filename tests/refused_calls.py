# SPDX-License-Identifier: Apache-2.0
"""Runs a program with some system calls refused, as a kernel without them or a container does: ERRNO NAMES PROGRAM...

Tests use ``prefix``; the file itself is the program that stands before the other. The filter is seccomp's (seccomp(2)).
"""

import ctypes
import os
import platform
import struct
import sys

NAMES = ("mq_unlink", "mq_timedsend", "semget", "eventfd2", "rt_sigtimedwait", "sched_setaffinity")
NUMBERS = {
    "x86_64": dict(zip(NAMES, (241, 242, 64, 290, 128, 203), strict=True)),
    "aarch64": dict(zip(NAMES, (181, 182, 190, 19, 137, 122), strict=True)),
}
"""Of the kernel, by what it calls the machine."""
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x0005_0000, 0x7FFF_0000
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2


def prefix(error: int, *names: str) -> tuple[str, ...]:
    """What stands before a command, so that these system calls give it this errno."""
    if platform.machine() not in NUMBERS:
        import pytest  # here, so that the program below starts without it

        pytest.skip(f"the numbers of a {platform.machine()}'s system calls are not known")
    return (sys.executable, __file__, str(error), ",".join(names))


def program(error: int, numbers: list[int]) -> bytes:
    """The filter: the number of the call is the first word that it sees."""
    steps = [(LOAD_WORD, 0, 0, 0)]
    for number in numbers:
        steps += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | error)]
    return b"".join(struct.pack("=HBBI", *step) for step in [*steps, (RETURN, 0, 0, ALLOW)])


def refuse(error: int, numbers: list[int]) -> None:
    """From here on, for this process and all that it starts."""
    steps = ctypes.create_string_buffer(program(error, numbers), 8 * (2 * len(numbers) + 2))
    described = struct.pack("@HP", len(steps) // 8, ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((NO_NEW_PRIVILEGES, 1, 0), (SECCOMP, FILTER, described)):
        if libc.prctl(*arguments, 0, 0) < 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    refuse(int(sys.argv[1]), [NUMBERS[platform.machine()][name] for name in sys.argv[2].split(",")])
    os.execvp(sys.argv[3], sys.argv[3:])
