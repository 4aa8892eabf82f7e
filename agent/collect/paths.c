/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/paths.h"

/*
 * Never list here what waits or acts when it is read: /proc/kmsg, trace_pipe, /proc/kcore, reset, rescan, NVRAM. What changes while a
 * run measures stands in run_paths instead.
 */
const struct audit_path audit_paths[] = {
	/* What shows whether the rest can be seen at all. */
	{ "/proc/version", FILE_CONTENT },
	{ "/proc/cmdline", FILE_CONTENT },
	{ "/proc/cpuinfo", FILE_CONTENT },
	{ "/proc/mounts", FILE_CONTENT },
	{ "/proc/self/status", FILE_CONTENT },
	{ "/proc/sys/kernel/osrelease", FILE_CONTENT },
	{ "/sys/devices/system/cpu/online", FILE_COUNTS },

	/* What the summary of every run reads. */
	{ "/proc/meminfo", FILE_CONTENT },
	{ "/proc/modules", FILE_CONTENT },
	{ "/proc/sys/kernel/sched_rt_period_us", FILE_CONTENT },
	{ "/proc/sys/kernel/printk", FILE_CONTENT },
	{ "/proc/sys/vm/overcommit_memory", FILE_CONTENT },
	{ "/proc/sys/vm/overcommit_ratio", FILE_CONTENT },
	{ "/proc/timer_list", FILE_CONTENT },
	{ "/proc/xenomai", FILE_CONTENT }, /* a folder, if it is there: EISDIR */
	{ "/proc/xenomai/version", FILE_CONTENT },
	{ "/proc/ipipe/version", FILE_CONTENT },
	{ "/proc/rtai", FILE_CONTENT },
	{ "/sys/class/evl", FILE_CONTENT },
	{ "/proc/fb", FILE_CONTENT },
	{ "/sys/class/drm/version", FILE_CONTENT },
	{ "/proc/device-tree/model", FILE_CONTENT },
	{ "/sys/class/dmi/id/sys_vendor", FILE_CONTENT },
	{ "/sys/class/dmi/id/product_name", FILE_CONTENT },
	{ "/sys/hypervisor/type", FILE_CONTENT },
	{ "/sys/kernel/security/lockdown", FILE_CONTENT },
	{ "/sys/kernel/realtime", FILE_CONTENT },
	{ "/sys/devices/system/cpu/isolated", FILE_CONTENT },
	{ "/sys/devices/system/cpu/nohz_full", FILE_CONTENT },
	{ "/sys/devices/system/cpu/smt/active", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpuidle/current_driver", FILE_CONTENT },
	{ "/sys/devices/system/clocksource/clocksource0/available_clocksource", FILE_CONTENT },
	{ "/proc/self/limits", FILE_CONTENT },

	/* kernel */
	{ "/proc/sys/kernel/tainted", FILE_CONTENT },

	/* boot */

	/* scheduler; what it judges besides is in the probes and in facts/machine.c */
	{ "/proc/sys/kernel/sched_rt_runtime_us", FILE_CONTENT },
	{ "/proc/sys/kernel/sched_rt_period_us", FILE_CONTENT },
	{ "/sys/kernel/debug/sched/features", FILE_CONTENT },
	{ "/sys/kernel/debug/sched_features", FILE_CONTENT }, /* before 5.13 */
	{ "/sys/kernel/debug/sched/fair_server/cpu*/runtime", FILE_CONTENT },
	{ "/sys/kernel/debug/sched/fair_server/cpu*/period", FILE_CONTENT },
	{ "/sys/kernel/sched_ext/state", FILE_CONTENT },
	{ "/proc/sys/kernel/timer_migration", FILE_CONTENT },
	{ "/proc/sys/kernel/numa_balancing", FILE_CONTENT },
	{ "/proc/sys/kernel/sched_autogroup_enabled", FILE_CONTENT },

	/* application: the probes of a process have all of it */

	/* isolation */
	{ "/sys/devices/system/cpu/present", FILE_CONTENT },
	{ "/sys/devices/system/cpu/isolated", FILE_CONTENT },
	{ "/sys/devices/system/cpu/nohz_full", FILE_CONTENT },
	{ "/sys/devices/system/cpu/smt/active", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu*/cpu_capacity", FILE_CONTENT },
	{ "/sys/devices/cpu_core/cpus", FILE_CONTENT },
	{ "/sys/devices/cpu_atom/cpus", FILE_CONTENT },
	{ "/sys/devices/system/node/node*/cpulist", FILE_CONTENT },
	{ "/sys/devices/system/machinecheck/machinecheck*/check_interval", FILE_CONTENT },
	{ "/sys/devices/system/machinecheck/machinecheck*/ignore_ce", FILE_CONTENT },
	{ "/sys/devices/virtual/workqueue/cpumask", FILE_CONTENT },
	{ "/sys/devices/virtual/workqueue/*/cpumask", FILE_CONTENT },
	{ "/sys/fs/cgroup/cpuset.cpus.isolated", FILE_CONTENT },
	{ "/sys/fs/cgroup/*/cpuset.cpus.partition", FILE_CONTENT },
	{ "/sys/fs/cgroup/*/*/cpuset.cpus.partition", FILE_CONTENT },
	{ "/sys/fs/cgroup/*/cpuset.cpus.effective", FILE_CONTENT },
	{ "/sys/fs/cgroup/*/*/cpuset.cpus.effective", FILE_CONTENT },
	{ "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", FILE_CONTENT },
	{ "/sys/fs/resctrl/schemata", FILE_CONTENT },
	{ "/sys/fs/resctrl/*/schemata", FILE_CONTENT },
	{ "/proc/interrupts", FILE_COUNTS },
	{ "/proc/softirqs", FILE_COUNTS },
	{ "/proc/irq/default_smp_affinity", FILE_CONTENT },
	{ "/proc/irq/*/smp_affinity", FILE_CONTENT },
	{ "/proc/irq/*/smp_affinity_list", FILE_CONTENT },
	{ "/proc/irq/*/effective_affinity_list", FILE_CONTENT },
	{ "/sys/kernel/irq/*/actions", FILE_CONTENT },
	{ "/sys/kernel/debug/irq/irqs/*", FILE_CONTENT },
	{ "/etc/default/irqbalance", FILE_CONTENT },
	{ "/etc/sysconfig/irqbalance", FILE_CONTENT },
	{ "/etc/irqbalance.env", FILE_CONTENT },
	{ "/sys/class/net/*/queues/rx-*/rps_cpus", FILE_CONTENT },
	{ "/proc/sys/net/core/rps_default_mask", FILE_CONTENT },

	/* power */

	/* clocks */

	/* memory */
	{ "/sys/kernel/mm/transparent_hugepage/enabled", FILE_CONTENT },

	/* console */
	{ "/proc/sys/kernel/printk", FILE_CONTENT },
	{ "/proc/consoles", FILE_CONTENT },
	{ "/sys/kernel/tracing/current_tracer", FILE_CONTENT },
	{ "/sys/kernel/tracing/available_tracers", FILE_CONTENT },
	{ "/sys/kernel/tracing/set_event", FILE_CONTENT },
	{ "/sys/kernel/tracing/events/enable", FILE_CONTENT },
	{ "/sys/kernel/tracing/tracing_max_latency", FILE_CONTENT },
	{ "/sys/kernel/tracing/instances/*/current_tracer", FILE_CONTENT },
	{ "/sys/kernel/tracing/instances/*/set_event", FILE_CONTENT },
	{ "/sys/kernel/debug/tracing/current_tracer", FILE_CONTENT },
	{ "/sys/kernel/debug/tracing/set_event", FILE_CONTENT },
	{ "/sys/kernel/debug/tracing/events/enable", FILE_CONTENT },
	{ "/proc/sys/kernel/perf_event_max_sample_rate", FILE_CONTENT },
	{ "/proc/sys/kernel/watchdog", FILE_CONTENT },
	{ "/proc/sys/kernel/watchdog_cpumask", FILE_CONTENT },
	{ "/proc/sys/kernel/hung_task_timeout_secs", FILE_CONTENT },
	{ "/sys/class/watchdog/", FOLDER_NAMES },
	{ "/sys/class/watchdog/*/state", FILE_CONTENT },
	{ "/sys/class/watchdog/*/identity", FILE_CONTENT },
	{ "/sys/class/misc/watchdog/dev", FILE_CONTENT },
	{ "/proc/sys/kernel/panic", FILE_CONTENT },
	{ "/proc/sys/kernel/softlockup_panic", FILE_CONTENT },
	{ "/proc/sys/kernel/hardlockup_panic", FILE_CONTENT },
	{ "/proc/sys/kernel/hung_task_panic", FILE_CONTENT },
	{ "/proc/sys/kernel/panic_on_rcu_stall", FILE_CONTENT },

	/* services */
	{ "/.dockerenv", FILE_CONTENT },
	{ "/run/.containerenv", FILE_CONTENT },
	{ "/proc/1/cgroup", FILE_CONTENT },
	{ "/proc/self/ns/pid", LINK_TARGET },
	{ "/etc/systemd/system/timers.target.wants/", FOLDER_NAMES },
	{ "/usr/lib/systemd/system/timers.target.wants/", FOLDER_NAMES },

	/* hardware */
	{ "/proc/stat", FILE_COUNTS },
	{ "/sys/hypervisor/type", FILE_CONTENT },
	{ "/sys/class/dmi/id/sys_vendor", FILE_CONTENT },
	{ "/sys/class/dmi/id/product_name", FILE_CONTENT },
	{ "/sys/class/dmi/id/bios_vendor", FILE_CONTENT },
	{ "/sys/class/dmi/id/bios_version", FILE_CONTENT },
	{ "/sys/class/dmi/id/bios_date", FILE_CONTENT },
	{ "/proc/device-tree/model", FILE_CONTENT },
	{ "/proc/device-tree/compatible", FILE_CONTENT },
	{ "/proc/device-tree/hypervisor/compatible", FILE_CONTENT },
	{ "/proc/device-tree/firmware/optee/compatible", FILE_CONTENT },
	{ "/sys/class/tee/tee0/dev", FILE_CONTENT },
	{ "/sys/module/kvm/parameters/halt_poll_ns", FILE_CONTENT },
	{ "/sys/module/kvm/parameters/kvmclock_periodic_sync", FILE_CONTENT },
	{ "/sys/module/kvm_intel/parameters/ple_gap", FILE_CONTENT },
	{ "/sys/devices/system/edac/mc/mc[0-9]*/ce_count", FILE_COUNTS },
	{ "/sys/class/net/*", LINK_TARGET },
	{ "/sys/class/sound/card[0-9]*", LINK_TARGET },
	{ "/sys/class/tty/tty[UA][SC][BM]*", LINK_TARGET },
	{ "/sys/module/dwc_otg/parameters/fiq_enable", FILE_CONTENT },
	{ "/sys/class/drm/card[0-9]/device/driver", LINK_TARGET },

	{ 0, FILE_CONTENT },
};

const struct audit_path run_paths[] = {
	{ "/proc/stat", FILE_COUNTS },
	{ "/proc/interrupts", FILE_COUNTS },
	{ "/proc/softirqs", FILE_COUNTS },
	{ "/proc/loadavg", FILE_COUNTS },
	{ "/proc/vmstat", FILE_COUNTS },
	{ "/proc/xenomai/stat", FILE_COUNTS }, /* mode switches, version 2 and 3 */
	{ "/proc/xenomai/sched/stat", FILE_COUNTS },
	{ "/proc/xenomai/sched", FILE_COUNTS }, /* threads and priorities, version 2; a folder in version 3 */
	{ "/proc/xenomai/sched/threads", FILE_COUNTS },
	{ "/proc/sys/kernel/sched_rt_runtime_us", FILE_COUNTS },
	{ "/sys/kernel/debug/sched/preempt", FILE_COUNTS },
	{ "/sys/devices/system/clocksource/clocksource0/current_clocksource", FILE_COUNTS },

	{ 0, FILE_COUNTS },
};
