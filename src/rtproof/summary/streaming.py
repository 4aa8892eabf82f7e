# SPDX-License-Identifier: Apache-2.0
"""What streaming a record cost the board that was measured, and which samples the link did not bring away in time."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from rtproof.core.errors import UserError
from rtproof.core.units import parse_cpus, whole_number
from rtproof.record.contents import Moment, Record
from rtproof.summary.recorded_facts import WHOLE_MACHINE, CpuCounts, count_rises, fact_number

INTERRUPTS = "/proc/interrupts"
STRETCH = re.compile(r"series=(\d+) first_index=(\d+) samples=(\d+) from_ns=(-?\d+) to_ns=(-?\d+)")
HEARD = re.compile(r"heard_ns=(-?\d+)")


@dataclass(frozen=True)
class LinkShare:
    """What the link of a streamed run took of the board from the start to the end of measuring.

    bytes: that were sent. wakeups, cpu_ns: of the agent's process that sends, and of sshd or dropbear behind it. cpus:
    where these ran. device: what carries the link; "" if that is not known. interrupts: of the device by CPU, all of
    them, whoever caused them; None if the record does not tell.
    """

    bytes: int
    wakeups: int
    cpu_ns: int
    cpus: frozenset[int]
    device: str
    interrupts: dict[int, int] | None


@dataclass(frozen=True)
class DroppedSamples:
    """A stretch of activations of a series whose samples are not in the record. All other numbers count them.

    from_ns, to_ns: due times of the first and the last.
    """

    series: int
    first_index: int
    samples: int
    from_ns: int
    to_ns: int


def link_share(record: Record) -> LinkShare | None:
    """The link's share; None if the record was not streamed, or nothing was sent before the end."""
    sent = fact_number(record, "link_bytes", Moment.END)
    if sent is None:
        return None
    names = record.fact("link_device", Moment.END) or ""
    words = () if names.startswith("unavailable") else tuple(names.split(","))
    cpus: frozenset[int] = frozenset()
    with suppress(UserError):
        cpus = frozenset(parse_cpus(record.fact("link_cpus", Moment.END) or ""))
    return LinkShare(
        sent,
        fact_number(record, "link_wakeups", Moment.END) or 0,
        fact_number(record, "link_cpu_ns", Moment.END) or 0,
        cpus,
        words[0] if words else "",
        _interrupts(record, words),
    )


def _interrupts(record: Record, words: tuple[str, ...]) -> dict[int, int] | None:
    rises = count_rises(record, INTERRUPTS)
    # The first word is the interface. Without a device behind it, it has no interrupts of its own.
    if rises is None or len(words) < 2:
        return None
    found: dict[int, int] = {}
    for rise in (one for one in rises if _is_of_device(one, words)):
        for cpu, count in rise.per_cpu.items():
            found[cpu] = found.get(cpu, 0) + count
    return None if WHOLE_MACHINE in found else found


def _is_of_device(rise: CpuCounts, words: tuple[str, ...]) -> bool:
    if whole_number(rise.label) is None:
        return False
    named = {each for word in words for each in (word, f"{word}-", f"{word}:")}
    handlers = re.split(r"[ ,]+", rise.words)
    return rise.label in words or any(
        handler in words or any(handler.startswith(name) for name in named if name[-1] in "-:") for handler in handlers
    )


def dropped_samples(record: Record) -> tuple[DroppedSamples, ...]:
    """Every stretch, in the order of the record."""
    found = (STRETCH.fullmatch(event.text) for event in record.events if event.kind == "samples_dropped")
    return tuple(DroppedSamples(*map(int, each.groups())) for each in found if each)


def times_away(record: Record) -> Iterator[tuple[int, int | None]]:
    """When the host had nothing more of the record, in ns from the origin: from, and to (None: until the end)."""
    since: int | None = None
    for event in record.events:
        heard = HEARD.fullmatch(event.text)
        if event.kind == "link_behind" and heard:
            since = int(heard[1])
        elif event.kind == "link_caught_up" and heard and since is not None:
            yield since, int(heard[1])
            since = None
    if since is not None:
        yield since, None
