# SPDX-License-Identifier: Apache-2.0
"""Fit the advice of a check to a machine: with its own CPUs and files, without what is so already or cannot be."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from rtproof.audit import conditions
from rtproof.audit.check import Change, Check, CheckResult
from rtproof.audit.facts import Facts, fits, split_word
from rtproof.core.units import format_cpus

_OF_NAMED = ("irq", "tid", "pid", "cpu", "state", "device", "driver", "node", "timer", "group", "clock", "folder")
"""Slots for each of the things that a finding names."""
ANY_MACHINE = {name: name.upper() for name in ("cpus", "others", "mask", *_OF_NAMED)}
"""What stands in a page on all machines. cpus: to be isolated. others: the rest, as a list; mask: as a mask."""
_SLOT = re.compile(rf"\{{(path|{'|'.join(ANY_MACHINE)})\}}")
_OF_CPUS = re.compile(r"\{(cpus|others|mask)\}")
_EACH = re.compile(rf"\{{({'|'.join(_OF_NAMED)})\}}")
_PLAIN = re.compile(r"[\w./:@+-]+")
"""A name that no shell takes for anything else: it may come from a hostile file."""
_WRITE = re.compile(r"echo (\S+) > (/\S+)|sysctl ([\w.]+)=(\S+)")
_BUILD = re.compile(r"# CONFIG_(\w+) is not set|CONFIG_(\w+)=\w+")


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with a value in each slot; "" if one has none: such a command cannot be given."""
    if any(not values.get(name) for name in _SLOT.findall(text)):
        return ""
    return _SLOT.sub(lambda slot: values[slot[1]], text)


def _for_each(text: str, named: Sequence[str], kind: str) -> str:
    """The text with the things that the finding names, as a loop if they are several; "" if they are not known."""
    slot = _EACH.search(text)
    if not slot:
        return text
    if not all(map(_PLAIN.fullmatch, named)):
        return ""
    if kind != "now" or len(named) < 2:
        return _EACH.sub(",".join(named), text) if named else ""
    return f"for {slot[1]} in {' '.join(named)}; do {_EACH.sub(f'${slot[1]}', text)}; done"


def fitted(facts: Facts, result: CheckResult) -> CheckResult:
    """The result, with the check's changes as they can be made on this machine; "" for a way that cannot help."""
    check, texts = result.check, msgspec.structs.asdict(result.check.change)
    values = _cpu_words(facts) if _OF_CPUS.search("".join(texts.values())) else {}
    values["path"] = result.read[0].path if result.read else check.read[0]
    ways = {name: filled(_for_each(text, result.named, name), values) for name, text in texts.items()}
    ways["now"], ways["boot"] = _now(facts, check, ways["now"]), _boot(facts, ways["boot"])
    ways["build"] = _build(facts, ways["build"])
    fitting: Check = msgspec.structs.replace(check, change=Change(**ways))
    return CheckResult(fitting, result.outcome, result.severity, result.sentence, result.read)


def _cpu_words(facts: Facts) -> dict[str, str]:
    isolated, others = conditions.divided_cpus(facts)
    if not others:
        return {}
    mask = f"{sum(1 << cpu for cpu in others):x}"
    groups = [mask[max(end - 8, 0) : end] for end in range(len(mask), 0, -8)]
    lists = {"cpus": isolated, "others": others}
    words = {name: format_cpus(cpus) for name, cpus in lists.items()}
    return {**words, "mask": ",".join(reversed(groups))}


def _now(facts: Facts, check: Check, text: str) -> str:
    """The writes that change something; "" if a file that the check reads is not there to be written."""
    if text.startswith(("for ", "mkdir ")):
        return text
    kept = []
    for command in text.split("; "):
        write = _WRITE.fullmatch(command)
        path = (write[2] or f"/proc/sys/{write[3].replace('.', '/')}") if write else ""
        if not write or not any(fits(path, source) for source in check.read):
            kept.append(command)
            continue
        file, value = facts.read(path), write[1] or write[4]
        locked = path.startswith("/sys/kernel/debug/") and conditions.LOCKED_DOWN.search(facts.log.text)
        if file.absent or locked or "is not mounted" in file.reason or "(EPERM)" in file.reason:
            return ""
        # It may have the value already: as its text, or in brackets among those that it could have.
        if not (file.here and (file.word == value or f"[{value}]" in file.word.split())):
            kept.append(command)
    return "; ".join(kept)


def _boot(facts: Facts, text: str) -> str:
    """The words that the command line lacks and this kernel can obey."""
    words = []
    for word in text.split():
        name, value = split_word(word)
        given = facts.parameter(name)
        if not (given.here and given.word == value) and conditions.obeys(facts, name):
            words.append(word)
    return " ".join(words)


def _build(facts: Facts, text: str) -> str:
    """The options that are otherwise in this kernel."""
    lines = [(line[0], line[1], line[2]) for line in _BUILD.finditer(text)]
    so = {line for line, off, on in lines if off and facts.option(off).absent}
    so |= {line for line, off, on in lines if on and line == f"CONFIG_{on}={facts.option(on).word}"}
    return " ".join(line for line, _, _ in lines if line not in so)
