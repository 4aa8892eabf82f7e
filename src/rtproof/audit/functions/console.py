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
    if consoles.here:
        slow = [name for name, flags in _CONSOLE.findall(consoles.text) if _is_slow(name, flags)]
    elif facts.boot_words is None or facts.parameter("console").absent:
        return unknown([consoles, printk])
    else:
        slow = [name for name in _asked_consoles(facts) if _is_slow(name, "E")]
    if not slow:
        return Judgement(Outcome.GOOD, "No console is a serial line that prints with interrupts off.", read)
    sentence = f"Messages below level {level[1]} go to {clean(slow[0])}, a serial line{_line_time(facts, slow[0])}."
    return Judgement(Outcome.FINDING, sentence, read, _severity_of_level(facts, int(level[1])))


def _is_slow(name: str, flags: str) -> bool:
    """Whether a console is enabled, a serial line, and prints in the context of whoever logs (no N for nbcon)."""
    return "E" in flags and "N" not in flags and not _VIRTUAL_TERMINAL.fullmatch(name)


def _asked_consoles(facts: Facts) -> list[str]:
    words = [word.partition("=") for word in facts.boot_words or ()]
    return [value.split(",")[0] for key, _, value in words if key == "console"]


def _line_time(facts: Facts, name: str) -> str:
    """How long a line takes, if the command line tells the speed."""
    found = [re.fullmatch(rf"console={re.escape(name)},(\d{{3,8}})\D?.*", word) for word in facts.boot_words or ()]
    speed = next((int(match[1]) for match in reversed(found) if match), 0)
    return f" at {speed:,} baud; 80 characters take {_LINE_BITS / speed * 1000:.0f} ms" if speed else ""


def _severity_of_level(facts: Facts, level: int) -> Severity:
    if facts.preemption.built.value == measured_kernel.RT:
        return Severity.LOW  # a thread prints there
    return Severity.MEDIUM if level <= _ONLY_ERRORS else Severity.HIGH
