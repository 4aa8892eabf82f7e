# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: its tables, the tail of every cell, and how all of it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtproof.analysis.counts import Counts, merge
from rtproof.analysis.phrases import duration, value
from rtproof.lab import table
from rtproof.lab.cells import Cost, Load, System, identity
from rtproof.lab.comparison import Comparison, Spot, marked
from rtproof.lab.matrix import Ran
from rtproof.lab.readings import Reading
from rtproof.record import Int64Array
from rtproof.report import binning
from rtproof.report.blocks import Block, Curve, Plot, Section, Table, Text

MOST_CURVES = 8
SHOWN_DIGITS = 16
"""Of a digest; the JSON has all."""


@dataclass(frozen=True)
class Making:
    """How a comparison came about. agents: SHA-256 of the agent by architecture."""

    command: str
    version: str
    qemu: Mapping[str, str]
    agents: Mapping[str, str]


def sections(comparison: Comparison, making: Making) -> list[Section]:
    """What the terminal shows, and more."""
    comparison = marked(comparison)
    comparison = marked(comparison)
    more = [
        Section("tails", "Tails", tuple(tails(comparison))),
        Section("doubts", "Read with this in mind", tuple(warnings(comparison))),
        made(comparison, making),
    ]
    return [*table.sections(comparison), *(section for section in more if section.blocks)]


def short_sections(comparison: Comparison, making: Making) -> list[Section]:
    """What the terminal shows, and how it was made: for a README."""
    comparison = marked(comparison)
    comparison = marked(comparison)
    return [*table.sections(comparison), made(comparison, making)]


def tails(comparison: Comparison) -> list[Block]:
    """A plot for each load: which share of the due times was later, of every system."""
    return [plot for load in comparison.loads for plot in _tail(load, comparison.row(load))]


def _tail(load: Load, row: list[Spot]) -> list[Plot]:
    drawn = [(spot, merge(reading.schedule_counts for reading in spot.readings)) for spot in row if spot.usable]
    drawn = drawn[:MOST_CURVES]
    grid = binning.survival_grid([counts for _, counts in drawn]) if drawn else None
    if grid is None or grid.size < 2:
        return []
    left_out = f" Only the first {MOST_CURVES} systems are drawn." if len(row) > MOST_CURVES else ""
    curves = tuple(_curve(spot.system.name, counts, grid) for spot, counts in drawn)
    return [
        Plot(
            f"Share of due times later than a latency: {load.name}",
            f"{_says(drawn)}{left_out}",
            f"latency [{table.US.name}]",
            "share that was later",
            curves,
            log_x=True,
            log_y=True,
            style="step",
        )
    ]


def _curve(name: str, counts: Counts, grid: Int64Array) -> Curve:
    """Up to where nothing is later."""
    shares = [float(share) for share in binning.exceeding(counts, grid)]
    end = next((at for at, share in enumerate(shares) if share == 0), len(shares) - 1) + 1
    return Curve(name, tuple(table.US.scale(int(x)) for x in grid[:end]), tuple(shares[:end]))


def _says(drawn: list[tuple[Spot, Counts]]) -> str:
    ends = "; ".join(f"{spot.system.name} ends at {value(int(counts.hi[-1]))}" for spot, counts in drawn)
    return f"Missed activations are counted with their lateness. {ends}."


def warnings(comparison: Comparison) -> list[Block]:
    """Doubts that do not make a cell invalid, each with the cells that it is about."""
    about: dict[str, list[str]] = {}
    for spot in comparison.spots:
        for what in dict.fromkeys(
            d.what for reading in spot.readings for d in reading.doubts if d not in reading.invalid
        ):
            about.setdefault(what, []).append(f"{spot.system.name}, {spot.load.name}")
    rows = tuple((what, str(len(cells)), "; ".join(cells)) for what, cells in about.items())
    return [Table("Warnings", ("warning", "cells", "which"), rows, (1,), folded=True)] if rows else []


def made(comparison: Comparison, making: Making) -> Section:
    """The command, and everything that decides the figures."""
    blocks: list[Block] = [
        Text(("The same command gives the same figures on any machine with the same QEMU, kernels and agent:",)),
        Text((making.command,), "code"),
        Table("What was measured", ("what", "value"), tuple(_setting(comparison, making))),
        _kernels(comparison),
    ]
    return Section("made", "How it was made", tuple(blocks))


def _setting(comparison: Comparison, making: Making) -> list[tuple[str, str]]:
    setting = comparison.setting
    return [
        ("probe", _probe(comparison)),
        ("period", duration(setting.period_ns)),
        ("measured in each cell", duration(setting.duration_ns)),
        ("warm-up", duration(setting.warmup_ns)),
        ("shifts of the start", str(comparison.shifts)),
        ("CPUs of the guest", ", ".join(sorted({str(system.machine.cpus) for system in comparison.systems}))),
        *making_rows(making),
        *cost_words(comparison.fresh, comparison.cached, comparison.host_s, comparison.cost),
    ]


def making_rows(making: Making) -> list[tuple[str, str]]:
    """The programs that a result depends on."""
    return [
        *(("QEMU" if len(making.qemu) == 1 else f"QEMU for {arch}", text) for arch, text in making.qemu.items()),
        *((f"agent for {arch}, SHA-256", digest) for arch, digest in making.agents.items()),
        ("rtproof", making.version),
    ]


def cost_words(fresh: int, cached: int, host_s: float, cost: Cost) -> list[tuple[str, str]]:
    """How many cells were run and what they took."""
    rate = f", {cost.host_s / cost.virtual_s:.1f} per virtual second" if cost.virtual_s else ""
    return [
        ("cells", f"{fresh} run now, {cached} from the cache"),
        ("time of this host", f"{duration(host_s * 1e9)} now; {cost.host_s:,.0f} s for all cells{rate}"),
    ]


def _probe(comparison: Comparison) -> str:
    names = {f"{r.probe}, {r.field}" for spot in comparison.spots for r in spot.readings}
    return "; ".join(sorted(names)) or comparison.setting.probe


def _kernels(comparison: Comparison) -> Table:
    read = [
        (spot.system, reading)
        for system in comparison.systems
        for spot in comparison.column(system)
        for reading in (spot.readings or (None,))
    ]
    return systems_table(read)


def made_of(making: Making, read: Sequence[tuple[System, Reading | None]], rounds: Sequence[Ran]) -> Section:
    """How cells of several rounds were made that are not those of a comparison."""
    kept = [each for ran in rounds for each in ran.kept]
    fresh = sum(each.fresh for each in kept)
    cost = Cost(sum(each.cost.host_s for each in kept), sum(each.cost.virtual_s for each in kept))
    rows = [*making_rows(making), *cost_words(fresh, len(kept) - fresh, sum(ran.host_s for ran in rounds), cost)]
    blocks: list[Block] = [
        Text((making.command,), "code"),
        Table("What made it", ("what", "value"), tuple(rows)),
        systems_table(read),
    ]
    return Section("made", "How it was made", tuple(blocks))


def systems_table(read: Sequence[tuple[System, Reading | None]]) -> Table:
    """What was booted, and what its kernel said of itself; systems may be there several times."""
    header = ("system", "release", "version", "runs", "kernel image", "machine")
    rows = []
    for system in dict.fromkeys(system for system, _ in read):
        told = [reading for other, reading in read if other == system and reading]
        kernel, whole = system.machine.kernel, identity(system.machine)
        rows.append(
            (
                system.name,
                kernel.release,
                ", ".join(dict.fromkeys(reading.kernel_version for reading in told)),
                ", ".join(dict.fromkeys(reading.preemption for reading in told if reading.preemption)),
                kernel.identity[:SHOWN_DIGITS],
                whole[:SHOWN_DIGITS],
            )
        )
    caption = (
        "What was booted; runs: the preemption model that the kernel itself names; "
        "kernel image: SHA-256, its beginning; machine: the same of QEMU, kernel, initramfs and command line"
    )
    return Table(caption, header, tuple(rows))
