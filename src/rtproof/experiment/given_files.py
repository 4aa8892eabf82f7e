# SPDX-License-Identifier: Apache-2.0
"""The facts of a system from what people have at hand, without an agent: as a record with nothing else in it.

A file that was not given is not in the record. So the checks that read it are unknown, and none of them is good.
"""

import errno
import os
import re
from pathlib import Path

from rtproof.audit.facts import GIVEN, GIVEN_NOTE, LONGEST_LINE
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.importers import plain_text_of
from rtproof.record.chunks import MAJOR, MINOR
from rtproof.record.contents import WHOLE_RUN, Begin, Fact, Moment, Record, SystemFile
from rtproof.summary.measured_kernel import LARGEST_CONFIG, parse_kernel_config

LARGEST_TEXT = LARGEST_CONFIG
RELEASE, VERSION = "/proc/sys/kernel/osrelease", "/proc/sys/kernel/version"
_SETTING = re.compile(r"([A-Za-z0-9_-]+[./][^\s=]+)\s*=\s*(.*)")
_DENIED = re.compile(r"sysctl: permission denied on key ['\"]([^'\"]+)['\"]")
_PROMPT = re.compile(r"(?m)^.*\bcat /proc/cmdline *$")
_BEFORE_LINE = re.compile(r"^.*?\b(?:[Kk]ernel c|C)ommand line: ")
_GRUB = re.compile(r"^GRUB_CMDLINE_LINUX\w*=([\"']?)(.*)\1$")
_IMAGE = re.compile(r"BOOT_IMAGE=\S*/vmlinu[xz]-(\d+\.\d+\S*)")
"""GRUB names the kernel that it started."""
_MACHINES = (
    ("CONFIG_X86_64=y", "x86_64"), ("CONFIG_X86_32=y", "i686"), ("CONFIG_ARM64=y", "aarch64"), ("CONFIG_ARM=y", "arm"),
    ("CONFIG_RISCV=y", "riscv"), ("CONFIG_PPC=y", "ppc"),
    (r"\d.*[-.](?:amd64|x86_64)", "x86_64"), (r"\d.*[-.](?:arm64|aarch64)", "aarch64"), (r"\d.*[-.]armhf", "arm"),
)  # fmt: skip
"""Lines of a configuration, or a release, with the machine that each shows; the first counts."""


class _Gathered:
    """files: by path, the first of each. given: what was given, in words; notes on it."""

    def __init__(self) -> None:
        self.files: dict[str, SystemFile] = {}
        self.given: list[str] = []
        self.notes: list[str] = []

    def put(self, path: str, content: bytes = b"", number: int = 0) -> None:
        first = self.files.setdefault(path, SystemFile(0, Moment.START, path, number, False, content))
        if first.content.split() != content.split():
            self.notes.append(f"{path} is given twice with different texts: the one of the narrower option counts")

    def text(self, path: str) -> str:
        file = self.files.get(path)
        return file.content.decode(errors="replace").strip() if file else ""


def record_of(command_line: str | None = None, kernel_config: Path | None = None, sysctl: Path | None = None) -> Record:
    """The record with the facts in what the user has. UserError says in one sentence why a file has none.

    command_line: a file, the text itself, or "-".
    """
    if [str(one) for one in (command_line, kernel_config, sysctl)].count("-") > 1:
        raise UserError("standard input is one file: give - to one option only")
    found = _Gathered()
    if command_line is not None:
        _command_line(found, command_line)
    config = "" if kernel_config is None else _text_of(kernel_config, "--kernel-config")
    if sysctl is not None:
        _settings(found, sysctl)
    if kernel_config is not None:
        _config(found, kernel_config, config)
    booted = _IMAGE.search(found.text("/proc/cmdline"))
    release = found.text(RELEASE) or (booted[1] if booted else parse_kernel_config("", config).release or "")
    # The name of the machine as ``uname -m`` prints it, as far as anything given shows it.
    shown = (name for line, name in _MACHINES if re.search(rf"(?m)^{line}$", f"{config}\n{release}"))
    machine = found.text("/proc/sys/kernel/arch") or next(shown, "")
    facts = [(GIVEN, ", ".join(found.given)), *((GIVEN_NOTE, note) for note in dict.fromkeys(found.notes))]
    return Record(
        path="", size=0, begin=Begin(MAJOR, MINOR, bytes(16), 0, 0, "", machine, release, found.text(VERSION)),
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
