# SPDX-License-Identifier: Apache-2.0
"""Judgements of the kernel's command line: words that mean nothing, contradict each other, or are lost."""

import re
from collections.abc import Iterator, Mapping, Sequence

from rtproof.audit import boot_words, conditions
from rtproof.audit.boot_words import CpuWord, read_cpu_word
from rtproof.audit.check import Check, Judgement, Severity
from rtproof.audit.facts import ONLINE, POSSIBLE, Facts, Reading, State, split_command_line, split_word
from rtproof.audit.readings import finding, good, hidden, missing, not_understood, unknown
from rtproof.audit.system_tables import in_container
from rtproof.core.printable import clean
from rtproof.core.units import format_cpus

SMT = "/sys/devices/system/cpu/smt/active"
LINE = "/proc/cmdline"
_UNKNOWN_WORDS = re.compile(r'Unknown kernel command line parameters "(.*?)", will be passed')
_OF_CPUS = ("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "kthread_cpus")


# Unknown words


def unknown_words(facts: Facts, check: Check) -> Judgement:
    """Whether a word of the line is a misspelt real-time parameter, or one that this kernel does not know."""
    if facts.boot_words is None:
        return unknown((facts.read(LINE),))
    line = facts.read(LINE)
    names = list(dict.fromkeys(split_word(word)[0] for word in facts.boot_words))
    meant = {name: right for name in names if (right := boot_words.meant_name(name))}
    if meant:
        said = "; ".join(f"{clean(name)} is no parameter, and {right} may be meant" for name, right in meant.items())
        return finding(f"{said}.", (line,))
    refused = [
        split_word(word)[0] for words in _UNKNOWN_WORDS.findall(facts.log.text) for word in words.split() if word
    ]
    lost = [name for name in dict.fromkeys(refused) if boot_words.is_real_time(name)]
    if lost:
        return finding(f"This kernel does not know {', '.join(map(clean, lost))}.", (line, facts.log))
    return good("No word is like a real-time parameter and is none.", (line,))


# Contradictions

Words = Mapping[str, CpuWord]
"""The lists of CPUs of the line, by the name of the parameter."""


def _has(facts: Facts, name: str, value: str) -> bool:
    reading = facts.parameter(name)
    return reading.here and reading.word == value


def _in_lists(facts: Facts, words: Words, online: frozenset[int], possible: frozenset[int]) -> Iterator[str]:
    """What is wrong with single lists of CPUs."""
    for name, word in words.items():
        if word.trouble:
            yield f"{name}={clean(facts.parameter(name).word)}: {word.trouble}"
        gone = (word.cpus or frozenset()) - possible if possible else frozenset()
        if gone:
            yield f"{name} names CPUs that the machine has not: {format_cpus(gone)}"
    isolated = facts.request.cpus or frozenset()
    isolated = isolated.union(*(words[name].cpus or () for name in ("isolcpus", "nohz_full") if name in words))
    for name, what in (("irqaffinity", "interrupts"), ("kthread_cpus", "threads of the kernel")):
        if name in words and (both := (words[name].cpus or frozenset()) & isolated):
            yield f"{name} sends {what} to isolated CPUs: {format_cpus(both)}"
    for name in ("isolcpus", "nohz_full", "rcu_nocbs"):
        option = boot_words.boot_words().built_with[name]
        if name in words and facts.option(option).absent:
            yield f"the kernel ignores {name}, because {option} is not set"
    for name in ("isolcpus", "nohz_full"):
        if online and name in words and (words[name].cpus or frozenset()) >= online:
            yield f"{name} names every CPU, so that none is left for the rest of the system"


def _in_words(facts: Facts, words: Words) -> Iterator[str]:
    """Which words take away what others need."""
    isolcpus, nohz_full = words.get("isolcpus", CpuWord((), None)), words.get("nohz_full", CpuWord((), None))
    if _has(facts, "nohz", "off") and (nohz_full.cpus or "nohz" in isolcpus.flags):
        yield "nohz=off takes away what nohz_full needs"
    if isolcpus.flags and not {"domain", "nohz"} & {*isolcpus.flags}:
        flags = ", ".join(isolcpus.flags)
        yield f"isolcpus has the flag {flags} but not domain, so the scheduler still uses these CPUs"
    values = set(facts.parameters("isolcpus"))
    if len(values) > 1:
        yield f"isolcpus is given with different lists: {clean(' and '.join(sorted(values)))}"
    if _has(facts, "idle", "poll") and facts.read(SMT).word == "1":
        yield "idle=poll keeps each idle thread of a core busy, which slows down the other one"
    if facts.parameter("irqpoll").here:
        yield "irqpoll has every interrupt call the handlers of all devices"
    # A line as long as the kernel's buffer may have lost its end.
    length = len(facts.read(LINE).text.rstrip("\n").encode())
    most = 1024 if facts.record.begin.machine.startswith("armv") else 2048
    if length in (most - 1, 4095):
        yield f"the line has {length} characters, the most that the kernel keeps, so its end may be lost"


def contradictions(facts: Facts, check: Check) -> Judgement:
    """Whether words of the line contradict each other or the machine."""
    line, online, possible = facts.read(LINE), facts.cpus(ONLINE) or frozenset(), facts.cpus(POSSIBLE) or frozenset()
    if facts.boot_words is None:
        return unknown((line,))
    given = {name: reading.word for name in _OF_CPUS if (reading := facts.parameter(name)).here}
    # Where nobody knows N of 4-N, at least the CPUs up to the last one that the line names stand for it.
    named = frozenset(range(max(map(int, re.findall(r"\d{1,5}", " ".join(given.values()))), default=0) + 1))
    words = {name: read_cpu_word(name, text, possible or named, facts.kernel) for name, text in given.items()}
    said = [*_in_lists(facts, words, online, possible), *_in_words(facts, words)]
    # CPUs are offline on purpose if each is the second hardware thread of an isolated core.
    there = possible or online
    offline = {name: (word.cpus or frozenset()) & there - (online or there) for name, word in words.items()}
    asleep = [f"{name} names CPUs that are offline: {format_cpus(cpus)}" for name, cpus in offline.items() if cpus]
    if said:
        words_said = "; ".join([*said, *asleep])
        return finding(f"The command line does not make sense: {words_said}.", (line, facts.read(ONLINE)))
    if asleep:
        return finding(f"On the command line {'; '.join(asleep)}.", (line, facts.read(ONLINE)), Severity.LOW)
    if words and not online:
        return unknown((facts.read(ONLINE), line), "The line names CPUs, and it is not known which there are.")
    if facts.parameter("idle").word == "poll" and hidden([smt := facts.read(SMT)]):
        return unknown((smt, line))
    return good("", (line,))


# What boot loaders are told

Told = tuple[Reading, list[str], bool]
"""A file, what it tells a boot loader, and whether that is all: not if the file uses variables."""
_GRUB = re.compile(r"""(?m)^\s*(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)(\+?)=(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|(\S*))""")
_GRUB_FILES = ("/etc/default/grub", "/etc/default/grub.d/*.cfg")
_WHOLE_TEXTS = ("/etc/kernel/cmdline", "/boot/firmware/cmdline.txt", "/boot/cmdline.txt")
_ENTRIES = tuple(f"{folder}/loader/entries/*.conf" for folder in ("/boot", "/boot/efi", "/efi"))
_EXTLINUX = "/boot/extlinux/extlinux.conf"
_NOT_COMPARED = re.compile(
    r"BOOT_IMAGE|root|rootflags|rootfstype|rootwait|ro|rw|initrd|resume|resume_offset|console|rd\..*|cryptdevice|zfs"
)


def drift(facts: Facts, check: Check) -> Judgement:
    """Whether the running kernel was started with the words that the boot loader's files have."""
    line, running = facts.read(LINE), facts.boot_words
    if running is None:
        return unknown((line,))
    grub = [reading for pattern in _GRUB_FILES for reading in facts.match(pattern)]
    others = {path: facts.match(path) for path in (*_WHOLE_TEXTS, *_ENTRIES, _EXTLINUX)}
    told = [*_of_grub([one for one in grub if one.here]), *_of_others(facts, others)]
    if told and in_container(facts):
        why = "it is the container's own file, and the kernel is the host's"
        return unknown([Reading(reading.path, State.UNREADABLE, "", why) for reading, *_ in told])
    if not told:
        unread = hidden([*(one for found in others.values() for one in found), *grub])
        return (
            unknown(unread)
            if unread
            else missing(check, (Reading(_GRUB_FILES[0], State.ABSENT, "", "it is not there"),))
        )
    return _judge_told(line, running, told)


def _judge_told(line: Reading, running: Sequence[str], told: Sequence[Told]) -> Judgement:
    def lost(one: Told) -> list[str]:
        return [word for word in one[1] if word not in running and not _NOT_COMPARED.fullmatch(word.partition("=")[0])]

    fitting = [one for one in told if not lost(one)]
    if not fitting:
        best = min(told, key=lambda one: len(lost(one)))
        said = f"{clean(best[0].path)} has {clean(', '.join(lost(best)))}, and the kernel was not started with it."
        return finding(said, (best[0], line))
    first, known = fitting[0][0], {word for _, words, _ in fitting for word in words}
    added = [word for word in running if word not in known and boot_words.is_real_time(split_word(word)[0])]
    added = [word for word in added if not word.startswith("console=")]
    if added and not all(whole for *_, whole in fitting):
        return unknown([first], f"{clean(first.path)} uses variables, whose values it does not tell.")
    if added:
        said = f"The kernel runs with {clean(', '.join(added))}, which {clean(first.path)} does not have."
        return finding(said, (first, line))
    return good("", (first, line))


def _told(reading: Reading, text: str) -> Told:
    words = split_command_line(text)
    own = words[: words.index("--")] if "--" in words else words
    return reading, [word for word in own if "$" not in word], "$" not in text


def _of_grub(files: Sequence[Reading]) -> Iterator[Told]:
    """The words of all files together: a later file overrides an earlier one."""
    values: dict[str, str] = {}
    for reading in files:
        for name, more, *texts in _GRUB.findall(reading.text):
            text, before, last = "".join(texts).replace('\\"', '"'), values.get(name, ""), reading
            text = text.replace(f"${{{name}}}", before)
            values[name] = f"{before} {text}" if more else text
    if values:
        yield _told(last, " ".join(values.values()))


def _of_others(facts: Facts, files: Mapping[str, Sequence[Reading]]) -> Iterator[Told]:
    for pattern, reading in ((pattern, one) for pattern, found in files.items() for one in found if one.here):
        lines = reading.text.splitlines()
        if pattern in _WHOLE_TEXTS:
            yield _told(reading, " ".join(line for line in lines if not line.lstrip().startswith("#")))
        elif pattern == _EXTLINUX:
            yield from (_told(reading, text) for text in re.findall(r"(?im)^\s*append\s+(.*)$", reading.text))
        else:
            # An entry of the Boot Loader Specification counts if it is for this kernel or does not say for which.
            keys = [(words[0], words[1]) for words in (line.split(None, 1) for line in lines) if len(words) == 2]
            release = facts.record.begin.kernel_release
            running = any(key in ("version", "linux") and release in value for key, value in keys)
            options = [value for key, value in keys if key == "options"]
            if options and (running or all(key != "version" for key, _ in keys)):
                yield _told(reading, " ".join(options))


# Single parameters


def full_dynticks(facts: Facts, check: Check) -> Judgement:
    """Whether CPUs run without a tick, and whether enough are left with one."""
    asked = facts.parameter("nohz_full")
    file, now = conditions.nohz_full_cpus(facts)
    if hidden((file, asked)):
        return unknown(hidden((file, asked)))
    if file.here and now is None:
        return not_understood(file)
    if asked.here and not now:
        return finding("nohz_full is given, but no CPU runs without its tick.", (asked, file))
    if not now:
        return good("No CPU runs without its tick.", (file,))
    others = (facts.cpus(ONLINE) or frozenset()) - now
    if len(others) == 1 and len(now) > 1:
        sentence = f"Only CPU {format_cpus(others)} keeps the time and does the work that the others give away."
        return finding(sentence, (file, facts.read(ONLINE)))
    cost = "which makes each way into the kernel longer. It helps only threads that never sleep."
    sentence = f"CPUs {format_cpus(now)} run without a tick, {cost}"
    return finding(sentence, (file,), Severity.INFO)
