# SPDX-License-Identifier: Apache-2.0
"""What the target qemu is given besides what the user says: kernels of the lab, and what a profile needs of a guest."""

from pathlib import Path
from typing import TYPE_CHECKING

from rtproof.cli.laboratory import say

if TYPE_CHECKING:
    from rtproof.profiles import Profile

QEMU = "qemu"


def for_profile(target: str, options: dict[str, str], profile: "Profile") -> dict[str, str]:
    """The options of a target with what a profile's probes and loads need of a guest; the user's own win."""
    if target != QEMU:
        return options
    from rtproof import loads
    from rtproof.lab import experiment, systems

    probe = systems.PROBE_OF_MODULE if experiment.needs_our_module(profile) else ""
    more = (experiment.PAIR,) if experiment.wants_network(profile, loads.resolve) else ()
    edges = {"edges": "yes"} if experiment.on_boards_of_arm(profile) else {}
    return edges | with_kernel_of_lab(target, options, probe, more)


def with_kernel_of_lab(target: str, options: dict[str, str], probe: str, more: tuple[str, ...] = ()) -> dict[str, str]:
    """The options of a target with the kernel's name resolved, fetched if need be.

    The module ``rtproof`` is built for a kernel of the catalogue where it is to be inserted; the probe that needs it
    has it inserted without being asked. more: modules of the kernel's own that are wanted as well. UserError for a name
    that is neither a file nor in the catalogue.
    """
    name = options.get("kernel", "")
    if target != QEMU or not name or Path(name).exists():
        return options
    from rtproof.lab import kernels, modules, systems

    kernel = kernels.resolve(name, Path(options["modules"]) if "modules" in options else None, say=say)
    found = {**options, "kernel": str(kernel.image)}
    if kernel.modules:
        found["modules"] = str(kernel.modules)
    usual = (*((modules.OURS,) if systems.needs_own_module(probe) else ()), *(more if kernel.modules else ()))
    words = options["insert"].split(",") if "insert" in options else usual
    own = str(kernels.module(name, say=say)) if modules.OURS in words else ""
    if words:
        found["insert"] = ",".join(own if word == modules.OURS else word for word in words)
    return found
