# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab module``: our kernel module for a kernel of the catalogue."""

import click

from rtproof.cli.commands.lab.kernels import MIRROR
from rtproof.lab import kernel_catalogue


@click.command("module")
@click.option("--kernel", "name", required=True, metavar="NAME", help="A name of 'rtproof lab kernels'.")
@click.option("--which", default="rtproof", metavar="NAME", help="Build another module, one of those in kmod/tests.")
@MIRROR
def command(name: str, which: str, mirror: str) -> None:
    """Build rtproof.ko for a kernel and print its path. The kernel is fetched if needed. A finished build is kept."""
    from rtproof.experiment.guest_runner import print_progress

    click.echo(kernel_catalogue.module_for_kernel(name, which, mirror, print_progress))
