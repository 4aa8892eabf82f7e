# SPDX-License-Identifier: Apache-2.0
"""Kernels of the lab for the target qemu: it takes files, users name kernels of the catalogue."""

from pathlib import Path

from rtproof.cli.laboratory import say

QEMU = "qemu"


def with_kernel_of_lab(target: str, options: dict[str, str], probe: str) -> dict[str, str]:
    """The options of a target with the kernel's name resolved, fetched if need be.

    The module ``rtproof`` is built for a kernel of the catalogue where it is to be inserted; the probe that needs it
    has it inserted without being asked. UserError for a name that is neither a file nor in the catalogue.
    """
    name = options.get("kernel", "")
    if target != QEMU or not name or Path(name).exists():
        return options
    from rtproof.lab import kernels, modules, systems

    kernel = kernels.resolve(name, Path(options["modules"]) if "modules" in options else None, say=say)
    found = {**options, "kernel": str(kernel.image)}
    if kernel.modules:
        found["modules"] = str(kernel.modules)
    wanted = options.get("insert", modules.OURS if systems.needs_own_module(probe) else "")
    if modules.OURS in (words := wanted.split(",")):
        own = str(kernels.module(name, say=say))
        found["insert"] = ",".join(own if word == modules.OURS else word for word in words)
    return found
