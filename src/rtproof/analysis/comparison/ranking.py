# SPDX-License-Identifier: Apache-2.0
"""Which facts are known to move latencies, most first, each with the reason and where it is written.

A row's key is a regular expression over the keys of ``facts``. What no row knows comes behind all of them: it may
matter, and nobody here can say why.
"""

import re
from dataclasses import dataclass

_KERNEL = "docs.kernel.org, "
_RT_CONFIG = _KERNEL + "core-api/real-time/kernel-configuration"
_PARAMETERS = _KERNEL + "admin-guide/kernel-parameters"
_ISOLATION = _KERNEL + "admin-guide/cpu-isolation"


@dataclass(frozen=True)
class Known:
    """key: a regular expression. why: one sentence. source: a page, or "measured here"."""

    key: str
    why: str
    source: str


RANKING = (
    Known("preemption model", "where the kernel lets itself be interrupted by a task", _RT_CONFIG),
    Known("preemption model built", "what the kernel was compiled for", _RT_CONFIG),
    Known("kernel beside Linux|interrupt pipeline", "a co-kernel gets interrupts before Linux", "v4.xenomai.org/core"),
    Known(
        "virtual machine", "a host takes CPU time without telling the guest", _KERNEL + "core-api/real-time/hardware"
    ),
    Known("load", "what disturbs decides how late a task is", "docs/loads.md"),
    Known("policy|priority", "who may run before the measuring thread", "man 7 sched"),
    Known("memory locked|memory to be locked", "a page fault in the loop costs up to milliseconds", "man 2 mlock"),
    Known(
        "timer slack",
        "the kernel may put off timers of threads that are not real-time",
        "man 2 prctl, PR_SET_TIMERSLACK",
    ),
    Known("timers|config HIGH_RES_TIMERS|cmdline highres", "without them a timer comes with a tick", _RT_CONFIG),
    Known(
        "config (PROVE_LOCKING|LOCKDEP|DEBUG_LOCK_ALLOC|LOCK_STAT|KASAN|KCSAN|KMSAN|UBSAN|DEBUG_PREEMPT|DEBUG_OBJECTS.*"
        "|DEBUG_PAGEALLOC|DEBUG_VM|DEBUG_ATOMIC_SLEEP|DEBUG_KMEMLEAK|SLUB_DEBUG_ON|IRQSOFF_TRACER|PREEMPT_TRACER|LATENCYTOP)",
        "checks of a debugging kernel lengthen the paths that are measured",
        _RT_CONFIG,
    ),
    Known(
        "DMA latency|idle driver|config CPU_IDLE.*"
        "|cmdline (idle|processor.max_cstate|intel_idle.max_cstate|cpuidle.off)",
        "leaving a deep idle state takes time",
        _KERNEL + "admin-guide/pm/cpuidle",
    ),
    Known(
        "governor|frequencies|frequency driver|config CPU_FREQ.*|cmdline (intel_pstate|amd_pstate|cpufreq.*)",
        "a CPU that was slowed down wakes up slowly",
        _KERNEL + "admin-guide/pm/cpufreq",
    ),
    Known("kernel release", "another kernel", "its own sources"),
    Known("CPU model|machine|hardware", "another machine", _KERNEL + "core-api/real-time/hardware"),
    Known("cmdline (preempt|threadirqs)|config IRQ_FORCED_THREADING", "what may be interrupted at all", _PARAMETERS),
    Known(
        "cmdline (isolcpus|nohz_full|rcu_nocbs|irqaffinity|rcu_nocb_poll)|isolated CPUs|nohz_full CPUs",
        "what else runs on the CPUs that are measured",
        _ISOLATION,
    ),
    Known("CPUs online|SMT active|cmdline (nosmt|maxcpus|nr_cpus)", "who shares a core and its caches", _ISOLATION),
    Known(
        "real-time budget.*|config RT_GROUP_SCHED",
        "how much CPU time real-time threads are given before they are stopped",
        _KERNEL + "scheduler/sched-rt-group",
    ),
    Known(
        "clock source|clock read|cmdline (clocksource|tsc)",
        "reading a clock that is no counter of the CPU takes about a microsecond",
        _KERNEL + "timers/timekeeping",
    ),
    Known(
        "config (NO_HZ.*|HZ|HZ_.*)|cmdline (nohz|skew_tick)",
        "stopping and starting the tick costs",
        _KERNEL + "timers/no_hz",
    ),
    Known(
        "config (RCU_.*|.*LOCKUP_DETECTOR|PREEMPT.*)|cmdline (rcutree.*|nowatchdog|nmi_watchdog|nosoftlockup)",
        "work that the kernel does on each CPU, and who does it",
        _KERNEL + "admin-guide/kernel-per-CPU-kthreads",
    ),
    Known("cmdline (mitigations|spectre_.*|mds|pti|nopti|retbleed)", "what entering the kernel costs", _PARAMETERS),
    Known("trace|traced by turns.*|config (FUNCTION_TRACER|FTRACE.*)", "tracing costs time", _KERNEL + "trace/ftrace"),
    Known("cmdline (efi|pcie_aspm|acpi.*)|config EFI.*", "calls of firmware stop the CPU", _RT_CONFIG),
    Known("option .*|phase.*|method|field|stands for", "how the probe measured", "docs/record-format.md"),
    Known("agent version", "another measuring program", "docs/record-format.md"),
    Known("length asked", "a longer run sees rarer events", "docs/comparison.md"),
    Known("kernel version", "another build of the kernel", "uname -v"),
)

_GROUPS = ("cmdline ", "/", "config ", "module ")
"""Where a key belongs that no row knows: others first."""


def rank(key: str) -> int:
    """Place of a fact, the smaller the more it is known to matter."""
    for place, known in enumerate(RANKING):
        if re.fullmatch(known.key, key):
            return place
    group = next((number for number, start in enumerate(_GROUPS, 1) if key.startswith(start)), 0)
    return len(RANKING) + group


def known(key: str) -> Known | None:
    """The row of a fact."""
    place = rank(key)
    return RANKING[place] if place < len(RANKING) else None
