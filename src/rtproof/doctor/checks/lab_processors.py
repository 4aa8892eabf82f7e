# SPDX-License-Identifier: Apache-2.0
"""Whether a QEMU here shares virtual time between several processors."""

from collections.abc import Iterator

from rtproof.core.errors import RtproofError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.vm.emulators import FETCH, choose_emulator
from rtproof.vm.machine import ARCHES

FEATURES = ("several-cpus",)


def check(_host: Host) -> Iterator[Finding]:
    """Choose a QEMU for several processors as the lab does, for each architecture."""

    name = "QEMU for several CPUs"
    good: list[str] = []
    first = ""
    for arch in ARCHES.values():
        try:
            choose_emulator(arch.qemu, arch.package, cpus_share_time=True)
            good.append(arch.name)
        except RtproofError as refusal:
            first = first or str(refusal)
    if not first:
        yield Finding(name, FEATURES, State.OK, f"QEMU shares virtual time between processors of {', '.join(good)}.")
    elif good:
        meaning = f"Several processors can be had of {', '.join(good)} only: {first}."
        yield Finding(name, FEATURES, State.LIMITED, meaning, FETCH, needed=False)
    else:
        yield Finding(name, FEATURES, State.MISSING, f"Guests have one processor: {first}.", FETCH)
