# SPDX-License-Identifier: Apache-2.0
"""What a record holds of the system, for checks: the text of a file, or why it is not known.

A file that is missing is told apart from one that could not be seen: a folder such as /sys may not be mounted, or may
be hidden in a container. Only what can be seen can be absent.
"""

import errno as errno_names
import fnmatch
import os
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import islice, takewhile

from rtproof.audit.boot_words import MOST_RANGES, read_cpu_word
from rtproof.core.errors import UserError
from rtproof.core.printable import clean
from rtproof.core.units import MOST_CPUS, parse_cpus
from rtproof.record.contents import Moment, Record, SystemFile
from rtproof.summary import measured_kernel


class State(Enum):
    """HERE: the text is known. ABSENT: the system has no such file. UNREADABLE: it may have one, and nobody knows.

    NOT_COLLECTED: the agent that wrote the record did not look for it, or the user did not give it.
    """

    HERE = "here"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    NOT_COLLECTED = "not collected"


@dataclass(frozen=True)
class Reading:
    """One thing that was read, or why it was not.

    path: the file, the kernel's option or the parameter.
    text: "" unless it is HERE. reason: a clause, "" if it is HERE.
    fields: of a row of a table, the texts of its columns; {} for a file.
    """

    path: str
    state: State
    text: str = ""
    reason: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def here(self) -> bool:
        return self.state is State.HERE

    @property
    def absent(self) -> bool:
        return self.state is State.ABSENT

    @property
    def word(self) -> str:
        """The text without the white space around it."""
        return self.text.strip()

    @property
    def value(self) -> str:
        """The text, shortened; or in brackets why there is none."""
        # The device tree ends its texts with zeros. Nobody sees more of a text, however long it is.
        begin = self.text[: 20 * LONGEST_VALUE].replace("\0", " ")
        text = clean(" ".join(begin.split())) if self.here else f"({clean(self.reason)})"
        return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."

    def number(self) -> int | None:
        """The whole number that the text is, as a kernel writes it, or in hexadecimal with 0x; None if it is none."""
        if not self.here or not _NUMBER.fullmatch(self.word):
            return None
        return int(self.word, 16 if self.word.startswith("0x") else 10)


LONGEST_VALUE = 200
"""Characters of a text in a result."""
LONGEST_LINE = 1 << 16
"""No kernel takes a command line as long as this."""
_NUMBER = re.compile(r"-?[0-9]{1,20}|0x[0-9a-fA-F]{1,16}")


KernelVersion = tuple[int, int]
"""The first two numbers of a release, such as (6, 12). Distributions bring later changes into earlier versions."""


def kernel_version(release: str) -> KernelVersion | None:
    """None if the text does not begin with two numbers."""
    found = re.match(r"(\d{1,3})\.(\d{1,4})", release)
    return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True)
class AuditRequest:
    """What the user says of the system. cpus: those that shall be isolated, None if nobody said.

    purpose: of presets.PURPOSES. pid: the user's own application, None if the audit is not about one.
    """

    cpus: frozenset[int] | None = None
    pid: int | None = None
    purpose: str = "default"


CPU = "/sys/devices/system/cpu"
ONLINE, POSSIBLE, NOHZ_FULL = f"{CPU}/online", f"{CPU}/possible", f"{CPU}/nohz_full"
ISOLATED, PARTITIONED = f"{CPU}/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated"
"""The CPUs of isolcpus=, and those of the isolated partitions of control groups."""
GIVEN, GIVEN_NOTE = "given", "given.note"
"""Facts of a record that no agent collected: the files that a user gave, and what a reader must know of them."""
THREADS_MISSING = "given.threads_missing"
"""Why threads of the system may be missing in the given files."""
NOT_OF_ALL = -1
"""In place of the number of an error: the given files are not there for every CPU that is online."""
_WITNESSES = (
    ("/sys/kernel/debug/", "debugfs"),
    ("/sys/kernel/tracing/", "tracefs"),
    ("/sys/kernel/security/", "securityfs"),
    ("/sys/fs/cgroup/", "cgroup"),
    ("/sys/fs/resctrl/", "resctrl"),
    ("/sys/", "sysfs"),
    ("/proc/", "proc"),
)
"""Below each folder, a file can be missed only if a file system of this kind is mounted there."""
NOT_GIVEN = "it was not given"
_DAMAGED = "the record is damaged, so that files may be missing"
_ABSENT = (errno_names.ENOENT, errno_names.ENOTDIR, errno_names.ENXIO, errno_names.ENODEV)
_MOUNT = re.compile(r"^\S+ (\S+) (\S+) ", re.MULTILINE)


@dataclass(frozen=True)
class Facts:
    """The facts in a record, and what the user asks about them."""

    record: Record
    request: AuditRequest = field(default_factory=AuditRequest)
    # Several checks read the same files and tables.
    _readings: dict[tuple[Moment, str], Reading] = field(default_factory=dict, init=False, compare=False, repr=False)
    rows: dict[str, tuple[Reading, ...]] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def _files(self) -> dict[tuple[Moment, str], SystemFile]:
        """The first of each path and moment."""
        found: dict[tuple[Moment, str], SystemFile] = {}
        for file in self.record.files:
            found.setdefault((file.moment, file.path), file)
        return found

    @cached_property
    def given(self) -> str | None:
        """What the user gave in place of what an agent collects, in words; None if an agent collected the facts."""
        return self.record.fact(GIVEN)

    @cached_property
    def _may_lack_files(self) -> bool:
        """Whether files may have been lost with a part of the record.

        The facts of a run stand before its samples, so a run that was cut off later has them all.
        """
        ends = self.record.end is not None
        others = len(self.record.damage) > (not ends)
        return others or (bool(self.record.damage) and not ends and not self.record.chunk_refs)

    @cached_property
    def _failed_patterns(self) -> tuple[tuple[Moment, str, int], ...]:
        """The patterns that no file fits, or of which files were left out, with the number of the error."""
        return tuple((at, path, file.errno) for (at, path), file in self._files.items() if "*" in path and file.errno)

    @cached_property
    def _sorted_paths(self) -> dict[Moment, list[str]]:
        return {moment: sorted(path for at, path in self._files if at is moment) for moment in Moment}

    def read(self, path: str, moment: Moment = Moment.START) -> Reading:
        """A file, or the text of a probe of the agent."""
        found = self._readings.get((moment, path))
        if found is None:
            found = self._readings[moment, path] = self._read(path, moment)
        return found

    def _read(self, path: str, moment: Moment) -> Reading:
        file = self._files.get((moment, path))
        if file is None:
            for at, pattern, number in self._failed_patterns:
                if at is moment and fits(path, pattern):
                    return self._failed(path, number)
            why = "the agent that wrote this record did not look for it" if self.given is None else NOT_GIVEN
            return Reading(path, State.NOT_COLLECTED, "", why)
        if file.errno:
            return self._failed(path, file.errno)
        text = file.content.decode(errors="replace")
        why = "it is longer than what the agent keeps of a file" if file.cut else self._mounted_over(path)
        if not why and "\0" in text and not text.strip("\0 \n\t"):
            why = "it holds nothing but zeros"
        return Reading(path, State.UNREADABLE, "", why) if why else Reading(path, State.HERE, text)

    def begin_of(self, path: str) -> str:
        """As much of a file's text as the agent kept, also of one that is too long for it; "" if there is none."""
        file = self._files.get((Moment.START, path))
        return file.content.decode(errors="replace") if file and not file.errno else ""

    def _failed(self, path: str, number: int) -> Reading:
        if number not in _ABSENT:
            return Reading(path, State.UNREADABLE, "", _why(number))
        if hidden := self._why_hidden(path):
            return Reading(path, State.UNREADABLE, "", hidden)
        return Reading(path, State.ABSENT, "", "it is not there")

    def _why_hidden(self, path: str) -> str:
        """Why a file may be there although it was not seen; "" if nothing hides it."""
        kind = next((kind for folder, kind in _WITNESSES if path.startswith(folder)), None)
        if kind is None:
            return ""
        if self._mounts is None:
            return "it was not seen, and it is not known what is mounted"
        if not any(found.startswith(kind) for _, found in self._mounts):
            return f"{kind} is not mounted"
        return self._mounted_over(path)

    @cached_property
    def _mounts(self) -> tuple[tuple[str, str], ...] | None:
        """Place and kind of each file system; None if they are not known."""
        mounts = self._files.get((Moment.START, "/proc/mounts"))
        if mounts is None or mounts.errno or mounts.cut:
            return None
        return tuple(_MOUNT.findall(mounts.content.decode(errors="replace")))

    def _mounted_over(self, path: str) -> str:
        """Says that a container hides the file behind a file system of another kind; "" if none does.

        The deepest of the mounts that cover the path shows the file, and of several at one place the last.
        """
        covering = [
            (place, kind)
            for place, kind in reversed(self._mounts or ())
            if place.startswith(("/proc/", "/sys/")) and (path == place or path.startswith(f"{place}/"))
        ]
        place, kind = max(covering, key=lambda mount: len(mount[0]), default=("", ""))
        hides = kind in ("tmpfs", "devtmpfs", "overlay") and place != _CGROUPS
        return f"something else is mounted at {place}" if hides else ""

    def match(self, pattern: str, moment: Moment = Moment.START) -> tuple[Reading, ...]:
        """All files whose path fits, sorted by path; if none, one reading of the pattern that says why.

        If the agent left files out, because there were too many or a folder could not be listed, a reading of the
        pattern that says so comes last.
        """
        if "*" not in pattern and "[" not in pattern:
            return (self.read(pattern, moment),)
        begin = re.split(r"[*[]", pattern, maxsplit=1)[0]
        paths = self._sorted_paths[moment]
        near = takewhile(lambda path: path.startswith(begin), islice(paths, bisect_left(paths, begin), None))
        found = tuple(self.read(path, moment) for path in near if path != pattern and fits(path, pattern))
        if self._may_lack_files:
            return (*found, Reading(pattern, State.UNREADABLE, "", _DAMAGED))
        whole = self.read(pattern, moment)
        left_out = (moment, pattern) in self._files and not whole.absent
        return (*found, whole) if left_out or not found else found

    @property
    def config(self) -> measured_kernel.KernelConfig | None:
        """The running kernel's configuration; None if it is not known, or is that of another kernel."""
        return self._config[0]

    @cached_property
    def _config(self) -> tuple[measured_kernel.KernelConfig | None, str]:
        """The configuration of the running kernel, or why it is not known."""
        found = measured_kernel.kernel_config(self.record)
        if found is not None:
            why = measured_kernel.of_another_kernel(found, self.record.begin.kernel_release)
            return None if why else found, why
        if self.given is not None:
            return None, NOT_GIVEN
        return None, "no configuration of this kernel was found; 'modprobe configs' may show one in /proc/config.gz"

    def option(self, name: str) -> Reading:
        """The value of an option of the kernel's configuration, such as y, m or 250; absent if it is not set.

        An option that the configuration does not name is absent only if the whole configuration is known.
        """
        path = f"CONFIG_{name}"
        config = self.config
        if config is None:
            return Reading(path, State.UNREADABLE, "", self._config[1])
        path = f"CONFIG_{name} in {config.path}"
        value = config.options.get(name)
        if value is None and not config.is_known(name):
            return Reading(path, State.UNREADABLE, "", "the part of the configuration that is known does not name it")
        if value in (None, "n"):
            return Reading(path, State.ABSENT, "", "it is not set")
        return Reading(path, State.HERE, value)

    @cached_property
    def log(self) -> Reading:
        """The kept lines of the kernel's log. They may not reach back to the boot."""
        return self.read(measured_kernel.LOG)

    @cached_property
    def boot_words(self) -> tuple[str, ...] | None:
        """The kernel's own words of its command line, without those for init; None if it is not known."""
        line = self.read("/proc/cmdline")
        if not line.here or len(line.text) > LONGEST_LINE:
            return None
        words = split_command_line(line.word)
        return tuple(words[: words.index("--")] if "--" in words else words)

    def parameters(self, name: str) -> tuple[str, ...]:
        """All values of a parameter of the command line, in its order; empty also if the line is not known."""
        wanted = name.replace("-", "_")
        return tuple(value for key, value in map(split_word, self.boot_words or ()) if key == wanted)

    def parameter(self, name: str) -> Reading:
        """The last value of a parameter of the command line; "" for one without a value. - and _ mean the same."""
        path = f"{name} in /proc/cmdline"
        if self.boot_words is None:
            reason = self.read("/proc/cmdline").reason or "the line is longer than that of any kernel"
            return Reading(path, State.UNREADABLE, "", reason)
        found = self.parameters(name)
        if found:
            return Reading(path, State.HERE, found[-1])
        # The words that were built into the kernel, without which the line may not be whole.
        built_in = split_command_line(self.config.options.get("CMDLINE", "")) if self.config else []
        if name.replace("-", "_") in [split_word(word)[0] for word in built_in]:
            reason = "CONFIG_CMDLINE gives it, and the line does not show whether the kernel uses that"
            return Reading(path, State.UNREADABLE, "", reason)
        return Reading(path, State.ABSENT, "", "it is not given")

    @cached_property
    def kernel(self) -> KernelVersion | None:
        """The version of the kernel that the record is of."""
        return kernel_version(self.record.begin.kernel_release)

    @cached_property
    def preemption(self) -> measured_kernel.PreemptionModel:
        """The preemption model, with the evidence for it."""
        return measured_kernel.preemption_model(self.record)

    def cpus(self, path: str) -> frozenset[int] | None:
        """The CPUs in a file that lists them, such as 0-3,8; an empty list has none. None if they are not known."""
        reading = self.read(path)
        if not reading.here:
            return frozenset() if reading.absent else None
        return parse_cpu_list(reading.word)

    def cpus_at_boot(self, name: str) -> frozenset[int] | None:
        """The CPUs of a list on the command line; None if they are not known, or if the line does not have it."""
        word = self.parameter(name)
        possible = self.cpus(POSSIBLE)
        return read_cpu_word(name, word.word, possible, self.kernel).cpus if word.here else None

    @cached_property
    def isolated(self) -> frozenset[int] | None:
        """The CPUs that shall be isolated: those that the user named, or the kernel isolates; None: unknown."""
        return self.kernel_isolated if self.request.cpus is None else self.request.cpus

    @cached_property
    def kernel_isolated(self) -> frozenset[int] | None:
        """The CPUs that the kernel isolates in any way: isolcpus, nohz_full, or a partition; None: unknown."""
        isolated = self.cpus(ISOLATED) if self.read(ISOLATED).here else self._isolated_at_boot()
        lists = [isolated, self.cpus(NOHZ_FULL), self.cpus(PARTITIONED)]
        union = frozenset[int]().union(*(cpus for cpus in lists if cpus is not None))
        return union if union or isolated is not None else None

    def _isolated_at_boot(self) -> frozenset[int] | None:
        """The CPUs of isolcpus= on kernels before 4.2, which have no file for them, and where that file was not given.

        Of a file that was not given, the words can name CPUs, but no word does not mean that none is isolated.
        """
        state = self.read(ISOLATED).state
        if state is State.UNREADABLE:
            return None
        names = ("isolcpus", "nohz_full") if state is State.NOT_COLLECTED else ("isolcpus",)
        if all(self.parameter(name).absent for name in names):
            return frozenset() if state is State.ABSENT else None
        known = [self.cpus_at_boot(name) for name in names]
        return frozenset[int]().union(*(cpus for cpus in known if cpus)) if any(known) else None


LONGEST_CPUS = 1 << 16
"""More characters than in a list of CPUs of any kernel, whose masks have up to 8192 bits."""
_SPAN = re.compile(r"(\d{1,6})-(\d{1,6})")


def parse_cpu_list(text: str) -> frozenset[int] | None:
    """The CPUs of a list such as 0-3,8; None if it is no list of CPUs."""
    if text.count(",") > MOST_RANGES or sum(int(b) - int(a) for a, b in _SPAN.findall(text[:LONGEST_CPUS])) > MOST_CPUS:
        return None  # no kernel names so many CPUs, nor one of them again and again
    if text.strip("\0 \n") in ("", "(null)"):
        return frozenset()  # as the kernel writes a mask that was never set
    try:
        return frozenset(parse_cpus(text.strip()))
    except UserError:
        return None


def parse_cpu_mask(text: str) -> frozenset[int] | None:
    """The CPUs of a mask in hexadecimal, such as 00000000,0000000f; None if it is no mask."""
    digits = text.strip().replace(",", "")
    if not re.fullmatch(r"[0-9a-fA-F]{1,4096}", digits):
        return None
    bits = int(digits, 16)
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def fits(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern, in which a star stands for any part of one name."""
    parts, wanted = path.split("/"), pattern.split("/")
    if len(parts) != len(wanted):
        return False
    # Most parts have no star, and fnmatch compiles an expression for each of them.
    return all(
        fnmatch.fnmatchcase(part, want) if set("*?[") & {*want} else part == want
        for part, want in zip(parts, wanted, strict=True)
    )


_CGROUPS = "/sys/fs/cgroup"
"""The folders of version 1 of the control groups stand in a tmpfs on every system."""


def split_command_line(line: str) -> list[str]:
    """The words of a command line as the kernel splits it: only double quotes hold a word together."""
    words = re.findall(r'(?:"[^"]*(?:"|$)|[^\s"])+', line)
    return [word.replace('"', "") for word in words]


def split_word(word: str) -> tuple[str, str]:
    """The name of a parameter, with _ for -, and its value, which is "" if it has none."""
    key, _, value = word.partition("=")
    return key.replace("-", "_"), value


def _why(number: int) -> str:
    if number == NOT_OF_ALL:
        return "it was not given for every CPU"
    if number == errno_names.EREMOTE:
        return "it is mounted only when somebody uses it, and an audit mounts nothing"
    name = errno_names.errorcode.get(number, str(number))
    return f"{os.strerror(number)} ({name})"
