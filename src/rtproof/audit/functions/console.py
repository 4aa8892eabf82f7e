# SPDX-License-Identifier: Apache-2.0
"""Functions for the checks of the console, of tracing and of the kernel's watchdogs."""

import re

from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts
from rtproof.audit.readings import missing, not_understood, read_values, unknown
from rtproof.core.printable import clean
from rtproof.summary import measured_kernel

_PRINTK, _CONSOLES = "/proc/sys/kernel/printk", "/proc/consoles"
_CONSOLE = re.compile(r"(\S+)\s+\S+ \(([^)]*)\)")
_VIRTUAL_TERMINAL = re.compile(r"tty\d*|ttynull|netcon\d*|hvc\d+|pstore-\d+|ramoops-\d+")
_ONLY_EMERGENCIES, _ONLY_ERRORS = 1, 4
_LINE_BITS = 800
"""A line of 80 characters, each with a start bit and a stop bit."""


def console_level(facts: Facts, check: Check) -> Judgement:
    """Which messages a slow console prints while interrupts are off."""
    printk, consoles = facts.read(_PRINTK), facts.read(_CONSOLES)
    if not printk.here:
        return missing(check, [printk])
    level = re.match(r"(\d{1,9})\s", printk.text)
    if not level:
        return not_understood(printk)
    read = read_values([printk, consoles])
    if int(level[1]) <= _ONLY_EMERGENCIES:
        return Judgement(Outcome.GOOD, "Only emergencies go to the console.", read)
    if not consoles.here and (facts.boot_words is None or facts.parameter("console").absent):
        return unknown([consoles, printk])
    asked = facts.parameters("console")
    listed = _CONSOLE.findall(consoles.text) if consoles.here else [(value.split(",")[0], "E") for value in asked]
    # A slow one is enabled, a serial line, and prints in the context of whoever logs (no N for nbcon).
    enabled = [name for name, flags in listed if "E" in flags and "N" not in flags]
    slow = [name for name in enabled if not _VIRTUAL_TERMINAL.fullmatch(name)]
    if not slow:
        return Judgement(Outcome.GOOD, "No console is a serial line that prints with interrupts off.", read)
    speeds = [re.fullmatch(rf"{re.escape(slow[0])},(\d{{3,8}})\D?.*", value) for value in asked]
    speed = next((int(match[1]) for match in reversed(speeds) if match), 0)
    takes = f" at {speed:,} baud; 80 characters take {_LINE_BITS / speed * 1000:.0f} ms" if speed else ""
    severity = Severity.MEDIUM if int(level[1]) <= _ONLY_ERRORS else Severity.HIGH
    if facts.preemption.built.value == measured_kernel.RT:
        severity = Severity.LOW  # a thread prints there
    sentence = f"Messages below level {level[1]} go to {clean(slow[0])}, a serial line{takes}."
    return Judgement(Outcome.FINDING, sentence, read, severity)
