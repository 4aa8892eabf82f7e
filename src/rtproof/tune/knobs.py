# SPDX-License-Identifier: Apache-2.0
"""The knobs of ``knobs.toml``, and what each one sets on a machine with certain CPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import msgspec

from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.toml import parse_toml
from rtproof.core.units import format_cpus


class Knob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that can be set while the system runs, or when it boots, and that may make it react earlier.

    set: what the agent's --set takes, with placeholders. agent: other words for the agent in its place. boot: words of
    the kernel's command line that do the same; a knob that has nothing else needs a boot. cost: what it costs, a
    sentence. check: the check of the audit that speaks of it. danger: why it is only tried if the user names it.
    policy: the scheduling policy without which the measured threads have nothing to set; "" for any.
    late: it is tried after the others, because the link to the target may depend on it. whole: its settings only work
    together.
    """

    name: str
    title: str
    cost: str
    check: str
    set: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    boot: str = ""
    danger: str = ""
    policy: str = ""
    late: bool = False
    whole: bool = False


class KnobFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All knobs, in the order in which they are tried if there is not time for all: the most promising one first."""

    knob: tuple[Knob, ...]


@cache
def all_knobs() -> tuple[Knob, ...]:
    """Every knob, in the order of the file."""
    text = resources.files("rtproof.tune").joinpath("knobs.toml").read_bytes()
    return parse_toml(text, KnobFile, "knobs.toml").knob


def chosen_knobs(names: Sequence[str]) -> tuple[Knob, ...]:
    """The knobs of these names; of none, all that are not dangerous. UserError for a name that there is not."""
    known = {knob.name: knob for knob in all_knobs()}
    for name in names:
        if name not in known:
            raise UserError(unknown_name("knob", name, sorted(known)))
    return tuple(known[name] for name in dict.fromkeys(names)) or tuple(k for k in all_knobs() if not k.danger)


@dataclass(frozen=True)
class TunedCpus:
    """CPUs of a target. measured: those of the real-time threads. others: the rest of those on line.

    siblings: those that share a core with a measured one, and are not measured.
    """

    measured: tuple[int, ...]
    others: tuple[int, ...]
    siblings: tuple[int, ...] = ()


@dataclass(frozen=True)
class KnobOnTarget:
    """A knob as a target has it.

    settings: what the agent's --set takes. boot: the words of the command line, for these CPUs. before: what the first
    setting was, for people.

    missing: why the target does not have it, or has nothing to change; "" if it can be tried.
    """

    knob: Knob
    settings: tuple[str, ...] = ()
    boot: str = ""
    before: str = ""
    missing: str = ""

    @property
    def by_boot(self) -> bool:
        """Whether only words of the command line turn it on."""
        return not (self.settings or self.knob.agent)


def settings_of(knob: Knob, cpus: TunedCpus) -> tuple[str, ...]:
    """What to set, as --set takes it; nothing where a placeholder stands for no CPU."""
    if "{hk" in "".join(knob.set) and not cpus.others:
        return ()
    found: list[str] = []
    for pattern in knob.set:
        numbers = cpus.measured if "{rt_cpu}" in pattern else cpus.siblings
        if "{rt_cpu}" in pattern or "{rt_sibling}" in pattern:
            found += [pattern.replace("{rt_cpu}", str(cpu)).replace("{rt_sibling}", str(cpu)) for cpu in numbers]
        else:
            found.append(for_cpus(pattern, cpus))
    return tuple(found)


def for_cpus(pattern: str, cpus: TunedCpus) -> str:
    """The pattern with lists and masks of CPUs in place of their names."""
    texts = {
        "{rt}": format_cpus(cpus.measured),
        "{hk}": format_cpus(cpus.others),
        "{rt_mask}": cpu_mask(cpus.measured),
        "{hk_mask}": cpu_mask(cpus.others),
    }
    for name, text in texts.items():
        pattern = pattern.replace(name, text)
    return pattern


def cpu_mask(cpus: Sequence[int]) -> str:
    """As the kernel writes a mask: hexadecimal, in groups of 32 bits."""
    mask = sum(1 << cpu for cpu in cpus)
    groups: list[str] = []
    while mask or not groups:
        groups.append(f"{mask & 0xFFFFFFFF:x}" if mask >> 32 == 0 else f"{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    return ",".join(reversed(groups))
