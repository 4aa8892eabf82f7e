# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab qemu``: the QEMUs that the lab can use, and one more of Debian's."""

import json
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli.commands.lab.kernels import MIRROR
from rtproof.cli.shared_options import JSON_OPTION, option

if TYPE_CHECKING:
    from rtproof.vm.emulators import Emulator


@click.command("qemu")
@option("--fetch", "Fetch Debian's newer QEMU into the cache first.")
@option("--again", "Fetch it even if the cache has it.")
@JSON_OPTION
@MIRROR
def command(fetch: bool, again: bool, as_json: bool, mirror: str) -> None:
    """List the QEMUs that the lab can use.

    One processor is run by the system's QEMU, several in virtual time by the first of the list that can do it. With
    --qemu the other commands of the lab take a certain one. Results name the QEMU, because figures depend on it.
    """
    from rtproof.experiment.guest_runner import print_progress
    from rtproof.lab.debian_packages import fetch_qemu
    from rtproof.vm.emulators import emulators
    from rtproof.vm.machine import ARCHES

    if fetch or again:
        fetch_qemu(mirror, again, print_progress)
    rows = [
        row for program in dict.fromkeys(a.qemu for a in ARCHES.values()) for row in _rows(program, emulators(program))
    ]
    click.echo(json.dumps(rows, indent=2) if as_json else _table(rows))


def _rows(program: str, found: "list[Emulator]") -> list[dict[str, Any]]:
    """The QEMUs that have a program. ``used_for``: the numbers of processors for which the lab takes each by itself."""
    from rtproof.vm.emulators import fits

    able = [fits(each, cpus_share_time=True) for each in found]
    several = able.index(True) if any(able) else None
    return [
        {
            "program": program,
            "origin": each.origin,
            "version": each.version or None,
            "path": each.path,
            "fault": each.fault or None,
            "runs_several_processors": able[at],
            "used_for": [
                *(["one"] * (at == 0 and fits(each, cpus_share_time=False))),
                *(["several"] * (at == several)),
            ],
        }
        for at, each in enumerate(found)
    ]


def _table(rows: list[dict[str, Any]]) -> str:
    from rtproof.report.blocks import Table
    from rtproof.report.text_table import lay_out

    if not rows:
        return "no QEMU is here (Debian: apt-get install qemu-system-x86 qemu-system-arm)"
    cells = []
    for row in rows:  # a version is the line that a QEMU prints, with its number
        number = (row["version"] or "-").removeprefix("QEMU emulator version ").split()[0]
        cells.append((row["program"], row["origin"], number, ", ".join(row["used_for"]) or "-"))
    table = lay_out(Table("QEMUs of the lab", ("program", "from", "version", "used for processors"), tuple(cells)))
    folders = dict.fromkeys(f"{row['origin']}: {row['path'].rpartition('/')[0]}" for row in rows)
    faults = dict.fromkeys(row["fault"] for row in rows if row["fault"])
    return "\n".join([table, "", *folders, *faults])
