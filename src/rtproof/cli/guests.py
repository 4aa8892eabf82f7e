# SPDX-License-Identifier: Apache-2.0
"""What the target qemu is given besides what the user says: kernels of the lab, and what a profile needs of a guest."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rtproof.cli.laboratory import say

if TYPE_CHECKING:
    from rtproof.profiles import Profile
    from rtproof.vm.kernel import Kernel

QEMU = "qemu"


def for_profile(target: str, options: dict[str, str], profile: "Profile") -> dict[str, str]:
    """The options of a target with what a profile's probes and loads need of a guest; the user's own win."""
    if target != QEMU:
        return options
    from rtproof.lab import experiment, systems

    probe = systems.PROBE_OF_MODULE if experiment.needs_our_module(profile) else ""
    setup = {"setup": "\n".join(profile.guest.setup)} if profile.guest.setup else {}
    return setup | with_kernel_of_lab(target, options, probe, lambda kernel: experiment.modules_of(kernel, profile))


def with_kernel_of_lab(
    target: str, options: dict[str, str], probe: str, more: "Callable[[Kernel], list[str]]" = lambda _: []
) -> dict[str, str]:
    """The options of a target with the kernel's name resolved, fetched if need be.

    The module ``rtproof`` is built for a kernel of the catalogue where it is to be inserted; the probe that needs it
    has it inserted without being asked. more: which modules of the kernel's own are wanted as well. UserError for a
    name that is neither a file nor in the catalogue.
    """
    name = options.get("kernel", "")
    if target != QEMU or not name or Path(name).exists():
        return options
    from rtproof.lab import kernels, modules, systems

    kernel = kernels.resolve(name, Path(options["modules"]) if "modules" in options else None, say=say)
    found = {**options, "kernel": str(kernel.image)}
    if kernel.modules:
        found["modules"] = str(kernel.modules)
    usual = (*((modules.OURS,) if systems.needs_own_module(probe) else ()), *more(kernel))
    words = options["insert"].split(",") if "insert" in options else usual
    own = str(kernels.module(name, say=say)) if modules.OURS in words else ""
    if words:
        found["insert"] = ",".join(own if word == modules.OURS else word for word in words)
    return found
