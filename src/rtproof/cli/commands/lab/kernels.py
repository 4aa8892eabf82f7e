# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab kernels``: the kernels that can be had by name."""

import json
from typing import Any

import click

from rtproof.cli.shared_options import JSON_OPTION, option
from rtproof.lab import kernel_catalogue

MIRROR = option("--mirror URL", "A mirror of Debian (default: this machine's).", default="", envvar="RTPROOF_MIRROR")


@click.group("kernels", invoke_without_command=True)
@JSON_OPTION
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List Debian's kernels that the lab knows by name. A column says which are in the cache."""
    if ctx.invoked_subcommand is None:
        listed = kernel_catalogue.list_kernels()
        click.echo(json.dumps(listed, indent=2) if as_json else _table(listed))


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@option("--again", "Fetch it even if the cache has it.")
@MIRROR
def fetch(names: tuple[str, ...], again: bool, mirror: str) -> None:
    """Fetch kernels into the cache, and print their paths. The headers come too. Nothing is installed."""
    from rtproof.experiment.guest_runner import print_progress

    for name in names:
        kernel_catalogue.catalogue_entry(name)
    for path in [kernel_catalogue.fetch_kernel(name, mirror, again, print_progress).image for name in names]:
        click.echo(path)


def _table(listed: list[dict[str, Any]]) -> str:
    from rtproof.report.blocks import Table
    from rtproof.report.text_table import lay_out

    header = ("name", "for", "preemption", "in the cache", "MiB")
    rows = []
    for each in listed:
        size = "" if each["size_bytes"] is None else str(each["size_bytes"] >> 20)
        rows.append((each["name"], each["architecture"], each["preemption"] or "not RT", each["version"] or "no", size))
    return lay_out(Table("Kernels of Debian", header, tuple(rows), numeric=(4,)))
