# SPDX-License-Identifier: Apache-2.0
"""Wrong settings, each one edit of the facts of a system, with the checks that must find it; and several at once.

``PLANTS`` are put into stored facts, ``REAL_PLANTS`` into guests that boot with them.
"""

import errno
from dataclasses import dataclass

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
    fact,
    gone,
    kernel,
    line,
    option,
    put,
    swap,
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
    request: AuditRequest = AuditRequest()


def _on_every_cpu(path: str, content: str, *, both: bool = False) -> tuple[Edit, ...]:
    return tuple(put(path.format(cpu), content, both=both) for cpu in FOUR)


LAB = (
    swap("/proc/cmdline", " nokaslr", ""),
    swap(LOG, r"^.*nokaslr.*\n", ""),
    put(f"{SYSCTL}/kernel/tainted", "0\n"),
)
"""Takes out what only guests of the lab have: an argument of theirs, and the kernel's own warning of fair_server."""
BARE_METAL: tuple[Edit, ...] = (
    swap("/proc/cpuinfo", r"AuthenticAMD", "GenuineIntel"),
    swap("/proc/cpuinfo", r" hypervisor\b", " constant_tsc nonstop_tsc tsc_reliable"),
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
)
"""The sound guest as a PC with a processor by Intel, well set: what a virtual machine does not have."""
SYSTEMS: dict[str, System] = {
    "sound": System("sound-6.12-rt", LAB),
    "pc": System("sound-6.12-rt", (*LAB, *BARE_METAL)),
    "older": System("sound-6.1-rt", LAB),
    "stock": System("debian-6.12", LAB),
    "arm": System("debian-6.12-rt-arm64"),
    "application": System("sound-application", LAB),
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
    Plant("frequency-not-fixed", "pc", (put(f"{CPU}/cpufreq/policy2/scaling_min_freq", "800000\n"),), ("pm.freq.fixed",)),
    Plant("frequency-moved", "pc", (at_end(f"{CPU}/cpufreq/policy1/scaling_cur_freq", "1200000\n"),), ("pm.freq.fixed",)),
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
    Plant("idle-words", "pc", (boot("intel_idle.max_cstate=0"),), ("pm.cstate.cmd",)),
    Plant("power-efficient-work", "pc", (put("/sys/module/workqueue/parameters/power_efficient", "Y\n"),), ("pm.wq.power",)),
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
    Plant("throttled-for-heat", "pc", (at_end(f"{CPU}/cpu2/thermal_throttle/core_throttle_count", "3\n"),), ("pm.thermal",)),
    Plant("idle-state-of-arm", "arm", (
        put(f"{CPU}/cpu0/cpuidle/state1/name", "cpu-sleep\n"),
        put(f"{CPU}/cpu0/cpuidle/state1/latency", "1200\n"),
        put(f"{CPU}/cpu0/cpuidle/state1/disable", "0\n"),
    ), ("pm.idle.arm",)),
    # Clocks
    Plant(
        "slow-clock-source",
        "pc",
        (swap(f"{CPU.removesuffix('cpu')}clocksource/clocksource0/current_clocksource", "tsc", "hpet"),),
        ("clk.source",),
    ),
    Plant("tsc-stops-in-idle", "pc", (swap("/proc/cpuinfo", " nonstop_tsc", ""),), ("clk.tsc",)),
    Plant("clock-adjusted", "pc", (swap("clock-adjust", r"^frequency_ppb -?\d+", "frequency_ppb 31000"), at_end("clock-adjust", "status 2001\noffset_ns 4100\nfrequency_ppb 32000\nslept_ns 0\n")), ("clk.step",)),
    # Memory
    Plant("huge-pages", "stock", (put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),), ("mem.thp",)),
    Plant("same-pages-merged", "sound", (put("/sys/kernel/mm/ksm/run", "1\n"),), ("mem.ksm",)),
    Plant("swap", "sound", (line("/proc/swaps", "/dev/sda2 partition 4194300 0 -2"),), ("mem.swap",)),
    Plant("locked-pages-moved", "sound", (put(f"{SYSCTL}/vm/compact_unevictable_allowed", "1\n"),), ("mem.compact.unevict",)),
    Plant("background-compaction", "sound", (put(f"{SYSCTL}/vm/compaction_proactiveness", "20\n"),), ("mem.compact.pro",)),
    Plant("counts-of-memory", "older", (put(f"{SYSCTL}/vm/stat_interval", "1\n"),), ("mem.stat",)),
    Plant("overcommit", "sound", (put(f"{SYSCTL}/vm/overcommit_memory", "1\n"),), ("mem.overcommit",)),
    Plant("much-dirty-memory", "sound", (put(f"{SYSCTL}/vm/dirty_ratio", "40\n"),), ("mem.dirty",)),
    Plant("contradicting-dirty-memory", "sound", (put(f"{SYSCTL}/vm/dirty_bytes", "40000000\n"),), ("mem.dirty",)),
    Plant("little-free-memory", "sound", (put(f"{SYSCTL}/vm/min_free_kbytes", "100\n"),), ("mem.minfree",)),
    Plant("watermark-boost", "sound", (put(f"{SYSCTL}/vm/watermark_boost_factor", "15000\n"),), ("mem.minfree",)),
    Plant("zone-reclaim", "sound", (put(f"{SYSCTL}/vm/zone_reclaim_mode", "1\n"),), ("mem.zone_reclaim",)),
    # Scheduler
    Plant("policy-refused", "sound", (put("rt-permitted", "no: 1 Operation not permitted\n"),), ("sched.rt.permitted",)),
    Plant("throttled", "older", (put(f"{SYSCTL}/kernel/sched_rt_runtime_us", "950000\n"),), ("sched.rt_throttle",)),
    Plant("timers-migrate", "sound", (put(f"{SYSCTL}/kernel/timer_migration", "1\n"),), ("sched.timer_migration",)),
    Plant("numa-balancing", "stock", (put(f"{SYSCTL}/kernel/numa_balancing", "1\n"),), ("sched.numa",)),
    Plant("bpf-scheduler", "sound", (put("/sys/kernel/sched_ext/state", "enabled\n"),), ("sched.ext_server",)),
    Plant("autogroups", "sound", (put(f"{SYSCTL}/kernel/sched_autogroup_enabled", "1\n"),), ("sched.autogroup",)),
    Plant("priority-99", "sound", (line("tasks", "812 812 1 FF 99 - 0 0-1 400100 plc"),), ("sched.prio99",)),
    Plant("deadline-thread", "sound", (line("tasks", "813 813 1 DLN - - 0 0-1 400100 camera"),), ("sched.deadline",)),
    # Console, tracing, watchdogs
    Plant("messages-on-serial-line", "stock", (put(f"{SYSCTL}/kernel/printk", "7\t4\t1\t7\n"),), ("con.printk",)),
    Plant("function-tracer", "sound", (put("/sys/kernel/tracing/current_tracer", "function\n"),), ("trace.active",)),
    Plant("events-traced", "sound", (put("/sys/kernel/tracing/set_event", "sched:sched_switch\n"),), ("trace.active",)),
    Plant("bpf-at-events", "sound", (put("bpf-programs", "17 5 falco_sched\n"),), ("trace.bpf",)),
    Plant("perf-samples", "sound", (put("perf-users", "930 perf 4\n"),), ("trace.perf",)),
    Plant("lockup-detector", "sound", (put(f"{SYSCTL}/kernel/watchdog", "1\n"), put(f"{SYSCTL}/kernel/watchdog_cpumask", "0-3\n")), ("wd.soft",)),
    Plant("hung-tasks", "sound", (put(f"{SYSCTL}/kernel/hung_task_timeout_secs", "120\n"),), ("wd.hung",)),
    Plant("watchdog-not-fed", "pc", (put("/sys/class/watchdog/watchdog0/state", "inactive\n"),), ("wd.hw",)),
    Plant("panic-on-stall", "sound", (put(f"{SYSCTL}/kernel/panic_on_rcu_stall", "1\n"),), ("wd.panic",)),
    # Services
    Plant("two-tuners", "sound", (line("tasks", "701 701 1 TS - 0 0 0-3 400100 tuned"), line("tasks", "702 702 1 TS - 0 0 0-3 400100 tlp")), ("svc.tuners",)),
    Plant("cron", "sound", (line("tasks", "705 705 1 TS - 0 0 0-1 400100 cron"),), ("svc.noise",)),
    Plant("stalld", "sound", (line("tasks", "706 706 1 TS - 0 0 0-1 400100 stalld"),), ("svc.stalld",)),
    # Hardware
    Plant("interrupts-of-firmware", "pc", (at_end("smi", "".join(f"cpu{cpu} 43\n" for cpu in FOUR)),), ("hw.smi",)),
    Plant("old-firmware", "pc", (put("/sys/class/dmi/id/bios_date", "07/01/2015\n"),), ("hw.bios",)),
    Plant("corrected-memory-errors", "pc", (at_end("/sys/devices/system/edac/mc/mc0/ce_count", "2\n"),), ("hw.edac",)),
    Plant("virtual-machine", "pc", (swap("/proc/cpuinfo", " constant_tsc", " hypervisor constant_tsc"),), ("hw.virt",)),
)

SOUND_GUEST = AuditedGuest("debian-6.1-rt", 4, SOUND_BOOT, SOUND_SETUP)
REAL_PLANTS: tuple[RealPlant, ...] = (
    RealPlant("compaction-of-locked-memory", SOUND_GUEST, ("mem.compact.unevict",), (), ("echo 1 > /proc/sys/vm/compact_unevictable_allowed",)),
)
