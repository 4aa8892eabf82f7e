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
from rtproof.summary.target_threads import target_threads

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
    for path in (COMPRESSED_CONFIG, *(file.path for file in record.files if _PLACES.fullmatch(file.path))):
        file = recorded_facts.find_file(record, path)
        content, unpack = file.content if file and file.errno == 0 else b"", zlib.decompressobj(_GZIP)
        if path == COMPRESSED_CONFIG:
            try:
                content = unpack.decompress(content, LARGEST_CONFIG)
            except zlib.error:
                content = b""
        if content:
            config = parse_kernel_config(path, content.decode(errors="replace"))
            whole = unpack.eof if path == COMPRESSED_CONFIG else _ends(config)
            return replace(config, whole=whole and not (file and file.cut))
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
    """Says that a file is the configuration of another branch than that of the running release; "" if it is not."""
    found, running = (_BRANCH.match(name) for name in (config.release, release))
    if config.path == COMPRESSED_CONFIG or (found and found[0]) == (running and running[0]):
        return ""
    return f"{config.path} is for {config.release or 'an unknown kernel'}, and {release} runs"


XENOMAI_STATISTICS = ("/proc/xenomai/sched/stat", "/proc/xenomai/stat")
"""The files of Xenomai 3 and of Xenomai 2."""
XENOMAI, EVL, RTAI = "/proc/xenomai", "/sys/class/evl", "/proc/rtai"
LINUX = "linux"
"""The name that means: no co-kernel."""
IN_BAND = "in-band"
"""The name that a co-kernel gives to Linux's own threads. The co-kernel's tasks run before them."""
_EVL_THREAD = re.compile(r"/sys/devices/virtual/thread/(.+)/stats")
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


ModeSwitches = dict[str, tuple[int | None, int | None]]
"""How often threads had left the co-kernel for Linux, at the start and at the end of the run; None: not there."""


def process_in_name(thread: str) -> int:
    """The process number in a name: "817 sampling" of Xenomai, "sampling:817" of EVL; 0 if the name has none."""
    words = thread.partition(" ")[0], thread.rpartition(":")[2]
    return next((found for word in words if (found := whole_number(word)) is not None), 0)


def core_beside(record: Record) -> str | None:
    """Name and version of the co-kernel that runs beside Linux; None if none was found."""
    name = cokernel_of(record, None, recorded_facts.file_text(record, "kernel-log") or "").value
    return None if name == LINUX else name


def cokernel_of(record: Record, config: KernelConfig | None, log: str) -> PreemptionStatement:
    """The co-kernel beside Linux with its version, or "linux" if the target has none. log: the kernel's log."""
    there = {path: recorded_facts.file_is_there(record, path) for path in (XENOMAI, EVL, RTAI)}
    version = recorded_facts.file_line(record, f"{XENOMAI}/version")
    cobalt = _COBALT.search(log)
    if version is not None or there[XENOMAI] or cobalt:
        number = version or (cobalt[1] if cobalt else "")
        kind = "nucleus" if number.startswith("2.") else "Cobalt"
        return _core(
            f"Xenomai {number} ({kind})" if number else "Xenomai",
            *([f"{XENOMAI}/version: {version}"] if version is not None else []),
            *([f"{XENOMAI} is there"] if there[XENOMAI] else []),
            *([f"kernel's log: {cobalt[0]}"] if cobalt else []),
        )
    for path, name in ((EVL, "EVL (Xenomai 4)"), (RTAI, "RTAI")):
        if there[path]:
            return _core(name, f"{path} is there")
    if config and (config.has("XENOMAI") or config.has("EVL")):
        return _core(None, f"{config.path}: CONFIG_XENOMAI or CONFIG_EVL, which does not show in /proc or /sys")
    if None in there.values():
        return _core(None)
    return _core(LINUX, f"there is no {XENOMAI}, {EVL} or {RTAI}")


def mode_switches(record: Record) -> ModeSwitches:
    """The mode switches of each thread that Xenomai counts, or the in-band switches of EVL."""
    for path in XENOMAI_STATISTICS:
        texts = [recorded_facts.file_text(record, path, moment) for moment in (Moment.START, Moment.END)]
        if any(texts):
            start, end = (counts_mode_switches(text or "") for text in texts)
            return {name: (start.get(name), end.get(name)) for name in {**start, **end}}
    paths = dict.fromkeys(file.path for file in record.files if _EVL_THREAD.fullmatch(file.path))
    found = {}
    for path in paths:
        # The first number counts the in-band switches. The others differ between versions.
        texts = [recorded_facts.file_line(record, path, moment) for moment in (Moment.START, Moment.END)]
        start_count, end_count = (whole_number((text or "").partition(" ")[0]) for text in texts)
        found[_EVL_THREAD.sub(r"\1", path)] = start_count, end_count
    return found


def counts_mode_switches(text: str) -> dict[str, int]:
    """The column MSW of Xenomai's statistics, by process number and name. Lines of another kind are skipped."""
    names = text.partition("\n")[0].split()
    if "MSW" not in names or "PID" not in names:
        return {}
    switches, process, counts = names.index("MSW"), names.index("PID"), {}
    for line in text.splitlines()[1:]:
        words = line.split(None, len(names) - 1)
        count = whole_number(words[switches]) if len(words) == len(names) else None
        if count is not None:
            counts[f"{words[process]} {words[-1].strip()}"] = count
    return counts


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
    core: the kernel beside Linux, or ``linux``.
    disagreements: sentences about sources that contradict each other.
    """

    built: PreemptionStatement
    effective: PreemptionStatement
    core: PreemptionStatement
    disagreements: tuple[str, ...]


def preemption_model(record: Record) -> PreemptionModel:
    """The preemption model, from the files of the record."""
    config, own = kernel_config(record), _threads_of_rt(record)
    built = _built_model(record, config, own)
    return PreemptionModel(
        built,
        _effective_model(record, config, built),
        cokernel_of(record, config, recorded_facts.file_text(record, LOG) or ""),
        tuple(_disagreements(record, config, built, own)),
    )


_SAID_ALIKE = ((FULL, LAZY), (FULL, DYNAMIC))
"""Models in uname -v and in the configuration that fit: some kernels of the latter write only PREEMPT."""


def _built_model(record: Record, config: KernelConfig | None, own: list[str]) -> PreemptionStatement:
    """The model that the kernel was compiled for. own: names of threads that only PREEMPT_RT has."""
    version = record.begin.kernel_version
    named, configured = model_of_version(version), model_of_config(config)
    realtime = recorded_facts.file_line(record, REALTIME) == "1"
    silence = (
        f"uname -v names no model ({NONE}, {VOLUNTARY}, or cut off): {version}" if version else "uname -v is not known"
    )
    evidence = (
        *((f"uname -v: {version}",) if named else ()),
        *((f"{config.path}: {configured}",) if config and configured else ()),
        *((f"{REALTIME}: 1",) if realtime else ()),
        *((f"threads that only PREEMPT_RT has: {', '.join(own[:3])}",) if own else ()),
    )
    if named:
        model = configured if (named, configured) in _SAID_ALIKE else named
        return PreemptionStatement(model, Confidence.CERTAIN, evidence)
    if realtime:
        return PreemptionStatement(RT, Confidence.LIKELY, evidence)
    sure = Confidence.LIKELY if configured else Confidence.UNKNOWN
    return PreemptionStatement(configured, sure, (*evidence, silence))


def _effective_model(record: Record, config: KernelConfig | None, built: PreemptionStatement) -> PreemptionStatement:
    """The model in effect during the run. Without debugfs, it is likely that nobody changed it since the boot."""
    word, dynamic = _chosen(record, Moment.START)
    if word:
        value = f"{RT} ({word})" if built.value == RT else word
        return PreemptionStatement(value, Confidence.CERTAIN, (f"{DEBUGFS}: {dynamic}",))
    if built.value != DYNAMIC:
        return built
    missing = f"{DEBUGFS} could not be read: {recorded_facts.why_no_file(record, DEBUGFS)}"
    logged = _SAID_AT_BOOT.findall(recorded_facts.file_text(record, LOG) or "")[-1:]
    # Words behind -- belong to init. Without the command line, the default says nothing.
    line = recorded_facts.file_line(record, "/proc/cmdline")
    words = (line or "").partition(" -- ")[0].split()
    asked = [word.removeprefix("preempt=") for word in words if word.startswith("preempt=")][-1:]
    default = _static(config) if config and line is not None else None
    for source, model in (
        *((f"kernel's log: Dynamic Preempt: {word}", _WORDS.get(word)) for word in logged),
        *((f"command line: preempt={word}", _WORDS.get(word)) for word in asked),
        *([(f"{config.path}: the default is {default}", default)] if config else []),
    ):
        if model:
            return PreemptionStatement(model, Confidence.LIKELY, (source, missing))
    return PreemptionStatement(None, Confidence.UNKNOWN, (missing,))


def model_of_version(version: str) -> str | None:
    """The model that whole words of the version name; None for none and voluntary, or if the version was cut off."""
    words = version.split()
    pairs = set(pairwise(words))
    if "PREEMPT_RT" in words or ("PREEMPT", "RT") in pairs or any(w.startswith("PREEMPT_{RT") for w in words):
        return RT
    for word, model in (("PREEMPT_DYNAMIC", DYNAMIC), ("PREEMPT_LAZY", LAZY), ("PREEMPT", FULL)):
        if word in words:
            return model
    return None


def model_of_config(config: KernelConfig | None) -> str | None:
    """The model that a configuration selects; None without one. Before 5.3 PREEMPT_RT was called PREEMPT_RT_FULL."""
    if config is None:
        return None
    if config.has("PREEMPT_RT") or config.has("PREEMPT_RT_FULL"):
        return RT
    if config.has("PREEMPT_DYNAMIC"):
        return DYNAMIC
    return _static(config)


def _disagreements(
    record: Record, config: KernelConfig | None, built: PreemptionStatement, own: list[str]
) -> Iterator[str]:
    """Yield a sentence for each pair of sources that contradict each other."""
    version, release = record.begin.kernel_version, record.begin.kernel_release
    named, configured = model_of_version(version), model_of_config(config)
    other = of_another_kernel(config, release) if config else ""
    alike = not named or not configured or configured == named or (named, configured) in _SAID_ALIKE
    if other:
        yield other
    elif config and not alike:
        yield f"uname -v says {named}, and {config.path} says {configured}"
    signs = (
        *([f"{REALTIME} is 1"] if recorded_facts.file_line(record, REALTIME) == "1" else []),
        *([f"threads that only PREEMPT_RT has: {', '.join(own[:3])}"] if own else []),
        *([f"the release is called {release}"] if version and re.search(r"(^|-)rt\d*$", release) else []),
    )
    if signs and built.value != RT:
        yield f"the kernel does not say that it is PREEMPT_RT, against: {'; '.join(signs)}"
    before, after = (_chosen(record, moment)[0] for moment in (Moment.START, Moment.END))
    if before and after and before != after:
        yield f"{DEBUGFS} said {before} at the start of the run, and {after} at its end"


def _static(config: KernelConfig) -> str | None:
    if config.has("PREEMPT_LAZY") and config.has("ARCH_HAS_PREEMPT_LAZY") and not config.has("PREEMPT"):
        return LAZY
    return next((model for option, model in _STATIC if config.has(option)), None)


def _chosen(record: Record, moment: Moment) -> tuple[str | None, str]:
    """The word in brackets among the choices that DEBUGFS lists, and these choices."""
    dynamic = recorded_facts.file_line(record, DEBUGFS, moment) or ""
    found = _CHOSEN.search(dynamic)
    return _WORDS.get(found[1]) if found else None, dynamic


def _threads_of_rt(record: Record) -> list[str]:
    """Names of threads that only PREEMPT_RT has; none with ``threadirqs``, because other kernels then have some too."""
    if "threadirqs" in (recorded_facts.file_line(record, "/proc/cmdline") or "").split():
        return []
    return sorted({t.name for t in target_threads(record) if t.of_kernel and _RT_THREADS.fullmatch(t.name)})


def _core(name: str | None, *evidence: str) -> PreemptionStatement:
    return PreemptionStatement(name, Confidence.CERTAIN if name else Confidence.UNKNOWN, evidence)
