# SPDX-License-Identifier: Apache-2.0
"""Runs of a seeded process instead of a machine. Whatever is made of such a record has to say so."""

from rtproof.record import Record

PROBE = "simulated"
"""What such a record calls its probe."""
WORDS = "simulated: no figure is of any machine"
NO_MACHINE = "no machine: a seeded process was played, and nothing was measured"


def simulated(record: Record) -> str | None:
    """The process that was played, in the words of the record; None where a machine was measured."""
    return record.fact("simulated") or None
