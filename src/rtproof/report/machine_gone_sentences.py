# SPDX-License-Identifier: Apache-2.0
"""What stolen time and SMIs tell of late activations in which the machine may have been gone, in sentences."""

from rtproof.core.phrases import quantity
from rtproof.explain.machine_counts import SELDOM, Counted, MachineCounts

_WORDS = {
    Counted.HOST: "with stolen time of like size",
    Counted.FIRMWARE: "with an SMI",
    Counted.ROSE: (
        f"with a rise that tells nothing (of another size, or in more than {100 * SELDOM:.0f} % of other seconds too)"
    ),
    Counted.NOT_RISEN: "without a rise",
    Counted.NOT_READ: "without readings around them",
}
_LIMITS = (
    " Stolen time comes in steps of 10 ms, and a host that stops its guest need not count it, so a count that did not "
    "rise excludes nothing."
)


def counted_sentences(machine: MachineCounts) -> list[str]:
    """What the counts tell, and what they cannot tell; nothing if no machine may have been gone."""
    told = machine.tally
    if not told:
        return []
    gaps = f"In {quantity(told.total(), 'late activation')} the machine may have been gone"
    without = f" SMIs were not counted: {machine.smi_why}." if machine.smi_why else ""
    read = [name for name, there in (("stolen time", machine.steal_read), ("SMIs", machine.smi_read)) if there]
    if not read:
        return [f"{gaps}, and this record has no readings of stolen time.{without}"]
    words = ", ".join(f"{told[each]:,} {_WORDS[each]}" for each in Counted if told[each])
    limits = _LIMITS if machine.steal_read else ""
    return [f"{gaps}. By {' and '.join(read)}, read each second: {words}.{limits}{without}"]


def counted_in_short(machine: MachineCounts) -> str:
    """The same for a line of the first screen; "" if no machine may have been gone, or nothing was counted."""
    told = machine.tally
    shown = {
        "the host's (stolen time)": told[Counted.HOST],
        "the firmware's (SMIs)": told[Counted.FIRMWARE],
        "without a rise of these": told[Counted.NOT_RISEN],
    }
    words = ", ".join(f"{count:,} {what}" for what, count in shown.items() if count)
    return f"was the machine gone? Of {quantity(told.total(), 'gap')}: {words}" if words else ""
