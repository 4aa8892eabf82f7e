# SPDX-License-Identifier: Apache-2.0
"""Runs whose clock counts instructions and not time. Whatever is made of such a record has to say so."""

from rtproof.record import Moment, Record

WORDS = (
    "virtual time: instructions, not a board's microseconds: ranks kernels and finds regressions, does not sign off "
    "hardware"
)


def virtual_time(record: Record) -> str | None:
    """What made the clock count instructions, in the words of the record; None for a clock that shows time."""
    return record.fact("virtual_time", Moment.START) or None
