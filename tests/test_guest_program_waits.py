# SPDX-License-Identifier: Apache-2.0
"""A kernel tells where in its program a thread goes to sleep: a guest in virtual time."""

from dataclasses import replace

import disturbed_guests
import own_doings
import probe_guest
import pytest
from agent_process import agent

from rtproof.core.elf_symbols import ElfFile
from rtproof.explain.causes import Cause

KERNELS = ("debian-6.1", "debian-6.12-rt")
TIMES = 100
PIPE = replace(next(each for each in own_doings.DOINGS if each.kind == "pipe"), times=TIMES)
PLAIN = f"/victim own pipe {TIMES} > /out/pipe.truth || exit"
WAITING = f"""\
sh -c 'echo $$ > /pid; while ! [ -s /go ]; do usleep 20000; done; exec /victim own pipe {TIMES}' \\
    > /out/pipe.truth & it=$!
while ! [ -s /pid ]; do usleep 20000; done
"""


def script() -> str:
    """The job of the kind, with a program whose number the agent has before it begins."""
    plain = own_doings.script([PIPE])
    assert PLAIN in plain
    begun = plain.replace(PLAIN, "echo 1 > /go; wait $it || exit")
    return WAITING + begun.replace("explain,calls_of=", "explain,stacks,process=$(cat /pid),calls_of=")


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_place_where_it_sleeps_is_in_the_function(kernel: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The program is not on this machine, so there are places in it; one function of it reads from the pipe."""
    agent()  # skips the test if nothing here can build programs
    victim = disturbed_guests.victim("x86_64")
    guest = probe_guest.run(kernel, script(), tmp_path_factory, 1, ("/victim", victim))
    told = own_doings.read_doing(PIPE, guest.folder)
    assert len(told) >= TIMES // 2
    blocked = [part for each in told for part in each.budget.parts if part.cause.cause is Cause.BLOCKED]
    with ElfFile(victim) as file:
        names = {
            place: file.function_at(int(place.partition("+")[2], 16))
            for place in {part.waits_in[0] for part in blocked}
        }
    assert all(place.startswith("victim+") for place in names)
    assert set(names.values()) == {"__read"}
