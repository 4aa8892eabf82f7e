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


def _plant(
    name: str, system: str, found: str, *edits: Edit, request: AuditRequest | None = None, together: bool = False
) -> Plant:
    """found: the ids of the checks that find it, with blanks between."""
    return Plant(name, system, edits, tuple(found.split()), request, together)


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

# fmt: off
PLANTS: tuple[Plant, ...] = (
    # Power
    _plant("governor-ondemand", "pc", "pm.governor",
        put(f"{CPU}/cpufreq/policy2/scaling_governor", "ondemand\n"),
        put(f"{CPU}/cpufreq/policy2/scaling_min_freq", "800000\n")),
    _plant("frequency-not-fixed", "pc", "pm.freq.fixed", put(f"{CPU}/cpufreq/policy2/scaling_min_freq", "800000\n")),
    _plant("frequency-moved", "pc", "pm.freq.fixed", at_end(f"{CPU}/cpufreq/policy1/scaling_cur_freq", "1200000\n")),
    _plant("turbo", "pc", "pm.turbo", put(f"{CPU}/intel_pstate/no_turbo", "0\n")),
    _plant("energy-preference", "pc", "pm.epp",
        put(f"{CPU}/cpufreq/policy3/energy_performance_preference", "balance_power\n")),
    _plant("uncore-clock", "pc", "pm.uncore",
        put(f"{CPU}/intel_uncore_frequency/package_00_die_00/min_freq_khz", "800000\n")),
    _plant("deep-idle-state", "pc", "pm.cstate", put(f"{CPU}/cpu3/cpuidle/state2/disable", "0\n")),
    _plant("idle-words", "pc", "pm.cstate.cmd", boot("intel_idle.max_cstate=0")),
    _plant("power-efficient-work", "pc", "pm.wq.power", put("/sys/module/workqueue/parameters/power_efficient", "Y\n")),
    _plant("link-power-saving", "pc", "pm.aspm",
        put("/sys/module/pcie_aspm/parameters/policy", "default performance [powersave] powersupersave\n")),
    _plant("device-suspends", "pc", "pm.rpm", put("/sys/bus/pci/devices/0000:02:00.0/power/control", "auto\n"),
        put("/sys/bus/pci/devices/0000:02:00.0/power/runtime_status", "suspended\n")),
    _plant("interrupts-collected", "pc", "pm.nic", swap("net-devices", "rx-usecs=0", "rx-usecs=250")),
    _plant("energy-efficient-ethernet", "pc", "pm.nic", swap("net-devices", "eee=0", "eee=1")),
    _plant("throttled-for-heat", "pc", "pm.thermal", at_end(f"{CPU}/cpu2/thermal_throttle/core_throttle_count", "3\n")),
    _plant("idle-state-of-arm", "arm", "pm.idle.arm", put(f"{CPU}/cpu0/cpuidle/state1/name", "cpu-sleep\n"),
        put(f"{CPU}/cpu0/cpuidle/state1/latency", "1200\n"), put(f"{CPU}/cpu0/cpuidle/state1/disable", "0\n")),
    # Clocks
    _plant("slow-clock-source", "pc", "clk.source",
        swap(f"{CPU.removesuffix('cpu')}clocksource/clocksource0/current_clocksource", "tsc", "hpet")),
    _plant("tsc-stops-in-idle", "pc", "clk.tsc clk.watchdog", swap("/proc/cpuinfo", " nonstop_tsc", "")),
    _plant("clock-adjusted", "pc", "clk.step", swap("clock-adjust", r"^frequency_ppb -?\d+", "frequency_ppb 31000"),
        at_end("clock-adjust", "status 2001\noffset_ns 4100\nfrequency_ppb 32000\nslept_ns 0\n")),
    # Memory
    _plant("huge-pages", "stock", "mem.thp",
        put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")),
    _plant("same-pages-merged", "sound", "mem.ksm", put("/sys/kernel/mm/ksm/run", "1\n")),
    _plant("swap", "sound", "mem.swap", line("/proc/swaps", "/dev/sda2 partition 4194300 0 -2")),
    _plant("locked-pages-moved", "sound", "mem.compact.unevict",
        put(f"{SYSCTL}/vm/compact_unevictable_allowed", "1\n")),
    _plant("background-compaction", "sound", "mem.compact.pro", put(f"{SYSCTL}/vm/compaction_proactiveness", "20\n")),
    _plant("counts-of-memory", "older", "mem.stat", put(f"{SYSCTL}/vm/stat_interval", "1\n")),
    _plant("overcommit", "sound", "mem.overcommit", put(f"{SYSCTL}/vm/overcommit_memory", "1\n")),
    _plant("much-dirty-memory", "sound", "mem.dirty", put(f"{SYSCTL}/vm/dirty_ratio", "40\n")),
    _plant("contradicting-dirty-memory", "sound", "mem.dirty", put(f"{SYSCTL}/vm/dirty_bytes", "40000000\n")),
    _plant("little-free-memory", "sound", "mem.minfree", put(f"{SYSCTL}/vm/min_free_kbytes", "100\n")),
    _plant("watermark-boost", "sound", "mem.minfree", put(f"{SYSCTL}/vm/watermark_boost_factor", "15000\n")),
    _plant("zone-reclaim", "sound", "mem.zone_reclaim", put(f"{SYSCTL}/vm/zone_reclaim_mode", "1\n")),
    # Scheduler
    _plant("policy-refused", "sound", "sched.rt.permitted", put("rt-permitted", "no: 1 Operation not permitted\n")),
    _plant("throttled", "older", "sched.rt_throttle", put(f"{SYSCTL}/kernel/sched_rt_runtime_us", "950000\n")),
    _plant("timers-migrate", "sound", "sched.timer_migration", put(f"{SYSCTL}/kernel/timer_migration", "1\n")),
    _plant("numa-balancing", "stock", "sched.numa", put(f"{SYSCTL}/kernel/numa_balancing", "1\n")),
    _plant("bpf-scheduler", "sound", "sched.ext_server", put("/sys/kernel/sched_ext/state", "enabled\n")),
    _plant("priority-99", "sound", "sched.prio99", line("tasks", "812 812 1 FF 99 - 0 0-1 0x00400100 plc")),
    _plant("deadline-thread", "sound", "sched.deadline", line("tasks", "813 813 1 DLN - - 0 0-1 0x00400100 camera")),
    # Console, tracing, watchdogs
    _plant("messages-on-serial-line", "stock", "con.printk", put(f"{SYSCTL}/kernel/printk", "7\t4\t1\t7\n")),
    _plant("function-tracer", "sound", "trace.active", put("/sys/kernel/tracing/current_tracer", "function\n")),
    _plant("events-traced", "sound", "trace.active", put("/sys/kernel/tracing/set_event", "sched:sched_switch\n")),
    _plant("bpf-at-events", "sound", "trace.bpf", put("bpf-programs", "17 5 falco_sched\n")),
    _plant("perf-samples", "sound", "trace.perf", put("perf-users", "930 perf 4\n")),
    _plant("lockup-detector", "sound", "wd.soft", put(f"{SYSCTL}/kernel/watchdog", "1\n"),
        put(f"{SYSCTL}/kernel/watchdog_cpumask", "0-3\n")),
    _plant("hung-tasks", "sound", "wd.hung", put(f"{SYSCTL}/kernel/hung_task_timeout_secs", "120\n")),
    _plant("watchdog-not-fed", "pc", "wd.hw", put("/sys/class/watchdog/watchdog0/state", "inactive\n")),
    _plant("panic-on-stall", "sound", "wd.panic", put(f"{SYSCTL}/kernel/panic_on_rcu_stall", "1\n")),
    # Services
    _plant("two-tuners", "sound", "svc.tuners", line("tasks", "701 701 1 TS - 0 0 0-1 0x00400100 tuned"),
        line("tasks", "702 702 1 TS - 0 0 0-1 0x00400100 tlp")),
    _plant("cron", "sound", "svc.noise", line("tasks", "705 705 1 TS - 0 0 0-1 0x00400100 cron")),
    _plant("stalld", "sound", "svc.stalld", line("tasks", "706 706 1 TS - 0 0 0-1 0x00400100 stalld")),
    # Hardware
    _plant("interrupts-of-firmware", "pc", "hw.smi", at_end("smi", "".join(f"cpu{cpu} 43\n" for cpu in FOUR))),
    _plant("old-firmware", "pc", "hw.bios", put("/sys/class/dmi/id/bios_date", "07/01/2015\n")),
    _plant("corrected-memory-errors", "pc", "hw.edac", at_end("/sys/devices/system/edac/mc/mc0/ce_count", "2\n")),
    _plant("virtual-machine", "pc", "hw.virt pm.vm.haltpoll",
        swap("/proc/cpuinfo", " constant_tsc", " hypervisor constant_tsc")),
    # How the kernel was built, and what it says about itself
    _plant("no-real-time-kernel", "sound", "kern.preempt.rt kern.preempt.mode kern.irq.thread",
        kernel(version="#1 SMP PREEMPT_DYNAMIC Debian 6.12.95-1~bpo12+1 (2026-07-11)"),
        option(PREEMPT_RT="n", PREEMPT_VOLUNTARY="y"), gone("/sys/kernel/realtime")),
    _plant("contradicting-configuration", "sound", "kern.preempt.rt kern.preempt.mode", option(PREEMPT_RT="n")),
    _plant("preemption-voluntary", "stock", "kern.preempt.mode",
        put("/sys/kernel/debug/sched/preempt", "none (voluntary) full lazy\n"),
        swap(LOG, "Dynamic Preempt: full", "Dynamic Preempt: voluntary"),
        swap("/proc/cmdline", "preempt=full", "preempt=voluntary")),
    _plant("low-resolution-timers", "sound", "kern.hrt", swap("/proc/timer_list", r"(\.hres_active\s*): 1", r"\1: 0"),
        boot("highres=off")),
    _plant("tick-stops", "sound", "kern.nohz.periodic", boot_without("nohz")),
    _plant("sleeps-in-ticks", "sound", "kern.hrt", swap("/proc/timer_list", r"(\.hres_active\s*): 1", r"\1: 0"),
        option(HIGH_RES_TIMERS="n")),
    _plant("real-time-groups", "sound", "kern.rtgroup",
        option(RT_GROUP_SCHED="y", RT_GROUP_SCHED_DEFAULT_DISABLED="n")),
    _plant("interrupts-without-threads", "stock", "kern.irq.thread", boot_without("threadirqs")),
    _plant("callbacks-on-isolated-cpus", "sound", "kern.rcu.nocb", boot_without("rcu_nocbs")),
    _plant("readers-not-boosted", "sound", "kern.rcu.boost", option(RCU_BOOST="n")),
    _plant("lazy-callbacks", "sound", "kern.rcu.lazy", option(RCU_LAZY="y", RCU_LAZY_DEFAULT_OFF="n"),
        put("/sys/module/rcutree/parameters/enable_rcu_lazy", "Y\n")),
    _plant("lockdep", "sound", "kern.dbg.lockdep", option(PROVE_LOCKING="y", LOCKDEP="y")),
    _plant("debug-preempt", "sound", "kern.dbg.preempt", option(DEBUG_PREEMPT="y")),
    _plant("irqsoff-tracer", "sound", "kern.dbg.irqsoff", option(IRQSOFF_TRACER="y"),
        swap("/sys/kernel/tracing/available_tracers", "nop", "irqsoff nop")),
    _plant("kasan", "sound", "kern.dbg.san", option(KASAN="y", KASAN_GENERIC="y")),
    _plant("kmemleak", "sound", "kern.dbg.kmemleak", option(DEBUG_KMEMLEAK="y", DEBUG_KMEMLEAK_DEFAULT_OFF="n")),
    _plant("debug-objects", "sound", "kern.dbg.objects", option(DEBUG_OBJECTS="y")),
    _plant("slab-objects-checked", "sound", "kern.dbg.slub", option(SLUB_DEBUG_ON="y")),
    _plant("slub-debug-at-boot", "sound", "kern.dbg.slub", boot("slub_debug=FZP")),
    _plant("scheduler-statistics", "sound", "kern.dbg.latencytop", put(f"{SYSCTL}/kernel/sched_schedstats", "1\n")),
    _plant("no-tracers", "sound", "kern.trace.avail",
        put("/sys/kernel/tracing/available_tracers", "blk function nop\n")),
    _plant("calls-of-firmware", "sound", "kern.efi", option(EFI_DISABLE_RUNTIME="n"),
        put("/sys/firmware/efi/", "config_table\nfw_vendor\nruntime\n"),
        gone("/sys/devices/virtual/workqueue/efi_runtime/cpumask")),
    _plant("default-governor", "pc", "kern.cpufreq.cfg", boot("cpufreq.default_governor=schedutil")),
    _plant("known-bug", "sound", "kern.bugwindow", kernel("6.12.0-rt-amd64", "#1 SMP PREEMPT_RT Sat Jan 18 2025")),
    _plant("lockdown", "sound", "kern.lockdown",
        put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")),
    _plant("foreign-module", "sound", "kern.taint", put(f"{SYSCTL}/kernel/tainted", "4096\n")),
    _plant("deadline-lag-in-the-log", "sound", "kern.dmesg.bugs",
        line(LOG, "<4>[   99.100000] sched: DL replenish lagged too much")),
    # The command line
    _plant("misspelt-parameter", "sound", "boot.unknown", boot("irq_affinity=0-1")),
    _plant("parameter-refused", "sound", "boot.unknown", boot("kthread_cpus=0-1"),
        line(LOG, '<5>[    0.01] Unknown kernel command line parameters "kthread_cpus=0-1", will be passed to user')),
    _plant("interrupts-to-isolated-cpus-at-boot", "sound", "boot.conflict",
        swap("/proc/cmdline", "irqaffinity=0-1", "irqaffinity=0-3")),
    _plant("letter-left-in-a-list", "sound", "boot.conflict",
        swap("/proc/cmdline", "irqaffinity=0-1", "irqaffinity=0-X")),
    _plant("boot-loader-ignored", "sound", "boot.drift",
        put("/etc/default/grub", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet processor.max_cstate=1"\n')),
    _plant("cpus-without-tick", "sound", "boot.nohz_full", put(f"{CPU}/nohz_full", "2-3\n")),
    _plant("new-interrupts-anywhere", "sound", "iso.irq.default",
        put("/proc/irq/default_smp_affinity", "f\n")),
    _plant("ticks-at-once", "sound", "boot.skew_tick", boot_without("skew_tick"),
        put(f"{CPU}/online", "0-7\n", both=True)),
    _plant("tsc-unchecked", "sound", "boot.tsc", boot("tsc=reliable")),
    _plant("pressure-stalls", "sound", "boot.psi", boot_without("psi"),
        put("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")),
    _plant("idle-cpu-polls", "sound", "boot.idle", boot("idle=poll")),
    _plant("memory-between-nodes", "stock", "sched.numa",
        put(f"{SYSCTL}/kernel/numa_balancing", "1\n"), put("/sys/devices/system/node/online", "0-1\n")),
    # Isolation
    _plant("cpu-offline", "sound", "boot.conflict", put(f"{CPU}/online", "0-2\n", both=True)),
    _plant("not-isolated", "sound", "iso.partition", put(f"{CPU}/isolated", "\n"),
        put("/sys/fs/cgroup/cpuset.cpus.isolated", "\n"), swap("/proc/cmdline", r"isolcpus=\S+ ", ""),
        request=AuditRequest(SOUND_CPUS)),
    _plant("none-isolated", "sound", "iso.declared", put(f"{CPU}/isolated", "\n"),
        put("/sys/fs/cgroup/cpuset.cpus.isolated", "\n"), boot_without("isolcpus", "nohz_full")),
    _plant("unbound-work-anywhere", "sound", "iso.wq", put("/sys/devices/virtual/workqueue/cpumask", "f\n")),
    _plant("kernel-thread-anywhere", "sound", "iso.kthreads",
        line("tasks", "850 850 2 TS - 0 2 0-3 0x00208040 [vendor_poll]")),
    _plant("program-on-isolated-cpu", "sound", "iso.tasks", line("tasks", "851 851 1 TS - 0 3 0-3 0x00400100 logger")),
    _plant("interrupt-on-isolated-cpu", "sound", "iso.irq.eff", put("/proc/irq/4/smp_affinity_list", "3\n"),
        put("/proc/irq/4/effective_affinity_list", "3\n")),
    _plant("names-alike", "sound", "iso.irq.match", put("/sys/kernel/irq/4/actions", "eth1\n"),
        put("/sys/kernel/irq/8/actions", "eth10\n")),
    _plant("interrupt-shared", "sound", "iso.irq.shared", put("/sys/kernel/irq/4/actions", "ttyS0,mydevice\n")),
    _plant("irqbalance", "sound", "iso.irqbalance", line("tasks", "703 703 1 TS - 0 0 0-1 0x00400100 irqbalance")),
    _plant("packets-steered", "sound", "iso.rps", put("/sys/class/net/eth0/queues/rx-0/rps_cpus", "c\n")),
    _plant("sibling-busy", "pc", "iso.smt", put(f"{CPU}/smt/active", "1\n"),
        put(f"{CPU}/cpu2/topology/thread_siblings_list", "0,2\n")),
    _plant("cache-shared", "pc", "iso.l3", *_on_every_cpu(f"{CPU}/cpu{{}}/cache/index3/shared_cpu_list", "0-3\n")),
    _plant("corrected-errors-polled", "pc", "iso.mce",
        put("/sys/devices/system/machinecheck/machinecheck2/check_interval", "300\n"),
        put("/sys/devices/system/machinecheck/machinecheck2/ignore_ce", "0\n")),
    _plant("two-nodes", "pc", "iso.numa", put("/sys/devices/system/node/node0/cpulist", "0-2\n"),
        put("/sys/devices/system/node/node1/cpulist", "3\n")),
    _plant("two-kinds-of-cores", "pc", "iso.hybrid", put("/sys/devices/cpu_core/cpus", "0-2\n"),
        put("/sys/devices/cpu_atom/cpus", "3\n")),
    _plant("cpu-vanishes", "sound", "iso.hotplug", at_end(f"{CPU}/online", "0-2\n")),
    # Scheduler, again
    _plant("time-borrowed", "older", "sched.rt_throttle sched.rt_share",
        put(f"{SYSCTL}/kernel/sched_rt_runtime_us", "950000\n"),
        swap("/sys/kernel/debug/sched/features", "NO_RT_RUNTIME_SHARE", "RT_RUNTIME_SHARE")),
    _plant("fair-server", "sound", "sched.fair_server",
        put("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "50000000\n")),
    _plant("memory-lock-refused", "sound", "sched.memlock", put("lock-permitted", "no: 1 Operation not permitted\n")),
    _plant("below-interrupt-threads", "sound", "sched.irqprio", line("tasks", "820 820 1 FF 40 - 0 0 0x00400100 plc")),
    # An application
    _plant("application-without-policy", "application", "sched.app.policy sched.app.slack sched.app.affinity",
        swap("process/threads", r" FF 8\d - ", " TS - 0 ")),
    _plant("application-not-locked", "application", "sched.app.lock",
        swap("process/status", r"^VmLck:\s+\d+ kB", "VmLck:\t       0 kB")),
    _plant("application-moves", "application", "sched.app.affinity",
        swap("process/threads", r" FF 80 - 2 2 ", " FF 80 - 2 0-3 ")),
    _plant("application-throttled", "application", "sched.app.quota",
        put("process/cgroup-files", "/sys/fs/cgroup/app/cpu.max 20000 100000\n")),
    _plant("application-heap", "application", "sched.app.heap",
        swap("process/maps", r"^(\[heap\] heap|- anonymous) (\d+) (\d+) \d+$", r"\1 \2 \3 0")),
    # More of power, console and hardware
    _plant("request-only-while-measuring", "pc", "pm.qos.dma", put("dma-latency", "0\n"),
        put("dma-latency-holders", "900 cyclictest\n")),
    _plant("limit-of-one-cpu", "pc", "pm.qos.cpu", put(f"{CPU}/cpu2/power/pm_qos_resume_latency_us", "5000\n")),
    _plant("guest-halts", "sound", "pm.vm.haltpoll", put("/sys/module/haltpoll/parameters/guest_halt_poll_ns", "0\n")),
    _plant("watchdog-of-clock", "pc", "clk.watchdog clk.tsc", swap("/proc/cpuinfo", " constant_tsc", "")),
    _plant("shared-timer", "sound", "clk.event", swap("timer-devices", "lapic", "hpet")),
    _plant("pages-moved", "sound", "mem.evid", swap_at_end("/proc/vmstat", r"^pgmajfault \d+", "pgmajfault 99999")),
    _plant("huge-pages-in-background", "stock", "mem.khugepaged",
        put("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", "1\n"),
        put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")),
    _plant("messages-pour", "sound", "con.spam", swap("log-messages", r"\d+", "400"), at_end("log-messages", "900\n")),
    _plant("host-of-guests", "pc", "hw.host", put("/sys/module/kvm/parameters/halt_poll_ns", "200000\n"),
        line("tasks", "950 951 1 TS - 0 0 0-1 0x00400100 CPU 0/KVM")),
    _plant("gaps-of-hardware", "pc", "hw.hwlat trace.active", put("/sys/kernel/tracing/current_tracer", "hwlat\n"),
        put("/sys/kernel/tracing/tracing_max_latency", "50\n")),
    _plant("secure-world", "arm", "hw.optee", put("/sys/class/tee/tee0/dev", "254:0\n")),
    _plant("network-on-usb", "pc", "hw.usb",
        put("/sys/class/net/eth1", "../../devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/net/eth1\n")),
    _plant("display-shares-memory", "pc", "hw.smp.quirk",
        put("/sys/class/drm/card0/device/driver", "../../../bus/pci/drivers/i915\n")),
    _plant("one-cpu", "arm", "hw.single", put(f"{CPU}/online", "0\n", both=True)),
    _plant("container", "sound", "svc.container", put("/proc/1/cgroup", "0::/docker/4cd1\n")),
    # What needs the whole list of threads, or two moments
    _plant("watchdogs-on", "sound", "wd.soft", boot_without("nowatchdog"),
        put(f"{SYSCTL}/kernel/watchdog", "1\n"), put(f"{SYSCTL}/kernel/soft_watchdog", "1\n"),
        put(f"{SYSCTL}/kernel/watchdog_cpumask", "0-3\n")),
    _plant("application-faults", "application", "sched.app.faults",
        swap_at_end("process/faults", r"^(\d+) \d+ (\d+)$", r"\1 90000 \2")),
    _plant("managed-interrupt", "sound", "iso.irq.managed", put("/sys/kernel/irq/11/actions", "nvme0q3\n"),
        put("/proc/irq/11/smp_affinity_list", "1-2\n"), put("/proc/irq/11/smp_affinity", "6\n"),
        put("/proc/irq/11/effective_affinity_list", "2\n")),
    _plant("flood-of-interrupts", "sound", "iso.irq.flood",
        swap_at_end("/proc/interrupts", r"^(  4: +\d+ +\d+) +\d+", r"\1 700")),
    _plant("services-anywhere", "sound", "iso.systemd iso.tasks",
        swap("tasks", r"^1 1 0 TS - 0 (\d+) \S+ (\S+) init$", r"1 1 0 TS - 0 \1 0-3 \2 systemd")),
    # Several at once
    _plant("fresh-installation", "sound",
        "iso.partition kern.rcu.nocb kern.nohz.periodic mem.stat mem.compact.unevict "
        "sched.timer_migration",
        boot_without("isolcpus", "rcu_nocbs", "skew_tick", "nohz"), put(f"{CPU}/isolated", "\n"),
        put("/sys/fs/cgroup/cpuset.cpus.isolated", "\n"), put(f"{SYSCTL}/vm/stat_interval", "1\n"),
        put(f"{SYSCTL}/vm/compact_unevictable_allowed", "1\n"), put(f"{SYSCTL}/kernel/timer_migration", "1\n"),
        request=AuditRequest(SOUND_CPUS), together=True),
    _plant("desktop-on-a-pc", "pc", "pm.governor pm.cstate pm.turbo iso.irqbalance svc.noise",
        put(f"{CPU}/cpufreq/policy2/scaling_governor", "powersave\n"),
        put(f"{CPU}/cpufreq/policy2/scaling_min_freq", "800000\n"), put(f"{CPU}/cpu3/cpuidle/state2/disable", "0\n"),
        put(f"{CPU}/intel_pstate/no_turbo", "0\n"), line("tasks", "703 703 1 TS - 0 0 0-1 0x00400100 irqbalance"),
        line("tasks", "705 705 1 TS - 0 0 0-1 0x00400100 cron"), together=True),
    _plant("debugging-kernel", "sound", "kern.dbg.lockdep kern.dbg.preempt kern.dbg.san kern.dbg.objects kern.dbg.slub",
        option(PROVE_LOCKING="y", LOCKDEP="y", DEBUG_PREEMPT="y", KASAN="y", DEBUG_OBJECTS="y", SLUB_DEBUG_ON="y"),
        together=True),
    _plant("left-over-from-measuring", "pc", "trace.active pm.qos.dma trace.perf kern.dbg.latencytop",
        put("/sys/kernel/tracing/set_event", "sched:sched_switch\n"), put("dma-latency", "0\n"),
        put("dma-latency-holders", "900 cyclictest\n"), put("perf-users", "930 perf 4\n"),
        put(f"{SYSCTL}/kernel/sched_schedstats", "1\n"), together=True),
    _plant("unprivileged-and-swapping", "sound", "sched.rt.permitted sched.memlock mem.swap mem.ksm",
        put("rt-permitted", "no: 1 Operation not permitted\n"),
        put("lock-permitted", "no: 1 Operation not permitted\n"),
        line("/proc/swaps", "/dev/sda2 partition 4194300 0 -2"), put("/sys/kernel/mm/ksm/run", "1\n"), together=True),
)
# fmt: on

_BUSY_HOST = (*SOUND_BOOT, "tsc=nowatchdog")
"""On a busy host, an emulator's time stamp counters look as if they were unstable."""
SOUND_GUEST = AuditedGuest("debian-6.12-rt", 4, _BUSY_HOST, SOUND_SETUP)
OLDER_GUEST = AuditedGuest("debian-6.1-rt", 4, _BUSY_HOST, SOUND_SETUP)
STOCK_GUEST = AuditedGuest("debian-6.12", 4, (*_BUSY_HOST, "preempt=full", "threadirqs"), SOUND_SETUP)


def _written(name: str, guest: AuditedGuest, path: str, text: str, *expected: str) -> RealPlant:
    return RealPlant(name, guest, expected, (), (f"echo {text} > {path}",))


def _at_boot(name: str, guest: AuditedGuest, words: str, *expected: str) -> RealPlant:
    return RealPlant(name, guest, expected, tuple(words.split()))


# fmt: off
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
    _written("lockup-detector", SOUND_GUEST, f"{SYSCTL}/kernel/watchdog", "1", "wd.soft"),
    _written("unbound-work-anywhere", SOUND_GUEST, "/sys/devices/virtual/workqueue/cpumask", "f", "iso.wq"),
    _written("new-interrupts-anywhere", SOUND_GUEST, "/proc/irq/default_smp_affinity", "f", "iso.irq.default"),
    RealPlant("interrupt-on-isolated-cpu", SOUND_GUEST, ("iso.irq.eff",), (),
        ("echo 3 > /proc/irq/4/smp_affinity_list", "for each in 1 2 3; do echo moved > /dev/ttyS0; sleep 1; done")),
    _written("events-traced", SOUND_GUEST, "/sys/kernel/tracing/events/sched/sched_waking/enable", "1", "trace.active"),
    _written("slow-clock-source", SOUND_GUEST, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "hpet", "clk.source"),
    RealPlant("program-on-isolated-cpu", SOUND_GUEST, ("iso.tasks",), (), ("(taskset 8 sleep 1000 &)", "sleep 2")),
    RealPlant("priority-99", SOUND_GUEST, ("sched.prio99",), (), ("(chrt -f 99 sleep 1000 &)", "sleep 2")),
    _at_boot("tick-stops", SOUND_GUEST, "nohz=on", "kern.nohz.periodic"),
    _at_boot("misspelt-parameter", SOUND_GUEST, "irq_affinity=0-1", "boot.unknown"),
    _at_boot("idle-cpu-polls", SOUND_GUEST, "idle=poll", "boot.idle"),
    _at_boot("pressure-stalls", SOUND_GUEST, "psi=1", "boot.psi"),
    _written("throttled", OLDER_GUEST, f"{SYSCTL}/kernel/sched_rt_runtime_us", "950000", "sched.rt_throttle"),
    _written("counts-of-memory", OLDER_GUEST, f"{SYSCTL}/vm/stat_interval", "1", "mem.stat"),
    _written("preemption-voluntary", STOCK_GUEST, "/sys/kernel/debug/sched/preempt", "voluntary", "kern.preempt.mode"),
    _written("huge-pages", STOCK_GUEST, "/sys/kernel/mm/transparent_hugepage/enabled", "always", "mem.thp"),
    _written("numa-balancing", STOCK_GUEST, f"{SYSCTL}/kernel/numa_balancing", "1", "sched.numa"),
    _written("messages-on-serial-line", STOCK_GUEST, f"{SYSCTL}/kernel/printk", "7", "con.printk"),
)
# fmt: on
