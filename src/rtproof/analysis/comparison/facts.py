# SPDX-License-Identifier: Apache-2.0
"""What a run was, as words: a dictionary of everything in which two runs may differ besides their latencies.

Keys without a prefix are named in ``ranking``. "cmdline WORD" is a word of the kernel's command line, "config OPTION"
an option of its configuration, "module NAME" one that is loaded, "option NAME" one of the probe; a key that begins with
a slash is a file of one line.
What is not known has no key.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from rtproof.analysis import systemfiles
from rtproof.analysis.asked import probe_options
from rtproof.analysis.fields import judged
from rtproof.analysis.kernel_config import kernel_config
from rtproof.analysis.phrases import value
from rtproof.analysis.preemption_model import preemption_model
from rtproof.analysis.system_facts import system_facts
from rtproof.analysis.virtual_time import virtual_time
from rtproof.record import Moment, Record, Series
from rtproof.units import format_cpus, format_duration

Facts = dict[str, str]
BESIDE = "kernel beside Linux"
LONGEST = 300
_OWN = re.compile(
    r"/proc/(loadavg|stat|vmstat|meminfo|interrupts|softirqs|timer_list|uptime|version|cmdline|modules|xenomai/.*stat)"
    r"|/proc/sys/kernel/osrelease"
)
"""Files that are never twice the same, or that have keys of their own."""
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_NAMED = {
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "clock source",
    "/sys/devices/system/cpu/smt/active": "SMT active",
    "/sys/devices/system/cpu/cpuidle/current_driver": "idle driver",
    "/sys/devices/system/cpu/isolated": "isolated CPUs",
    "/sys/devices/system/cpu/nohz_full": "nohz_full CPUs",
    "/sys/devices/system/cpu/online": "CPUs online",
    "/proc/sys/kernel/sched_rt_runtime_us": "real-time budget (us)",
    "/proc/sys/kernel/sched_rt_period_us": "real-time budget's period (us)",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "frequency driver",
    "/sys/kernel/security/lockdown": "lockdown",
}
_ASKED = {
    "phase_ns": "phase (ns)",
    "period_step_ns": "period, from thread to thread (ns)",
    "lock_memory": "memory to be locked",
    "allow_unprivileged": "unprivileged allowed",
    "proxy_of": "stands for",
    "trace": "trace",
    "trace_blocks_ns": "traced by turns (ns)",
}
_TOLD = {"hardware": "hardware", "virtual machine": "virtual machine", "high-resolution timers": "timers"}


def facts_of(record: Record) -> Facts:
    """Everything that is known, the measurement first, then the system, then files and options."""
    series = judged(record)
    found = dict(_measurement(record, series))
    found |= dict(_threads(record, series))
    found |= dict(_system(record))
    found |= {f"option {name}": said for name, said in probe_options(record).items()}
    found |= dict(_command_line(systemfiles.line(record, "/proc/cmdline") or ""))
    found |= dict(_configuration(record))
    found |= dict(_files(record))
    found |= dict(_modules(record))
    return {key: said for key, said in found.items() if said and not said.startswith("unavailable")}


def _measurement(record: Record, series: tuple[Series, ...]) -> Iterator[tuple[str, str]]:
    for key, name in _ASKED.items():
        yield name, record.fact(key) or ""
    for name in ("probe", "method", "field", "unit"):
        yield name, ", ".join(sorted({getattr(each, name) for each in series}))
    yield (
        "period",
        ", ".join(format_duration(ns) for ns in sorted({each.period_ns for each in series if each.period_ns})),
    )
    loads = record.fact("loads")
    if loads is not None:
        yield "load", loads or "none of ours"
    yield "virtual time", virtual_time(record) or "no"
    yield "agent version", record.begin.agent_version
    asked_ns = record.fact("duration_ns") or ""
    yield "length asked", format_duration(int(asked_ns)) if asked_ns.isdecimal() and asked_ns != "0" else ""


def _threads(record: Record, series: tuple[Series, ...]) -> Iterator[tuple[str, str]]:
    """As each thread found itself at the start, else as it was asked for."""
    yield "threads", str(len({each.thread for each in series})) if series else ""
    cpus = tuple(each.cpu for each in series)
    if cpus:
        yield "CPUs", format_cpus(cpus) if min(cpus) >= 0 else "not bound"
    threads = sorted({each.thread for each in series})
    for key, name in (("policy", "policy"), ("priority", "priority"), ("timer_slack_ns", "timer slack")):
        said = {text for thread in threads if (text := record.fact(key, Moment.START, thread))}
        words = sorted(said) or [record.fact(key) or ""]
        yield (
            name,
            ", ".join(value(int(word)) if name == "timer slack" and word.isdecimal() else word for word in words),
        )


def _system(record: Record) -> Iterator[tuple[str, str]]:
    begin, model = record.begin, preemption_model(record)
    yield "kernel release", begin.kernel_release
    yield "kernel version", begin.kernel_version
    yield "preemption model", model.effective.value or ""
    yield "preemption model built", model.built.value or ""
    yield BESIDE, model.core.value or ""
    yield "interrupt pipeline", model.pipeline or ""
    yield "machine", begin.machine
    yield "CPU model", _cpu_model(record)
    for fact in system_facts(record):
        if fact.what in _TOLD and not fact.says.startswith("not known"):
            yield _TOLD[fact.what], fact.says
    yield from _frequencies(record)
    for key, name in (("memory_locked", "memory locked"), ("dma_latency", "DMA latency"), ("clock", "clock read")):
        yield name, record.fact(key, Moment.START) or ""


def _cpu_model(record: Record) -> str:
    text = systemfiles.text(record, "/proc/cpuinfo") or ""
    return ", ".join(dict.fromkeys(re.findall(r"(?m)^(?:model name|Hardware|cpu model|uarch)\s*:\s*(.+?)\s*$", text)))


def _frequencies(record: Record) -> Iterator[tuple[str, str]]:
    """Rows of "cpuN governor lowest highest present"; the present one is never twice the same."""
    rows = [
        words for row in (systemfiles.text(record, "frequencies") or "").splitlines() if len(words := row.split()) == 5
    ]
    yield "governor", ", ".join(sorted({row[1] for row in rows}))
    yield "frequencies", ", ".join(sorted({f"{row[2]} to {row[3]} kHz" for row in rows}))


def _command_line(text: str) -> Iterator[tuple[str, str]]:
    """Words of the kernel; what stands behind ``--`` is init's. A word that is there twice has both texts."""
    said: dict[str, list[str]] = defaultdict(list)
    for word in _WORD.findall(text.partition(" -- ")[0]):
        name, _, rest = word.partition("=")
        said[name].append(rest or "set")
    return ((f"cmdline {name}", " ".join(texts)) for name, texts in said.items())


def _configuration(record: Record) -> Iterator[tuple[str, str]]:
    config = kernel_config(record)
    options = config.options.items() if config else ()
    return ((f"config {name}", said) for name, said in options if said != "n")


def _modules(record: Record) -> Iterator[tuple[str, str]]:
    lines = (systemfiles.text(record, "/proc/modules") or "").splitlines()
    return ((f"module {line.split()[0]}", "loaded") for line in lines if line.split())


def _files(record: Record) -> Iterator[tuple[str, str]]:
    """Those of one line at the start of the run."""
    for file in record.files:
        text = file.content.strip(b" \t\n\0")
        if file.moment is not Moment.START or file.errno or b"\n" in text or len(text) > LONGEST:
            continue
        if file.path.startswith("/") and not _OWN.fullmatch(file.path):
            yield _NAMED.get(file.path, file.path), text.decode(errors="replace") or "empty"
