# SPDX-License-Identifier: Apache-2.0
"""Which kernel was measured: its preemption model with the evidence for it, and a real-time kernel beside Linux."""

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from rtproof.core.units import whole_number
from rtproof.record.contents import Moment, Record
from rtproof.summary import recorded_facts
from rtproof.summary.target_threads import TargetThread, target_threads

# How the target's kernel was configured, and whether a real-time kernel ran beside Linux: Xenomai, EVL or RTAI.
#
# A latency of Linux says little about the tasks of a co-kernel beside it.


COMPRESSED_CONFIG = "/proc/config.gz"
LARGEST_CONFIG = 8 * 1024 * 1024
"""At most this many bytes are unpacked from a compressed configuration. Real ones have 0.3 MB at most."""
NAMED_CONFIG = (
    *("PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_DYNAMIC", "PREEMPT_RT"),
    *("PREEMPT_RT_FULL", "HIGH_RES_TIMERS", "HZ", "NO_HZ_FULL", "CPU_FREQ", "CPU_IDLE", "SMP", "IRQ_FORCED_THREADING"),
    *("RT_GROUP_SCHED", "XENOMAI", "XENO_DRIVERS_TIMERBENCH", "XENO_HW_UNLOCKED_SWITCH", "IPIPE", "DOVETAIL", "EVL"),
    *("ARM_FCSE_GUARANTEED", "ATMEL_TCLIB", "ATMEL_TCB_CLKSRC", "FB", "DRM", "DEBUG_PREEMPT", "LOCKDEP"),
)
"""Options that articles on real-time Linux tell the reader to look at, in the order in which they are shown."""
_GZIP = 16 + zlib.MAX_WBITS
_PLACES = re.compile(
    r"/boot/config-.*|/lib/modules/.*config|/usr/lib/ostree-boot/config-.*|/usr/src/linux-headers-.*config"
)
_SET = re.compile(r"CONFIG_(\w+)=(.*)")
_UNSET = re.compile(r"# CONFIG_(\w+) is not set")
_KEPT = re.compile(r"# rtproof kept lines that begin with: (.+)")
_RELEASE = re.compile(r"# Linux/\S+ (\S+) Kernel Configuration")


@dataclass(frozen=True)
class KernelConfig:
    """A kernel's configuration.

    path: where it was found.
    release: of the kernel that it says it is for, "" if it does not say.
    options: by name, without CONFIG_. An option that is left out is "n". The configuration does not name the others.
    whole: whether the text has its end. kept: what the names begin with of which lines were kept; None for all.
    """

    path: str
    release: str
    options: Mapping[str, str]
    whole: bool = True
    kept: tuple[str, ...] | None = None

    def is_known(self, option: str) -> bool:
        """Whether an option that has no line is not set. Otherwise, its line may be missing here only."""
        kept = self.kept is None or f"CONFIG_{option}".startswith(self.kept)
        return option in self.options or (self.whole and kept)

    def named(self) -> dict[str, str]:
        """The options of NAMED_CONFIG that this configuration names, with their values."""
        return {option: self.options[option] for option in NAMED_CONFIG if option in self.options}

    def has(self, option: str) -> bool:
        """Whether the option is built in or a module."""
        return self.options.get(option) in ("y", "m")


def kernel_config(record: Record) -> KernelConfig | None:
    """The running kernel's configuration, from its own copy or from the file of its release; None without either."""
    paths = [COMPRESSED_CONFIG, *(file.path for file in record.files if _PLACES.fullmatch(file.path))]
    for path in paths:
        file = recorded_facts.find_file(record, path)
        content = file.content if file and file.errno == 0 else b""
        if path == COMPRESSED_CONFIG:
            text, whole = _inflate(content)
        else:
            text, whole = content.decode(errors="replace"), True
        if text:
            config = parse_kernel_config(path, text)
            ends = path == COMPRESSED_CONFIG or _ends(config)
            return replace(config, whole=whole and ends and not (file and file.cut))
    return None


def _ends(config: KernelConfig) -> bool:
    """Whether a text has an option that stands at its end. Since 4.20, the menu of the tests is the last one."""
    found = re.match(r"(\d{1,3})\.(\d{1,4})", config.release)
    old = found is not None and (int(found[1]), int(found[2])) < (4, 20)
    return ("HAS_DMA" if old else "RUNTIME_TESTING_MENU") in config.options


@lru_cache(maxsize=2)
def parse_kernel_config(path: str, text: str) -> KernelConfig:
    """The configuration in a text. Lines that are no option are skipped."""
    options = {match[1]: "n" for match in _UNSET.finditer(text)}
    options |= {match[1]: match[2].strip('"') for match in _SET.finditer(text)}
    release, kept = _RELEASE.search(text), _KEPT.search(text)
    names = tuple(kept[1].split()) if kept else None
    return KernelConfig(path, release[1] if release else "", options, kept=names)


def of_another_kernel(config: KernelConfig, release: str) -> str:
    """Says that a configuration is for another kernel than the one of this release; "" if it is not.

    The kernel's own copy is always its own. Of a file, only the branch is compared: a distribution's third number is
    not that of the sources.
    """
    if config.path == COMPRESSED_CONFIG or _branch(config.release) == _branch(release):
        return ""
    return f"{config.path} is for {config.release or 'an unknown kernel'}, and {release} runs"


def _inflate(content: bytes) -> tuple[str, bool]:
    """The text, as far as it can be unpacked, and whether that is all."""
    unpack = zlib.decompressobj(_GZIP)
    try:
        text = unpack.decompress(content, LARGEST_CONFIG).decode(errors="replace")
    except zlib.error:
        return "", False
    return text, unpack.eof


XENOMAI_STATISTICS = ("/proc/xenomai/sched/stat", "/proc/xenomai/stat")
"""The files of Xenomai 3 and of Xenomai 2."""
XENOMAI, EVL, RTAI = "/proc/xenomai", "/sys/class/evl", "/proc/rtai"
LINUX = "linux"
"""The name that means: no co-kernel."""
IN_BAND = "in-band"
"""The name that a co-kernel gives to Linux's own threads. The co-kernel's tasks run before them."""
SCHEDULES = ("/proc/xenomai/sched/threads", "/proc/xenomai/sched")
"""Files with Xenomai's threads and their priorities, of version 3 and of version 2."""
_EVL_THREAD = re.compile(r"/sys/devices/virtual/thread/(.+)/stats")
_EVL_SCHEDULE = re.compile(r"/sys/devices/virtual/thread/(.+)/sched")
_PART_TIME = ("idle", "weak")
"""Scheduling classes of a co-kernel whose threads do not run before Linux: its placeholder, and part-time members."""
_COBALT = re.compile(r"Cobalt v?(\S+)")


class Confidence(Enum):
    """How sure a statement is. CERTAIN: the running kernel says so itself. LIKELY: only another source says so."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PreemptionStatement:
    """A preemption model and what says so.

    value: ``none``, ``voluntary``, ``lazy``, ``full``, ``rt``, ``rt (full)``, ``rt (lazy)``, ``dynamic`` or the name of
    a co-kernel; None: unknown.
    confidence: how sure it is. evidence: what each source says, the strongest first.
    """

    value: str | None
    confidence: Confidence
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class ModeSwitches:
    """How often a thread had left the co-kernel for Linux, at the start and at the end of the run.

    start, end: None if the thread was not there.
    """

    thread: str
    start: int | None
    end: int | None

    @property
    def process(self) -> int:
        """The process number in the name: "817 sampling" of Xenomai, "sampling:817" of EVL; 0 if the name has none."""
        first, last = self.thread.partition(" ")[0], self.thread.rpartition(":")[2]
        return next((found for word in (first, last) if (found := whole_number(word)) is not None), 0)


@dataclass(frozen=True)
class CoreThread:
    """A thread that the co-kernel schedules. process: its number on the target, 0 if it has none."""

    process: int
    name: str
    cpu: int
    priority: int
    scheduling: str

    @property
    def before_linux(self) -> bool:
        """Whether the thread runs before every thread of Linux, whatever the priority of the Linux thread."""
        return self.scheduling not in _PART_TIME and self.priority >= 0


def core_beside(record: Record) -> str | None:
    """Name and version of the co-kernel that runs beside Linux; None if none was found."""
    name = cokernel_of(record, None, recorded_facts.file_text(record, "kernel-log") or "").value
    return None if name == LINUX else name


def core_threads(record: Record) -> tuple[CoreThread, ...]:
    """All threads that the co-kernel listed at the start or at the end of the run, each once."""
    found: dict[tuple[int, str], CoreThread] = {}
    for moment in (Moment.START, Moment.END):
        for path in SCHEDULES:
            for thread in _of_xenomai(recorded_facts.file_text(record, path, moment) or ""):
                found.setdefault((thread.process, thread.name), thread)
    for file in record.files:
        match = _EVL_SCHEDULE.fullmatch(file.path)
        scheduled = _of_evl(match[1], file.content.decode(errors="replace")) if match and not file.errno else None
        if scheduled:
            found.setdefault((scheduled.process, scheduled.name), scheduled)
    return tuple(found.values())


def _rows_of_xenomai(text: str, *needed: str) -> Iterator[dict[str, str]]:
    """The rows of one of Xenomai's tables by the names of the columns, which differ between versions.

    The last column, the name, is under "name" too. Nothing without the needed columns; lines of another kind are
    skipped.
    """
    header, *lines = text.splitlines() or [""]
    names = header.split()
    if not {*needed} <= {*names}:
        return
    for words in (line.split(None, len(names) - 1) for line in lines):
        if len(words) == len(names):
            yield {**dict(zip(names, words, strict=True)), "name": words[-1].strip()}


def _of_xenomai(text: str) -> list[CoreThread]:
    """The threads in Xenomai's table. Lines that are no thread are skipped."""
    return [
        CoreThread(process, row["name"], cpu, int(row["PRI"]), row["CLASS"])
        for row in _rows_of_xenomai(text, "CPU", "PID", "CLASS", "PRI")
        if (process := whole_number(row["PID"])) is not None
        and (cpu := whole_number(row["CPU"])) is not None
        and re.fullmatch(r"-?\d{1,9}", row["PRI"])
    ]


def _of_evl(name: str, text: str) -> CoreThread | None:
    """A thread of EVL. name: NAME:PID.

    The text has the CPU, the base priority, the current priority and the name of the scheduling class.
    """
    words = text.split()
    cpu = whole_number(words[0]) if len(words) >= 4 else None
    if cpu is None or not re.fullmatch(r"-?\d{1,9}", words[2]):
        return None
    label, _, process = name.rpartition(":")
    return CoreThread(whole_number(process) or 0, label or name, cpu, int(words[2]), words[3])


def cokernel_of(record: Record, config: KernelConfig | None, log: str) -> PreemptionStatement:
    """The co-kernel beside Linux with its version, or "linux" if the target has none. log: the kernel's log."""
    found = _xenomai(record, log) or _evl(record) or _rtai(record)
    if found:
        return found
    seen = [recorded_facts.file_is_there(record, path) for path in (XENOMAI, EVL, RTAI)]
    if config and (config.has("XENOMAI") or config.has("EVL")):
        return _core(None, (f"{config.path}: CONFIG_XENOMAI or CONFIG_EVL, which does not show in /proc or /sys",))
    if None in seen:
        return _core(None, ())
    return _core(LINUX, (f"there is no {XENOMAI}, {EVL} or {RTAI}",))


def interrupt_pipeline(record: Record, config: KernelConfig | None) -> str | None:
    """What delivers interrupts to a co-kernel first; None if the kernel has no such pipeline."""
    version = recorded_facts.file_line(record, "/proc/ipipe/version")
    if version is not None:
        return f"I-pipe {version}".strip()
    names = {"DOVETAIL": "Dovetail", "IRQ_PIPELINE": "IRQ pipeline", "IPIPE": "I-pipe"}
    return next((name for option, name in names.items() if config and config.has(option)), None)


def mode_switches(record: Record) -> tuple[ModeSwitches, ...]:
    """The mode switches of each thread that Xenomai counts, or the in-band switches of EVL; empty without either."""
    for path in XENOMAI_STATISTICS:
        texts = [recorded_facts.file_text(record, path, moment) for moment in (Moment.START, Moment.END)]
        if any(texts):
            start, end = (counts_mode_switches(text or "") for text in texts)
            return tuple(ModeSwitches(name, start.get(name), end.get(name)) for name in {**start, **end})
    paths = dict.fromkeys(file.path for file in record.files if _EVL_THREAD.fullmatch(file.path))
    return tuple(_in_band(record, path) for path in paths)


def _in_band(record: Record, path: str) -> ModeSwitches:
    """The in-band switches of a thread of EVL: the first number of its statistics.

    The others differ between versions.
    """
    words = [(recorded_facts.file_line(record, path, moment) or "").split() for moment in (Moment.START, Moment.END)]
    start, end = (whole_number(first[0]) if first else None for first in words)
    return ModeSwitches(_EVL_THREAD.sub(r"\1", path), start, end)


def counts_mode_switches(text: str) -> dict[str, int]:
    """The column MSW of Xenomai's statistics, by process number and name."""
    rows = _rows_of_xenomai(text, "MSW", "PID")
    counts = ((f"{row['PID']} {row['name']}", whole_number(row["MSW"])) for row in rows)
    return {thread: switches for thread, switches in counts if switches is not None}


def _xenomai(record: Record, log: str) -> PreemptionStatement | None:
    version = recorded_facts.file_line(record, f"{XENOMAI}/version")
    cobalt = _COBALT.search(log)
    if version is None and not recorded_facts.file_is_there(record, XENOMAI) and not cobalt:
        return None
    number = version or (cobalt[1] if cobalt else "")
    evidence = [f"{XENOMAI}/version: {version}"] if version is not None else []
    evidence += [f"{XENOMAI} is there"] if recorded_facts.file_is_there(record, XENOMAI) else []
    evidence += [f"kernel's log: {cobalt[0]}"] if cobalt else []
    core = "nucleus" if number.startswith("2.") else "Cobalt"
    return _core(f"Xenomai {number} ({core})" if number else "Xenomai", tuple(evidence))


def _evl(record: Record) -> PreemptionStatement | None:
    return _core("EVL (Xenomai 4)", (f"{EVL} is there",)) if recorded_facts.file_is_there(record, EVL) else None


def _rtai(record: Record) -> PreemptionStatement | None:
    return _core("RTAI", (f"{RTAI} is there",)) if recorded_facts.file_is_there(record, RTAI) else None


DEBUGFS = "/sys/kernel/debug/sched/preempt"
REALTIME = "/sys/kernel/realtime"
LOG = "kernel-log"
RT, FULL, LAZY, VOLUNTARY, NONE, DYNAMIC = "rt", "full", "lazy", "voluntary", "none", "dynamic"
VERSION_MOST = 64
"""The kernel cuts ``uname -v`` after this many characters. What stood behind them is lost."""

_WORDS = {"none": NONE, "voluntary": VOLUNTARY, "full": FULL, "lazy": LAZY}
_CHOSEN = re.compile(r"\((\w+)\)")
_SAID_AT_BOOT = re.compile(r"Dynamic Preempt: (\w+)")
_RT_THREADS = re.compile(r"ktimers/\d+|ktimersoftd/\d+|sirq-\S+/\d+|posixcputmr/\d+")
_BRANCH = re.compile(r"\d+\.\d+")
_STATIC = (("PREEMPT", FULL), ("PREEMPT_DESKTOP", FULL), ("PREEMPT__LL", FULL), ("PREEMPT_RTB", FULL),
           ("PREEMPT_VOLUNTARY", VOLUNTARY), ("PREEMPT_NONE", NONE))  # fmt: skip


@dataclass(frozen=True)
class PreemptionModel:
    """The preemption model of a kernel.

    built: what the kernel was compiled for. effective: what it does, which is another thing with PREEMPT_DYNAMIC.
    core: the kernel beside Linux, or ``linux``. pipeline: what delivers interrupts to a co-kernel first, or None.
    disagreements: sentences about sources that contradict each other.
    """

    built: PreemptionStatement
    effective: PreemptionStatement
    core: PreemptionStatement
    pipeline: str | None
    disagreements: tuple[str, ...]


@dataclass(frozen=True)
class Sources:
    """What is known of the kernel; None or empty if it is not known.

    version: as ``uname -v`` prints it.
    command_line: None if it is not known.
    dynamic: the text of DEBUGFS. why_not_dynamic: why that text is missing.
    """

    version: str
    release: str = ""
    realtime: str | None = None
    dynamic: str | None = None
    dynamic_at_end: str | None = None
    why_not_dynamic: str = ""
    command_line: str | None = ""
    config: KernelConfig | None = None
    log: str = ""
    threads: tuple[TargetThread, ...] = ()


def preemption_model(record: Record) -> PreemptionModel:
    """The preemption model, from the files of the record."""
    sources = sources_of(record)
    built = built_model(sources)
    return PreemptionModel(
        built,
        effective_model(sources, built),
        cokernel_of(record, sources.config, sources.log),
        interrupt_pipeline(record, sources.config),
        tuple(disagreements(sources, built)),
    )


def sources_of(record: Record) -> Sources:
    """What the record says about the kernel."""
    return Sources(
        record.begin.kernel_version,
        record.begin.kernel_release,
        recorded_facts.file_line(record, REALTIME),
        recorded_facts.file_line(record, DEBUGFS),
        recorded_facts.file_line(record, DEBUGFS, Moment.END),
        recorded_facts.why_no_file(record, DEBUGFS),
        recorded_facts.file_line(record, "/proc/cmdline"),
        kernel_config(record),
        recorded_facts.file_text(record, LOG) or "",
        target_threads(record),
    )


_SAID_ALIKE = ((FULL, LAZY), (FULL, DYNAMIC))
"""Pairs of a model in uname -v and one in the configuration that fit.

Every kernel writes PREEMPT for the lazy model. Some kernels with the dynamic model never write PREEMPT_DYNAMIC.
"""


def built_model(sources: Sources) -> PreemptionStatement:
    """The model that the kernel was compiled for."""
    named, configured = model_of_version(sources.version), model_of_config(sources.config)
    evidence = []
    if named:
        evidence.append(f"uname -v: {sources.version}")
    if sources.config and configured:
        evidence.append(f"{sources.config.path}: {configured}")
    if sources.realtime == "1":
        evidence.append(f"{REALTIME}: 1")
    own = _threads_of_rt(sources)
    if own:
        evidence.append(f"threads that only PREEMPT_RT has: {', '.join(own[:3])}")
    if (named, configured) in _SAID_ALIKE:
        named = configured
    if named:
        return PreemptionStatement(named, Confidence.CERTAIN, tuple(evidence))
    if sources.realtime == "1":
        return PreemptionStatement(RT, Confidence.LIKELY, tuple(evidence))
    if configured:
        return PreemptionStatement(configured, Confidence.LIKELY, (*evidence, *_silence(sources)))
    return PreemptionStatement(None, Confidence.UNKNOWN, (*evidence, *_silence(sources)))


def effective_model(sources: Sources, built: PreemptionStatement) -> PreemptionStatement:
    """The model in effect during the run."""
    word, says = _chosen(sources.dynamic)
    if word:
        value = f"{RT} ({word})" if built.value == RT else word
        return PreemptionStatement(value, Confidence.CERTAIN, (says,))
    if built.value != DYNAMIC:
        return built
    return _at_boot(sources)


def model_of_version(version: str) -> str | None:
    """The model that the kernel's version names; None if it names none.

    It names none for the models none and voluntary, and if it was cut off. Only whole words count, since a build may
    have any name.
    """
    words = version.split()
    pairs = set(pairwise(words))
    if "PREEMPT_RT" in words or ("PREEMPT", "RT") in pairs or any(w.startswith("PREEMPT_{RT") for w in words):
        return RT
    for word, model in (("PREEMPT_DYNAMIC", DYNAMIC), ("PREEMPT_LAZY", LAZY), ("PREEMPT", FULL)):
        if word in words:
            return model
    return None


def model_of_config(config: KernelConfig | None) -> str | None:
    """The model that a configuration selects; None without one.

    PREEMPT_RT_FULL is the name of PREEMPT_RT before 5.3. PREEMPT_LAZY of older RT kernels is not the model of 6.13.
    """
    if config is None:
        return None
    if config.has("PREEMPT_RT") or config.has("PREEMPT_RT_FULL"):
        return RT
    if config.has("PREEMPT_DYNAMIC"):
        return DYNAMIC
    return _static(config)


def disagreements(sources: Sources, built: PreemptionStatement) -> Iterator[str]:
    """Yield a sentence for each pair of sources that contradict each other."""
    named, config = model_of_version(sources.version), sources.config
    configured = model_of_config(config)
    if config and (other := of_another_kernel(config, sources.release)):
        yield other
    elif config and configured and named and configured != named and (named, configured) not in _SAID_ALIKE:
        yield f"uname -v says {named}, and {config.path} says {configured}"
    if sources.realtime == "1" and named not in (RT, None):
        yield f"{REALTIME} says 1, and uname -v says {named}"
    if built.value != RT and _threads_of_rt(sources):
        yield "there are threads that only PREEMPT_RT has, and the kernel does not say that it is one"
    before, after = (_chosen(said)[0] for said in (sources.dynamic, sources.dynamic_at_end))
    if before and after and before != after:
        yield f"{DEBUGFS} said {before} at the start of the run, and {after} at its end"
    if built.value == RT and _has_kernel_threads(sources) and not any(t.interrupt for t in sources.threads):
        yield "the kernel is PREEMPT_RT, and no interrupt has a thread of its own"
    if sources.version and re.search(r"(^|-)rt\d*$", sources.release) and named != RT:
        yield f"the release is called {sources.release}, and uname -v does not say PREEMPT_RT"


def _static(config: KernelConfig) -> str | None:
    if config.has("PREEMPT_LAZY") and config.has("ARCH_HAS_PREEMPT_LAZY") and not config.has("PREEMPT"):
        return LAZY
    return next((model for option, model in _STATIC if config.has(option)), None)


def _chosen(dynamic: str | None) -> tuple[str | None, str]:
    """The word in brackets among the choices that DEBUGFS lists, and a line that quotes them."""
    found = _CHOSEN.search(dynamic or "")
    word = _WORDS.get(found[1]) if found else None
    return word, f"{DEBUGFS}: {dynamic}"


def _at_boot(sources: Sources) -> PreemptionStatement:
    """The model chosen at boot. Without debugfs, it is likely that nobody has changed it since."""
    missing = f"{DEBUGFS} could not be read: {sources.why_not_dynamic}"
    for ask in (_of_log, _of_command_line, _of_config):
        word, says = ask(sources)
        if word:
            return PreemptionStatement(word, Confidence.LIKELY, (says, missing))
    return PreemptionStatement(None, Confidence.UNKNOWN, (missing,))


def _of_log(sources: Sources) -> tuple[str | None, str]:
    said = _SAID_AT_BOOT.findall(sources.log)
    return (_WORDS.get(said[-1]), f"kernel's log: Dynamic Preempt: {said[-1]}") if said else (None, "")


def _of_command_line(sources: Sources) -> tuple[str | None, str]:
    """The last ``preempt=`` of the kernel's command line. Words behind ``--`` belong to init."""
    own = (sources.command_line or "").partition(" -- ")[0].split()
    said = [word.removeprefix("preempt=") for word in own if word.startswith("preempt=")]
    return (_WORDS.get(said[-1]), f"command line: preempt={said[-1]}") if said else (None, "")


def _of_config(sources: Sources) -> tuple[str | None, str]:
    """The default. The command line may have another model, so the default counts only if that line is known."""
    word = _static(sources.config) if sources.config and sources.command_line is not None else None
    return word, f"{sources.config.path}: the default is {word}" if sources.config else ""


def _threads_of_rt(sources: Sources) -> list[str]:
    """The names of threads that only PREEMPT_RT has.

    It is empty with ``threadirqs`` on the command line, because another kernel then has some of these threads too.
    """
    if "threadirqs" in (sources.command_line or "").split():
        return []
    return sorted({t.name for t in sources.threads if t.of_kernel and _RT_THREADS.fullmatch(t.name)})


def _has_kernel_threads(sources: Sources) -> bool:
    return any(thread.of_kernel for thread in sources.threads)


def _branch(release: str) -> str:
    """The branch of a release, such as 6.1 of 6.1.0-28-rt-amd64.

    A distribution's third number is not that of the sources.
    """
    found = _BRANCH.match(release)
    return found[0] if found else ""


def _silence(sources: Sources) -> tuple[str, ...]:
    """The evidence that uname names no model. It is evidence only if uname's text was not cut off."""
    if not sources.version:
        return ("uname -v is not known",)
    if len(sources.version) >= VERSION_MOST:
        return (f"uname -v may be cut off: {sources.version}",)
    return (f"uname -v has no PREEMPT, as those have that are built for {NONE} or {VOLUNTARY}: {sources.version}",)


def _core(name: str | None, evidence: tuple[str, ...]) -> PreemptionStatement:
    return PreemptionStatement(name, Confidence.CERTAIN if name else Confidence.UNKNOWN, evidence)
