# SPDX-License-Identifier: Apache-2.0
"""What stolen time and SMIs tell of late activations in which the host or an SMI may have stopped the CPU."""

from rtproof.core.phrases import quantity
from rtproof.explain.machine_gone_counts import Counted, MachineCounts

_WORDS = {
    Counted.HOST: "the host took the CPU",
    Counted.FIRMWARE: "the firmware took the CPU (SMI)",
    Counted.ROSE: "stolen time or SMIs rose, but also at other times or by another amount, so the cause is unclear",
    Counted.NOT_RISEN: "no {} counted, but {} may still be the cause",
    Counted.NOT_READ: "nothing was counted at that time",
}
_LIMITS = "Stolen time is counted in steps of 10 ms, and a host need not count it."


def counted_sentences(machine: MachineCounts) -> list[str]:
    """What the counts tell, and what they cannot tell; nothing if no machine may have been gone."""
    told = machine.tally
    if not told:
        return []
    without = [f"SMIs were not counted: {machine.smi_why}."] if machine.smi_why else []
    if not (machine.steal_read or machine.smi_read):
        return [" ".join([f"{_silent(told.total())} Neither stolen time nor SMIs were counted.", *without])]
    limits = [_LIMITS] if machine.steal_read else []
    read = " and no ".join(
        name for name, there in (("stolen time", machine.steal_read), ("SMI", machine.smi_read)) if there
    )
    possible = "a host" if machine.smi_read else "a host or an SMI"
    parts = (f"In {told[each]:,} {_WORDS[each].format(f'{read} was', possible)}." for each in Counted if told[each])
    return [" ".join([_silent(told.total()), *parts, *limits, *without])]


def _silent(activations: int) -> str:
    return f"In {quantity(activations, 'late activation')} the host or an SMI may have stopped the CPU."
