# SPDX-License-Identifier: Apache-2.0
"""Whether guests can run on this processor itself (KVM) or must be emulated (TCG)."""

import functools
import os
import platform
import time
from pathlib import Path

from rtproof.agents.architectures import architecture
from rtproof.errors import TargetError
from rtproof.vm.machine import Machine
from rtproof.vm.mailbox import State
from rtproof.vm.places import scratch
from rtproof.vm.process import running

KVM = Path("/dev/kvm")
PATIENCE_S = 15
_POLL_S = 0.05


@functools.cache
def choose(machine: Machine) -> str:
    """``kvm`` if the guest has been seen to boot with it, ``tcg`` otherwise.

    The device alone says little: on some virtual hosts it is there, opens, runs some instructions, and then hangs.
    """
    fits = machine.kernel.arch == "x86_64" and platform.machine() in architecture(machine.kernel.arch).machines
    return "kvm" if fits and os.access(KVM, os.R_OK | os.W_OK) and _boots(machine) else "tcg"


def _boots(machine: Machine) -> bool:
    try:
        with scratch() as folder, running(machine, folder, "kvm") as guest:
            guest.monitor.command("cont")
            end = time.monotonic() + PATIENCE_S
            while guest.mailbox.state < State.ALIVE and time.monotonic() < end:
                if guest.monitor.happened("STOP", _POLL_S) or guest.monitor.closed:
                    return False
            return guest.mailbox.state >= State.ALIVE
    except TargetError:
        return False
