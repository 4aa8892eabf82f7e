# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab module``: our kernel module for a kernel of the catalogue, or of your own."""

from pathlib import Path

import click

from rtproof.cli.commands.lab.kernels import MIRROR
from rtproof.cli.shared_options import option
from rtproof.lab import kernel_catalogue


@click.command("module")
@option("--kernel name NAME|IMAGE", "NAME of 'lab kernels'.")
@option(
    "--headers DIR",
    "Headers of a kernel of your own, for --kernel.",
    click.Path(exists=True, file_okay=False, path_type=Path),
)
@option("--which NAME", "Build this module of kmod/tests.", default="rtproof")
@MIRROR
def command(name: str | None, headers: Path | None, which: str, mirror: str) -> None:
    """Build rtproof.ko for a kernel and print its path. The kernel is fetched if needed.

    The module for a kernel of 'rtproof lab kernels' is built once and kept. With --headers it is built each time.
    """
    from rtproof.experiment.guest_runner import print_progress

    if (name is None) == (headers is None):
        raise click.UsageError("give either --kernel or --headers")
    if headers is not None:
        click.echo(kernel_catalogue.module_for_headers(headers, which))
        return
    assert name is not None
    click.echo(kernel_catalogue.module_for_kernel(name, which, mirror, print_progress))
