# SPDX-License-Identifier: Apache-2.0
"""Wrong settings, each one edit of the facts of a system, with the checks that must find it; and several at once.

``PLANTS`` are put into stored facts, ``REAL_PLANTS`` into guests that boot with them.
"""

from dataclasses import dataclass, field

from audit_guests import AuditedGuest
from audit_systems import (
    SOUND_BOOT,
    SOUND_CPUS,
    SOUND_SETUP,
    Edit,
    System,
    at_end,
    boot,
    boot_without,
    every,
    gone,
    kernel,
    line,
    option,
    put,
    steady,
    swap,
    swap_at_end,
)

from rtproof.audit.facts import AuditRequest

CPU = "/sys/devices/system/cpu"
SYSCTL = "/proc/sys"
LOG = "kernel-log"
FOUR = range(4)


@dataclass(frozen=True)
class Plant:
    """edits: of the system of this name. expected: the checks that find it. together: several settings at once."""

    name: str
    system: str
    edits: tuple[Edit, ...]
    expected: tuple[str, ...]
    request: AuditRequest | None = None
    together: bool = False


@dataclass(frozen=True)
class RealPlant:
    """boot, setup: what the guest gets besides what it has already."""

    name: str
    guest: AuditedGuest
    expected: tuple[str, ...]
    boot: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    request: AuditRequest = field(default_factory=AuditRequest)


def _on_every_cpu(path: str, content: str, *, both: bool = False) -> tuple[Edit, ...]:
    return tuple(put(path.format(cpu), content.replace("{}", str(cpu)), both=both) for cpu in FOUR)


LAB = (
    swap("/proc/cmdline", " nokaslr", ""),
    swap(LOG, r"^.*nokaslr.*\n", ""),
    put(f"{SYSCTL}/kernel/tainted", "0\n"),
)
"""Takes out what only guests of the lab have: an argument of theirs, and the kernel's own warning of fair_server."""
BARE_METAL: tuple[Edit, ...] = (
    swap("/proc/cpuinfo", r"AuthenticAMD", "GenuineIntel"),
    swap("/proc/cpuinfo", r" hypervisor\b", " constant_tsc nonstop_tsc tsc_adjust"),
    put("hypervisor", ""),
    put("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n"),
    put("/sys/class/dmi/id/bios_date", "03/14/2026\n"),
    put("/sys/class/dmi/id/bios_vendor", "Dell Inc.\n"),
    put("/sys/class/dmi/id/bios_version", "2.9.4\n"),
    put("smi", "".join(f"cpu{cpu} 41\n" for cpu in FOUR), both=True),
    *_on_every_cpu(f"{CPU}/cpufreq/policy{{}}/scaling_governor", "performance\n"),
    *_on_every_cpu(f"{CPU}/cpufreq/policy{{}}/scaling_min_freq", "2400000\n"),
    *_on_every_cpu(f"{CPU}/cpufreq/policy{{}}/scaling_max_freq", "2400000\n"),
    *_on_every_cpu(f"{CPU}/cpufreq/policy{{}}/scaling_cur_freq", "2400000\n", both=True),
    *_on_every_cpu(f"{CPU}/cpufreq/policy{{}}/scaling_driver", "intel_pstate\n"),
    *_on_every_cpu(f"{CPU}/cpufreq/policy{{}}/energy_performance_preference", "performance\n"),
    put(f"{CPU}/intel_pstate/no_turbo", "1\n"),
    put(f"{CPU}/intel_uncore_frequency/package_00_die_00/min_freq_khz", "2000000\n"),
    put(f"{CPU}/intel_uncore_frequency/package_00_die_00/max_freq_khz", "2000000\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state0/name", "POLL\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state0/latency", "0\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state0/disable", "0\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state1/name", "C1\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state1/latency", "2\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state1/disable", "0\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state2/name", "C6\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state2/latency", "133\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/cpuidle/state2/disable", "1\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/thermal_throttle/core_throttle_count", "0\n", both=True),
    *_on_every_cpu(f"{CPU}/cpu{{}}/thermal_throttle/package_throttle_count", "0\n", both=True),
    put(f"{CPU}/cpuidle/current_driver", "intel_idle\n"),
    put("/sys/module/pcie_aspm/parameters/policy", "default [performance] powersave powersupersave\n"),
    put("net-devices", "eth0 driver=igc rx-usecs=0 tx-usecs=0 adaptive-rx=0 eee=0 channels=1 threaded=1\n"),
    put("/sys/class/watchdog/watchdog0/state", "active\n"),
    put("/sys/class/watchdog/watchdog0/identity", "iTCO_wdt\n"),
    put("/sys/devices/system/edac/mc/mc0/ce_count", "0\n", both=True),
    put(f"{CPU}/cpufreq/", "policy0\npolicy1\npolicy2\npolicy3\n"),
    option(CPU_FREQ_DEFAULT_GOV_PERFORMANCE="y", CPU_FREQ_DEFAULT_GOV_SCHEDUTIL="n"),
    every(f"{CPU}/vulnerabilities/*", "Not affected\n"),
    *_on_every_cpu(f"{CPU}/cpu{{}}/topology/thread_siblings_list", "{}\n"),
    put(f"{CPU}/smt/active", "0\n"),
    *(put(f"{CPU}/cpu{cpu}/cache/index3/shared_cpu_list", "0-1\n" if cpu < 2 else "2-3\n") for cpu in FOUR),
    *_on_every_cpu("/sys/devices/system/machinecheck/machinecheck{}/check_interval", "0\n"),
    *_on_every_cpu("/sys/devices/system/machinecheck/machinecheck{}/ignore_ce", "1\n"),
)
"""The sound guest as a PC with a processor by Intel, well set: what a virtual machine does not have."""
SYSTEMS: dict[str, System] = {
    "sound": System("sound-6.12-rt", (*LAB, put(f"{CPU}/cpuidle/current_governor", "haltpoll\n"))),
    "pc": System("sound-6.12-rt", (*LAB, *BARE_METAL)),
    "older": System("sound-6.1-rt", LAB),
    "stock": System("sound-6.12", LAB),
    "arm": System("debian-6.12-rt-arm64"),
    "application": System(
        "sound-application",
        (*LAB, swap("process/threads", r"^(\d+ \d+ \d+ FF 81 - \d+) 0-3 ", r"\1 2-3 "), steady("process/faults")),
    ),
}
"""The systems that plants are put into."""

PLANTS: tuple[Plant, ...] = (
    # Power
    Plant(
        "governor-ondemand",
        "pc",
        (
            put(f"{CPU}/cpufreq/policy2/scaling_governor", "ondemand\n"),
            put(f"{CPU}/cpufreq/policy2/scaling_min_freq", "800000\n"),
        ),
        ("pm.governor", "pm.freq.fixed"),
    ),
    Plant(
        "frequency-not-fixed", "pc", (put(f"{CPU}/cpufreq/policy2/scaling_min_freq", "800000\n"),), ("pm.freq.fixed",)
    ),
    Plant(
        "frequency-moved", "pc", (at_end(f"{CPU}/cpufreq/policy1/scaling_cur_freq", "1200000\n"),), ("pm.freq.fixed",)
    ),
    Plant("turbo", "pc", (put(f"{CPU}/intel_pstate/no_turbo", "0\n"),), ("pm.turbo",)),
    Plant(
        "energy-preference",
        "pc",
        (put(f"{CPU}/cpufreq/policy3/energy_performance_preference", "balance_power\n"),),
        ("pm.epp",),
    ),
    Plant(
        "uncore-clock",
        "pc",
        (put(f"{CPU}/intel_uncore_frequency/package_00_die_00/min_freq_khz", "800000\n"),),
        ("pm.uncore",),
    ),
    Plant("deep-idle-state", "pc", (put(f"{CPU}/cpu3/cpuidle/state2/disable", "0\n"),), ("pm.cstate",)),
    Plant("idle-words", "pc", (boot("intel_idle.max_cstate=0"),), ("pm.cstate.cmd", "boot.conflict")),
    Plant(
        "power-efficient-work",
        "pc",
        (put("/sys/module/workqueue/parameters/power_efficient", "Y\n"),),
        ("pm.wq.power",),
    ),
    Plant(
        "link-power-saving",
        "pc",
        (put("/sys/module/pcie_aspm/parameters/policy", "default performance [powersave] powersupersave\n"),),
        ("pm.aspm",),
    ),
    Plant(
        "device-suspends",
        "pc",
        (
            put("/sys/bus/pci/devices/0000:02:00.0/power/control", "auto\n"),
            put("/sys/bus/pci/devices/0000:02:00.0/power/runtime_status", "suspended\n"),
        ),
        ("pm.rpm",),
    ),
    Plant("interrupts-collected", "pc", (swap("net-devices", "rx-usecs=0", "rx-usecs=250"),), ("pm.nic",)),
    Plant("energy-efficient-ethernet", "pc", (swap("net-devices", "eee=0", "eee=1"),), ("pm.nic",)),
    Plant(
        "throttled-for-heat",
        "pc",
        (at_end(f"{CPU}/cpu2/thermal_throttle/core_throttle_count", "3\n"),),
        ("pm.thermal",),
    ),
    Plant(
        "idle-state-of-arm",
        "arm",
        (
            put(f"{CPU}/cpu0/cpuidle/state1/name", "cpu-sleep\n"),
            put(f"{CPU}/cpu0/cpuidle/state1/latency", "1200\n"),
            put(f"{CPU}/cpu0/cpuidle/state1/disable", "0\n"),
        ),
        ("pm.idle.arm",),
    ),
    # Clocks
    Plant(
        "slow-clock-source",
        "pc",
        (swap(f"{CPU.removesuffix('cpu')}clocksource/clocksource0/current_clocksource", "tsc", "hpet"),),
        ("clk.source",),
    ),
    Plant("tsc-stops-in-idle", "pc", (swap("/proc/cpuinfo", " nonstop_tsc", ""),), ("clk.tsc", "clk.watchdog")),
    Plant(
        "clock-adjusted",
        "pc",
        (
            swap("clock-adjust", r"^frequency_ppb -?\d+", "frequency_ppb 31000"),
            at_end("clock-adjust", "status 2001\noffset_ns 4100\nfrequency_ppb 32000\nslept_ns 0\n"),
        ),
        ("clk.step",),
    ),
    # Memory
    Plant(
        "huge-pages",
        "stock",
        (put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),),
        ("mem.thp",),
    ),
    Plant("same-pages-merged", "sound", (put("/sys/kernel/mm/ksm/run", "1\n"),), ("mem.ksm",)),
    Plant("swap", "sound", (line("/proc/swaps", "/dev/sda2 partition 4194300 0 -2"),), ("mem.swap",)),
    Plant(
        "locked-pages-moved",
        "sound",
        (put(f"{SYSCTL}/vm/compact_unevictable_allowed", "1\n"),),
        ("mem.compact.unevict",),
    ),
    Plant(
        "background-compaction", "sound", (put(f"{SYSCTL}/vm/compaction_proactiveness", "20\n"),), ("mem.compact.pro",)
    ),
    Plant("counts-of-memory", "older", (put(f"{SYSCTL}/vm/stat_interval", "1\n"),), ("mem.stat",)),
    Plant("overcommit", "sound", (put(f"{SYSCTL}/vm/overcommit_memory", "1\n"),), ("mem.overcommit",)),
    Plant("much-dirty-memory", "sound", (put(f"{SYSCTL}/vm/dirty_ratio", "40\n"),), ("mem.dirty",)),
    Plant("contradicting-dirty-memory", "sound", (put(f"{SYSCTL}/vm/dirty_bytes", "40000000\n"),), ("mem.dirty",)),
    Plant("little-free-memory", "sound", (put(f"{SYSCTL}/vm/min_free_kbytes", "100\n"),), ("mem.minfree",)),
    Plant("watermark-boost", "sound", (put(f"{SYSCTL}/vm/watermark_boost_factor", "15000\n"),), ("mem.minfree",)),
    Plant("zone-reclaim", "sound", (put(f"{SYSCTL}/vm/zone_reclaim_mode", "1\n"),), ("mem.zone_reclaim",)),
    # Scheduler
    Plant(
        "policy-refused", "sound", (put("rt-permitted", "no: 1 Operation not permitted\n"),), ("sched.rt.permitted",)
    ),
    Plant("throttled", "older", (put(f"{SYSCTL}/kernel/sched_rt_runtime_us", "950000\n"),), ("sched.rt_throttle",)),
    Plant("timers-migrate", "sound", (put(f"{SYSCTL}/kernel/timer_migration", "1\n"),), ("sched.timer_migration",)),
    Plant("numa-balancing", "stock", (put(f"{SYSCTL}/kernel/numa_balancing", "1\n"),), ("sched.numa",)),
    Plant("bpf-scheduler", "sound", (put("/sys/kernel/sched_ext/state", "enabled\n"),), ("sched.ext_server",)),
    Plant("autogroups", "sound", (put(f"{SYSCTL}/kernel/sched_autogroup_enabled", "1\n"),), ("sched.autogroup",)),
    Plant("priority-99", "sound", (line("tasks", "812 812 1 FF 99 - 0 0-1 0x00400100 plc"),), ("sched.prio99",)),
    Plant(
        "deadline-thread", "sound", (line("tasks", "813 813 1 DLN - - 0 0-1 0x00400100 camera"),), ("sched.deadline",)
    ),
    # Console, tracing, watchdogs
    Plant("messages-on-serial-line", "stock", (put(f"{SYSCTL}/kernel/printk", "7\t4\t1\t7\n"),), ("con.printk",)),
    Plant("function-tracer", "sound", (put("/sys/kernel/tracing/current_tracer", "function\n"),), ("trace.active",)),
    Plant("events-traced", "sound", (put("/sys/kernel/tracing/set_event", "sched:sched_switch\n"),), ("trace.active",)),
    Plant("bpf-at-events", "sound", (put("bpf-programs", "17 5 falco_sched\n"),), ("trace.bpf",)),
    Plant("perf-samples", "sound", (put("perf-users", "930 perf 4\n"),), ("trace.perf",)),
    Plant(
        "lockup-detector",
        "sound",
        (put(f"{SYSCTL}/kernel/watchdog", "1\n"), put(f"{SYSCTL}/kernel/watchdog_cpumask", "0-3\n")),
        ("wd.soft", "kern.lockup.cfg"),
    ),
    Plant("hung-tasks", "sound", (put(f"{SYSCTL}/kernel/hung_task_timeout_secs", "120\n"),), ("wd.hung",)),
    Plant("watchdog-not-fed", "pc", (put("/sys/class/watchdog/watchdog0/state", "inactive\n"),), ("wd.hw",)),
    Plant("panic-on-stall", "sound", (put(f"{SYSCTL}/kernel/panic_on_rcu_stall", "1\n"),), ("wd.panic",)),
    # Services
    Plant(
        "two-tuners",
        "sound",
        (
            line("tasks", "701 701 1 TS - 0 0 0-1 0x00400100 tuned"),
            line("tasks", "702 702 1 TS - 0 0 0-1 0x00400100 tlp"),
        ),
        ("svc.tuners",),
    ),
    Plant("cron", "sound", (line("tasks", "705 705 1 TS - 0 0 0-1 0x00400100 cron"),), ("svc.noise",)),
    Plant("stalld", "sound", (line("tasks", "706 706 1 TS - 0 0 0-1 0x00400100 stalld"),), ("svc.stalld",)),
    # Hardware
    Plant("interrupts-of-firmware", "pc", (at_end("smi", "".join(f"cpu{cpu} 43\n" for cpu in FOUR)),), ("hw.smi",)),
    Plant("old-firmware", "pc", (put("/sys/class/dmi/id/bios_date", "07/01/2015\n"),), ("hw.bios",)),
    Plant("corrected-memory-errors", "pc", (at_end("/sys/devices/system/edac/mc/mc0/ce_count", "2\n"),), ("hw.edac",)),
    Plant(
        "virtual-machine",
        "pc",
        (swap("/proc/cpuinfo", " constant_tsc", " hypervisor constant_tsc"),),
        ("hw.virt", "pm.vm.haltpoll"),
    ),
    # How the kernel was built, and what it says about itself
    Plant(
        "no-real-time-kernel",
        "sound",
        (
            kernel(version="#1 SMP PREEMPT_DYNAMIC Debian 6.12.95-1~bpo12+1 (2026-07-11)"),
            option(PREEMPT_RT="n", PREEMPT_VOLUNTARY="y"),
            gone("/sys/kernel/realtime"),
        ),
        ("kern.preempt.rt", "kern.preempt.mode", "kern.irq.thread"),
    ),
    Plant("contradicting-configuration", "sound", (option(PREEMPT_RT="n"),), ("kern.preempt.rt", "kern.preempt.mode")),
    Plant(
        "preemption-voluntary",
        "stock",
        (
            put("/sys/kernel/debug/sched/preempt", "none (voluntary) full lazy\n"),
            swap(LOG, "Dynamic Preempt: full", "Dynamic Preempt: voluntary"),
            swap("/proc/cmdline", "preempt=full", "preempt=voluntary"),
        ),
        ("kern.preempt.mode",),
    ),
    Plant(
        "low-resolution-timers",
        "sound",
        (swap("/proc/timer_list", r"(\.hres_active\s*): 1", r"\1: 0"), boot("highres=off")),
        ("kern.hrt",),
    ),
    Plant("tick-stops", "sound", (boot_without("nohz"),), ("kern.nohz.periodic",)),
    Plant(
        "sleeps-in-ticks",
        "sound",
        (swap("/proc/timer_list", r"(\.hres_active\s*): 1", r"\1: 0"), option(HIGH_RES_TIMERS="n")),
        ("kern.hrt", "kern.hz"),
    ),
    Plant(
        "real-time-groups",
        "sound",
        (option(RT_GROUP_SCHED="y", RT_GROUP_SCHED_DEFAULT_DISABLED="n"),),
        ("kern.rtgroup",),
    ),
    Plant("interrupts-without-threads", "stock", (boot_without("threadirqs"),), ("kern.irq.thread",)),
    Plant("callbacks-on-isolated-cpus", "sound", (boot_without("rcu_nocbs"),), ("kern.rcu.nocb",)),
    Plant("readers-not-boosted", "sound", (option(RCU_BOOST="n"),), ("kern.rcu.boost",)),
    Plant(
        "lazy-callbacks",
        "sound",
        (option(RCU_LAZY="y", RCU_LAZY_DEFAULT_OFF="n"), put("/sys/module/rcutree/parameters/enable_rcu_lazy", "Y\n")),
        ("kern.rcu.lazy",),
    ),
    Plant("lockdep", "sound", (option(PROVE_LOCKING="y", LOCKDEP="y"),), ("kern.dbg.lockdep",)),
    Plant("debug-preempt", "sound", (option(DEBUG_PREEMPT="y"),), ("kern.dbg.preempt",)),
    Plant(
        "irqsoff-tracer",
        "sound",
        (option(IRQSOFF_TRACER="y"), swap("/sys/kernel/tracing/available_tracers", "nop", "irqsoff nop")),
        ("kern.dbg.irqsoff",),
    ),
    Plant("kasan", "sound", (option(KASAN="y", KASAN_GENERIC="y"),), ("kern.dbg.san",)),
    Plant("kmemleak", "sound", (option(DEBUG_KMEMLEAK="y", DEBUG_KMEMLEAK_DEFAULT_OFF="n"),), ("kern.dbg.kmemleak",)),
    Plant("debug-objects", "sound", (option(DEBUG_OBJECTS="y"),), ("kern.dbg.objects",)),
    Plant("slab-objects-checked", "sound", (option(SLUB_DEBUG_ON="y"),), ("kern.dbg.slub",)),
    Plant("slub-debug-at-boot", "sound", (boot("slub_debug=FZP"),), ("kern.dbg.slub",)),
    Plant(
        "scheduler-statistics", "sound", (put(f"{SYSCTL}/kernel/sched_schedstats", "1\n"),), ("kern.dbg.latencytop",)
    ),
    Plant(
        "no-tracers",
        "sound",
        (put("/sys/kernel/tracing/available_tracers", "blk function nop\n"),),
        ("kern.trace.avail",),
    ),
    Plant(
        "calls-of-firmware",
        "sound",
        (
            option(EFI_DISABLE_RUNTIME="n"),
            put("/sys/firmware/efi/", "config_table\nfw_vendor\nruntime\n"),
            gone("/sys/devices/virtual/workqueue/efi_runtime/cpumask"),
        ),
        ("kern.efi",),
    ),
    Plant("display", "sound", (put("/sys/class/drm/", "card0\ncard0-HDMI-A-1\nversion\n"),), ("kern.drm",)),
    Plant("default-governor", "pc", (boot("cpufreq.default_governor=schedutil"),), ("kern.cpufreq.cfg",)),
    Plant("known-bug", "sound", (kernel("6.12.0-rt-amd64", "#1 SMP PREEMPT_RT Sat Jan 18 2025"),), ("kern.bugwindow",)),
    Plant(
        "lockdown",
        "sound",
        (put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),),
        ("kern.lockdown",),
    ),
    Plant("foreign-module", "sound", (put(f"{SYSCTL}/kernel/tainted", "4096\n"),), ("kern.taint",)),
    Plant(
        "throttling-in-the-log",
        "sound",
        (line(LOG, "<4>[   99.100000] sched: RT throttling activated"),),
        ("kern.dmesg.bugs",),
    ),
    Plant(
        "protection-of-cpu",
        "pc",
        (put(f"{CPU}/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n"),),
        ("kern.mitig",),
    ),
    # The command line
    Plant("misspelt-parameter", "sound", (boot("irq_affinity=0-1"),), ("boot.unknown",)),
    Plant(
        "parameter-refused",
        "sound",
        (
            boot("kthread_cpus=0-1"),
            line(
                LOG,
                '<5>[    0.01] Unknown kernel command line parameters "kthread_cpus=0-1", will be passed to user',
            ),
        ),
        ("boot.unknown", "boot.kthread_cpus"),
    ),
    Plant(
        "interrupts-to-isolated-cpus-at-boot",
        "sound",
        (swap("/proc/cmdline", "irqaffinity=0-1", "irqaffinity=0-3"),),
        ("boot.conflict",),
    ),
    Plant(
        "letter-left-in-a-list",
        "sound",
        (swap("/proc/cmdline", "irqaffinity=0-1", "irqaffinity=0-X"),),
        ("boot.conflict",),
    ),
    Plant(
        "boot-loader-ignored",
        "sound",
        (put("/etc/default/grub", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet processor.max_cstate=1"\n'),),
        ("boot.drift",),
    ),
    Plant(
        "managed-interrupts",
        "sound",
        (swap("/proc/cmdline", "isolcpus=managed_irq,domain,2-3", "isolcpus=2-3"),),
        ("boot.isolcpus",),
    ),
    Plant("cpus-without-tick", "sound", (put(f"{CPU}/nohz_full", "2-3\n"),), ("boot.nohz_full",)),
    Plant(
        "new-interrupts-anywhere",
        "sound",
        (put("/proc/irq/default_smp_affinity", "f\n"),),
        ("boot.irqaffinity", "iso.irq.default"),
    ),
    Plant("ticks-at-once", "sound", (boot_without("skew_tick"),), ("boot.skew_tick",)),
    Plant("tsc-unchecked", "sound", (boot("tsc=reliable"),), ("boot.tsc",)),
    Plant(
        "console-not-quiet",
        "sound",
        (boot_without("quiet"), put("/proc/sys/kernel/printk", "7\t4\t1\t7\n")),
        ("boot.quiet",),
    ),
    Plant(
        "pressure-stalls",
        "sound",
        (boot_without("psi"), put("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")),
        ("boot.psi",),
    ),
    Plant("idle-cpu-polls", "sound", (boot("idle=poll"),), ("boot.idle",)),
    Plant(
        "system-calls-audited", "sound", (boot_without("audit"), put("/proc/self/loginuid", "1000\n")), ("boot.audit",)
    ),
    Plant(
        "memory-between-nodes",
        "stock",
        (put(f"{SYSCTL}/kernel/numa_balancing", "1\n"), put("/sys/devices/system/node/online", "0-1\n")),
        ("boot.numa_balancing", "sched.numa"),
    ),
    # Isolation
    Plant("cpu-offline", "sound", (put(f"{CPU}/online", "0-2\n", both=True),), ("iso.declared", "boot.conflict")),
    Plant(
        "not-isolated",
        "sound",
        (
            put(f"{CPU}/isolated", "\n"),
            put("/sys/fs/cgroup/cpuset.cpus.isolated", "\n"),
            swap("/proc/cmdline", r"isolcpus=\S+ ", ""),
        ),
        ("iso.partition", "boot.isolcpus"),
        AuditRequest(SOUND_CPUS),
    ),
    Plant("unbound-work-anywhere", "sound", (put("/sys/devices/virtual/workqueue/cpumask", "f\n"),), ("iso.wq",)),
    Plant(
        "kernel-thread-anywhere",
        "sound",
        (line("tasks", "850 850 2 TS - 0 2 0-3 0x00208040 [vendor_poll]"),),
        ("iso.kthreads",),
    ),
    Plant(
        "program-on-isolated-cpu", "sound", (line("tasks", "851 851 1 TS - 0 3 0-3 0x00400100 logger"),), ("iso.tasks",)
    ),
    Plant(
        "interrupt-on-isolated-cpu",
        "sound",
        (put("/proc/irq/4/smp_affinity_list", "3\n"), put("/proc/irq/4/effective_affinity_list", "3\n")),
        ("iso.irq.eff",),
    ),
    Plant(
        "names-alike",
        "sound",
        (put("/sys/kernel/irq/4/actions", "eth1\n"), put("/sys/kernel/irq/8/actions", "eth10\n")),
        ("iso.irq.match",),
    ),
    Plant("interrupt-shared", "sound", (put("/sys/kernel/irq/4/actions", "ttyS0,mydevice\n"),), ("iso.irq.shared",)),
    Plant("irqbalance", "sound", (line("tasks", "703 703 1 TS - 0 0 0-1 0x00400100 irqbalance"),), ("iso.irqbalance",)),
    Plant("packets-steered", "sound", (put("/sys/class/net/eth0/queues/rx-0/rps_cpus", "c\n"),), ("iso.rps",)),
    Plant(
        "sibling-busy",
        "pc",
        (put(f"{CPU}/smt/active", "1\n"), put(f"{CPU}/cpu2/topology/thread_siblings_list", "0,2\n")),
        ("iso.smt",),
    ),
    Plant("cache-shared", "pc", _on_every_cpu(f"{CPU}/cpu{{}}/cache/index3/shared_cpu_list", "0-3\n"), ("iso.l3",)),
    Plant(
        "corrected-errors-polled",
        "pc",
        (
            put("/sys/devices/system/machinecheck/machinecheck2/check_interval", "300\n"),
            put("/sys/devices/system/machinecheck/machinecheck2/ignore_ce", "0\n"),
        ),
        ("iso.mce",),
    ),
    Plant(
        "two-nodes",
        "pc",
        (put("/sys/devices/system/node/node0/cpulist", "0-2\n"), put("/sys/devices/system/node/node1/cpulist", "3\n")),
        ("iso.numa",),
    ),
    Plant(
        "two-kinds-of-cores",
        "pc",
        (put("/sys/devices/cpu_core/cpus", "0-2\n"), put("/sys/devices/cpu_atom/cpus", "3\n")),
        ("iso.hybrid",),
    ),
    Plant("cpu-vanishes", "sound", (at_end(f"{CPU}/online", "0-2\n"),), ("iso.hotplug",)),
    # Scheduler, again
    Plant(
        "time-borrowed",
        "older",
        (
            put(f"{SYSCTL}/kernel/sched_rt_runtime_us", "950000\n"),
            swap("/sys/kernel/debug/sched/features", "NO_RT_RUNTIME_SHARE", "RT_RUNTIME_SHARE"),
        ),
        ("sched.rt_throttle", "sched.rt_share"),
    ),
    Plant(
        "fair-server",
        "sound",
        (put("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "50000000\n"),),
        ("sched.fair_server",),
    ),
    Plant(
        "memory-lock-refused", "sound", (put("lock-permitted", "no: 1 Operation not permitted\n"),), ("sched.memlock",)
    ),
    Plant(
        "below-interrupt-threads", "sound", (line("tasks", "820 820 1 FF 40 - 0 0 0x00400100 plc"),), ("sched.irqprio",)
    ),
    # An application
    Plant(
        "application-without-policy",
        "application",
        (swap("process/threads", r" FF 8\d - ", " TS - 0 "),),
        ("sched.app.policy", "sched.app.slack", "sched.app.affinity"),
    ),
    Plant(
        "application-not-locked",
        "application",
        (swap("process/status", r"^VmLck:\s+\d+ kB", "VmLck:\t       0 kB"),),
        ("sched.app.lock",),
    ),
    Plant(
        "application-moves",
        "application",
        (swap("process/threads", r" FF 80 - 2 2 ", " FF 80 - 2 0-3 "),),
        ("sched.app.affinity",),
    ),
    Plant(
        "application-throttled",
        "application",
        (put("process/cgroup-files", "/sys/fs/cgroup/app/cpu.max 20000 100000\n"),),
        ("sched.app.quota",),
    ),
    Plant(
        "application-heap",
        "application",
        (swap("process/maps", r"^(\[heap\] heap|- anonymous) (\d+) (\d+) \d+$", r"\1 \2 \3 0"),),
        ("sched.app.heap",),
    ),
    # More of power, console and hardware
    Plant(
        "request-only-while-measuring",
        "pc",
        (put("dma-latency", "0\n"), put("dma-latency-holders", "900 cyclictest\n")),
        ("pm.qos.dma",),
    ),
    Plant("limit-of-one-cpu", "pc", (put(f"{CPU}/cpu2/power/pm_qos_resume_latency_us", "5000\n"),), ("pm.qos.cpu",)),
    Plant(
        "guest-halts", "sound", (put("/sys/module/haltpoll/parameters/guest_halt_poll_ns", "0\n"),), ("pm.vm.haltpoll",)
    ),
    Plant("watchdog-of-clock", "pc", (swap("/proc/cpuinfo", " constant_tsc", ""),), ("clk.watchdog", "clk.tsc")),
    Plant("shared-timer", "sound", (swap("timer-devices", "lapic", "hpet"),), ("clk.event",)),
    Plant(
        "pages-moved",
        "sound",
        (swap_at_end("/proc/vmstat", r"^pgmajfault \d+", "pgmajfault 99999"),),
        ("mem.evid",),
    ),
    Plant(
        "huge-pages-in-background",
        "stock",
        (
            put("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", "1\n"),
            put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ),
        ("mem.khugepaged",),
    ),
    Plant(
        "messages-pour", "sound", (swap("log-messages", r"\d+", "400"), at_end("log-messages", "900\n")), ("con.spam",)
    ),
    Plant("stolen-time", "sound", (swap("/proc/stat", r"^(cpu2(?: \d+){7}) \d+", r"\1 31"),), ("hw.steal",)),
    Plant(
        "host-of-guests",
        "pc",
        (
            put("/sys/module/kvm/parameters/halt_poll_ns", "200000\n"),
            line("tasks", "950 951 1 TS - 0 0 0-1 0x00400100 CPU 0/KVM"),
        ),
        ("hw.host",),
    ),
    Plant(
        "gaps-of-hardware",
        "pc",
        (put("/sys/kernel/tracing/current_tracer", "hwlat\n"), put("/sys/kernel/tracing/tracing_max_latency", "50\n")),
        ("hw.hwlat", "trace.active"),
    ),
    Plant("secure-world", "arm", (put("/sys/class/tee/tee0/dev", "254:0\n"),), ("hw.optee",)),
    Plant(
        "network-on-usb",
        "pc",
        (put("/sys/class/net/eth1", "../../devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/net/eth1\n"),),
        ("hw.usb",),
    ),
    Plant(
        "display-shares-memory",
        "pc",
        (put("/sys/class/drm/card0/device/driver", "../../../bus/pci/drivers/i915\n"),),
        ("hw.smp.quirk",),
    ),
    Plant("one-cpu", "arm", (put(f"{CPU}/online", "0\n", both=True),), ("hw.single",)),
    Plant("container", "sound", (put("/proc/1/cgroup", "0::/docker/4cd1\n"),), ("svc.container",)),
    # What needs the whole list of threads, or two moments
    Plant(
        "watchdogs-on",
        "sound",
        (
            boot_without("nowatchdog"),
            put(f"{SYSCTL}/kernel/watchdog", "1\n"),
            put(f"{SYSCTL}/kernel/soft_watchdog", "1\n"),
            put(f"{SYSCTL}/kernel/watchdog_cpumask", "0-3\n"),
        ),
        ("boot.nowatchdog", "kern.lockup.cfg", "wd.soft"),
    ),
    Plant(
        "application-faults",
        "application",
        (swap_at_end("process/faults", r"^(\d+) \d+ (\d+)$", r"\1 90000 \2"),),
        ("sched.app.faults",),
    ),
    Plant(
        "managed-interrupt",
        "sound",
        (
            put("/sys/kernel/irq/11/actions", "nvme0q3\n"),
            put("/proc/irq/11/smp_affinity_list", "1-2\n"),
            put("/proc/irq/11/smp_affinity", "6\n"),
            put("/proc/irq/11/effective_affinity_list", "2\n"),
        ),
        ("iso.irq.managed",),
    ),
    Plant(
        "flood-of-interrupts",
        "sound",
        (swap_at_end("/proc/interrupts", r"^(  4: +\d+ +\d+) +\d+", r"\1 700"),),
        ("iso.irq.flood",),
    ),
    Plant(
        "services-anywhere",
        "sound",
        (swap("tasks", r"^1 1 0 TS - 0 (\d+) \S+ (\S+) init$", r"1 1 0 TS - 0 \1 0-3 \2 systemd"),),
        ("iso.systemd", "iso.tasks"),
    ),
    # Several at once
    Plant(
        "fresh-installation",
        "sound",
        (
            boot_without("isolcpus", "rcu_nocbs", "skew_tick", "nohz"),
            put(f"{CPU}/isolated", "\n"),
            put("/sys/fs/cgroup/cpuset.cpus.isolated", "\n"),
            put(f"{SYSCTL}/vm/stat_interval", "1\n"),
            put(f"{SYSCTL}/vm/compact_unevictable_allowed", "1\n"),
            put(f"{SYSCTL}/kernel/timer_migration", "1\n"),
        ),
        (
            *("iso.partition", "boot.isolcpus", "kern.rcu.nocb", "boot.skew_tick", "kern.nohz.periodic", "mem.stat"),
            *("mem.compact.unevict", "sched.timer_migration"),
        ),
        AuditRequest(SOUND_CPUS),
        True,
    ),
    Plant(
        "desktop-on-a-pc",
        "pc",
        (
            put(f"{CPU}/cpufreq/policy2/scaling_governor", "powersave\n"),
            put(f"{CPU}/cpufreq/policy2/scaling_min_freq", "800000\n"),
            put(f"{CPU}/cpu3/cpuidle/state2/disable", "0\n"),
            put(f"{CPU}/intel_pstate/no_turbo", "0\n"),
            line("tasks", "703 703 1 TS - 0 0 0-1 0x00400100 irqbalance"),
            line("tasks", "705 705 1 TS - 0 0 0-1 0x00400100 cron"),
        ),
        ("pm.governor", "pm.freq.fixed", "pm.cstate", "pm.turbo", "iso.irqbalance", "svc.noise"),
        None,
        True,
    ),
    Plant(
        "debugging-kernel",
        "sound",
        (option(PROVE_LOCKING="y", LOCKDEP="y", DEBUG_PREEMPT="y", KASAN="y", DEBUG_OBJECTS="y", SLUB_DEBUG_ON="y"),),
        ("kern.dbg.lockdep", "kern.dbg.preempt", "kern.dbg.san", "kern.dbg.objects", "kern.dbg.slub"),
        None,
        True,
    ),
    Plant(
        "left-over-from-measuring",
        "pc",
        (
            put("/sys/kernel/tracing/set_event", "sched:sched_switch\n"),
            put("dma-latency", "0\n"),
            put("dma-latency-holders", "900 cyclictest\n"),
            put("perf-users", "930 perf 4\n"),
            put(f"{SYSCTL}/kernel/sched_schedstats", "1\n"),
        ),
        ("trace.active", "pm.qos.dma", "trace.perf", "kern.dbg.latencytop"),
        None,
        True,
    ),
    Plant(
        "unprivileged-and-swapping",
        "sound",
        (
            put("rt-permitted", "no: 1 Operation not permitted\n"),
            put("lock-permitted", "no: 1 Operation not permitted\n"),
            line("/proc/swaps", "/dev/sda2 partition 4194300 0 -2"),
            put("/sys/kernel/mm/ksm/run", "1\n"),
        ),
        ("sched.rt.permitted", "sched.memlock", "mem.swap", "mem.ksm"),
        None,
        True,
    ),
)

_BUSY_HOST = (*SOUND_BOOT, "tsc=nowatchdog")
"""On a busy host, an emulator's time stamp counters look as if they were unstable."""
SOUND_GUEST = AuditedGuest("debian-6.12-rt", 4, _BUSY_HOST, SOUND_SETUP)
OLDER_GUEST = AuditedGuest("debian-6.1-rt", 4, _BUSY_HOST, SOUND_SETUP)
STOCK_GUEST = AuditedGuest("debian-6.12", 4, (*_BUSY_HOST, "preempt=full", "threadirqs"), SOUND_SETUP)


def _written(name: str, guest: AuditedGuest, path: str, text: str, *expected: str) -> RealPlant:
    return RealPlant(name, guest, expected, (), (f"echo {text} > {path}",))


def _at_boot(name: str, guest: AuditedGuest, words: str, *expected: str) -> RealPlant:
    return RealPlant(name, guest, expected, tuple(words.split()))


REAL_PLANTS: tuple[RealPlant, ...] = (
    _written("locked-pages-moved", SOUND_GUEST, f"{SYSCTL}/vm/compact_unevictable_allowed", "1", "mem.compact.unevict"),
    _written("background-compaction", SOUND_GUEST, f"{SYSCTL}/vm/compaction_proactiveness", "20", "mem.compact.pro"),
    _written("watermark-boost", SOUND_GUEST, f"{SYSCTL}/vm/watermark_boost_factor", "15000", "mem.minfree"),
    _written("timers-migrate", SOUND_GUEST, f"{SYSCTL}/kernel/timer_migration", "1", "sched.timer_migration"),
    _written("same-pages-merged", SOUND_GUEST, "/sys/kernel/mm/ksm/run", "1", "mem.ksm"),
    _written("much-dirty-memory", SOUND_GUEST, f"{SYSCTL}/vm/dirty_ratio", "40", "mem.dirty"),
    _written("hung-tasks", SOUND_GUEST, f"{SYSCTL}/kernel/hung_task_timeout_secs", "120", "wd.hung"),
    _written("scheduler-statistics", SOUND_GUEST, f"{SYSCTL}/kernel/sched_schedstats", "1", "kern.dbg.latencytop"),
    _written("panic-after-lockup", SOUND_GUEST, f"{SYSCTL}/kernel/softlockup_panic", "1", "wd.panic"),
    _written("lockup-detector", SOUND_GUEST, f"{SYSCTL}/kernel/watchdog", "1", "wd.soft", "kern.lockup.cfg"),
    _written("unbound-work-anywhere", SOUND_GUEST, "/sys/devices/virtual/workqueue/cpumask", "f", "iso.wq"),
    _written(
        *("new-interrupts-anywhere", SOUND_GUEST, "/proc/irq/default_smp_affinity", "f", "boot.irqaffinity"),
        "iso.irq.default",
    ),
    RealPlant(
        "interrupt-on-isolated-cpu",
        SOUND_GUEST,
        ("iso.irq.eff",),
        (),
        ("echo 3 > /proc/irq/4/smp_affinity_list", "for each in 1 2 3; do echo moved > /dev/ttyS0; sleep 1; done"),
    ),
    _written("events-traced", SOUND_GUEST, "/sys/kernel/tracing/events/sched/sched_waking/enable", "1", "trace.active"),
    _written(
        *("slow-clock-source", SOUND_GUEST, "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        *("hpet", "clk.source"),
    ),
    RealPlant("program-on-isolated-cpu", SOUND_GUEST, ("iso.tasks",), (), ("(taskset 8 sleep 1000 &)", "sleep 2")),
    RealPlant("priority-99", SOUND_GUEST, ("sched.prio99",), (), ("(chrt -f 99 sleep 1000 &)", "sleep 2")),
    _at_boot("tick-stops", SOUND_GUEST, "nohz=on", "kern.nohz.periodic"),
    _at_boot("misspelt-parameter", SOUND_GUEST, "irq_affinity=0-1", "boot.unknown"),
    _at_boot("idle-cpu-polls", SOUND_GUEST, "idle=poll", "boot.idle"),
    _at_boot("ticks-at-once", SOUND_GUEST, "skew_tick=0", "boot.skew_tick"),
    _at_boot("pressure-stalls", SOUND_GUEST, "psi=1", "boot.psi"),
    _written("throttled", OLDER_GUEST, f"{SYSCTL}/kernel/sched_rt_runtime_us", "950000", "sched.rt_throttle"),
    _written("counts-of-memory", OLDER_GUEST, f"{SYSCTL}/vm/stat_interval", "1", "mem.stat"),
    _written("preemption-voluntary", STOCK_GUEST, "/sys/kernel/debug/sched/preempt", "voluntary", "kern.preempt.mode"),
    _written("huge-pages", STOCK_GUEST, "/sys/kernel/mm/transparent_hugepage/enabled", "always", "mem.thp"),
    _written("numa-balancing", STOCK_GUEST, f"{SYSCTL}/kernel/numa_balancing", "1", "sched.numa"),
    _written("messages-on-serial-line", STOCK_GUEST, f"{SYSCTL}/kernel/printk", "7", "con.printk"),
)
