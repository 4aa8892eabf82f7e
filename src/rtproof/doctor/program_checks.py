# SPDX-License-Identifier: Apache-2.0
"""Checks of programs and packages: what rtproof itself is made of, and what it lets others do."""

import importlib
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version

from rtproof.agents import build
from rtproof.agents.architectures import ARCHITECTURES, host_architecture
from rtproof.boards.labgrid_place import require_labgrid
from rtproof.core import plugins
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.printable import one_line
from rtproof.doctor.findings import Finding, State, limited, missing, ok
from rtproof.doctor.host import Host, packages, python_package, requirement
from rtproof.doctor.machine_checks import OTHER_CACHE, why_not_writable
from rtproof.vm.emulators import FETCH, choose_emulator
from rtproof.vm.machine import ARCHES, Arch


def tried(attempt: Callable[[], str], lost: str, command: str, verdict: Callable[..., Finding] = missing) -> Finding:
    """The finding of an attempt, which returns the sentence that all is well, or raises why it is not.

    lost: the sentence around that reason. command: brings what is lacking.
    """
    try:
        return ok(attempt())
    except (UserError, OSError) as refusal:
        return verdict(lost.format(getattr(refusal, "strerror", None) or refusal), command)


def extra(host: Host, name: str, system_name: str = "") -> str:
    """The command that brings an extra of rtproof."""
    return python_package(host, requirement(name), system_name)


def version_of(module: str) -> str:
    """UserError if the module cannot be loaded, for whatever reason."""
    try:
        return str(importlib.import_module(module).__version__)
    except Exception as problem:
        raise UserError(one_line(str(problem), 120)) from None


def numpy(host: Host) -> Finding:
    python, lost = ".".join(map(str, sys.version_info[:3])), "numpy cannot be loaded, so rtproof reads no record: {}."
    return tried(
        lambda: f"Python {python} loads numpy {version_of('numpy')}.", lost, python_package(host, "numpy>=1.26")
    )


def pyarrow(host: Host) -> Finding:
    lost = "Python scripts get samples as numpy arrays, not as Arrow: {}."
    command = python_package(host, "pyarrow", "pyarrow")
    return tried(lambda: f"pyarrow {version_of('pyarrow')} can be loaded.", lost, command, limited)


def matplotlib(host: Host) -> Finding:
    def draws() -> str:
        from rtproof.report.formats.svg import require

        require("svg")
        return f"matplotlib {version_of('matplotlib')} draws plots as SVG and PNG."

    return tried(draws, "No plot can be drawn as a file: {}.", extra(host, "plot", "matplotlib"))


def labgrid(host: Host) -> Finding:
    def is_installed() -> str:
        require_labgrid()
        try:
            return f"labgrid {version('labgrid')} is installed."
        except PackageNotFoundError:
            return "labgrid of an unknown version is installed."

    return tried(is_installed, "The target labgrid cannot be used: {}.", extra(host, "labgrid"))


def lab_compiler(host: Host) -> Finding:
    def builds() -> str:
        build.choose_compiler(host_architecture(), build.PINNED)
        return f"zig {build.PINNED_ZIG} builds the agents of guests."

    return tried(builds, "The lab cannot build its agent: {}.", extra(host, "cross"))


def agent(host: Host) -> Finding:
    """Run the agent that is there, or look for a compiler that links statically and for a place to keep the agent."""
    command = OTHER_CACHE
    try:
        arch = host_architecture()
        if not build.packaged_agent(arch.name).exists():
            cache = build.cache_dir()
            if why := why_not_writable(cache):
                raise UserError(f"none can be kept in {cache} ({why})")
        command = packages(host, "static-compiler")
        if program := build.built_agent():
            return ok(f"The agent {build.agent_version(program)} for {arch.name} runs.")
        compiler = build.choose_compiler(arch).command[0]
    except UserError as refusal:
        return missing(f"There is no agent to measure with: {refusal}.", command)
    return ok(f"No agent is built yet; {compiler} builds it at the first use, which takes some seconds.")


def board_agents(host: Host) -> Finding:
    """Look for a packaged agent of each architecture, then for a compiler."""
    refused = []
    for arch in ARCHITECTURES:
        try:
            if not build.packaged_agent(arch.name).exists():
                build.choose_compiler(arch)
        except UserError:
            refused.append(arch.name)
    here = [arch.name for arch in ARCHITECTURES if arch.name not in refused]
    if not refused:
        return ok(f"There is an agent, or a compiler for it, for {', '.join(here)}.")
    verdict = limited if here else missing
    return verdict(f"Nothing here can build the agent for {', '.join(refused)}.", extra(host, "cross"))


def ssh(host: Host) -> Finding:
    """Most boards are reached by it."""
    answer = host.ask("ssh", "-V")
    if not answer.fault:
        return ok(f"ssh is here ({answer.line}).")
    meaning = f"ssh {answer.fault}, so boards can be reached by a console or another program only."
    return limited(meaning, "" if answer.path else packages(host, "ssh"))


QEMU_PACKAGES = {"qemu-system-x86": "qemu-x86", "qemu-system-arm": "qemu-arm"}
"""The name in the table of packages, by the name of the package in Debian."""


def _qemu(host: Host, cpus_share_time: bool, meanings: tuple[str, str, str]) -> Finding:
    """Choose a QEMU for each architecture as the lab does.

    meanings: what it means if all architectures can be had, if some can, and if none can; {} lists those that can.
    """
    good: list[str] = []
    refused: dict[Arch, str] = {}
    for arch in ARCHES.values():
        try:
            emulator = choose_emulator(arch.qemu, arch.package, cpus_share_time)
            version = ".".join(map(str, emulator.numbers or ()))
            good.append(arch.name if cpus_share_time else f"{arch.name} by {version}")
        except RtproofError as refusal:
            refused[arch] = str(refusal)
    every, some, none = (meaning.format(", ".join(good)) for meaning in meanings)
    if not refused:
        return ok(every)
    command = FETCH if cpus_share_time else packages(host, *(QEMU_PACKAGES[arch.package] for arch in refused))
    first = next(iter(refused.values()))
    return limited(f"{some}: {first}.", command) if good else missing(f"{none}: {first}.", command)


def qemu(host: Host) -> Finding:
    every, some = "QEMU boots kernels for {}; KVM is not needed.", "The lab boots kernels for {} only"
    return _qemu(host, False, (every, some, "The lab boots no kernel"))


def qemu_for_several_cpus(host: Host) -> Finding:
    every = "QEMU shares virtual time between processors of {}."
    return _qemu(host, True, (every, "Several processors can be had of {} only", "Guests have one processor"))


def lab_kernels(host: Host) -> Finding:
    """List the kernels in the cache without reading them, and look for the programs and the mirror that bring more."""
    from rtproof.lab.debian_packages import check_tools, sources_for
    from rtproof.lab.kernel_catalogue import SUITES, catalogue
    from rtproof.vm.cache_folders import FILE_LIST, lab_cache

    kept = ", ".join(each.name for each in catalogue() if (lab_cache() / "kernels" / each.name / FILE_LIST).is_file())
    try:
        check_tools()
        sources_for(SUITES["6.12"])
        if all(host.ask(program, "--version").fault for program in ("sqv", "gpgv", "gpgv-sq")):
            raise UserError("apt checks signatures with gpgv or sqv, and neither is here")
    except UserError as refusal:
        if kept:
            return limited(f"The lab has {kept} and can fetch no other: {refusal}.")
        meaning = f"The lab has no kernel and can fetch none, so you must give your own: {refusal}."
        return limited(meaning, "rtproof lab compare --kernel FILE")
    if kept:
        return ok(f"The lab has {kept} and can fetch more of Debian's.")
    meaning = "The lab has no kernel yet. The first use fetches it from Debian's mirror, or you fetch it now."
    return ok(meaning, "rtproof lab kernels fetch debian-6.12-rt")


LOAD_PACKAGES = {"hackbench": "rt-tests", "iperf3": "iperf3", "ping": "ping", "stress-ng": "stress-ng"}
"""The package of each program that a load of ours needs. Every system has the other programs."""


def loads(host: Host) -> Finding:
    """Ask the agent for its loads, and look for the programs of the others."""
    from rtproof.experiment.load_list import agent_loads, load_rows, missing_programs

    program = build.built_agent()
    try:
        rows = load_rows(list(agent_loads(program)) if program else [])
    except UserError as refusal:
        return Finding(State.CANNOT_TELL, f"The agent does not list its loads: {refusal}.")
    programs = missing_programs()
    lacking = [f"{row.name} ({row.missing})" for row in rows if row.missing and (program or row.name in programs)]
    good = len(rows) - len(lacking)
    if not lacking:
        return ok(f"All {good} loads can run here.")
    command = packages(host, *(LOAD_PACKAGES[each] for each in programs.values() if each in LOAD_PACKAGES))
    return limited(f"{good} of {len(rows)} loads can run here; the others cannot: {'; '.join(lacking)}.", command)


def export_formats(host: Host) -> Iterator[Finding]:
    """Ask each format that needs a package for it."""
    from rtproof import exporters

    modules = {name: plugins.load_plugin(exporters, name) for name in plugins.plugin_names(exporters)}
    refused: dict[str, str] = {}
    for name, module in modules.items():
        try:
            if hasattr(module, "EXTRA"):
                module.require()
        except UserError as refusal:
            refused[name] = str(refusal)
    if not refused:
        yield ok(f"All {len(modules)} formats can be written.")
    written = f"{len(modules) - len(refused)} of {len(modules)} formats can be written"
    for name, sentence in refused.items():
        command = extra(host, modules[name].EXTRA)
        yield limited(f"{written}, and {name} cannot: {sentence}.", command, name=f"format {name}")
