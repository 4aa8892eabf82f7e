# SPDX-License-Identifier: Apache-2.0
"""Where the kernel lets itself be interrupted by a task: the preemption model, with the evidence of each statement.

Two questions with two answers. Built: what the kernel was compiled for. Effective: what it does now, which a kernel
with PREEMPT_DYNAMIC may have been told at boot or since. Sources disagree at times; then both are named.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from rtproof.record.contents import Moment, Record
from rtproof.summary import recorded_facts
from rtproof.summary.cokernels import (
    COMPRESSED_CONFIG,
    Cokernel,
    KernelConfig,
    cokernel_of,
    interrupt_pipeline,
    kernel_config,
)
from rtproof.summary.thread_table import TargetThread, target_threads

DEBUGFS = "/sys/kernel/debug/sched/preempt"
REALTIME = "/sys/kernel/realtime"
LOG = "kernel-log"
RT, FULL, LAZY, VOLUNTARY, NONE, DYNAMIC = "rt", "full", "lazy", "voluntary", "none", "dynamic"
VERSION_MOST = 64
"""Characters of ``uname -v``; a longer one is cut off, and with it what stood at its end."""

_WORDS = {"none": NONE, "voluntary": VOLUNTARY, "full": FULL, "lazy": LAZY}
_CHOSEN = re.compile(r"\((\w+)\)")
_SAID_AT_BOOT = re.compile(r"Dynamic Preempt: (\w+)")
_RT_THREADS = re.compile(r"ktimers/\d+|ktimersoftd/\d+|sirq-\S+/\d+|posixcputmr/\d+")
_BRANCH = re.compile(r"\d+\.\d+")
_STATIC = (("PREEMPT", FULL), ("PREEMPT_DESKTOP", FULL), ("PREEMPT__LL", FULL), ("PREEMPT_RTB", FULL),
           ("PREEMPT_VOLUNTARY", VOLUNTARY), ("PREEMPT_NONE", NONE))  # fmt: skip


class Confidence(Enum):
    """CERTAIN: the running kernel says so itself. LIKELY: something else says so, or says nothing else."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PreemptionStatement:
    """``value``: one of the words above, None if unknown. ``evidence``: what each source says, the strongest first."""

    value: str | None
    confidence: Confidence
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class PreemptionModel:
    """``pipeline``: what delivers interrupts to a co-kernel first, or None. ``disagreements``: sentences."""

    built: PreemptionStatement
    effective: PreemptionStatement
    core: PreemptionStatement
    pipeline: str | None
    disagreements: tuple[str, ...]


@dataclass(frozen=True)
class Sources:
    """What is known of the kernel; None or empty where there is nothing.

    ``version``: as ``uname -v`` says. ``dynamic``: the text of DEBUGFS, and ``why_not_dynamic`` why there is none.
    """

    version: str
    release: str = ""
    realtime: str | None = None
    dynamic: str | None = None
    dynamic_at_end: str | None = None
    why_not_dynamic: str = ""
    command_line: str = ""
    config: KernelConfig | None = None
    log: str = ""
    threads: tuple[TargetThread, ...] = ()


def preemption_model(record: Record) -> PreemptionModel:
    """From the files of the record."""
    sources = sources_of(record)
    built = built_model(sources)
    return PreemptionModel(
        built,
        effective_model(sources, built),
        _core(cokernel_of(record, sources.config, sources.log)),
        interrupt_pipeline(record, sources.config),
        tuple(disagreements(sources, built)),
    )


def sources_of(record: Record) -> Sources:
    return Sources(
        record.begin.kernel_version,
        record.begin.kernel_release,
        recorded_facts.file_line(record, REALTIME),
        recorded_facts.file_line(record, DEBUGFS),
        recorded_facts.file_line(record, DEBUGFS, Moment.END),
        recorded_facts.why_no_file(record, DEBUGFS),
        recorded_facts.file_line(record, "/proc/cmdline") or "",
        kernel_config(record),
        recorded_facts.file_text(record, LOG) or "",
        target_threads(record),
    )


def built_model(sources: Sources) -> PreemptionStatement:
    """What the kernel was compiled for."""
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
    if named == FULL and configured == LAZY:  # PREEMPT is all that uname says of either
        named = LAZY
    if named:
        return PreemptionStatement(named, Confidence.CERTAIN, tuple(evidence))
    if sources.realtime == "1":
        return PreemptionStatement(RT, Confidence.LIKELY, tuple(evidence))
    if configured:
        return PreemptionStatement(configured, Confidence.LIKELY, (*evidence, *_silence(sources)))
    return PreemptionStatement(None, Confidence.UNKNOWN, (*evidence, *_silence(sources)))


def effective_model(sources: Sources, built: PreemptionStatement) -> PreemptionStatement:
    """What it does now."""
    word, says = _chosen(sources.dynamic)
    if word:
        value = f"{RT} ({word})" if built.value == RT else word
        return PreemptionStatement(value, Confidence.CERTAIN, (says,))
    if built.value != DYNAMIC:
        return built
    return _at_boot(sources)


def model_of_version(version: str) -> str | None:
    """The kernel's own flag, whole words only: a build may be called anything. None where it has none.

    That is so for the models none and voluntary, and for a version that was cut off.
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
    """PREEMPT_RT_FULL is PREEMPT_RT before 5.3. PREEMPT_LAZY of older RT kernels is not the model of 6.13."""
    if config is None:
        return None
    if config.has("PREEMPT_RT") or config.has("PREEMPT_RT_FULL"):
        return RT
    if config.has("PREEMPT_DYNAMIC"):
        return DYNAMIC
    return _static(config)


def disagreements(sources: Sources, built: PreemptionStatement) -> Iterator[str]:
    """Where one source says what another denies."""
    named, config = model_of_version(sources.version), sources.config
    configured = model_of_config(config)
    if config and config.path != COMPRESSED_CONFIG and _branch(config.release) != _branch(sources.release):
        yield f"{config.path} is for {config.release or 'an unknown kernel'}, and {sources.release} runs"
    elif config and configured and named and configured != named and (named, configured) != (FULL, LAZY):
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
    if re.search(r"(^|-)rt\d*$", sources.release) and named != RT:
        yield f"the release is called {sources.release}, and uname -v does not say PREEMPT_RT"


def _static(config: KernelConfig) -> str | None:
    if config.has("PREEMPT_LAZY") and config.has("ARCH_HAS_PREEMPT_LAZY") and not config.has("PREEMPT"):
        return LAZY
    return next((model for option, model in _STATIC if config.has(option)), None)


def _chosen(dynamic: str | None) -> tuple[str | None, str]:
    """The word in brackets among those that could be chosen."""
    found = _CHOSEN.search(dynamic or "")
    word = _WORDS.get(found[1]) if found else None
    return word, f"{DEBUGFS}: {dynamic}"


def _at_boot(sources: Sources) -> PreemptionStatement:
    """Without debugfs: what was said at boot holds unless somebody has changed it since."""
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
    """The last one counts, and what stands behind ``--`` is init's."""
    own = sources.command_line.partition(" -- ")[0].split()
    said = [word.removeprefix("preempt=") for word in own if word.startswith("preempt=")]
    return (_WORDS.get(said[-1]), f"command line: preempt={said[-1]}") if said else (None, "")


def _of_config(sources: Sources) -> tuple[str | None, str]:
    word = _static(sources.config) if sources.config else None
    return word, f"{sources.config.path}: the default is {word}" if sources.config else ""


def _threads_of_rt(sources: Sources) -> list[str]:
    """Their names. Interrupts that were put into threads on the command line bring some of them elsewhere too."""
    if "threadirqs" in sources.command_line.split():
        return []
    return sorted({t.name for t in sources.threads if t.of_kernel and _RT_THREADS.fullmatch(t.name)})


def _has_kernel_threads(sources: Sources) -> bool:
    return any(thread.of_kernel for thread in sources.threads)


def _branch(release: str) -> str:
    """6.1 of 6.1.0-28-rt-amd64: distributions' third number is not that of the sources."""
    found = _BRANCH.match(release)
    return found[0] if found else ""


def _silence(sources: Sources) -> tuple[str, ...]:
    """What uname does not say is only evidence if it was not cut off."""
    if len(sources.version) >= VERSION_MOST:
        return (f"uname -v may be cut off: {sources.version}",)
    return (f"uname -v has no PREEMPT, as those have that are built for {NONE} or {VOLUNTARY}: {sources.version}",)


def _core(found: Cokernel) -> PreemptionStatement:
    confidence = Confidence.CERTAIN if found.name else Confidence.UNKNOWN
    return PreemptionStatement(found.name, confidence, found.evidence)
