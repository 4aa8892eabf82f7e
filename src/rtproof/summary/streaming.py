# SPDX-License-Identifier: Apache-2.0
"""What streaming a record cost the board that was measured, and which samples the link did not bring away in time."""

import re
from collections.abc import Iterator
from contextlib import suppress

from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.core.units import parse_cpus, whole_number
from rtproof.record.contents import Moment, Record
from rtproof.summary.recorded_facts import WHOLE_MACHINE, CpuCounts, count_rises, fact_number

INTERRUPTS = "/proc/interrupts"
STRETCH = re.compile(r"series=(\d+) first_index=\d+ samples=(\d+) from_ns=(-?\d+) to_ns=(-?\d+)")
HEARD = re.compile(r"heard_ns=(-?\d+)")


def link_work(record: Record) -> tuple[set[int], int, str] | None:
    """The CPUs that worked for the link of a streamed run, their time in ns, and the work in words.

    The work is of the agent's process that sends, of sshd or dropbear behind it, and of the device's interrupts,
    whoever caused them. None if the record was not streamed, or nothing was sent before the end.
    """
    sent = fact_number(record, "link_bytes", Moment.END)
    if sent is None:
        return None
    cpus: set[int] = set()
    with suppress(UserError):
        cpus |= set(parse_cpus(record.fact("link_cpus", Moment.END) or ""))
    device = (record.fact("link_device", Moment.END) or "").split(",")
    interrupts = "interrupts unknown"
    # The first word is the interface. Without a device behind it, it has no interrupts of its own.
    rises = count_rises(record, INTERRUPTS) if len(device) > 1 else None
    if rises is not None:
        of_cpus = [each for rise in rises if _is_of_device(rise, device) for each in rise.per_cpu.items()]
        if WHOLE_MACHINE not in dict(of_cpus):
            cpus |= {cpu for cpu, count in of_cpus if count}
            came = quantity(sum(count for _, count in of_cpus), "interrupt")
            interrupts = f"{came} of {device[0]} (whoever caused them)"
    wakeups = fact_number(record, "link_wakeups", Moment.END) or 0
    work = f"{quantity(sent, 'byte')} sent, {quantity(wakeups, 'wake-up')}, {interrupts}"
    return cpus, fact_number(record, "link_cpu_ns", Moment.END) or 0, work


def _is_of_device(rise: CpuCounts, device: list[str]) -> bool:
    """Whether the line is of one of the device's numbers or names, such as eth0-rx-0 of eth0."""
    begin = tuple(f"{name}{mark}" for name in device for mark in "-:")
    words = (rise.label, *re.split(r"[ ,]+", rise.words))
    return whole_number(rise.label) is not None and any(word in device or word.startswith(begin) for word in words)


def dropped_samples(record: Record) -> list[tuple[int, int, int, int]]:
    """Stretches whose samples are not in the record: series, how many, due times of the first and the last."""
    found = (STRETCH.fullmatch(event.text) for event in record.events if event.kind == "samples_dropped")
    return [(int(each[1]), int(each[2]), int(each[3]), int(each[4])) for each in found if each]


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
