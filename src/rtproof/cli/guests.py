# SPDX-License-Identifier: Apache-2.0
"""Kernels of the lab for the target qemu: it takes files, users name kernels of the catalogue."""

from pathlib import Path

import click

QEMU = "qemu"
OWN_MODULE = "rtproof"
PROBE_OF_OWN_MODULE = "kernel"


def with_kernel_of_lab(target: str, options: dict[str, str], probe: str) -> dict[str, str]:
    """The options of a target with the kernel's name resolved, fetched if need be.

    The module ``rtproof`` is built for a kernel of the catalogue where it is to be inserted; the probe that needs it
    has it inserted without being asked. UserError for a name that is neither a file nor in the catalogue.
    """
    name = options.get("kernel", "")
    if target != QEMU or not name or Path(name).exists():
        return options
    from rtproof.lab import kernels

    kernel = kernels.resolve(name, Path(options["modules"]) if "modules" in options else None, say=_say)
    found = {**options, "kernel": str(kernel.image)}
    if kernel.modules:
        found["modules"] = str(kernel.modules)
    wanted = options.get("insert", OWN_MODULE if probe.partition(":")[0] == PROBE_OF_OWN_MODULE else "")
    if OWN_MODULE in (words := wanted.split(",")):
        own = str(kernels.module(name, say=_say))
        found["insert"] = ",".join(own if word == OWN_MODULE else word for word in words)
    return found


def _say(sentence: str) -> None:
    click.echo(sentence, err=True)
