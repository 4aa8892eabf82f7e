# SPDX-License-Identifier: Apache-2.0
"""Let the n-th system call of a kind fail in the agent or in rtproof, and say what broke a promise (``faults.c``).

docs/fuzz.md describes what must hold. An item is one kind of call with one errno, in one program.
"""

import errno
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from part import ROOT, Bound, Details, Figure, Part

from rtproof.agents.build import find_agent
from rtproof.core.errors import RecordError, UserError
from rtproof.record.reading import open_record

PATIENCE_S = 20
"""How long a faulty run may take; a run without a fault takes a fraction of a second."""
AGENT_RUN = ("run", "--policy", "other", "--warmup", "0ms", "--threads", "2")
PLAIN = (*AGENT_RUN, "--duration", "20ms")
WITH_CHECKPOINTS = (*AGENT_RUN, "--duration", "350ms", "--checkpoint", "100ms", "--limit", "20us")
LOADED = (*PLAIN, "--load", "cpu:workers=1", "--load", "sched:groups=1,pairs=1", "--load", "files:workers=1,mib=1")


class NoFaultsHereError(UserError):
    """Calls cannot be made to fail on this machine; the reason."""


@dataclass(frozen=True)
class Fault:
    """The n-th call of a kind fails with this errno; keep_on: every later one too. n is 0: none fails."""

    kind: str
    n: int = 0
    error: int = 0
    keep_on: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.n}{'+' if self.keep_on else ''} {errno.errorcode.get(self.error, 'none')}"


@dataclass(frozen=True)
class Faulty:
    """How a program ended. given: whether its fault was reached; on_standard_error: the fault hit that very output."""

    exit_code: int | None
    signal: int | None
    said: str
    given: bool
    hit: str
    on_standard_error: bool
    hung: bool
    left: tuple[str, ...]
    calls: int


@functools.cache
def tool() -> Path:
    """The compiled ``faults.c``. NoFaultsHereError without a compiler, a known machine, or the permission to trace."""
    if os.uname().machine != "x86_64":
        raise NoFaultsHereError(f"the registers of {os.uname().machine} are not known")
    compiler = shutil.which("cc")
    if not compiler:
        raise NoFaultsHereError("there is no C compiler")
    place = ROOT / "build" / f"faults-{os.getpid()}"
    place.parent.mkdir(exist_ok=True)
    command = [compiler, "-O2", "-Wall", "-Wextra", "-o", str(place), str(Path(__file__).with_name("faults.c"))]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise NoFaultsHereError(f"faults.c cannot be compiled: {built.stderr.strip()}")
    program = place.with_name("faults")
    place.replace(program)
    status = place.with_name(f"{place.name}.status")
    tried = subprocess.run(
        [program, status, "5", "", "write", "0", "0", "0", "", "true"], capture_output=True, text=True, check=False
    )
    told = status.read_text() if status.exists() else ""
    status.unlink(missing_ok=True)
    if tried.returncode or "exit 0" not in told:
        raise NoFaultsHereError(f"a process may not be traced here: {tried.stderr.strip() or told.strip()}")
    return program


OWN = "own"


def run_faulty(scratch: Path, command: Sequence[str | Path], fault: Fault, prefix: str = "", log: str = "") -> Faulty:
    """Run a command to its end with one fault, which hits only calls on paths that begin with ``prefix``.

    Its working folder and its folder for temporary files is ``scratch/own``, which is empty at first.
    """
    status, own = scratch / "status", scratch / OWN
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    what = [status, PATIENCE_S, prefix, fault.kind, fault.n, fault.error, int(fault.keep_on), log]
    done = subprocess.run(
        [tool(), *map(str, what), *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=3 * PATIENCE_S,
        cwd=own,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(own)},
    )
    if done.returncode:
        raise NoFaultsHereError(f"the tool ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    told = status.read_text()
    status.unlink()
    given = re.search(r"^given (-?\d+) (.*)$", told, re.MULTILINE)
    code, signal, calls = (re.search(rf"^{word} (\d+)$", told, re.MULTILINE) for word in ("exit", "signal", "calls"))
    return Faulty(
        exit_code=int(code[1]) if code else None,
        signal=int(signal[1]) if signal else None,
        said=done.stderr.decode(errors="replace"),
        given=given is not None,
        hit=given[2] if given else "",
        on_standard_error=given is not None and given[1] == "2" and given[2].startswith("pipe:"),
        hung=bool(re.search(r"^hung$", told, re.MULTILINE)),
        left=tuple(re.findall(r"^left \d+ (.*)$", told, re.MULTILINE)),
        calls=int(calls[1]) if calls else 0,
    )


# What a run could leave behind on the machine, apart from processes, which the tool itself watches.

TRACING = "/sys/kernel/tracing"
SETTINGS = (
    *(f"/proc/sys/kernel/sched_rt_{name}_us" for name in ("runtime", "period")),
    *(f"{TRACING}/{name}" for name in ("tracing_on", "current_tracer", "set_event", "kprobe_events", "uprobe_events")),
    *("/proc/irq/default_smp_affinity", "/proc/modules"),
)
PATTERNS = ("proc/irq/*/smp_affinity", "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
            "sys/devices/system/cpu/cpu[0-9]*/online")  # fmt: skip
NAMES = ("/dev/mqueue", "/dev/shm", "/run/netns", "/sys/kernel/tracing/instances", "/sys/class/net")  # noqa: S108 - only listed
TABLES = ("/proc/sysvipc/sem", "/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/mounts")


def machine_state() -> dict[str, str]:
    """What could be left over, by where it is."""
    found = {}
    for name in (*SETTINGS, *(str(path) for pattern in PATTERNS for path in Path("/").glob(pattern))):
        try:
            found[name] = Path(name).read_text()
        except OSError:
            continue
    for name in NAMES:
        if Path(name).is_dir():
            found[name] = " ".join(sorted(one.name for one in Path(name).iterdir()))
    for name in TABLES:
        rows = Path(name).read_text().splitlines() if Path(name).exists() else []
        found[name] = "\n".join(" ".join(row.split()[:2]) for row in rows)
    found["cgroups"] = "\n".join(sorted(folder for folder, _, _ in os.walk("/sys/fs/cgroup")))
    try:
        found["/dev/cpu_dma_latency"] = Path("/dev/cpu_dma_latency").read_bytes()[:4].hex()
    except OSError:
        found["/dev/cpu_dma_latency"] = ""
    return found


def changed_state(before: dict[str, str]) -> list[str]:
    """The places that differ from before, once others have had a second to put back what is theirs."""
    for _ in range(20):
        after = machine_state()
        names = [name for name in after if after[name] != before.get(name)]
        if not names:
            return []
        time.sleep(0.05)
    return names


# What every faulty run must keep to.

PROGRESS = re.compile(r"\d+:\d\d:\d\d of \d+:\d\d:\d\d: ")
"""How a line of ``rtproof run`` begins that tells how far the run is, and no error."""
DEFECT = "this is a defect of rtproof"
"""How the sentence begins that rtproof prints in place of a traceback."""
LEFTOVERS = ("processes were left", "files were left", "left after", "left behind", "a temporary file")


def broken_promises(end: Faulty, allowed: Sequence[int]) -> list[str]:
    """One sentence for each promise that an end breaks: exit code, one sentence, no signal, no hang, nothing left."""
    found = []
    if end.hung:
        found.append(f"it hung for {PATIENCE_S} s")
    if end.left:
        found.append(f"processes were left: {', '.join(end.left)}")
    if end.signal is not None and not end.hung:
        found.append(f"signal {end.signal} ended it")
    if end.exit_code is not None and end.exit_code not in allowed:
        found.append(f"exit code {end.exit_code}")
    sentences = sum(not PROGRESS.match(line) for line in end.said.splitlines())
    if end.exit_code == 2 and sentences != 1 and not end.on_standard_error:
        found.append(f"exit code 2 with {sentences} lines: {end.said[-300:]!r}")
    if "Traceback" in end.said or DEFECT in end.said:
        found.append(f"a traceback: {end.said[-400:]!r}")
    return found


def record_promises(record: Path, end: Faulty) -> list[str]:
    """What is wrong with the record that a faulty run of the agent left; an exit code of 0 promises a whole one."""
    if not record.exists():
        return ["exit code 0 without a record"] if end.exit_code == 0 else []
    try:
        found = open_record(record)
    except RecordError as error:
        return [f"the record cannot be read: {error}"]
    if end.exit_code == 0 and (found.damage or found.end is None):
        return [f"exit code 0 with a damaged record: {found.damage[0].sentence if found.damage else 'no END'}"]
    for series in found.series:
        for _ in found.blocks(series.id):
            pass
    return []


@dataclass
class Tally:
    """What one kind of fault led to."""

    what: str
    kind: str
    error: str
    runs: int = 0
    reached: int = 0
    calls: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    leftovers: int = 0
    findings: list[str] = field(default_factory=list)


Check = Callable[[Path, Faulty], list[str]]


@dataclass(frozen=True)
class Subject:
    """A program under test. command: made anew for each run in a fresh folder; check: what is wrong with what it left.

    allowed: exit codes. own_paths: only calls on paths in that folder fail.
    """

    name: str
    command: Callable[[Path], Sequence[str | Path]]
    check: Check
    allowed: tuple[int, ...] = (0, 2)
    own_paths: bool = False


def agent_subject(name: str, options: Sequence[str], *, own_paths: bool = False) -> Subject:
    """The real agent with these options; UserError if it cannot be built."""
    agent = find_agent()

    def check(place: Path, end: Faulty) -> list[str]:
        strays = [one.name for one in place.iterdir() if one.name != "record"]
        return record_promises(place / "record", end) + [f"files were left: {strays}" for _ in strays[:1]]

    return Subject(name, lambda place: (agent, *options, "-o", place / "record"), check, own_paths=own_paths)


LEFT_BEHIND = "left behind: "


def one_run(subject: Subject, scratch: Path, fault: Fault) -> tuple[Faulty, list[str]]:
    """One faulty run in a fresh folder, and what it broke.

    Others change the machine too, so what is left behind counts only if two further runs leave it behind again.
    """
    end, found = _tried_once(subject, scratch, fault)
    for _ in range(2):
        if any(one.startswith(LEFT_BEHIND) for one in found):
            end, found = _tried_once(subject, scratch, fault)
    return end, found


def _tried_once(subject: Subject, scratch: Path, fault: Fault) -> tuple[Faulty, list[str]]:
    place = scratch / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    before = machine_state()
    end = run_faulty(scratch, subject.command(place), fault, str(place) if subject.own_paths else "")
    found = broken_promises(end, subject.allowed) + subject.check(place, end)
    strays = sorted(str(one.relative_to(scratch / OWN)) for one in (scratch / OWN).rglob("*"))
    found += [f"files were left: {strays[:9]}" for _ in strays[:1]]
    return end, found + [f"{LEFT_BEHIND}{', '.join(names)}" for names in [changed_state(before)] if names]


def numbers(calls: int, most: int) -> Iterator[int]:
    """The calls to let fail: all of them if they are at most ``most``, otherwise the first, the last, and a spread."""
    step = max(1, -(-calls // most))
    yield from sorted({*range(1, calls + 1, step), *range(max(1, calls - 3), calls + 1)})


def let_fail(  # noqa: PLR0913 - a row of the table has that many parts
    subject: Subject, scratch: Path, kind: str, error: int, *, keep_on: bool = False, most: int = 1000
) -> Tally:
    """Let each call of a kind fail, one in each run, until a run no longer reaches the call."""
    word = errno.errorcode[error] + (" from there on" if keep_on else "")
    tally = Tally(subject.name, kind, word)
    sound, found = one_run(subject, scratch, Fault(kind))
    tally.calls = sound.calls
    if sound.exit_code == 2 or sound.given:
        found.append(f"it ended with {sound.exit_code}: {sound.said[-300:]!r}")
    tally.findings += [f"{subject.name} without a fault: {one}" for one in found]
    for n in numbers(sound.calls, most):
        fault = Fault(kind, n, error, keep_on)
        end, found = one_run(subject, scratch, fault)
        tally.runs += 1
        if not end.given:
            tally.codes["not reached"] += 1
        else:
            tally.reached += 1
            tally.codes[str(end.exit_code if end.exit_code is not None else f"signal {end.signal}")] += 1
        tally.leftovers += any(one.startswith(LEFTOVERS) for one in found)
        tally.findings += [f"{subject.name}, {fault} ({end.hit}): {one}" for one in found]
    return tally


MOST = 400
"""Calls of a kind that fail in the plain agent; a quarter of that elsewhere."""
AGENT_FAULTS = {
    "write": (errno.ENOSPC, errno.EIO, errno.EINTR, errno.EAGAIN, errno.EDQUOT),
    "fdatasync": (errno.EIO, errno.ENOSPC, errno.EINTR),
    "fsync": (errno.EIO, errno.EINTR),
    "fallocate": (errno.ENOSPC, errno.EINTR, errno.EOPNOTSUPP, errno.EIO),
    "ftruncate": (errno.EIO, errno.EINTR),
    "open": (errno.EMFILE, errno.EACCES, errno.EINTR),
    "mmap": (errno.ENOMEM, errno.EAGAIN),
    "clone": (errno.EAGAIN, errno.ENOMEM),
    "unlink": (errno.EACCES,),
}
HOST_FAULTS = {
    "write": (errno.ENOSPC, errno.EIO),
    "fsync": (errno.EIO, errno.ENOSPC),
    "open": (errno.EACCES, errno.EMFILE),
    "rename": (errno.EIO,),
    "mkdir": (errno.ENOSPC,),
    "link": (errno.EIO,),
}


HOST = (sys.executable, "-m", "rtproof")
"""The command of the rtproof of this checkout."""


def host_subjects(scratch: Path) -> list[Subject]:
    """The commands of rtproof that write: pages, exports, and a run folder."""
    record = scratch / "sound.rtrec"
    subprocess.run([find_agent(), *PLAIN, "-o", record], capture_output=True, check=True, timeout=PATIENCE_S)

    def whole_or_absent(place: Path, end: Faulty) -> list[str]:
        """After an error, nothing of what was asked is there; after success, one file of it is."""
        there = sorted(one.name for one in place.rglob("*"))
        if end.exit_code == 2:
            return [f"left after an error: {there}"] if there else []
        return [] if any(one.stat().st_size for one in place.rglob("*")) else ["success without a file"]

    def run_folder_kept(place: Path, end: Faulty) -> list[str]:
        """What was measured stays; a page that could not be written is not there in parts."""
        found = [f"a temporary file: {one.name}" for one in place.rglob(".*")]
        for one in place.rglob("*.rtrec"):
            found += record_promises(one, end)
        return found

    def subject(name: str, output: str, check: Check, allowed: tuple[int, ...], *words: str | Path) -> Subject:
        command = (*HOST, name, *words, "--output")
        return Subject(name, lambda place: (*command, place / output), check, allowed, own_paths=True)

    run = ("--duration", "100ms", "--warmup", "0ms", "--policy", "other")
    return [
        subject("report", "page.html", whole_or_absent, (0, 2), record, "--format", "html"),
        subject("export", "samples.csv", whole_or_absent, (0, 2), record, "--format", "csv"),
        subject("run", "run", run_folder_kept, (0, 2, 3), *run),
    ]


AGENT = "agent"
MORE_AGENTS: dict[str, tuple[Sequence[str], bool, tuple[tuple[str, int], ...]]] = {
    "agent with loads": (
        LOADED,
        False,
        (("clone", errno.EAGAIN), ("mmap", errno.ENOMEM), ("write", errno.EIO), ("open", errno.EMFILE)),
    ),
    "agent, its record only": (
        PLAIN,
        True,
        (("write", errno.ENOSPC), ("write", errno.EIO), ("fdatasync", errno.EIO), ("open", errno.EMFILE)),
    ),
    "agent with checkpoints": (
        WITH_CHECKPOINTS,
        False,
        (("write", errno.ENOSPC), ("fdatasync", errno.EIO), ("fdatasync", errno.EINTR)),
    ),
}
"""By name: the options, whether all later calls on its record fail too, and the faults."""
HOSTS = ("report", "export", "run")
CASES = (
    *((AGENT, kind, error) for kind, errors in AGENT_FAULTS.items() for error in errors),
    *((name, kind, error) for name, (_, _, faults) in MORE_AGENTS.items() for kind, error in faults),
    *((name, kind, error) for name in HOSTS for kind, errors in HOST_FAULTS.items() for error in errors),
)
ITEMS = {f"{name}: {kind} {errno.errorcode[error]}": (name, kind, error) for name, kind, error in CASES}


def measure(item: str) -> dict[str, Any]:
    """Let the calls of an item fail, each in a run of its own; prints what broke a promise."""
    name, kind, error = ITEMS[item]
    with tempfile.TemporaryDirectory(prefix="rtproof-faults-") as folder:
        scratch = Path(folder)
        if name in HOSTS:
            (subject,) = (one for one in host_subjects(scratch) if one.name == name)
            done = let_fail(subject, scratch, kind, error, most=MOST // 4)
        else:
            options, own, _ = MORE_AGENTS.get(name, (PLAIN, False, ()))
            subject = agent_subject(name, options, own_paths=own)
            done = let_fail(subject, scratch, kind, error, keep_on=own, most=MOST if name == AGENT else MOST // 4)
    print(*(f"    {finding}" for finding in done.findings), sep="\n", end="", flush=True)
    return {**asdict(done), "broken": len(done.findings)}


def row(item: str, one: Details) -> list[str]:
    codes = ", ".join(f"{code}: {n}" for code, n in sorted(one["codes"].items()))
    return [f"| {item} | {one['calls']} | {one['runs']} | {one['leftovers']} | {codes} | {one['broken']} |"]


PART = Part(
    goal="no failing system call breaks a promise of docs/fuzz.md",
    items=lambda: list(ITEMS),
    measure=measure,
    figures=(Figure("broken", "broken promises", bound=Bound(0, 0), of="runs"),),
    head="| program, call, errno | calls of a run | runs with the fault | leftovers | exit codes | findings |",
    rows=row,
)
