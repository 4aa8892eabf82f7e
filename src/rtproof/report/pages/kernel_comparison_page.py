# SPDX-License-Identifier: Apache-2.0
"""Make the page of a comparison of kernels (ranking, tables, tails, provenance), and the same content as JSON."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from rtproof.core.phrases import duration, quantity, value
from rtproof.lab import kernel_catalogue
from rtproof.lab.guest_cell import CellCost, GuestLoad, GuestSystem, job_digest, machine_identity
from rtproof.lab.kernel_comparison import (
    LEAST_SHIFTS,
    ONE_OBSERVATION,
    VIRTUAL_TIME,
    CellReading,
    KernelComparison,
    SystemUnderLoad,
    cokernel_sentences,
    common_loads,
    loads_clearly_won,
    rank_systems,
    unlike_sentences,
    with_in_band_marks,
)
from rtproof.lab.verify_inputs import LAB_SCHEMA, LAB_SCHEMA_VERSION, ComparedSystem
from rtproof.report import plot_data
from rtproof.report.blocks import Block, Plot, Section, Table, Text
from rtproof.report.cumulative_curves import NamedCounts, tail_plot
from rtproof.report.number_format import PrintedUnit, count_text, table_of
from rtproof.report.pages.cell_explanation_page import explanation_dict, why_blocks
from rtproof.report.pages.comparison_figures import in_own_colours, on_one_scale
from rtproof.schema.encoder import Json, Key, encode, table
from rtproof.summary.counts import merge_counts
from rtproof.summary.summary_model import Doubt

LAB_US = PrintedUnit("us", 1_000, 1)
MOST_TRIPLES = 4
"""This many columns of "min / mean / max" fit a line. With more systems the table shows maxima."""
MOST_TAIL_CURVES = 8
MOST_FOREMOST = 2
SHOWN_DIGEST_DIGITS = 16
"""The page shows this many characters of a digest; the JSON has all."""
CLEARLY = "Clearly: its maxima are below those of every other system by more than the shifts differ."
UNLIKE_PROCESSORS = "The systems measured different processors, so none is ranked above another."


@dataclass(frozen=True)
class Provenance:
    """What a comparison was made with. ``agents``: SHA-256 of the agent, by architecture.

    ``qemu``: the version line of QEMU, by architecture, or by system if systems of one architecture had different ones.
    ``toolchain``: the compiler of all programs in the guests; kernel modules come from the kernel's own compiler.
    """

    command: str
    version: str
    qemu: Mapping[str, str]
    agents: Mapping[str, str]
    toolchain: str


def comparison_sections(comparison: KernelComparison, making: Provenance | None, *, whole: bool) -> list[Section]:
    """The ranking, the tables, and failed or doubtful cells. making: how the comparison was made, None for a terminal.

    whole: with the plots and the doubts of a page.
    """
    comparison = with_in_band_marks(comparison)
    found = [
        Section("ranking", "Ranking", tuple(ranking_blocks(comparison))),
        Section("latencies", "Latencies", tuple(latency_tables(comparison))),
        Section("why", "Why", tuple(why_blocks(comparison.explanations, comparison.unexplained))),
        Section("faults", "Failed and doubtful cells", tuple(fault_blocks(comparison))),
        Section("tails", "Tails", tuple(tail_plots(comparison)) if whole else ()),
        Section("doubts", "Read with this in mind", tuple(warning_table(comparison)) if whole else ()),
        *([provenance_section(comparison, making)] if making else []),
    ]
    return [section for section in found if section.blocks]


def comparison_title(comparison: KernelComparison) -> str:
    kernels = list(dict.fromkeys(system.kernel for system in comparison.systems))
    cpus = max((system.machine.cpus for system in comparison.systems), default=1)
    processors = f", {cpus} processors" if cpus > 1 else ""
    return f"rtproof lab: {', '.join(kernels)} in virtual time{processors}"


def ranking_blocks(comparison: KernelComparison) -> list[Block]:
    """The ranking, and what such figures can be used for."""
    places, unlike = rank_systems(comparison), unlike_sentences(comparison)
    words = (
        *unlike,
        *_ranking_words(comparison, places),
        VIRTUAL_TIME,
        *comparison.turns,
    )
    blocks: list[Block] = [Text(tuple(beside), "doubt")] if (beside := cokernel_sentences(comparison)) else []
    blocks.append(Text(words, headline=UNLIKE_PROCESSORS if unlike else ranking_headline(places)))
    if len(places) > 1:
        least = max(places[0].max_ns, 1)
        blocks.append(
            table_of(
                "Systems by their largest latency under any load",
                enumerate(places, 1),
                ("system", lambda row: f"{row[0]}. {row[1].system.name}"),
                (f"largest latency [{LAB_US.name}]", lambda row: _max_text(row[1])),
                ("ratio to the first", lambda row: f"{row[1].max_ns / least:,.1f}"),
                ("under", lambda row: row[1].load.name),
                numeric=(1, 2),
            )
        )
    here = f" Here: {comparison.shifts} shifts per cell." if comparison.shifts > 1 else ""
    return [*blocks, Text((f"{ONE_OBSERVATION}{here}",))]


def ranking_headline(places: list[SystemUnderLoad]) -> str:
    """A sentence that names the systems with the largest and the smallest latency."""
    if not places:
        return "There is no load under which every system has figures."
    ends = [f"{value(each.max_ns)} with {each.system.name} ({each.load.name})" for each in places]
    if len(places) == 1:
        return f"At most {ends[0]}."
    times = places[-1].max_ns / max(places[0].max_ns, 1)
    return f"At most {ends[0]}, {ends[-1]}: {times:,.1f} times as much."


def _ranking_words(comparison: KernelComparison, places: list[SystemUnderLoad]) -> list[str]:
    if len(places) < 2:
        return []
    won = [load.name for load in loads_clearly_won(comparison, places[0])]
    loads = quantity(len(comparison.loads), "load")
    where = f"{len(won)} of {loads} ({', '.join(won)})" if won else "no load"
    words = [f"{places[0].system.name} is clearly faster under {where}. {CLEARLY}"]
    if comparison.shifts < LEAST_SHIFTS:
        words = [f"No difference is called clear, because that takes {LEAST_SHIFTS} shifts or more (--shifts)."]
    common = len(common_loads(comparison))
    if common < len(comparison.loads):
        words.append(f"Ranked by {common} of {loads}: those under which all systems have figures.")
    return words


ShowSpot = Callable[[SystemUnderLoad], str]


def _max_text(spot: SystemUnderLoad) -> str:
    return LAB_US.show(spot.max_ns)


def _max_range_text(spot: SystemUnderLoad) -> str:
    return f"{LAB_US.show(spot.smallest_max_ns)} to {LAB_US.show(spot.max_ns)}"


def _min_mean_max_text(spot: SystemUnderLoad) -> str:
    return " / ".join(LAB_US.show(each) for each in (spot.min_ns, spot.mean_ns, spot.max_ns))


def latency_tables(comparison: KernelComparison) -> list[Table]:
    """The tables: latencies, the range over shifts, the largest by processor, and missed activations.

    With many systems the first table has the largest latencies only, and a second one has the other figures.
    """
    spots, wide = comparison.spots, len(comparison.systems) > MOST_TRIPLES
    count = _range_text({spot.count for spot in spots if spot.readings}, ",")
    amount = f"n = {count} per cell" if count else "none"
    if any(system.machine.cpus > 1 for system in comparison.systems):
        amount += _where_measured(spots)
    triple = f"min / mean / max latency [{LAB_US.name}] of the activations that ran, {amount}"
    tables = [_loads_by_systems(comparison, f"Largest latency [{LAB_US.name}], {amount}", _max_text)] if wide else []
    tables.append(replace(_loads_by_systems(comparison, triple, _min_mean_max_text), folded=wide))
    if comparison.shifts > 1:
        ranges = f"Range of the largest latency over {comparison.shifts} shifts [{LAB_US.name}]"
        tables.append(_loads_by_systems(comparison, ranges, _max_range_text))
    if len({cpu for spot in spots for cpu in spot.cpus}) > 1:
        tables.append(_processors_by_systems(comparison))
    if any(spot.missed for spot in spots):
        tables.append(_loads_by_systems(comparison, "Missed activations", lambda spot: count_text(spot.missed)))
    return tables


def _loads_by_systems(comparison: KernelComparison, caption: str, show: ShowSpot) -> Table:
    rows = tuple((load.name, *(_cell(spot, show) for spot in comparison.row(load))) for load in comparison.loads)
    header = ("load", *(system.name for system in comparison.systems))
    return Table(caption, header, rows, tuple(range(1, len(header))))


def _cell(spot: SystemUnderLoad, show: ShowSpot) -> str:
    return show(spot) if spot.usable else "failed" if spot.failures else "invalid"


def _processors_by_systems(comparison: KernelComparison) -> Table:
    """The largest latency under each load on each processor measured under it, with a column for each system."""

    def cell(spot: SystemUnderLoad, cpu: int) -> str:
        if spot.usable and cpu not in spot.cpus:
            return "not measured"
        part = spot.on_cpu(cpu)
        missed = f" ({part.missed:,})" if part.readings and part.missed else ""
        return _cell(spot, lambda _: f"{_max_text(part)}{missed}" if part.count else "never ran")

    rows = tuple(
        (load.name, str(cpu), share_text(row, cpu), *(cell(spot, cpu) for spot in row))
        for load in comparison.loads
        for row in [comparison.row(load)]
        for cpu in sorted({cpu for spot in row for cpu in spot.cpus})
    )
    caption = (
        f"Largest latency by processor [{LAB_US.name}]; compare a processor only with the same one; share: its part of "
        "all instructions; in brackets: missed activations"
    )
    header = ("load", "processor", "share", *(system.name for system in comparison.systems))
    return Table(caption, header, rows, tuple(range(1, len(header))))


def share_text(spots: Sequence[SystemUnderLoad], cpu: int) -> str:
    """The share of all instructions that a processor had: "0.38", or "0.36 to 0.38" if it differs; "" if unknown."""
    parts = [part for spot in spots for part in spot.on_cpu(cpu).readings]
    return _range_text({part.share for part in parts if part.share is not None}, ".2f")


def _range_text(values: Iterable[float], digits: str) -> str:
    """The smallest and the largest; one of them if they look alike; "" for none."""
    shown = [format(each, digits) for each in sorted(values)]
    return " to ".join(dict.fromkeys((shown[0], shown[-1]))) if shown else ""


def _where_measured(spots: Sequence[SystemUnderLoad]) -> str:
    cpus = sorted({cpu for spot in spots for cpu in spot.cpus})
    if len(cpus) != 1:
        return ", all measured processors together" if cpus else ""
    share = share_text(spots, cpus[0])
    return f", processor {cpus[0]}" + (f", which had {share} of all instructions" if share else "")


def fault_blocks(comparison: KernelComparison) -> list[Block]:
    """A sentence for each cell that failed, and for each doubt that makes a cell invalid."""
    failed = [f"{spot.name}: {why}" for spot in comparison.failed for why in dict.fromkeys(spot.failures)]
    invalid = [
        f"{spot.name}: {what}"
        for spot in comparison.invalid
        for what in dict.fromkeys(doubt.what for reading in spot.readings for doubt in reading.invalid)
    ]
    told = (
        (failed, "bad", f"{quantity(len(failed), 'cell')} failed"),
        (invalid, "doubt", "These did not measure what was asked"),
    )
    return [Text(tuple(lines), kind, headline) for lines, kind, headline in told if lines]


def tail_plots(comparison: KernelComparison) -> list[Block]:
    """A plot for each load: for every system, the share of due times with a larger latency.

    The first screen has those of the loads with the largest latencies, which decide the ranking.
    """
    reached = {load: max((s.max_ns for s in comparison.row(load) if s.usable), default=0) for load in comparison.loads}
    foremost = sorted(reached, key=lambda load: -reached[load])[:MOST_FOREMOST]
    plots = [
        replace(plot, foremost=load in foremost)
        for load in comparison.loads
        for plot in _tail_plot(load, comparison.row(load))
    ]
    coloured = in_own_colours(plots, [system.name for system in comparison.systems])
    return list(on_one_scale(list(coloured)))


def _tail_plot(load: GuestLoad, row: list[SystemUnderLoad]) -> list[Plot]:
    lines = [
        NamedCounts(spot.system.name, merge_counts(reading.pooled.schedule_counts for reading in spot.readings))
        for spot in row
        if spot.usable
    ][:MOST_TAIL_CURVES]
    grid = plot_data.survival_grid([line.counts for line in lines]) if lines else None
    if grid is None or grid.size < 2:
        return []
    ends = "; ".join(f"{line.name} ends at {value(int(line.counts.hi[-1]))}" for line in lines)
    left_out = f" Only the first {MOST_TAIL_CURVES} systems are drawn." if len(row) > MOST_TAIL_CURVES else ""
    says = f"Missed activations are counted with their lateness. {ends}.{left_out}"
    return [tail_plot(f"Share of due times later than a latency: {load.name}", says, lines, grid, LAB_US)]


def warning_table(comparison: KernelComparison) -> list[Block]:
    """The doubts that do not make a cell invalid, each with the cells that have it."""
    about: dict[str, dict[str, None]] = {}
    for spot in comparison.spots:
        for reading in spot.readings:
            for doubt in reading.doubts:
                if doubt not in reading.invalid:
                    about.setdefault(doubt.what, {})[spot.name] = None
    rows = tuple((what, str(len(cells)), "; ".join(cells)) for what, cells in about.items())
    return [Table("Warnings", ("warning", "cells", "which"), rows, (1,), folded=True)] if rows else []


def provenance_section(comparison: KernelComparison, making: Provenance) -> Section:
    """The command, and everything else on which the figures depend."""
    setting = comparison.setting
    names = sorted({f"{r.probe}, {r.pooled.series.field}" for spot in comparison.spots for r in spot.readings})
    setup = [
        ("probe", "; ".join(names) or setting.probe),
        ("period", duration(setting.period_ns)),
        ("measured in each cell", duration(setting.duration_ns)),
        ("warm-up", duration(setting.warmup_ns)),
        ("shifts of the start", str(comparison.shifts)),
        *(("setup", line) for line in setting.setup),
    ]
    read = [
        (spot.system, reading)
        for system in comparison.systems
        for spot in comparison.spots
        if spot.system == system
        for reading in (spot.readings or (None,))
    ]
    cost = cost_rows(comparison.fresh, comparison.cached, comparison.host_s, comparison.cost)
    words = "The same command gives the same figures on any machine with the same QEMU, kernels and agent:"
    return making_section(making.command, making_tables(making, read, cost, setup), (Text((words,)),))


def making_section(command: str, tables: Sequence[Table], before: tuple[Block, ...] = ()) -> Section:
    """How figures were made. command: as typed; tables: what was measured by what programs, and what was booted."""
    return Section("made", "How it was made", (*before, Text((command,), "code"), *tables))


def cost_rows(fresh: int, cached: int, host_s: float, cost: CellCost) -> list[tuple[str, str]]:
    """How many cells were measured, how often until two runs agreed, and how long they took."""
    cells = fresh + cached
    guard = f"off in {cost.unguarded} of {quantity(cells, 'cell')}" if cost.unguarded else "on in all cells"
    runs = f"{cost.runs}, until two runs of each cell that needs it agreed; {cost.differing or 'none'} gave other bytes"
    rate = f", {cost.host_s / cost.virtual_s:.1f} per virtual second" if cost.virtual_s else ""
    return [
        ("cells", f"{fresh} run now, {cached} from the cache"),
        ("guard of virtual time", guard if cells else "no cell was run"),
        *([("runs of the cells", runs)] if cost.runs > cells else []),
        ("time of this host", f"{duration(host_s * 1e9)} now; {cost.host_s:,.0f} s for all cells{rate}"),
    ]


SystemReading = tuple[GuestSystem, CellReading | None]


def making_tables(
    making: Provenance,
    read: Sequence[SystemReading],
    cost: Sequence[tuple[str, str]],
    setup: Sequence[tuple[str, str]] = (),
) -> tuple[Table, ...]:
    """What was measured by what programs, and what was booted. setup: what is the same in all cells."""
    machines = list(dict.fromkeys(system.machine for system, _ in read))
    turns = sorted(
        {f"at most {m.pace_us} us, {'with' if m.soakers else 'without'} soakers" for m in machines if m.takes_turns}
    )
    cpus = ", ".join(sorted({str(machine.cpus) for machine in machines}))
    processors = [("CPUs of the guest", cpus), *([("turns of the processors", "; ".join(turns))] if turns else [])]
    programs = [
        *(("QEMU" if len(making.qemu) == 1 else f"QEMU for {name}", text) for name, text in making.qemu.items()),
        *((f"agent for {arch}, SHA-256", digest) for arch, digest in making.agents.items()),
        ("compiler of the agent and of the guest's helper", making.toolchain),
        ("rtproof", making.version),
    ]
    rows = (*setup, *processors, *programs, *cost)
    return Table("What was measured", ("what", "value"), rows), systems_table(read)


def systems_table(read: Sequence[SystemReading]) -> Table:
    """What was booted, and what its kernel said of itself. ``read`` may contain a system several times."""
    told: dict[GuestSystem, list[CellReading]] = {system: [] for system, _ in read}
    for system, reading in read:
        told[system] += [reading] if reading else []
    caption = (
        "What was booted; package: the exact name, which --kernel takes; runs: the preemption model that the kernel "
        "itself names; kernel image: beginning of its SHA-256; machine: beginning of the SHA-256 of QEMU, kernel, "
        "initramfs and command line"
    )
    return table_of(
        caption,
        told.items(),
        ("system", lambda row: " ".join(dict.fromkeys((*row[0].name.split(), *row[0].machine.boot)))),
        ("package", lambda row: kernel_catalogue.exact_name(row[0].kernel, row[0].machine.kernel)),
        ("release", lambda row: row[0].machine.kernel.release),
        ("version", lambda row: ", ".join(dict.fromkeys(each.kernel_version for each in row[1]))),
        ("runs", lambda row: ", ".join(dict.fromkeys(each.preemption for each in row[1] if each.preemption))),
        ("kernel image", lambda row: row[0].machine.kernel.identity[:SHOWN_DIGEST_DIGITS]),
        ("machine", lambda row: machine_identity(row[0].machine)[:SHOWN_DIGEST_DIGITS]),
        words=7,
    )


LATENCIES = (
    "values_count=pooled.observed.count missed_count=pooled.never_ran lost_count=pooled.lost "
    "min_ns=pooled.observed.min mean_ns max_ns"
)


def _mean_ns(reading: CellReading) -> float:
    return reading.pooled.observed.mean or 0.0


DOUBT = table(Doubt, "code severity what=whole")
CPU = table(CellReading, f"cpu share {LATENCIES}", mean_ns=_mean_ns)
READING = table(
    CellReading,
    f"probe field=pooled.series.field {LATENCIES} kernel_version preemption? core cpus doubts",
    mean_ns=_mean_ns,
    cpus=Key(each=CPU),
    doubts=Key(each=DOUBT),
)


def encode_comparison(comparison: KernelComparison, making: Provenance) -> bytes:
    """The comparison as JSON in UTF-8, indented by two. Systems without figures are not ranked."""
    cost = comparison.cost
    document: Json = {
        "schema": LAB_SCHEMA,
        "version": LAB_SCHEMA_VERSION,
        "time": "virtual",
        "notes": [
            VIRTUAL_TIME,
            ONE_OBSERVATION,
            *comparison.turns,
            *unlike_sentences(comparison),
        ],
        "command": making.command,
        "rtproof_version": making.version,
        "qemu": dict(making.qemu),
        "agents_sha256": dict(making.agents),
        "toolchain": making.toolchain,
        "setting": {**msgspec.to_builtins(comparison.setting), "shifts_count": comparison.shifts},
        "systems": [msgspec.to_builtins(ComparedSystem.of(system)) for system in comparison.systems],
        "ranking": [
            {"system": p.system.name, "load": p.load.name, "max_ns": p.max_ns} for p in rank_systems(comparison)
        ],
        "cells": [
            {
                "system": spot.system.name,
                "load": spot.load.name,
                "state": _cell(spot, lambda _: "measured"),
                "failures": list(spot.failures),
                "shifts": [encode(reading, READING) for reading in spot.readings],
                "jobs_sha256": [job_digest(comparison.setting, spot.load, at) for at in range(comparison.shifts)],
            }
            for spot in comparison.spots
        ],
        "explanations": [explanation_dict(each) for each in comparison.explanations],
        "cost": {
            "host_s": cost.host_s,
            "virtual_s": cost.virtual_s,
            "elapsed_s": comparison.host_s,
            "guest_runs_count": cost.runs,
            "differing_runs_count": cost.differing,
            "unguarded_cells_count": cost.unguarded,
            "run_count": comparison.fresh,
            "cached_count": comparison.cached,
        },
        "exit_code": comparison.exit_code,
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"
