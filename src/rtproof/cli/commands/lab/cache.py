# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab cache``: what the lab keeps on this disk: list it, remove it, cut it to a size."""

import json

import click

from rtproof.cli.shared_options import JSON_OPTION, option
from rtproof.lab.guest_cell import BOUNDED_PARTS, MOST_CELL_BYTES, cell_store_folder
from rtproof.vm.cache_folders import bound_cache, cache_entries, entry_bytes, lab_cache, unused_cache
from rtproof.vm.guest import MOST_SNAPSHOT_BYTES

BOUNDS = {"cells": MOST_CELL_BYTES, "snapshots": MOST_SNAPSHOT_BYTES, **BOUNDED_PARTS}
PARTS = (*BOUNDS, "kernels", "busybox", "qemu", "apt")
PART = click.argument("parts", nargs=-1, required=True, type=click.Choice([*PARTS, "all"]), metavar="PART...")


@click.group("cache", invoke_without_command=True)
@JSON_OPTION
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List what the lab keeps, with sizes and bounds. 'clear' removes parts, 'bound' cuts them to a size."""
    if ctx.invoked_subcommand is None:
        rows = [_row(part) for part in PARTS]
        click.echo(json.dumps({"folder": str(lab_cache()), "parts": rows}, indent=2) if as_json else _table(rows))


@command.command()
@PART
def clear(parts: tuple[str, ...]) -> None:
    """Remove parts of the cache, or all. A missing kernel is fetched again, a missing cell is measured again.

    PART is one of the names of the list, or all.
    """
    _cut(parts, 0)


@command.command()
@option("--mib", "The size that each of the parts may have.", click.IntRange(0), required=True)
@PART
def bound(mib: int, parts: tuple[str, ...]) -> None:
    """Remove the entries unused for longest until each part fits."""
    _cut(parts, mib << 20)


def _cut(parts: tuple[str, ...], most_bytes: int) -> None:
    with unused_cache(cell_store_folder()):
        for part in PARTS if "all" in parts else dict.fromkeys(parts):
            before = _row(part)
            bound_cache(lab_cache() / part, most_bytes)
            removed = int(before["bytes"] or 0) - int(_row(part)["bytes"] or 0)
            click.echo(f"{part}: {removed >> 20} MiB removed")


def _row(part: str) -> dict[str, str | int | None]:
    entries = cache_entries(lab_cache() / part)
    size = sum(entry_bytes(entry) for _, entry in entries)
    return {"part": part, "entries": len(entries), "bytes": size, "bound_bytes": BOUNDS.get(part)}


def _table(rows: list[dict[str, str | int | None]]) -> str:
    from rtproof.report.blocks import Table
    from rtproof.report.text_table import lay_out

    def mib(size: str | int | None) -> str:
        return "none" if size is None else str(int(size) >> 20)

    cells = tuple((str(r["part"]), str(r["entries"]), mib(r["bytes"]), mib(r["bound_bytes"])) for r in rows)
    header = ("part", "entries", "MiB", "bound in MiB")
    return lay_out(Table(f"The lab's cache, {lab_cache()}", header, cells, numeric=(1, 2, 3)))
