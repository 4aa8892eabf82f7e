# SPDX-License-Identifier: Apache-2.0
"""What an audit promises of any facts, however damaged: never ``good`` for what is not there.

Each value that a good check names is looked up again in the bytes of the record, by code that shares nothing with the
audit. Then what the check read is taken away, and the check must not stay good.
"""

import errno
import re
import struct
import zlib
from pathlib import Path

from fuzzing.facts_mutations import StoredFile, garbled, without
from rtproof.audit import judgement
from rtproof.audit.check import Audit, CheckResult, Outcome
from rtproof.audit.facts import AuditRequest, Facts, Reading
from rtproof.record.reading import open_record

MAGIC = b"RTP\x1a"
HEADER = struct.Struct("<4sIHHII")
FILE_CHUNK = 3
SHOWN = 120
"""So much of a value is compared; pages shorten longer ones."""
NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENODEV)
NO_TEXT = re.compile(r"\((it is not there|it is not set|it is not given|no process of such a name)\)")
"""What a good check may have read in place of a text: what was looked for and is not there."""
OF_WORD = re.compile(r"(?P<name>.+) in (?P<path>/\S+|[a-z-]+)")
OF_BEGINNING = re.compile(r"uname -[rv]+")
"""What stands at the beginning of every record, and in no file."""
CUT_IS_ENOUGH = "/proc/timer_list"
"""Its beginning says what a check wants to know, and it may be longer than what an agent keeps."""
GOOD_OF_GARBAGE = frozenset(
    ["boot.unknown", "boot.conflict", "boot.idle", "boot.tsc", "iso.irq.shared", "iso.irq.match", "hw.smp.quirk"]
)
"""Checks of a line or of names in which any word may stand; an odd one is none of those that they look for."""
_OLD_TRACING = ("/sys/kernel/debug/tracing/*", "/sys/kernel/debug/tracing/instances/*/set_event")
_MASKS = ("/proc/irq/*/smp_affinity", "/proc/irq/*/smp_affinity_list", "/proc/irq/*/effective_affinity_list")
ALSO_READ = {
    **dict.fromkeys(("kern.dbg.irqsoff", "kern.trace.avail", "trace.active"), _OLD_TRACING),
    **dict.fromkeys(("iso.irq.eff", "iso.irq.managed"), _MASKS),
}
"""What checks read in place of what they name, if that is not there."""
EVIDENCE = ("kern.preempt.rt", "kern.preempt.mode")
"""Checks that name evidence of many kinds, some of which is no file."""
REQUESTS = (AuditRequest(), AuditRequest(frozenset({1}), None, "control-loop"))
Files = dict[str, list[StoredFile]]


def files_in(content: bytes) -> Files:
    """Each file in a record whose checksum is right, by its path, wherever it stands."""
    found: Files = {}
    at = content.find(MAGIC)
    while at >= 0:
        payload = _payload_at(content, at)
        file = StoredFile.of(payload) if payload is not None else None
        if file:
            found.setdefault(file.path.decode(errors="replace"), []).append(file)
        at = content.find(MAGIC, at + 1)
    return found


def _payload_at(content: bytes, at: int) -> bytes | None:
    """The payload of the file's chunk that begins here; None if none does."""
    if at + HEADER.size > len(content):
        return None
    _, length, kind, _, _, check = HEADER.unpack_from(content, at)
    payload = content[at + HEADER.size : at + HEADER.size + length]
    right = len(payload) == length and zlib.crc32(payload, zlib.crc32(content[at : at + 16])) == check
    return payload if right and kind == FILE_CHUNK else None


def audit_of(path: Path, request: AuditRequest) -> Audit:
    """Judge the record in a file."""
    return judgement.audit(Facts(open_record(path), request))


def check_promises(content: bytes, folder: Path, request: AuditRequest, take_away: int) -> bytes:
    """Judge the facts, hold every good check against the bytes; what came of each. AssertionError says what broke.

    take_away: chooses the good check that loses what it reads.
    """
    path = folder / "facts.rtrec"
    path.write_bytes(content)
    audit = audit_of(path, request)
    good = audit.of(Outcome.GOOD)
    files = files_in(content)
    for result in good:
        complaint = why_not_good(result, files)
        assert not complaint, f"{result.check.id} is good, but {complaint}"
    if good:
        _take_away(good[take_away % len(good)], content, path, request)
    return "\n".join(f"{each.check.id} {each.outcome.value} {each.sentence}" for each in audit.results).encode()


def why_not_good(result: CheckResult, files: Files) -> str:
    """What a good check says that the record does not hold; "" if it holds all of it."""
    if result.check.id in EVIDENCE:
        return ""
    if not result.read:
        return "it names nothing that it read"
    read = [value for value in result.read if not _says_why_not(value)]
    if not read:
        return "it names nothing that could be read"
    by_function = bool(result.check.function or result.check.part)  # which may show a part of a text, or a sum
    return next(filter(None, (_why_not_held(value, files, by_function) for value in read)), "")


def _says_why_not(value: Reading) -> bool:
    """Whether the value is the reason why there is none. A check may be good because of something else that it read."""
    own_words = value.value == "(null)" or NO_TEXT.fullmatch(value.value)
    return value.value.startswith("(") and value.value.endswith(")") and not own_words


def _place(value: Reading) -> tuple[str, str]:
    """The name of the part, "" for a whole file, and the path of the file."""
    word = OF_WORD.fullmatch(value.path)
    return (word["name"], word["path"]) if word else ("", value.path)


def _why_not_held(value: Reading, files: Files, by_function: bool) -> str:
    name, path = _place(value)
    if OF_BEGINNING.fullmatch(path):
        return ""
    of_path = files.get(path, [])
    whole = [file for file in of_path if not file.number and (not file.cut or _tells_of_option(file, name))]
    if NO_TEXT.fullmatch(value.value):
        looked = whole or [file for file in of_path if file.number in NOT_THERE] or _of_pattern(path, files)
        return "" if looked else f"nobody saw that {value.path} is not there"
    if not whole and path != CUT_IS_ENOUGH:
        return f"the record has no whole {path}"
    return "" if any(_holds(file, value, name, by_function) for file in whole or of_path) else _not_in(value)


def _tells_of_option(file: StoredFile, name: str) -> bool:
    """Whether a line is about this option of the kernel. Such a line is true in the beginning of a file, too."""
    line = rf"(?m)^({re.escape(name)}=|# {re.escape(name)} is not set$)"
    text = _unpacked(file.content) if file.content.startswith(b"\x1f\x8b") else file.content
    return name.startswith("CONFIG_") and re.search(line.encode(), text) is not None


def _of_pattern(path: str, files: Files) -> list[StoredFile]:
    """Patterns that the path fits and that fitted nothing."""
    return [
        file
        for pattern, found in files.items()
        for file in found
        if "*" in pattern and file.number in NOT_THERE and _fits(path, pattern)
    ]


def _fits(path: str, pattern: str) -> bool:
    parts = "".join("[^/]*" if part == "*" else re.escape(part) for part in re.split(r"(\*)", pattern))
    return re.fullmatch(parts, path) is not None


def _holds(file: StoredFile, value: Reading, name: str, by_function: bool) -> bool:
    """Whether the file's text has the value. A function may sum the text up, but it cannot do so of an empty file."""
    text = _plain(file.content)
    if _plain(value.value.encode()).removesuffix("...")[:SHOWN] in text:
        return not name or by_function or _named(name, text)
    return by_function


def _named(name: str, text: str) -> bool:
    return name.replace("-", "_") in text.replace("-", "_")


def _plain(content: bytes) -> str:
    """The text in letters that every page shows, so that only these are compared."""
    if content.startswith(b"\x1f\x8b"):
        content = _unpacked(content)
    return re.sub(r"[^!-~]+", " ", content.decode(errors="replace")).strip()


def _unpacked(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(content, 8 << 20)
    except zlib.error:
        return b""


def _not_in(value: Reading) -> str:
    return f"{value.path} does not hold {value.value!r}"


def _take_away(result: CheckResult, content: bytes, path: Path, request: AuditRequest) -> None:
    """Without all that a good check reads it must not be good, nor if all of it is garbage."""
    if result.check.id in EVIDENCE or any(OF_BEGINNING.fullmatch(source) for source in result.check.read):
        return
    read = {_place(value)[1] for value in result.read}
    sources = (*result.check.read, *ALSO_READ.get(result.check.id, ()))
    wanted = [*map(_pattern, sources), *(re.compile(re.escape(each)) for each in read)]

    def is_read(each: str) -> bool:
        return any(pattern.fullmatch(each) for pattern in wanted)

    for what, rest in (("without", without(content, is_read)), ("with garbage in", garbled(content, is_read))):
        path.write_bytes(rest)
        again = judgement.judge_check(Facts(open_record(path), request), result.check)
        excused = what != "without" and result.check.id in GOOD_OF_GARBAGE
        assert again.outcome is not Outcome.GOOD or excused, f"{result.check.id} is good {what} all that it reads"


def _pattern(source: str) -> "re.Pattern[str]":
    """The paths that a source of a check may be read from."""
    kind, colon, _ = source.partition(":")
    if colon and kind == "config":
        return re.compile(r"/proc/config\.gz|/boot/config-.*|/lib/modules/.*config")
    if colon and kind == "boot":
        return re.compile("/proc/cmdline")
    return re.compile(
        "".join("[^/]*" if each == "*" else re.escape(each) for each in re.split(r"(\*|\[[^]]*\])", source))
    )
