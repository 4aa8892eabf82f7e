# SPDX-License-Identifier: Apache-2.0
"""What stolen time and SMIs tell of gaps: late activations in which the host or an SMI may have stopped the CPU."""

from rtproof.core.phrases import quantity
from rtproof.explain.machine_counts import Counted, MachineCounts

_WORDS = {
    Counted.HOST: "the host took the CPU",
    Counted.FIRMWARE: "the firmware took the CPU (SMI)",
    Counted.ROSE: "cause unclear: stolen time or SMIs rose, but also at other times, or by another amount",
    Counted.NOT_RISEN: "no {} counted; {} is not excluded",
    Counted.NOT_READ: "not counted at that time",
}
_LIMITS = "Stolen time is counted in steps of 10 ms, and a host need not count it."


def counted_sentences(machine: MachineCounts) -> list[str]:
    """What the counts tell, and what they cannot tell; nothing if no machine may have been gone."""
    told = machine.tally
    if not told:
        return []
    without = [f"SMIs were not counted: {machine.smi_why}."] if machine.smi_why else []
    if not (machine.steal_read or machine.smi_read):
        gaps = quantity(told.total(), "late activation")
        return [" ".join([f"In {gaps} the host or an SMI may have stopped the CPU: neither was counted.", *without])]
    limits = [_LIMITS] if machine.steal_read else []
    return [" ".join([f"{_counted(machine)}.", *limits, *without])]


def counted_in_short(machine: MachineCounts) -> str:
    """The same for a line of the first screen; "" if no machine may have been gone, or nothing was counted."""
    counted = machine.tally[Counted.HOST] + machine.tally[Counted.FIRMWARE] + machine.tally[Counted.NOT_RISEN]
    return _counted(machine) if counted else ""


def _counted(machine: MachineCounts) -> str:
    """How many gaps each explanation has: "3 of 11 gaps: the host took the CPU. 8: no stolen time counted; ..."."""
    told = machine.tally
    read = " and no ".join(
        name for name, there in (("stolen time", machine.steal_read), ("SMI", machine.smi_read)) if there
    )
    possible = "a host" if machine.smi_read else "a host or an SMI"
    first, *others = ((told[each], _WORDS[each].format(read, possible)) for each in Counted if told[each])
    gaps = f"{first[0]:,} of {quantity(told.total(), 'gap')}: {first[1]}"
    return ". ".join([gaps, *(f"{count:,}: {words}" for count, words in others)])
