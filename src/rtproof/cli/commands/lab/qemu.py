# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab qemu``: the QEMUs that the lab can use, and one more of Debian's."""

import json

import click

from rtproof.cli.commands.lab.kernels import MIRROR


@click.command("qemu")
@click.option("--fetch", is_flag=True, help="Fetch Debian's newer QEMU into the cache first. Nothing is installed.")
@click.option("--again", is_flag=True, help="Fetch it even if the cache has it.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@MIRROR
def command(fetch: bool, again: bool, as_json: bool, mirror: str) -> None:
    """List the QEMUs of this machine and of the cache, and say which can run several processors in virtual time.

    One processor is run by the system's QEMU, several by the first one of the list that can do it.
    """
    from rtproof.experiment.guest_runner import print_progress
    from rtproof.lab.fetched_qemu import fetch_qemu
    from rtproof.vm.emulators import emulators
    from rtproof.vm.machine import ARCHES

    if fetch or again:
        fetch_qemu(mirror, again, print_progress)
    programs = dict.fromkeys(arch.qemu for arch in ARCHES.values())
    found = [(program, each) for program in programs for each in emulators(program)]
    if as_json:
        rows = [vars(each) | {"program": program, "shares_time": each.shares_time} for program, each in found]
        click.echo(json.dumps(rows, indent=2))
        return
    from rtproof.report.blocks import Table
    from rtproof.report.text_table import lay_out

    table = [
        (program, each.version, each.origin, "yes" if each.shares_time else "no", each.path) for program, each in found
    ]
    header = ("program", "version", "from", "several processors", "path")
    click.echo(lay_out(Table("QEMUs of the lab", header, tuple(table))))
