# SPDX-License-Identifier: Apache-2.0
"""Stored facts of real systems, and edits that change one thing in them as if the system had it otherwise."""

import errno
import gzip
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from rtproof.audit import judgement
from rtproof.audit.check import Audit, Outcome
from rtproof.audit.facts import AuditRequest, Facts, fits
from rtproof.record.contents import WHOLE_RUN, Begin, Fact, Moment, Record, SystemFile
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter

FOLDER = Path(__file__).parent / "data" / "audit"
CONFIG_FOLDER = "/boot/config-"


def stored_place(name: str) -> Path:
    """Where the facts of a system are stored."""
    return FOLDER / f"{name}.rtrec.gz"


def stored_names() -> list[str]:
    """The systems whose facts are stored."""
    return sorted(path.name.removesuffix(".rtrec.gz") for path in FOLDER.glob("*.rtrec.gz"))


def stored_bytes(name: str) -> bytes:
    """The record of a stored system."""
    return gzip.decompress(stored_place(name).read_bytes())


@cache
def stored_record(name: str) -> Record:
    """The facts of a stored system."""
    return record_of_bytes(stored_bytes(name))


def record_of_bytes(content: bytes) -> Record:
    """The record in these bytes."""
    with tempfile.TemporaryDirectory(prefix="rtproof-audit-") as folder:
        path = Path(folder) / "facts.rtrec"
        path.write_bytes(content)
        return open_record(path)


def bytes_of_record(record: Record) -> bytes:
    """The facts as an agent would have written them."""
    assert record.end
    with tempfile.TemporaryDirectory(prefix="rtproof-audit-") as folder:
        path = Path(folder) / "facts.rtrec"
        with RecordWriter(path) as writer:
            writer.begin(record.begin)
            for fact in record.facts:
                writer.fact(fact)
            for file in record.files:
                writer.file(file)
            writer.end(record.end)
        return path.read_bytes()


@dataclass
class EditedSystem:
    """The facts of a system while they are edited. files: by moment and path, in the order of the record."""

    begin: Begin
    facts: list[Fact]
    files: dict[tuple[Moment, str], SystemFile]

    @classmethod
    def of(cls, record: Record) -> "EditedSystem":
        files: dict[tuple[Moment, str], SystemFile] = {}
        for file in record.files:
            files.setdefault((file.moment, file.path), file)
        return cls(record.begin, list(record.facts), files)

    def text(self, path: str, moment: Moment = Moment.START) -> str:
        """The text of a file. AssertionError if it has none: an edit would say nothing."""
        file = self.files.get((moment, path))
        assert file is not None, f"{path} cannot be edited: nobody looked for it"
        assert not file.errno, f"{path} cannot be edited: error {file.errno}"
        return file.content.decode(errors="replace")

    def put(self, path: str, content: str | int, moment: Moment = Moment.START) -> None:
        """Give a file another text, or the number of an error. A pattern that fits it is not empty any more."""
        for key, file in list(self.files.items()):
            if key[0] is moment and file.errno and key[1] != path and fits(path, key[1]):
                del self.files[key]
        number, text = (content, b"") if isinstance(content, int) else (0, content.encode())
        self.files[moment, path] = SystemFile(0, moment, path, number, False, text)

    def config_path(self) -> str:
        """The path of the kernel's configuration."""
        return next(path for _, path in self.files if path.startswith(CONFIG_FOLDER))

    def record(self, record: Record) -> Record:
        """The record with the edits."""
        return replace(record, begin=self.begin, facts=tuple(self.facts), files=tuple(self.files.values()))


Edit = Callable[[EditedSystem], None]


def put(path: str, content: str | int, *, both: bool = False) -> Edit:
    """A file has this text, or the number of an error. both: also when it is read again."""

    def edit(system: EditedSystem) -> None:
        system.put(path, content)
        if both:
            system.put(path, content, Moment.END)

    return edit


def at_end(path: str, content: str | int) -> Edit:
    """A file has this text when it is read again."""
    return lambda system: system.put(path, content, Moment.END)


def gone(pattern: str) -> Edit:
    """The system has no such file: neither the path nor what fits the pattern."""

    def edit(system: EditedSystem) -> None:
        for key in [key for key in system.files if fits(key[1], pattern)]:
            del system.files[key]
        system.put(pattern, errno.ENOENT)

    return edit


def swap(path: str, pattern: str, new: str) -> Edit:
    """What fits the pattern in a file's text is another text. It must be there, at both moments if it is read twice."""

    def edit(system: EditedSystem) -> None:
        for moment in (Moment.START, Moment.END):
            if moment is Moment.START or (moment, path) in system.files:
                text, count = re.subn(pattern, new, system.text(path, moment), flags=re.MULTILINE)
                assert count, f"{path} has nothing that fits {pattern!r}"
                system.put(path, text, moment)

    return edit


def every(pattern: str, content: str) -> Edit:
    """Each file that fits has this text; at least one must be there."""

    def edit(system: EditedSystem) -> None:
        found = [path for at, path in system.files if at is Moment.START and path != pattern and fits(path, pattern)]
        assert found, f"nothing fits {pattern}"
        for path in found:
            system.put(path, content)

    return edit


def steady(path: str) -> Edit:
    """A file that is read twice has the same text both times."""
    return lambda system: system.put(path, system.text(path), Moment.END)


def swap_at_end(path: str, pattern: str, new: str) -> Edit:
    """What fits the pattern in a file's text is another text when it is read again."""

    def edit(system: EditedSystem) -> None:
        text, count = re.subn(pattern, new, system.text(path, Moment.END), flags=re.MULTILINE)
        assert count, f"{path} has nothing that fits {pattern!r}"
        system.put(path, text, Moment.END)

    return edit


def line(path: str, added: str, *, moment: Moment = Moment.START) -> Edit:
    """A file has one more line at its end; a file that was not there has only this one."""

    def edit(system: EditedSystem) -> None:
        file = system.files.get((moment, path))
        before = "" if file is None or file.errno else system.text(path, moment).rstrip("\n") + "\n"
        system.put(path, f"{before.lstrip()}{added}\n", moment)

    return edit


def boot(words: str) -> Edit:
    """The kernel's command line has these words, too."""

    def edit(system: EditedSystem) -> None:
        own, dashes, rest = system.text("/proc/cmdline").strip().partition(" -- ")
        system.put("/proc/cmdline", f"{own} {words}{dashes}{rest}\n")

    return edit


def boot_without(*names: str) -> Edit:
    """The kernel's command line has no such parameters."""

    def edit(system: EditedSystem) -> None:
        words = system.text("/proc/cmdline").split()
        kept = [word for word in words if word.partition("=")[0] not in names]
        assert len(kept) < len(words), f"the command line has none of {names}"
        system.put("/proc/cmdline", " ".join(kept) + "\n")

    return edit


def option(**values: str) -> Edit:
    """Options of the kernel's configuration have these values; "n" for one that is not set."""

    def edit(system: EditedSystem) -> None:
        path = system.config_path()
        for name, value in values.items():
            kept = [
                each
                for each in system.text(path).splitlines()
                if not re.fullmatch(rf"CONFIG_{name}=.*|# CONFIG_{name} is not set", each)
            ]
            kept.append(f"# CONFIG_{name} is not set" if value == "n" else f"CONFIG_{name}={value}")
            system.put(path, "\n".join(kept) + "\n")

    return edit


def kernel(release: str = "", version: str = "") -> Edit:
    """The kernel has another release, or another version text."""

    def edit(system: EditedSystem) -> None:
        begin = system.begin
        system.begin = replace(
            begin, kernel_release=release or begin.kernel_release, kernel_version=version or begin.kernel_version
        )

    return edit


def fact(key: str, value: str) -> Edit:
    """A fact that was asked for."""
    return lambda system: system.facts.append(Fact(0, WHOLE_RUN, Moment.ASKED, key, value))


@dataclass(frozen=True)
class System:
    """A stored system with edits that make it another sound one. request: what is asked of it."""

    stored: str
    edits: tuple[Edit, ...] = ()
    request: AuditRequest = field(default_factory=AuditRequest)

    def record(self, more: Iterable[Edit] = ()) -> Record:
        """Its facts, with more edits."""
        stored = stored_record(self.stored)
        system = EditedSystem.of(stored)
        for edit in (*self.edits, *more):
            edit(system)
        return system.record(stored)

    def audit(self, more: Iterable[Edit] = (), request: AuditRequest | None = None) -> Audit:
        """Judge its facts, with more edits."""
        return judgement.audit(Facts(self.record(more), request or self.request))


def outcomes(audit: Audit) -> Mapping[str, Outcome]:
    """What came of each check."""
    return {result.check.id: result.outcome for result in audit.results}


BAD = (Outcome.FINDING, Outcome.CONFLICTING)


@dataclass(frozen=True)
class Difference:
    """What an edit changed. found: checks that complain and did not, or of less. lost: good ones, now unknown."""

    found: frozenset[str]
    lost: frozenset[str]

    @classmethod
    def between(cls, before: Audit, after: Audit) -> "Difference":
        old, new = outcomes(before), outcomes(after)
        ranks = {result.check.id: result.severity.rank for result in before.results}
        found = {
            result.check.id
            for result in after.results
            if result.outcome in BAD
            and (old[result.check.id] not in BAD or result.severity.rank < ranks[result.check.id])
        }
        lost = {name for name, outcome in new.items() if old[name] is Outcome.GOOD and outcome is Outcome.UNKNOWN}
        return cls(frozenset(found), frozenset(lost))


SOUND_CPUS = frozenset({2, 3})
SOUND_BOOT = (
    *("isolcpus=managed_irq,domain,2-3", "rcu_nocbs=2-3", "irqaffinity=0-1", "skew_tick=1", "nowatchdog"),
    *("psi=0", "audit=0", "nohz=off", "rcutree.enable_rcu_lazy=0"),
)
"""Arguments that the kernel's documentation and the vendors' guides advise for a control loop on CPUs 2 and 3."""
SOUND_SETUP = (
    "set -- vm/stat_interval=10 vm/compaction_proactiveness=0 vm/compact_unevictable_allowed=0",
    'set -- "$@" vm/watermark_boost_factor=0 vm/overcommit_memory=2 vm/dirty_ratio=10 kernel/timer_migration=0',
    'set -- "$@" kernel/hung_task_timeout_secs=0 kernel/sched_schedstats=0 kernel/numa_balancing=0',
    'set -- "$@" kernel/sched_rt_runtime_us=-1',
    'for each; do echo "${each#*=}" > "/proc/sys/${each%%=*}"; done 2>/dev/null',
    "echo 1 > /proc/sys/kernel/printk",
    "for mask in /sys/devices/virtual/workqueue/cpumask /sys/devices/virtual/workqueue/*/cpumask; do",
    "[ -e $mask ] && echo 3 > $mask; done",
    "(echo 0 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag) 2>/dev/null",
    "(echo never > /sys/kernel/mm/transparent_hugepage/enabled) 2>/dev/null",
    "for task in /proc/[0-9]*/task/[0-9]*; do taskset -p 3 ${task##*/}; done >/dev/null 2>&1",
    "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
    "mount -t securityfs securityfs /sys/kernel/security",
    "ulimit -r 99; ulimit -l unlimited",
    "true",
)
"""What the same guides advise to write after the boot, as lines for the shell of a guest."""
FAIR_SERVER_OFF = "for each in /sys/kernel/debug/sched/fair_server/cpu*/runtime; do echo 0 > $each; done"
"""Linux 6.12.95 warns of it: dl_rq->running_bw > dl_rq->this_bw, in deadline.c."""
