# SPDX-License-Identifier: Apache-2.0
"""One process of the fuzzer: makes inputs, reads each within bounds, and saves what breaks a promise."""

import hashlib
import json
import random
import re
import resource
import shutil
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from fuzzing.targets import TARGETS, Target
from rtproof.core import defects, files
from rtproof.core.errors import RtproofError

MOST_S = 20
"""Processor time that one reading may take. The largest input is below a megabyte."""
MOST_MEMORY = 1 << 30
"""Address space, in bytes, that a reading may add to what the process has at its start."""
MOST_FILE = 256 << 20
LARGEST_INPUT = 1 << 20
POOL = 200
"""Inputs with a new kind of answer that are kept in memory and damaged further."""
TOLD = "told.json"
"""The file that holds what was counted so far."""
TELL = 50
"""The counts are written after so many inputs, and after each finding."""
CURRENT = "input"
"""The file that holds the input which is read now, so that it is known if the process dies."""
FEW_S = 5.0
AGAIN = 4
"""One input in so many is read twice."""


class TooSlow(BaseException):
    """The reading took more than ``MOST_S`` of processor time. No ``except Exception`` of the program catches it."""


class FindingError(Exception):
    """What broke a promise. kind: the same for the same cause; text: all that is known."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.text = text


def bound_process() -> None:
    """Bound the memory and the files of this process; what it does beyond becomes an exception."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _too_slow)
    warnings.simplefilter("error")


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def read_once(target: Target, content: bytes, folder: Path) -> tuple[str, bytes]:
    """The kind of the answer and the answer itself: a result, or the one sentence of an error. Raises FindingError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    signal.setitimer(signal.ITIMER_PROF, MOST_S)
    try:
        return "result", target.read(content, folder)
    except RtproofError as problem:
        sentence = str(problem)
        if not sentence.strip() or "\n" in sentence:
            raise FindingError(f"{_place(problem)}: not one sentence", repr(sentence)) from problem
        return "refused", sentence.encode(errors="backslashreplace")
    except MemoryError as problem:
        raise FindingError(f"{_place(problem)}: more than {MOST_MEMORY >> 20} MiB", traceback.format_exc()) from None
    except TooSlow as problem:
        raise FindingError(f"{_place(problem)}: more than {MOST_S} s", traceback.format_exc()) from None
    except Exception as problem:
        what = f"{type(problem).__name__}: {_general(str(problem))[:100]}"
        raise FindingError(f"{_place(problem)}: {what}", traceback.format_exc()) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _general(text: str) -> str:
    """The text without its numbers and quotations, so that equal causes have equal names."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|-?\d+(\.\d+)?", "#", text)


def _place(problem: BaseException) -> str:
    """The deepest line of rtproof, or of a target here, in the traceback."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [each for each in frames if str(defects.PACKAGE_FOLDER) in each.filename or "fuzzing" in each.filename]
    at = next((each for each in reversed(ours) if "worker.py" not in each.filename), ours[-1])
    return f"{Path(at.filename).name}:{at.lineno}"


def check(target: Target, content: bytes, folder: Path, *, twice: bool) -> str:
    """Read an input within bounds; what kind of answer it has. Raises FindingError."""
    kind, answer = read_once(target, content, folder)
    if twice and read_once(target, content, folder) != (kind, answer):
        raise FindingError(f"{target.name}: two readings of one input differ", "")
    detail = _general(answer.decode(errors="replace"))[:200] if kind == "refused" else _outline(answer)
    return f"{kind} {detail}"


def _outline(answer: bytes) -> str:
    """Which words and codes a result has, as a number: results with the same ones are of one kind."""
    words = sorted(set(re.findall(rb"[a-z][a-z-]{3,}", answer)))
    return hashlib.sha256(b" ".join(words)).hexdigest()[:12]


def inputs(target: Target, seed: int) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Number, input, and the pool to which a caller adds: first the corpus as it is, then damaged ones for ever."""
    corpus = target.corpus()
    pool = list(corpus)
    for number, content in enumerate(corpus):
        yield number, content, pool
    number = len(corpus)
    while True:
        dice = random.Random(f"{target.name} {seed} {number}")
        content = target.damage(dice.choice(pool), dice.choice(corpus), dice.randrange(1 << 62))
        yield number, content[:LARGEST_INPUT], pool
        number += 1


def save(findings: Path, target: str, origin: str, content: bytes, finding: FindingError) -> Path:
    """The finding as two files: the input, and what is known of it, with the command that repeats it.

    origin: how the input came about.
    """
    findings.mkdir(parents=True, exist_ok=True)
    path = findings / f"{target}-{hashlib.sha256(finding.kind.encode()).hexdigest()[:8]}"
    if not path.exists():
        path.write_bytes(content)
        command = f".venv/bin/python bench/fuzz.py --repeat {path}"
        told = f"target {target}, {origin}\n{finding.kind}\nrepeat: {command}\n\n{finding.text}"
        path.with_name(path.name + ".txt").write_text(told, errors="backslashreplace")
    return path


@contextmanager
def _reading_folder(work: Path) -> Iterator[Path]:
    """A folder that each reading finds empty, under the same name each time, because answers may hold it."""
    work.mkdir(parents=True, exist_ok=True)
    try:
        yield work / "reading"
    finally:
        shutil.rmtree(work / "reading", ignore_errors=True)


def run(name: str, seconds: float, seed: int, work: Path, findings: Path) -> None:
    """Try inputs until the time is over. The file ``TOLD`` holds the counts, also if the process dies.

    The corpus is read in any case, unless the time is a few seconds.
    """
    target = next(each for each in TARGETS if each.name == name)
    end = time.monotonic() + seconds
    told: Counter[str] = Counter()
    kinds: set[str] = set()
    found: dict[str, str] = {}
    own = len(target.corpus())
    least = own if seconds > FEW_S else 1
    with _reading_folder(work) as folder:
        bound_process()
        for number, content, pool in inputs(target, seed):
            if time.monotonic() >= end and number >= least:
                break
            (work / CURRENT).write_bytes(content)
            try:
                kind = check(target, content, folder, twice=number % AGAIN == 0 or number < own)
            except FindingError as finding:
                told["finding"] += 1
                found[finding.kind] = str(save(findings, name, f"seed {seed}, input {number}", content, finding))
                _tell(work, told, kinds, found)
                continue
            told[kind.partition(" ")[0]] += 1
            if kind not in kinds:
                kinds.add(kind)
                if len(pool) < own + POOL:
                    pool.append(content)
            if number % TELL == 0:
                _tell(work, told, kinds, found)
    _tell(work, told, kinds, found)


def _tell(work: Path, told: Counter[str], kinds: set[str], found: dict[str, str]) -> None:
    files.write_whole(work / TOLD, json.dumps({"counts": told, "kinds": len(kinds), "findings": found}).encode())


def target_of(path: Path) -> Target | None:
    """The target of a finding, by the name of its file."""
    return next((each for each in TARGETS if each.name == path.name.rpartition("-")[0]), None)


def repeat(path: Path, work: Path) -> str:
    """Read the input of a finding again, twice; the kind of its answer.

    The name of the file begins with that of the target. Raises FindingError.
    """
    target = target_of(path)
    assert target
    with _reading_folder(work) as folder:
        bound_process()
        return check(target, path.read_bytes(), folder, twice=True)
