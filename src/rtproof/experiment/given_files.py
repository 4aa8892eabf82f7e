# SPDX-License-Identifier: Apache-2.0
"""The facts of a system from what people have at hand, without an agent: as a record with nothing else in it.

A file that was not given is not in the record. So the checks that read it are unknown, and none of them is good.
"""

import errno
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from rtproof.agents import build
from rtproof.audit import system_tables
from rtproof.audit.facts import GIVEN, GIVEN_NOTE, LONGEST_LINE, NOT_OF_ALL, THREADS_MISSING, parse_cpu_list
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.core.units import whole_number
from rtproof.importers import plain_text_of
from rtproof.record.chunks import MAJOR, MINOR
from rtproof.record.contents import WHOLE_RUN, Begin, Fact, Moment, Record, SystemFile
from rtproof.summary.measured_kernel import COMPRESSED_CONFIG, LARGEST_CONFIG, parse_kernel_config

LARGEST_TEXT = LARGEST_CONFIG
MOST_OF_FILE = 1 << 20
MOST_FILES, MOST_BYTES = 1 << 16, 1 << 28
"""Of a folder. The files that an audit reads of a machine with 128 CPUs are a quarter of that."""
ONLINE = "/sys/devices/system/cpu/online"
RELEASE, VERSION = "/proc/sys/kernel/osrelease", "/proc/sys/kernel/version"
_POLICIES = ("TS", "FF", "RR", "B", "ISO", "IDL", "DLN")
"""As agent/collect/tasks.c names the policies, by their kernel numbers."""
_TITLES = "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM"
_ROW = re.compile(r'\{ "(/[^"]+)", (FILE_CONTENT|FILE_COUNTS|LINK_TARGET) \}')
_SETTING = re.compile(r"([A-Za-z0-9_-]+[./][^\s=]+)\s*=\s*(.*)")
_DENIED = re.compile(r"sysctl: permission denied on key ['\"]([^'\"]+)['\"]")
_PROMPT = re.compile(r"(?m)^.*\bcat /proc/cmdline *$")
_BEFORE_LINE = re.compile(r"^.*?\b(?:[Kk]ernel c|C)ommand line: ")
_GRUB = re.compile(r"^GRUB_CMDLINE_LINUX\w*=([\"']?)(.*)\1$")
_PER_CPU = re.compile(r"/cpu(\*|\[0-9\]\*)/")
_IMAGE = re.compile(r"BOOT_IMAGE=\S*/vmlinu[xz]-(\d+\.\d+\S*)")
"""GRUB names the kernel that it started."""
_UNAME = re.compile(r"Linux version (\S+) .*?(#\d.*)", re.S)
_MACHINES = (
    ("CONFIG_X86_64=y", "x86_64"), ("CONFIG_X86_32=y", "i686"), ("CONFIG_ARM64=y", "aarch64"), ("CONFIG_ARM=y", "arm"),
    ("CONFIG_RISCV=y", "riscv"), ("CONFIG_PPC=y", "ppc"), (r"flags\s*:.*\blm\b.*", "x86_64"), (r"flags\s*:.*", "i686"),
    (r"CPU architecture\s*:\s*8.*", "aarch64"), (r"CPU architecture\s*:.*", "arm"),
    (r"\d.*[-.](?:amd64|x86_64)", "x86_64"), (r"\d.*[-.](?:arm64|aarch64)", "aarch64"), (r"\d.*[-.]armhf", "arm"),
)  # fmt: skip
"""Lines of a configuration or of /proc/cpuinfo, or a release, with the machine that each shows; the first counts."""


@dataclass
class _Gathered:
    """What the user has.

    files: by path, the first of each. given: what was given, in words; notes on it. threads_missing: why, or "".
    root: a folder with copies of files at their paths. Nothing outside it is read, whatever a link in it names. count,
    size, empty, outside: of the files in it.
    """

    root: Path
    files: dict[str, SystemFile] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    threads_missing: str = ""
    count: int = 0
    size: int = 0
    empty: int = 0
    outside: int = 0

    def put(self, path: str, content: bytes = b"", number: int = 0, *, cut: bool = False) -> None:
        first = self.files.setdefault(path, SystemFile(0, Moment.START, path, number, cut, content))
        if first.content.split() != content.split():
            self.notes.append(f"{path} is given twice with different texts: the one of the narrower option counts")

    def text(self, path: str) -> str:
        file = self.files.get(path)
        return file.content.decode(errors="replace").strip() if file else ""

    def paths(self, pattern: str) -> list[Path]:
        return sorted(self.root.glob(pattern.lstrip("/")))

    def read(self, pattern: str, *, link: bool = False, most: int = MOST_OF_FILE) -> None:
        files = self.paths(pattern)
        for file in files:
            content = self.target(file) if link else self.content(file)
            if content:
                path = f"/{file.relative_to(self.root)}"
                self.put(path, content[:most], cut=len(content) > most)
        if files and _PER_CPU.search(pattern):
            have = {cpu for file in files for cpu in re.findall(r"/cpu(\d+)/", str(file.relative_to(self.root)))}
            online = parse_cpu_list(self.text(ONLINE))
            if not online or not online <= set(map(int, have)):
                self.put(pattern, number=NOT_OF_ALL)

    def target(self, file: Path) -> bytes | None:
        """What a link names; None if it is no link."""
        self.count += file.is_symlink()
        return os.fsencode(file.readlink()) if file.is_symlink() else None

    def content(self, file: Path) -> bytes | None:
        """What a file holds, without the zeros that tar fills up with; None if it is none, empty, or lies outside."""
        try:
            real = file.resolve()
            if not real.is_relative_to(self.root):
                self.outside += 1
                return None
            if not stat.S_ISREG(real.stat().st_mode):
                return None
            with open(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123
                content = opened.read(LARGEST_CONFIG + 1).rstrip(b"\0")
        except (OSError, RuntimeError):
            return None
        self.count += 1
        self.size += len(content)
        self.empty += not content
        if self.count > MOST_FILES or self.size > MOST_BYTES:
            raise UserError(f"--proc-dump: {self.root} holds more than the files of any machine")
        return content or None


def record_of(
    command_line: str | None = None,
    kernel_config: Path | None = None,
    sysctl: Path | None = None,
    proc_dump: Path | None = None,
) -> Record:
    """The record with the facts in what the user has. UserError says in one sentence why a file has none.

    command_line: a file, the text itself, or "-". proc_dump: a folder with copies in it.
    """
    if [str(one) for one in (command_line, kernel_config, sysctl)].count("-") > 1:
        raise UserError("standard input is one file: give - to one option only")
    found = _Gathered((proc_dump or Path()).resolve())
    if command_line is not None:
        _command_line(found, command_line)
    config = "" if kernel_config is None else _text_of(kernel_config, "--kernel-config")
    if sysctl is not None:
        _settings(found, sysctl)
    if proc_dump is not None:
        _copies(found, proc_dump, config)
    if kernel_config is not None:
        _config(found, kernel_config, config)
    uname = _UNAME.search(found.text("/proc/version"))
    booted = _IMAGE.search(found.text("/proc/cmdline"))
    releases = (found.text(RELEASE), uname and uname[1], booted and booted[1], parse_kernel_config("", config).release)
    release = next(filter(None, releases), "")
    version = found.text(VERSION) or (uname[2] if uname else "")
    facts = [(GIVEN, ", ".join(found.given)), *((GIVEN_NOTE, note) for note in dict.fromkeys(found.notes))]
    facts += [(THREADS_MISSING, found.threads_missing)] if found.threads_missing else []
    return Record(
        path=str(proc_dump or ""), size=0,
        begin=Begin(MAJOR, MINOR, bytes(16), 0, 0, "", _machine(found, config, release), release, version),
        facts=tuple(Fact(0, WHOLE_RUN, Moment.ASKED, key, value) for key, value in facts),
        files=tuple(found.files.values()),
        series=(), slices=(), seconds={}, top={}, counters=(), events=(), end=None, damage=(), chunk_refs=(),
        read_blocks=lambda _: iter(()),
    )  # fmt: skip


def _text_of(path: Path, option: str) -> str:
    """The text in a file, which is refused if it is empty, too large or no text."""
    name = "standard input" if str(path) == "-" else path
    text, _ = plain_text_of(path)
    if not text.strip():
        raise UserError(f"{option}: {name} is empty")
    if "\0" in text or text.count("\ufffd") > len(text) // 100:
        raise UserError(f"{option}: {name} is no text")
    if len(text) > LARGEST_TEXT:
        raise UserError(f"{option}: {name} is larger than {LARGEST_TEXT >> 20} MiB, more than any such file")
    return text


def _whole_lines(found: _Gathered, text: str, name: Path) -> str:
    """The text without a last line that has no end: a number in it may be cut off, and then it is another number."""
    whole, newline, last = text.rpartition("\n")
    if last.strip():
        found.notes.append(f"the last line of {name} has no end and may be cut off, so it is left out: {last[:80]!r}")
    return whole + newline


def _command_line(found: _Gathered, given: str) -> None:
    option, path = "--cmdline", Path(given)
    named = given == "-" or os.path.lexists(given)
    if not named and re.fullmatch(r"[^\s=]*[./][^\s=]*", given):
        raise UserError(f"{option}: there is no file {given}")
    text = _text_of(path, option) if named else given
    line = " ".join(_PROMPT.sub("", text).split())
    line = _BEFORE_LINE.sub("", line)
    grub = _GRUB.fullmatch(line)
    if grub:
        line = grub[2]
        found.notes.append("the command line is what GRUB's file asks for: the running kernel may have another")
    if not line:
        raise UserError(f"{option}: the command line is empty")
    if len(line) > LONGEST_LINE:
        raise UserError(f"{option}: {len(line)} characters are more than any kernel's command line has")
    if line.count("CONFIG_") > 2:
        raise UserError(f"{option}: this is a kernel's configuration; give it with --kernel-config")
    found.put("/proc/cmdline", f"{line}\n".encode())
    found.given.append(f"a command line of {quantity(len(line.split()), 'word')}")


def _config(found: _Gathered, path: Path, text: str) -> None:
    text = _whole_lines(found, text, path)
    config = parse_kernel_config("", text)
    if not config.options:
        raise UserError(f"--kernel-config: {path} is no kernel's configuration: it has no line such as CONFIG_HZ=250")
    release = found.text(RELEASE)
    if not config.release and release:  # The user says that it is of this kernel.
        text = f"# Linux/unknown {release} Kernel Configuration\n{text}"
    found.put(f"/boot/config-{config.release or release or 'given'}", text.encode())
    of = f" for Linux {config.release}" if config.release else ""
    found.given.append(f"a configuration{of} with {quantity(len(config.options), 'option')}")


def _settings(found: _Gathered, path: Path) -> None:
    values: dict[str, list[str]] = {}
    unread = []
    for line in filter(None, map(str.strip, _whole_lines(found, _text_of(path, "--sysctl"), path).splitlines())):
        setting, denied = _SETTING.fullmatch(line), _DENIED.search(line)
        if setting:
            values.setdefault(_path_of_key(setting[1]), []).append(setting[2])
        elif denied:
            found.put(_path_of_key(denied[1]), number=errno.EACCES)
        elif not line.startswith(("#", ";")):
            unread.append(line)
    if not values:
        raise UserError(f"--sysctl: {path} has no line such as kernel.sched_rt_runtime_us = 950000")
    for key, texts in values.items():
        found.put(key, "".join(f"{text}\n" for text in dict.fromkeys(texts)).encode())
    if unread:
        named = ", ".join(repr(line[:80]) for line in unread[:3]) + (f" and {len(unread) - 3} more" * (len(unread) > 3))
        found.notes.append(
            f"no setting: {quantity(len(unread), 'line')} of {'standard input' if str(path) == '-' else path}: {named}"
        )
    found.given.append(f"{quantity(len(values), 'setting')} of sysctl")


def _path_of_key(key: str) -> str:
    """sysctl writes dots for the slashes of a path, and a slash for a dot in a name."""
    dots = re.match(r"[^./]*\.", key)
    return f"/proc/sys/{key.translate(str.maketrans('./', '/.')) if dots else key}"


def _copies(found: _Gathered, folder: Path, config: str) -> None:
    if not folder.is_dir():
        what = "is a file: unpack it, and give the folder" if folder.exists() else "is not there"
        raise UserError(f"--proc-dump: {folder} {what}")
    before = len(found.files)
    # The paths that the agent reads, each once, and whether the target of a link is meant.
    text = (build.source_dir() / "collect" / "paths.c").read_text()
    for path, link in dict.fromkeys((path, kind == "LINK_TARGET") for path, kind in _ROW.findall(text)):
        found.read(path, link=link)
    threads = _threads(found)
    if not config:
        release = found.text(RELEASE)
        for path in (COMPRESSED_CONFIG, *((f"/boot/config-{release}",) if release else ())):
            found.read(path, most=LARGEST_CONFIG)
    if len(found.files) == before and not found.count:
        example = folder / "proc" / "cmdline"
        raise UserError(f"--proc-dump: {folder} has none of the files that an audit reads, such as {example}")
    found.given.append(f"{quantity(found.count, 'file')} of {folder}")
    if threads:
        found.given.append(quantity(threads, "thread"))
    if found.empty:
        why = "tar makes them so of /proc; cp does not"
        found.notes.append(f"{quantity(found.empty, 'file')} of {folder} are empty and not known: {why}")
    if found.outside:
        found.notes.append(f"not followed: {quantity(found.outside, 'link')} of {folder} to files outside")


def _threads(found: _Gathered) -> int:
    """Put the table of the threads, as the agent writes it, and say how many there are."""
    whole = found.paths("/proc/[0-9]*/task/[0-9]*/stat")
    known = {file.parent.name for file in whole}
    more = [file for file in found.paths("/proc/[0-9]*/stat") if file.parent.name not in known]
    rows = list(filter(None, (_thread_row(found, file) for file in (*whole, *more))))
    if not rows:
        return 0
    found.put(system_tables.PATH, "".join(f"{row}\n" for row in (_TITLES, *rows)).encode())
    found.read("/proc/loadavg")
    total = whole_number(found.text("/proc/loadavg").partition("/")[2].partition(" ")[0])
    if total is None:
        found.threads_missing = "the copy has no /proc/loadavg, which counts the threads"
    elif len(rows) < total:
        found.threads_missing = f"the copy has {len(rows)} of {total} threads"
    return len(rows)


def _thread_row(found: _Gathered, file: Path) -> str:
    """A line of the table from a file ``stat`` of proc(5); "" if it is none."""
    text = (found.content(file) or b"").decode(errors="replace")
    begin, _, rest = text.rpartition(")")
    name, words = begin.partition("(")[2], rest.split()
    numbers = [whole_number(words[at]) if len(words) > at else None for at in (1, 6, 36, 37, 38)]
    if None in numbers:
        return ""
    parent, flags, cpu, priority, policy = (number or 0 for number in numbers)
    process = file.parent.parent.parent.name if file.parent.parent.name == "task" else file.parent.name
    status = (found.content(file.with_name("status")) or b"").decode(errors="replace")
    allowed = re.search(r"(?m)^Cpus_allowed_list:\s*(\S+)", status)
    label = " ".join(name.split())
    return " ".join(
        (
            *(process, file.parent.name, str(parent), _POLICIES[policy] if policy < len(_POLICIES) else "?"),
            *(str(priority) if priority else "-", "-" if priority else words[16], str(cpu)),
            *(allowed[1] if allowed else "-", f"0x{flags:08x}"),
            f"[{label}]" if flags & system_tables.OF_KERNEL else label,
        )
    )


def _machine(found: _Gathered, config: str, release: str) -> str:
    """The name of the machine as ``uname -m`` prints it, as far as anything given shows it; "" if nothing does."""
    told = f"{config}\n{found.text('/proc/cpuinfo')}\n{release}"
    shown = (name for line, name in _MACHINES if re.search(rf"(?m)^{line}$", told))
    return found.text("/proc/sys/kernel/arch") or next(shown, "")
