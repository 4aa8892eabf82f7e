# SPDX-License-Identifier: Apache-2.0
"""Judgements of the kernel's command line: words that mean nothing, contradict each other, or are lost."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rtproof.audit import boot_words, conditions
from rtproof.audit.audit_model import Judgement
from rtproof.audit.boot_lists import CpuWord, read_cpu_word
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import (
    Facts,
    Reading,
    State,
    split_command_line,
    split_word,
)
from rtproof.audit.readings import finding, good, hidden, missing, not_understood, unknown
from rtproof.audit.system_threads import in_container
from rtproof.core.printable import clean
from rtproof.core.units import format_cpus

ONLINE = "/sys/devices/system/cpu/online"
POSSIBLE = "/sys/devices/system/cpu/possible"
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


@dataclass(frozen=True)
class _Line:
    """What contradictions are looked for in. cpus: the lists of CPUs, by name."""

    facts: Facts
    words: dict[str, CpuWord]
    online: frozenset[int] | None
    possible: frozenset[int] | None

    def cpus(self, name: str) -> frozenset[int]:
        return self.words[name].cpus or frozenset() if name in self.words else frozenset()

    @property
    def isolated(self) -> frozenset[int]:
        """CPUs that shall be isolated, by the line or by the user."""
        return self.cpus("isolcpus") | self.cpus("nohz_full") | (self.facts.request.cpus or frozenset())

    def has(self, name: str, value: str) -> bool:
        reading = self.facts.parameter(name)
        return reading.here and reading.word == value


def _lists(line: _Line) -> Iterator[str]:
    for name, word in line.words.items():
        if word.trouble:
            yield f"{name}={clean(word.text)}: {word.trouble}"
        cpus = word.cpus or frozenset()
        gone = cpus - line.possible if line.possible else frozenset()
        if gone:
            yield f"{name} names CPUs that the machine has not: {format_cpus(gone)}"


def _asleep(line: _Line) -> Iterator[str]:
    """CPUs that are offline, which is on purpose if each is the second hardware thread of an isolated core."""
    for name, word in line.words.items():
        there = line.possible or line.online or frozenset()
        asleep = (word.cpus or frozenset()) & there - (line.online or there)
        if asleep:
            yield f"{name} names CPUs that are offline: {format_cpus(asleep)}"


def _overlaps(line: _Line) -> Iterator[str]:
    for name, what in (("irqaffinity", "interrupts"), ("kthread_cpus", "threads of the kernel")):
        both = line.cpus(name) & line.isolated
        if both:
            yield f"{name} sends {what} to isolated CPUs: {format_cpus(both)}"


def _not_built(line: _Line) -> Iterator[str]:
    """Words for isolation that the kernel ignores, because it is built without what they need."""
    for name in ("isolcpus", "nohz_full", "rcu_nocbs"):
        option = boot_words.boot_words().built_with[name]
        if name in line.words and line.facts.option(option).absent:
            yield f"the kernel ignores {name}, because {option} is not set"


def _everything(line: _Line) -> Iterator[str]:
    for name in ("isolcpus", "nohz_full"):
        if line.online and line.cpus(name) >= line.online:
            yield f"{name} names every CPU, so that none is left for the rest of the system"


def _ticks(line: _Line) -> Iterator[str]:
    wanted = line.cpus("nohz_full") or (line.words["isolcpus"].has_flag("nohz") if "isolcpus" in line.words else False)
    if wanted and line.has("nohz", "off"):
        yield "nohz=off takes away what nohz_full needs"


def _flags(line: _Line) -> Iterator[str]:
    word = line.words.get("isolcpus")
    if word and word.flags and not word.has_flag("domain") and not word.has_flag("nohz"):
        yield f"isolcpus has the flag {', '.join(word.flags)} but not domain, so the scheduler still uses these CPUs"
    values = set(line.facts.parameters("isolcpus"))
    if len(values) > 1:
        yield f"isolcpus is given with different lists: {clean(' and '.join(sorted(values)))}"


def _idle(line: _Line) -> Iterator[str]:
    if line.has("idle", "poll") and line.facts.read(SMT).word == "1":
        yield "idle=poll keeps each idle thread of a core busy, which slows down the other one"
    if line.facts.parameter("irqpoll").here:
        yield "irqpoll has every interrupt call the handlers of all devices"


def _length(line: _Line) -> Iterator[str]:
    """A line as long as the kernel's buffer may have lost its end."""
    most = 1024 if line.facts.record.begin.machine.startswith("armv") else 2048
    text = line.facts.read(LINE).text.rstrip("\n")
    if len(text.encode()) in (most - 1, 4095):
        yield f"the line has {len(text.encode())} characters, the most that the kernel keeps, so its end may be lost"


_CONTRADICTIONS: tuple[Callable[[_Line], Iterator[str]], ...] = (
    _lists, _overlaps, _not_built, _everything, _ticks, _flags, _idle, _length,
)  # fmt: skip


def _named_cpus(facts: Facts) -> frozenset[int]:
    """The CPUs up to the last one that the line names: at least these stand for 4-N where nobody knows N."""
    text = " ".join(facts.parameter(name).text for name in _OF_CPUS)
    return frozenset(range(max(map(int, re.findall(r"\d{1,5}", text)), default=0) + 1))


def contradictions(facts: Facts, check: Check) -> Judgement:
    """Whether words of the line contradict each other or the machine."""
    line = facts.read(LINE)
    if facts.boot_words is None:
        return unknown((line,))
    online, possible = facts.cpus(ONLINE), facts.cpus(POSSIBLE)
    words = {
        name: read_cpu_word(name, reading.word, possible or _named_cpus(facts), facts.kernel)
        for name in _OF_CPUS
        if (reading := facts.parameter(name)).here
    }
    seen = _Line(facts, words, online or None, possible or None)
    said = [sentence for look in _CONTRADICTIONS for sentence in look(seen)]
    asleep = list(_asleep(seen))
    if said:
        words_said = "; ".join([*said, *asleep])
        return finding(f"The command line does not make sense: {words_said}.", (line, facts.read(ONLINE)))
    if asleep:
        return finding(f"On the command line {'; '.join(asleep)}.", (line, facts.read(ONLINE)), Severity.LOW)
    if words and not online:
        return unknown((facts.read(ONLINE), line), "The line names CPUs, and it is not known which there are.")
    if facts.parameter("idle").word == "poll" and not (smt := facts.read(SMT)).here and not smt.absent:
        return unknown((smt, line))
    return good("", (line,))


# What boot loaders are told


@dataclass(frozen=True)
class _Told:
    """What a file tells a boot loader. words: None if the file uses variables, so that nobody knows all of them."""

    reading: Reading
    words: tuple[str, ...]
    whole: bool


_GRUB = re.compile(r"""(?m)^\s*(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)(\+?)=(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|(\S*))""")
_NOT_COMPARED = re.compile(
    r"BOOT_IMAGE|root|rootflags|rootfstype|rootwait|ro|rw|initrd|resume|resume_offset|console|rd\..*|cryptdevice|zfs"
)


def drift(facts: Facts, check: Check) -> Judgement:
    """Whether the running kernel was started with the words that the boot loader's files have."""
    line = facts.read(LINE)
    if facts.boot_words is None:
        return unknown((line,))
    told, unread = _all_told(facts)
    if not told:
        nothing = Reading("/etc/default/grub", State.ABSENT, "", "it is not there")
        return unknown(unread) if unread else missing(check, (nothing,))
    lost = [(one, _lost(facts.boot_words, one.words)) for one in told]
    fitting = [one for one, words in lost if not words]
    if not fitting:
        one, words = min(lost, key=lambda pair: len(pair[1]))
        said = f"{clean(one.reading.path)} has {clean(', '.join(words))}, and the kernel was not started with it."
        return finding(said, (one.reading, line))
    added = _added(facts, fitting)
    if added is None:
        return unknown(
            [fitting[0].reading], f"{clean(fitting[0].reading.path)} uses variables, whose values it does not tell."
        )
    if added:
        said = f"The kernel runs with {clean(', '.join(added))}, which {clean(fitting[0].reading.path)} does not have."
        return finding(said, (fitting[0].reading, line))
    return good("", (fitting[0].reading, line))


def _lost(running: Sequence[str], words: Sequence[str]) -> list[str]:
    there = set(running)
    return [word for word in words if word not in there and not _NOT_COMPARED.fullmatch(word.partition("=")[0])]


def _added(facts: Facts, fitting: Sequence[_Told]) -> list[str] | None:
    """The real-time words that no file has; None if a file may have them in a variable."""
    told = {word for one in fitting for word in one.words}
    words = [
        word
        for word in facts.boot_words or ()
        if boot_words.is_real_time(split_word(word)[0]) and word not in told and not word.startswith("console=")
    ]
    return None if words and not all(one.whole for one in fitting) else words


def _all_told(facts: Facts) -> tuple[list[_Told], list[Reading]]:
    """What the files tell, and the files that could not be read."""
    told: list[_Told] = []
    unread: list[Reading] = []
    grub = [reading for pattern in _GRUB_FILES for reading in facts.match(pattern)]
    if any(reading.here for reading in grub):
        told += _of_grub([reading for reading in grub if reading.here])
    for pattern, read in _LOADERS:
        for reading in facts.match(pattern):
            if reading.here:
                told += read(facts, reading)
            elif not reading.absent:
                unread.append(reading)
    if told and in_container(facts):
        why = "it is the container's own file, and the kernel is the host's"
        return [], [Reading(one.reading.path, State.UNREADABLE, "", why) for one in told]
    return told, unread + hidden(grub)


def _told(reading: Reading, text: str) -> _Told:
    words = split_command_line(text)
    own = words[: words.index("--")] if "--" in words else words
    return _Told(reading, tuple(word for word in own if "$" not in word), "$" not in text)


def _of_grub(files: Sequence[Reading]) -> list[_Told]:
    """The words of all files together: a later file overrides an earlier one."""
    values: dict[str, str] = {}
    last = files[0]
    for reading in files:
        for name, more, *texts in _GRUB.findall(reading.text):
            text, before, last = "".join(texts).replace('\\"', '"'), values.get(name, ""), reading
            text = text.replace(f"${{{name}}}", before)
            values[name] = f"{before} {text}" if more else text
    return [_told(last, " ".join(values.values()))] if values else []


def _of_whole_text(_: Facts, reading: Reading) -> list[_Told]:
    text = " ".join(line for line in reading.text.splitlines() if not line.lstrip().startswith("#"))
    return [_told(reading, text)]


def _of_entry(facts: Facts, reading: Reading) -> list[_Told]:
    """An entry of the Boot Loader Specification, if it is for the running kernel or does not say for which."""
    lines = [line.split(None, 1) for line in reading.text.splitlines()]
    keys = [(words[0], words[1]) for words in lines if len(words) == 2]
    release = facts.record.begin.kernel_release
    for_running = any(key in ("version", "linux") and release in value for key, value in keys)
    if not for_running and any(key == "version" for key, _ in keys):
        return []
    options = [value for key, value in keys if key == "options"]
    return [_told(reading, " ".join(options))] if options else []


def _of_extlinux(_: Facts, reading: Reading) -> list[_Told]:
    found = re.findall(r"(?im)^\s*append\s+(.*)$", reading.text)
    return [_told(reading, text) for text in found]


_GRUB_FILES = ("/etc/default/grub", "/etc/default/grub.d/*.cfg")
_LOADERS: tuple[tuple[str, Callable[[Facts, Reading], list[_Told]]], ...] = (
    ("/etc/kernel/cmdline", _of_whole_text),
    ("/boot/loader/entries/*.conf", _of_entry),
    ("/boot/efi/loader/entries/*.conf", _of_entry),
    ("/efi/loader/entries/*.conf", _of_entry),
    ("/boot/extlinux/extlinux.conf", _of_extlinux),
    ("/boot/firmware/cmdline.txt", _of_whole_text),
    ("/boot/cmdline.txt", _of_whole_text),
)


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
