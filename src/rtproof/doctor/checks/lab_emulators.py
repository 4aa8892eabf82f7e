# SPDX-License-Identifier: Apache-2.0
"""Which kernels the lab can boot with the QEMUs of this machine. The lab needs no KVM: it emulates each instruction."""

from collections.abc import Iterator

from rtproof.core.errors import RtproofError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import packages
from rtproof.vm.emulators import choose_emulator
from rtproof.vm.machine import ARCHES

FEATURES = ("lab",)
PACKAGE_OF = {"qemu-system-x86": "qemu-x86", "qemu-system-arm": "qemu-arm"}
"""The name in the table of packages, by the name of the package in Debian."""


def check(host: Host) -> Iterator[Finding]:
    """Choose a QEMU for each architecture as the lab does."""

    good: list[str] = []
    refused: dict[str, str] = {}
    for arch in ARCHES.values():
        try:
            emulator = choose_emulator(arch.qemu, arch.package, cpus_share_time=False)
            good.append(f"{arch.name} by {'.'.join(map(str, emulator.numbers or ()))}")
        except RtproofError as refusal:
            refused[arch.package] = str(refusal)
    name = "QEMU"
    if not refused:
        yield Finding(name, FEATURES, State.OK, f"QEMU boots kernels for {', '.join(good)}; KVM is not needed.")
        return
    command = packages(host, *(PACKAGE_OF[each] for each in refused))
    first = next(iter(refused.values()))
    if not good:
        yield Finding(name, FEATURES, State.MISSING, f"The lab boots no kernel: {first}.", command)
        return
    meaning = f"The lab boots kernels for {', '.join(good)} only: {first}."
    yield Finding(name, FEATURES, State.LIMITED, meaning, command, needed=False)
