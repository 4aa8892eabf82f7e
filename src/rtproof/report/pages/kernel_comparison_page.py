# SPDX-License-Identifier: Apache-2.0
"""Make the page of a comparison of kernels (ranking, tables, tails, provenance), and the same content as JSON."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from rtproof.core.phrases import duration, quantity, value
from rtproof.core.units import format_cpus
from rtproof.lab import kernel_catalogue
from rtproof.lab.compared_systems import ComparedSetting, ComparedSystem
from rtproof.lab.guest_cell import CellCost, GuestLoad, GuestSystem, job_digest, machine_identity
from rtproof.lab.kernel_comparison import (
    LEAST_SHIFTS,
    ONE_OBSERVATION,
    VIRTUAL_TIME,
    CellReading,
    KernelComparison,
    RankedSystem,
    SystemUnderLoad,
    cokernel_sentences,
    common_loads,
    comparable_part,
    compared_processors,
    loads_clearly_won,
    measured_alike,
    rank_systems,
    turns_sentences,
    unlike_sentences,
    with_in_band_marks,
)
from rtproof.lab.verify_inputs import LAB_SCHEMA, LAB_SCHEMA_VERSION
from rtproof.report import number_format, plot_data
from rtproof.report.blocks import Block, Plot, Section, Table, Text
from rtproof.report.cumulative_curves import NamedCounts
from rtproof.report.number_format import PrintedUnit
from rtproof.report.pages.cell_explanation_page import explanation_dict, why_blocks
from rtproof.report.pages.comparison_figures import in_own_colours, on_one_scale, tail_plot
from rtproof.summary.counts import Counts, merge_counts

LAB_US = PrintedUnit("us", 1_000, 1)
MOST_TRIPLES = 4
"""This many columns of "min / mean / max" fit a line. With more systems the table shows maxima."""
LEAST_HEAT_RATIO = 10.0
"""The scale of colours spans at least this ratio, so that similar figures get similar colours."""
NO_FIGURE_WORDS = {True: "failed", False: "invalid"}


def terminal_sections(comparison: KernelComparison) -> list[Section]:
    """The sections for a terminal: the ranking, the tables, and failed or doubtful cells."""
    comparison = with_in_band_marks(comparison)
    found = [
        Section("ranking", "Ranking", tuple(ranking_blocks(comparison))),
        Section("latencies", "Latencies", (*boot_blocks(comparison), *latency_tables(comparison))),
        Section("why", "Why", tuple(why_blocks(comparison.explanations, comparison.unexplained))),
        Section("faults", "Failed and doubtful cells", tuple(fault_blocks(comparison))),
    ]
    return [section for section in found if section.blocks]


def comparison_title(comparison: KernelComparison) -> str:
    kernels = list(dict.fromkeys(system.kernel for system in comparison.systems))
    cpus = max((system.machine.cpus for system in comparison.systems), default=1)
    processors = f", {cpus} processors{_only_measured(comparison, cpus)}" if cpus > 1 else ""
    return f"rtproof lab: {', '.join(kernels)} in virtual time{processors}"


def _only_measured(comparison: KernelComparison, cpus: int) -> str:
    """On which of the processors was measured, if it is the same part of them in all cells."""
    measured = {spot.cpus for spot in comparison.spots if spot.readings}
    alike = measured.pop() if len(measured) == 1 else ()
    return f", measured on {format_cpus(alike)}" if 0 < len(alike) < cpus else ""


def ranking_blocks(comparison: KernelComparison) -> list[Block]:
    """The ranking, and what such figures can be used for."""
    places = rank_systems(comparison)
    beside = tuple(cokernel_sentences(comparison))
    blocks: list[Block] = [Text(beside, "doubt")] if beside else []
    unlike = unlike_sentences(comparison)
    words = (*unlike, *_ranking_words(comparison, places), VIRTUAL_TIME, *turns_of(comparison))
    headline = UNLIKE_PROCESSORS if unlike and not places else ranking_headline(places)
    compared = compared_processors(comparison) if places else ""
    blocks += [Text(words, headline=f"On {compared}, {headline}" if compared else headline)]
    if len(places) > 1:
        blocks.append(_ranking_table(places, compared))
    return [*blocks, Text((_observation_words(comparison),))]


CLEARLY = "Clearly: its maxima are below those of every other system by more than the shifts differ."
UNLIKE_PROCESSORS = "The systems measured different processors, so none is ranked above another."


def turns_of(comparison: KernelComparison) -> list[str]:
    """What figures of several processors are; empty for guests with one."""
    return turns_sentences(system.machine for system in comparison.systems)


def ranking_headline(places: list[RankedSystem]) -> str:
    """A sentence that names the systems with the largest and the smallest latency."""
    if not places:
        return "There is no load under which every system has figures."
    first, last = places[0], places[-1]
    if first is last:
        return f"At most {_largest_at(first)}."
    times = last.spot.max_ns / max(first.spot.max_ns, 1)
    return f"At most {_largest_at(first)}, {_largest_at(last)}: {times:,.1f} times as much."


def _largest_at(place: RankedSystem) -> str:
    return f"{value(place.spot.max_ns)} with {place.system.name} ({place.spot.load.name})"


def _ranking_words(comparison: KernelComparison, places: list[RankedSystem]) -> list[str]:
    if len(places) < 2:
        return []
    first = [load.name for load in loads_clearly_won(comparison, places[0])]
    name = places[0].system.name
    where = f"{len(first)} of {_load_count(comparison)} ({', '.join(first)})" if first else "no load"
    words = [f"{name} is clearly faster under {where}. {CLEARLY}"]
    if comparison.shifts < LEAST_SHIFTS:
        words = [f"No difference is called clear, because that takes {LEAST_SHIFTS} shifts or more (--shifts)."]
    common = common_loads(comparable_part(comparison))
    if len(common) < len(comparison.loads):
        words.append(
            f"Ranked by {len(common)} of {_load_count(comparison)}: those under which all systems have figures."
        )
    return words


def _load_count(comparison: KernelComparison) -> str:
    return quantity(len(comparison.loads), "load")


def _observation_words(comparison: KernelComparison) -> str:
    n = quantity(comparison.shifts, "shift")
    return f"{ONE_OBSERVATION} Here: {n} per cell." if comparison.shifts > 1 else ONE_OBSERVATION


def runs_sentence(cost: CellCost, cells: int) -> str:
    """How often cells were run, and how many runs gave other bytes; "" if each was run once."""
    if cost.runs <= cells:
        return ""
    differed = f"{cost.differing} of them" if cost.differing else "none of them"
    which = "of each cell" if cost.unguarded else "of each cell with several processors"
    return f"{cost.runs} runs, until two {which} agreed; {differed} gave other bytes"


def guard_words(cost: CellCost, cells: int) -> str:
    """In how many cells the guard of virtual time was on."""
    if not cost.unguarded:
        return "on in all cells" if cells else "no cell was run"
    return f"off in {cost.unguarded} of {quantity(cells, 'cell')}: each of these was run until two runs agreed"


def _ranking_table(places: list[RankedSystem], compared: str) -> Table:
    least = max(places[0].spot.max_ns, 1)
    rows = tuple(
        (
            f"{at}. {place.system.name}",
            LAB_US.show(place.spot.max_ns),
            f"{place.spot.max_ns / least:,.1f}",
            place.spot.load.name,
        )
        for at, place in enumerate(places, 1)
    )
    header = ("system", f"largest latency [{LAB_US.name}]", "ratio to the first", "under")
    where = f" on {compared}" if compared else ""
    return Table(f"Systems by their largest latency{where} under any load", header, rows, (1, 2))


def boot_blocks(comparison: KernelComparison) -> list[Block]:
    """The kernel arguments of the systems, where the names do not have them: those of all, and what differs."""
    boots = [system.machine.boot for system in comparison.systems]
    if all(word in system.name.split() for system in comparison.systems for word in system.machine.boot):
        return []
    if len(set(boots)) == 1:
        return [Text((f"All systems were booted with {' '.join(boots[0])}.",))]
    rows = tuple((system.name, " ".join(system.machine.boot) or "none") for system in comparison.systems)
    return [Table("What differs: the kernel arguments of each system", ("system", "kernel arguments"), rows)]


def latency_tables(comparison: KernelComparison) -> list[Block]:
    """The tables: latencies, the range over shifts, the same by processor, and missed activations.

    With many systems the first table has the largest latencies only, and a second one has the other figures.
    """
    wide = len(comparison.systems) > MOST_TRIPLES
    amount = _sample_count_text(comparison) + _where_measured(comparison)
    alike = measured_alike(comparison)
    triple = f"min / mean / max latency [{LAB_US.name}] of the activations that ran, {amount}"
    tables = [_loads_by_systems(comparison, triple, _min_mean_max_text, heat=alike and not wide, folded=wide)]
    if wide:
        tables.insert(
            0, _loads_by_systems(comparison, f"Largest latency [{LAB_US.name}], {amount}", _max_text, heat=alike)
        )
    if comparison.shifts > 1:
        ranges = f"Range of the largest latency over {comparison.shifts} shifts [{LAB_US.name}]"
        tables.append(_loads_by_systems(comparison, ranges, _max_range_text))
    tables += processor_tables(comparison)
    if any(spot.missed for spot in comparison.spots):
        tables.append(
            _loads_by_systems(comparison, "Missed activations", lambda spot: number_format.count_text(spot.missed))
        )
    return list(tables)


def processor_tables(comparison: KernelComparison) -> list[Table]:
    """The largest latency by processor, and its range over the shifts. None where each cell measured the same one."""
    if len({each for spot in comparison.spots for each in spot.cpus}) < 2:
        return []
    shares = any(each.share is not None for spot in comparison.spots for each in _readings_by_cpu(spot))
    missed = any(spot.missed for spot in comparison.spots)
    caption = (
        f"Largest latency by processor [{LAB_US.name}]; compare a processor only with the same one"
        + "; share: its part of all instructions" * shares
        + "; in brackets: missed activations" * missed
    )
    tables = [_processors_by_systems(comparison, caption, _max_and_missed_text)]
    if comparison.shifts > 1:
        ranges = f"Range of the largest latency by processor over {comparison.shifts} shifts [{LAB_US.name}]"
        tables.append(replace(_processors_by_systems(comparison, ranges, _max_range_text), folded=True))
    return tables


def _processors_by_systems(comparison: KernelComparison, caption: str, show: Callable[[SystemUnderLoad], str]) -> Table:
    """A table with a row for each load and each processor measured under it, and a column for each system."""
    rows = tuple(
        (load.name, str(cpu), share_text(_of_cpu(row, cpu)), *(_processor_cell(spot, cpu, show) for spot in row))
        for load in comparison.loads
        for row in [comparison.row(load)]
        for cpu in sorted({cpu for spot in row for cpu in spot.cpus})
    )
    header = ("load", "processor", "share", *(system.name for system in comparison.systems))
    if all(not row[2] for row in rows):
        header, rows = _without_column(header, 2), tuple(_without_column(row, 2) for row in rows)
    return Table(caption, header, rows, tuple(range(1, len(header))))


def _without_column(row: tuple[str, ...], at: int) -> tuple[str, ...]:
    return (*row[:at], *row[at + 1 :])


def _processor_cell(spot: SystemUnderLoad, cpu: int, show: Callable[[SystemUnderLoad], str]) -> str:
    if not spot.usable:
        return NO_FIGURE_WORDS[bool(spot.failures)]
    if cpu not in spot.cpus:
        return "not measured"
    part = spot.on_cpu(cpu)
    return show(part) if part.readings else "never ran"


def _max_and_missed_text(spot: SystemUnderLoad) -> str:
    return f"{_max_text(spot)} ({number_format.count_text(spot.missed)})" if spot.missed else _max_text(spot)


def _readings_by_cpu(spot: SystemUnderLoad) -> list[CellReading]:
    return [each for reading in spot.readings for each in reading.cpus]


def _of_cpu(spots: Sequence[SystemUnderLoad], cpu: int) -> list[CellReading]:
    return [each for spot in spots for each in _readings_by_cpu(spot) if each.cpu == cpu]


def share_text(read: Sequence[CellReading]) -> str:
    """The share of all instructions that a processor had: "0.38", or "0.36 to 0.38" if it differs; "" if unknown."""
    shares = sorted({f"{each.share:.2f}" for each in read if each.share is not None})
    return " to ".join(dict.fromkeys((shares[0], shares[-1]))) if shares else ""


def _where_measured(comparison: KernelComparison) -> str:
    """Which processors the figures are of; "" for guests with one."""
    if all(system.machine.cpus == 1 for system in comparison.systems):
        return ""
    cpus = sorted({cpu for spot in comparison.spots for cpu in spot.cpus})
    if len(cpus) != 1:
        return ", all measured processors together" if cpus else ""
    share = share_text(_of_cpu(comparison.spots, cpus[0]))
    return f", processor {cpus[0]}" + (f", which had {share} of all instructions" if share else "")


def _sample_count_text(comparison: KernelComparison) -> str:
    counts = sorted({spot.count for spot in comparison.spots if spot.readings})
    if not counts:
        return "none"
    least = number_format.count_text(counts[0])
    return (
        f"n = {least} per cell"
        if len(counts) == 1
        else f"n = {least} to {number_format.count_text(counts[-1])} per cell"
    )


def _min_mean_max_text(spot: SystemUnderLoad) -> str:
    return " / ".join(LAB_US.show(each) for each in (spot.min_ns, spot.mean_ns, spot.max_ns))


def _max_text(spot: SystemUnderLoad) -> str:
    return LAB_US.show(spot.max_ns)


def _max_range_text(spot: SystemUnderLoad) -> str:
    return f"{LAB_US.show(spot.smallest_max_ns)} to {LAB_US.show(spot.max_ns)}"


def _loads_by_systems(
    comparison: KernelComparison,
    caption: str,
    show: Callable[[SystemUnderLoad], str],
    heat: bool = False,
    folded: bool = False,
) -> Table:
    lines = [comparison.row(load) for load in comparison.loads]
    rows = tuple(
        (load.name, *(_table_cell(spot, show) for spot in line))
        for load, line in zip(comparison.loads, lines, strict=True)
    )
    shades = tuple((None, *line) for line in heat_of(lines)) if heat else ()
    header = ("load", *(system.name for system in comparison.systems))
    return Table(caption, header, rows, tuple(range(1, len(header))), folded=folded, heat=shades)


def _table_cell(spot: SystemUnderLoad, show: Callable[[SystemUnderLoad], str]) -> str:
    return show(spot) if spot.usable else NO_FIGURE_WORDS[bool(spot.failures)]


def heat_of(lines: list[list[SystemUnderLoad]]) -> list[list[float | None]]:
    """The place of each maximum, from 0 to 1, on a logarithmic scale from the table's smallest to its largest.

    None for a cell without figures.
    """
    maxima = [max(spot.max_ns, 1) for line in lines for spot in line if spot.usable]
    if not maxima:
        return [[None] * len(line) for line in lines]
    low = math.log(min(maxima))
    span = max(math.log(max(maxima)) - low, math.log(LEAST_HEAT_RATIO))
    return [[(math.log(max(s.max_ns, 1)) - low) / span if s.usable else None for s in line] for line in lines]


def fault_blocks(comparison: KernelComparison) -> list[Block]:
    """A sentence for each cell that failed, and for each doubt that makes a cell invalid."""
    failed = [f"{spot.name}: {why}" for spot in comparison.failed for why in dict.fromkeys(spot.failures)]
    invalid = [
        f"{spot.name}: {what}"
        for spot in comparison.invalid
        for what in dict.fromkeys(doubt.what for reading in spot.readings for doubt in reading.invalid)
    ]
    blocks: list[Block] = []
    if failed:
        blocks.append(Text(tuple(failed), "bad", f"{quantity(len(failed), 'cell')} failed"))
    if invalid:
        blocks.append(Text(tuple(invalid), "doubt", "These did not measure what was asked"))
    return blocks


MOST_TAIL_CURVES = 8
MOST_FOREMOST = 2
SHOWN_DIGEST_DIGITS = 16
"""The page shows this many characters of a digest; the JSON has all."""


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


def page_sections(comparison: KernelComparison, making: Provenance) -> list[Section]:
    """The sections of the page: those of the terminal, and further ones."""
    comparison = with_in_band_marks(comparison)
    more = [
        Section("tails", "Tails", tuple(tail_plots(comparison))),
        Section("doubts", "Read with this in mind", tuple(warning_table(comparison))),
        provenance_section(comparison, making),
    ]
    return [*terminal_sections(comparison), *(section for section in more if section.blocks)]


def readme_sections(comparison: KernelComparison, making: Provenance) -> list[Section]:
    """The sections for a README: those of the terminal, and how the comparison was made."""
    comparison = with_in_band_marks(comparison)
    return [*terminal_sections(comparison), provenance_section(comparison, making)]


def tail_plots(comparison: KernelComparison) -> list[Block]:
    """A plot for each load: for every system, the share of due times with a larger latency.

    The first screen has those of the loads with the largest latencies, which decide the ranking.
    """
    compared = compared_processors(comparison)
    comparison = comparable_part(comparison)
    reached = {load: max((s.max_ns for s in comparison.row(load) if s.usable), default=0) for load in comparison.loads}
    foremost = sorted(reached, key=lambda load: -reached[load])[:MOST_FOREMOST]
    plots = [
        replace(plot, foremost=load in foremost)
        for load in comparison.loads
        for plot in _tail_plot(load, comparison.row(load), compared)
    ]
    coloured = in_own_colours(plots, [system.name for system in comparison.systems])
    return list(on_one_scale(list(coloured)))


def _tail_plot(load: GuestLoad, row: list[SystemUnderLoad], compared: str) -> list[Plot]:
    drawn = [(spot, merge_counts(reading.schedule_counts for reading in spot.readings)) for spot in row if spot.usable]
    drawn = drawn[:MOST_TAIL_CURVES]
    grid = plot_data.survival_grid([counts for _, counts in drawn]) if drawn else None
    if grid is None or grid.size < 2:
        return []
    left_out = f" Only the first {MOST_TAIL_CURVES} systems are drawn." if len(row) > MOST_TAIL_CURVES else ""
    title = f"Share of due times later than a latency: {load.name}{f', {compared}' if compared else ''}"
    lines = [NamedCounts(spot.system.name, counts) for spot, counts in drawn]
    return [tail_plot(title, f"{_tail_caption(drawn)}{left_out}", lines, grid, LAB_US)]


def _tail_caption(drawn: list[tuple[SystemUnderLoad, Counts]]) -> str:
    ends = "; ".join(f"{spot.system.name} ends at {value(int(counts.hi[-1]))}" for spot, counts in drawn)
    return f"Missed activations are counted with their lateness. {ends}."


def warning_table(comparison: KernelComparison) -> list[Block]:
    """The doubts that do not make a cell invalid, each with the cells that have it."""
    about: dict[str, list[str]] = {}
    for spot in comparison.spots:
        for what in dict.fromkeys(
            d.what for reading in spot.readings for d in reading.doubts if d not in reading.invalid
        ):
            about.setdefault(what, []).append(spot.name)
    rows = tuple((what, str(len(cells)), "; ".join(cells)) for what, cells in about.items())
    return [Table("Warnings", ("warning", "cells", "which"), rows, (1,), folded=True)] if rows else []


def provenance_section(comparison: KernelComparison, making: Provenance) -> Section:
    """The command, and everything else on which the figures depend."""
    read = [
        (spot.system, reading)
        for system in comparison.systems
        for spot in comparison.column(system)
        for reading in (spot.readings or (None,))
    ]
    cost = cost_rows(comparison.fresh, comparison.cached, comparison.host_s, comparison.cost)
    table = Table("What was measured", ("what", "value"), (*_setting_rows(comparison), *program_rows(making), *cost))
    words = "The same command gives the same figures on any machine with the same QEMU, kernels and agent:"
    return making_section(making.command, (table, systems_table(read)), (Text((words,)),))


def making_section(command: str, tables: Sequence[Table], before: tuple[Block, ...] = ()) -> Section:
    """How figures were made. command: as typed; tables: what was measured by what programs, and what was booted."""
    return Section("made", "How it was made", (*before, Text((command,), "code"), *tables))


def _setting_rows(comparison: KernelComparison) -> list[tuple[str, str]]:
    setting = comparison.setting
    return [
        ("probe", _probe_names(comparison)),
        ("period", duration(setting.period_ns)),
        ("measured in each cell", duration(setting.duration_ns)),
        ("warm-up", duration(setting.warmup_ns)),
        ("shifts of the start", str(comparison.shifts)),
        *(("setup", line) for line in setting.setup),
        ("CPUs of the guest", ", ".join(sorted({str(system.machine.cpus) for system in comparison.systems}))),
        *turns_rows(comparison.systems),
    ]


def turns_rows(systems: Sequence[GuestSystem]) -> list[tuple[str, str]]:
    """How the processors of guests take turns; empty for guests with one."""
    machines = [system.machine for system in systems if system.machine.takes_turns]
    told = {f"at most {each.pace_us} us, {'with' if each.soakers else 'without'} soakers" for each in machines}
    return [("turns of the processors", "; ".join(sorted(told)))] if told else []


def program_rows(making: Provenance) -> list[tuple[str, str]]:
    """The programs that a result depends on."""
    return [
        *(("QEMU" if len(making.qemu) == 1 else f"QEMU for {name}", text) for name, text in making.qemu.items()),
        *((f"agent for {arch}, SHA-256", digest) for arch, digest in making.agents.items()),
        ("compiler of the agent and of the guest's helper", making.toolchain),
        ("rtproof", making.version),
    ]


def cost_rows(fresh: int, cached: int, host_s: float, cost: CellCost) -> list[tuple[str, str]]:
    """How many cells were measured, and how long they took."""
    rate = f", {cost.host_s / cost.virtual_s:.1f} per virtual second" if cost.virtual_s else ""
    runs = runs_sentence(cost, fresh + cached)
    return [
        ("cells", f"{fresh} run now, {cached} from the cache"),
        ("guard of virtual time", guard_words(cost, fresh + cached)),
        *([("runs of these cells", runs)] if runs else []),
        ("time of this host", f"{duration(host_s * 1e9)} now; {cost.host_s:,.0f} s for all cells{rate}"),
    ]


def _probe_names(comparison: KernelComparison) -> str:
    names = {f"{r.probe}, {r.field}" for spot in comparison.spots for r in spot.readings}
    return "; ".join(sorted(names)) or comparison.setting.probe


def making_of_rounds(
    making: Provenance, read: Sequence[tuple[GuestSystem, CellReading | None]], cost: Sequence[tuple[str, str]]
) -> tuple[Table, ...]:
    """How the cells were made if they come from several rounds instead of one comparison."""
    booted = list(dict.fromkeys(system for system, _ in read))
    cpus = sorted({system.machine.cpus for system in booted if system.machine.cpus > 1})
    processors = [("CPUs of the guest", ", ".join(map(str, cpus))), *turns_rows(booted)] if cpus else []
    made = Table("What made it", ("what", "value"), (*program_rows(making), *processors, *cost))
    return made, systems_table(read)


def systems_table(read: Sequence[tuple[GuestSystem, CellReading | None]]) -> Table:
    """What was booted, and what its kernel said of itself. ``read`` may contain a system several times."""
    header = ("system", "package", "release", "version", "runs", "kernel image", "machine")
    rows = []
    for system in dict.fromkeys(system for system, _ in read):
        told = [reading for other, reading in read if other == system and reading]
        kernel, whole = system.machine.kernel, machine_identity(system.machine)
        rows.append(
            (
                system.name,
                kernel_catalogue.exact_name(system.kernel, kernel),
                kernel.release,
                ", ".join(dict.fromkeys(reading.kernel_version for reading in told)),
                ", ".join(dict.fromkeys(reading.preemption for reading in told if reading.preemption)),
                kernel.identity[:SHOWN_DIGEST_DIGITS],
                whole[:SHOWN_DIGEST_DIGITS],
            )
        )
    caption = (
        "What was booted; package: the exact name, which --kernel takes; runs: the preemption model that the kernel "
        "itself names; kernel image: beginning of its SHA-256; machine: beginning of the SHA-256 of QEMU, kernel, "
        "initramfs and command line"
    )
    return Table(caption, header, tuple(rows))


Json = dict[str, Any]


def comparison_dict(comparison: KernelComparison, making: Provenance) -> Json:
    """The comparison as plain data for JSON. Keys end with the unit. Systems without figures are not ranked."""
    return {
        "schema": LAB_SCHEMA,
        "version": LAB_SCHEMA_VERSION,
        "time": "virtual",
        "notes": [VIRTUAL_TIME, ONE_OBSERVATION, *turns_of(comparison), *unlike_sentences(comparison)],
        "command": making.command,
        "rtproof_version": making.version,
        "qemu": dict(making.qemu),
        "agents_sha256": dict(making.agents),
        "toolchain": making.toolchain,
        "setting": msgspec.to_builtins(ComparedSetting.of(comparison.setting, comparison.shifts)),
        "systems": [msgspec.to_builtins(ComparedSystem.of(system)) for system in comparison.systems],
        "ranking": [
            {"system": p.system.name, "load": p.spot.load.name, "max_ns": p.spot.max_ns}
            for p in rank_systems(comparison)
        ],
        "cells": [
            _system_under_load_dict(spot) | {"jobs_sha256": _job_digests(comparison, spot)} for spot in comparison.spots
        ],
        "explanations": [explanation_dict(each) for each in comparison.explanations],
        "cost": {
            "host_s": comparison.cost.host_s,
            "virtual_s": comparison.cost.virtual_s,
            "elapsed_s": comparison.host_s,
            "guest_runs_count": comparison.cost.runs,
            "differing_runs_count": comparison.cost.differing,
            "unguarded_cells_count": comparison.cost.unguarded,
            "run_count": comparison.fresh,
            "cached_count": comparison.cached,
        },
        "exit_code": comparison.exit_code,
    }


def encode_comparison(comparison: KernelComparison, making: Provenance) -> bytes:
    """The comparison as JSON in UTF-8, indented by two."""
    return json.dumps(comparison_dict(comparison, making), indent=2, ensure_ascii=False).encode() + b"\n"


def _job_digests(comparison: KernelComparison, spot: SystemUnderLoad) -> list[str]:
    return [job_digest(comparison.setting, spot.load, shift) for shift in range(comparison.shifts)]


def _system_under_load_dict(spot: SystemUnderLoad) -> Json:
    return {
        "system": spot.system.name,
        "load": spot.load.name,
        "state": "measured" if spot.usable else "failed" if spot.failures else "invalid",
        "failures": list(spot.failures),
        "shifts": [_reading_dict(reading) for reading in spot.readings],
    }


def _reading_dict(reading: CellReading) -> Json:
    return {
        "probe": reading.probe,
        "field": reading.field,
        **_latencies_dict(reading),
        "kernel_version": reading.kernel_version,
        "preemption": reading.preemption or None,
        "core": reading.core,
        "cpus": [_cpu_dict(each) for each in reading.cpus],
        "doubts": [{"code": d.code, "severity": d.severity.value, "what": d.whole} for d in reading.doubts],
    }


def _latencies_dict(read: CellReading) -> Json:
    return {
        "values_count": read.count,
        "missed_count": read.missed,
        "lost_count": read.lost,
        "min_ns": read.min_ns,
        "mean_ns": read.mean_ns,
        "max_ns": read.max_ns,
    }


def _cpu_dict(read: CellReading) -> Json:
    return {
        "cpu": read.cpu,
        "share": read.share,
        **_latencies_dict(read),
    }
