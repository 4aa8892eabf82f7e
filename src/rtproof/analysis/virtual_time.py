# SPDX-License-Identifier: Apache-2.0
"""Runs whose clock counts instructions and not time. Whatever is made of such a record has to say so."""

import re

from rtproof.analysis import systemfiles
from rtproof.errors import UserError
from rtproof.record import Moment, Record
from rtproof.units import parse_cpus

WORDS = (
    "virtual time: instructions, not a board's microseconds: ranks kernels and finds regressions, does not sign off "
    "hardware"
)


_ONLINE = "/sys/devices/system/cpu/online"
_CPUINFO = "/proc/cpuinfo"


def virtual_time(record: Record) -> str | None:
    """What made the clock count instructions, in the words of the record; None for a clock that shows time."""
    return record.fact("virtual_time", Moment.START) or None


def processors(record: Record) -> int:
    """The most that were on line at the start and at the end; 1 where the target did not tell."""
    return max(1, *(_online(record, moment) for moment in (Moment.START, Moment.END)))


def _online(record: Record, moment: Moment) -> int:
    """0 where the target did not tell."""
    listed = systemfiles.text(record, _ONLINE, moment)
    try:
        return len(parse_cpus(listed.strip())) if listed else _described(record, moment)
    except UserError:
        return _described(record, moment)


def _described(record: Record, moment: Moment) -> int:
    return len(re.findall(r"^processor\s*:", systemfiles.text(record, _CPUINFO, moment) or "", re.MULTILINE))
