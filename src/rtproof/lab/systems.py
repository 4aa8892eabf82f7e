# SPDX-License-Identifier: Apache-2.0
"""Make the systems of a comparison from the kernels and boot parameters that the user names."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.core.units import format_cpus, parse_cpus
from rtproof.lab.guest_cell import GuestSystem
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import USUAL_PACE_US, Machine

DYNAMIC_MODELS = ("none", "voluntary", "full")
"""The values of preempt= since Linux 5.12 (Documentation/admin-guide/kernel-parameters.txt)."""
FIRST_LAZY_RT = (6, 12)
"""Debian's 6.12 with PREEMPT_RT also has lazy preemption, which is full for real-time tasks. Older ones have not."""
FIRST_LAZY = (6, 13)
"""The first mainline kernels with lazy preemption."""
MEMORY_MIB = 1024
"""Memory of a guest. With this much, no load has to reduce its own use of memory."""
PROBE_OF_MODULE = "kernel"
PREEMPTION_MODELS = (*DYNAMIC_MODELS, "lazy")
_RT_BANNER = re.compile(rb"#\d[^\0\n]{0,60} PREEMPT_RT ")
_SERIES = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True)
class NamedKernel:
    """A kernel with the name that the user gave. ``modules``: to be loaded, such as rtproof's own for its probe."""

    name: str
    kernel: Kernel
    catalogue: bool = False
    modules: tuple[str | Path, ...] = ()


Resolve = Callable[[str, Path | None], Kernel]
"""``kernel_catalogue.resolve_kernel``, with its other parameters filled in."""


def open_named(text: str, resolve: Resolve) -> NamedKernel:
    """Open a kernel by its name in the catalogue, as IMAGE, or as IMAGE:MODULES. UserError if there is none."""
    image, _, modules = text.partition(":")
    if Path(image).is_dir():
        raise UserError(f"{image} is a folder: give the kernel image itself, such as arch/x86/boot/bzImage")
    kernel = resolve(image, Path(modules) if modules else None)
    own = Path(image).is_file()
    return NamedKernel(Path(image).name if own else image, kernel, catalogue=not own)


def needs_own_module(probe: str) -> bool:
    return probe.partition(":")[0] == PROBE_OF_MODULE


def with_modules(named: NamedKernel, modules: tuple[Path, ...], probe: str, own: Callable[[str], Path]) -> NamedKernel:
    """The kernel with the modules asked for, or with rtproof's own, which ``own`` builds, if the probe needs it."""
    if needs_own_module(probe) and not modules and named.catalogue:
        return replace(named, modules=(own(named.name),))
    return replace(named, modules=modules)


def is_rt(kernel: Kernel) -> bool:
    """Whether the kernel was built with PREEMPT_RT, by its banner, or by its release if the banner is compressed."""
    return "-rt" in kernel.release or bool(_RT_BANNER.search(kernel.image.read_bytes()))


def models_of(kernel: Kernel) -> tuple[str, ...]:
    """The values of preempt= that a kernel should know. The guest is asked later whether the kernel took it."""
    match = _SERIES.match(kernel.release)
    series = (int(match[1]), int(match[2])) if match else FIRST_LAZY
    if is_rt(kernel):
        return ("full", "lazy") if series >= FIRST_LAZY_RT else ()
    return PREEMPTION_MODELS if series >= FIRST_LAZY else DYNAMIC_MODELS


def chosen_processors(options: Mapping[str, Any]) -> dict[str, Any]:
    """The processors of guests, and the QEMU that runs them, by the names of ``Machine``. UserError without effect."""
    cpus, pace_us, soakers = options["cpus"], options["pace_us"], options["soakers"]
    if cpus == 1 and (pace_us is not None or soakers is not None):
        option = "--pace" if pace_us is not None else "--soakers" if soakers else "--no-soakers"
        raise UserError(f"{option} is for guests with several processors, which take turns: give --processors as well")
    pace_us = pace_us or USUAL_PACE_US
    return {"cpus": cpus, "pace_us": pace_us, "soakers": soakers is not False, "qemu": options["qemu"] or ""}


def measured_cpus(text: str | None, cpus: int, policy: str | None = None) -> str:
    """The CPUs to measure on, in their shortest form; "" for no list. UserError if the guest lacks one of them."""
    if text is None:
        return ""
    try:
        listed = parse_cpus(text)
    except UserError as problem:
        raise UserError(f"--measured-cpus: {problem}") from None
    if listed[-1] >= cpus:
        raise UserError(f"--measured-cpus {text}: {_processors_of_guest(cpus)}")
    if policy == "deadline":
        raise UserError("threads of policy deadline can't be bound to CPUs: leave --measured-cpus out")
    return format_cpus(listed)


def _processors_of_guest(cpus: int) -> str:
    numbers = f"numbers 0 to {cpus - 1}" if cpus > 1 else "number 0; --processors gives it more"
    return f"the guest has {quantity(cpus, 'processor')}, {numbers}"


CPU_LIST_ARGUMENTS = ("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity")
"""Arguments of the kernel that list CPUs (Documentation/admin-guide/kernel-parameters.txt)."""
ISOLATING_ARGUMENTS = ("isolcpus", "nohz_full")
"""Those that take CPUs away from the rest of the system. The kernel spares one CPU if all are listed."""
_ISOLCPUS_FLAGS = ("nohz", "domain", "managed_irq")


def refuse_wrong_cpus(boots: Sequence[str], cpus: int) -> None:
    """UserError for kernel arguments that list CPUs which the guest lacks, or that isolate all that it has."""
    for word in (word for boot in boots for word in boot.split()):
        name, _, value = word.partition("=")
        listed = _listed_cpus(value) if name in CPU_LIST_ARGUMENTS else ()
        if listed and listed[-1] >= cpus:
            raise UserError(f"--boot {word}: {_processors_of_guest(cpus)}")
        if name in ISOLATING_ARGUMENTS and len(listed) == cpus:
            raise UserError(f"--boot {word} isolates every processor of the guest, and Linux needs one: leave one out")


def _listed_cpus(value: str) -> tuple[int, ...]:
    """The CPUs in the value of such an argument; empty if it has no plain list."""
    words = value.split(",")
    while words and words[0] in _ISOLCPUS_FLAGS:
        del words[0]
    try:
        return parse_cpus(",".join(words))
    except UserError:
        return ()


def systems(
    kernels: Sequence[NamedKernel],
    preempts: Sequence[str],
    boots: Sequence[str] = (),
    processors: Mapping[str, Any] | None = None,
) -> tuple[GuestSystem, ...]:
    """Every kernel with every model asked for that it has, and with every boot line. UserError for one twice."""
    labels = _boot_labels(boots) if len(boots) > 1 else [""] * max(len(boots), 1)
    found = []
    for named in kernels:
        for model in [model for model in preempts if model in models_of(named.kernel)] or [""]:
            for boot, label in zip(boots or ("",), labels, strict=True):
                preempt = [f"preempt={model}"] if model else []
                arguments = (*preempt, *boot.split())
                machine = Machine(
                    named.kernel, boot=arguments, memory_mib=MEMORY_MIB, modules=named.modules, **processors or {}
                )
                found.append(GuestSystem(named.name, " ".join([*preempt, *([label] if label else [])]), machine))
    for at, system in enumerate(found):
        if system.machine in [other.machine for other in found[:at]]:
            raise UserError(f"{system.name} is asked for twice")
    return _with_unique_names(found)


LONGEST_BOOT_LABEL = 20
"""Characters. A longer list of arguments gets a short name, so that the columns of a table stay narrow."""


def _boot_labels(boots: Sequence[str]) -> list[str]:
    """Unique short names for lists of kernel arguments: the list itself, or its first new argument and a number."""
    found: list[str] = []
    before: set[str] = set()
    for number, boot in enumerate(boots, 1):
        words = boot.split()
        whole = " ".join(words) or "no arguments"
        new = next((word for word in words if word not in before), whole)
        short = f"{new.partition('=')[0][:LONGEST_BOOT_LABEL]} (boot {number})"
        found.append(whole if len(whole) <= LONGEST_BOOT_LABEL and whole not in found else short)
        before.update(words)
    return found


def _with_unique_names(found: list[GuestSystem]) -> tuple[GuestSystem, ...]:
    """The systems with unique names. Images of the same name get their releases, or else numbers."""
    names = [system.name for system in found]
    if len(set(names)) == len(names):
        return tuple(found)
    told = [f"{system.kernel} {system.machine.kernel.release}" for system in found]
    if len(set(zip(told, (s.variant for s in found), strict=True))) < len(found):
        told = [f"{system.kernel} ({at})" for at, system in enumerate(found, 1)]
    return tuple(GuestSystem(name, system.variant, system.machine) for name, system in zip(told, found, strict=True))
