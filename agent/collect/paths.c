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
	{ "/sys/devices/system/cpu/online", FILE_CONTENT },

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

	/* scheduler */

	/* application */

	/* isolation */

	/* power */
	{ "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq", FILE_COUNTS },
	{ "/sys/devices/system/cpu/cpufreq/policy*/cpuinfo_avg_freq", FILE_COUNTS },
	{ "/sys/devices/system/cpu/cpufreq/policy*/scaling_driver", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpufreq/policy*/boost", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpufreq/boost", FILE_CONTENT },
	{ "/sys/devices/system/cpu/intel_pstate/no_turbo", FILE_CONTENT },
	{ "/sys/devices/system/cpu/amd_pstate/status", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu[0-9]*/power/energy_perf_bias", FILE_CONTENT },
	{ "/sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz", FILE_CONTENT },
	{ "/sys/devices/system/cpu/intel_uncore_frequency/*/max_freq_khz", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpuidle/current_driver", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpuidle/current_governor", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpuidle/current_governor_ro", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/name", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/latency", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/disable", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu[0-9]*/power/pm_qos_resume_latency_us", FILE_CONTENT },
	{ "/sys/module/intel_idle/parameters/max_cstate", FILE_CONTENT },
	{ "/sys/module/haltpoll/parameters/guest_halt_poll_ns", FILE_CONTENT },
	{ "/sys/module/workqueue/parameters/power_efficient", FILE_CONTENT },
	{ "/sys/module/pcie_aspm/parameters/policy", FILE_CONTENT },
	{ "/sys/bus/pci/devices/*/link/l0s_aspm", FILE_CONTENT },
	{ "/sys/bus/pci/devices/*/link/l1_aspm", FILE_CONTENT },
	{ "/sys/bus/pci/devices/*/power/control", FILE_CONTENT },
	{ "/sys/bus/pci/devices/*/power/runtime_status", FILE_CONTENT },
	{ "/sys/bus/usb/devices/*/power/control", FILE_CONTENT },
	{ "/sys/bus/usb/devices/*/power/runtime_status", FILE_CONTENT },
	{ "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count", FILE_COUNTS },
	{ "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/package_throttle_count", FILE_COUNTS },
	{ "/sys/devices/platform/soc/soc:firmware/get_throttled", FILE_COUNTS },

	/* clocks */
	{ "/sys/devices/system/clocksource/clocksource0/current_clocksource", FILE_COUNTS },
	{ "/sys/devices/system/clocksource/clocksource0/available_clocksource", FILE_CONTENT },
	{ "/sys/devices/system/node/online", FILE_CONTENT },

	/* memory */
	{ "/sys/kernel/mm/transparent_hugepage/enabled", FILE_CONTENT },
	{ "/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled", FILE_CONTENT },
	{ "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", FILE_CONTENT },
	{ "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", FILE_CONTENT },
	{ "/sys/kernel/mm/ksm/run", FILE_CONTENT },
	{ "/sys/kernel/mm/ksm/pages_sharing", FILE_CONTENT },
	{ "/proc/swaps", FILE_CONTENT },
	{ "/proc/meminfo", FILE_CONTENT },
	{ "/proc/vmstat", FILE_COUNTS },
	{ "/proc/sys/vm/swappiness", FILE_CONTENT },
	{ "/proc/sys/vm/overcommit_memory", FILE_CONTENT },
	{ "/proc/sys/vm/overcommit_ratio", FILE_CONTENT },
	{ "/proc/sys/vm/compact_unevictable_allowed", FILE_CONTENT },
	{ "/proc/sys/vm/compaction_proactiveness", FILE_CONTENT },
	{ "/proc/sys/vm/stat_interval", FILE_CONTENT },
	{ "/proc/sys/vm/dirty_bytes", FILE_CONTENT },
	{ "/proc/sys/vm/dirty_ratio", FILE_CONTENT },
	{ "/proc/sys/vm/dirty_background_bytes", FILE_CONTENT },
	{ "/proc/sys/vm/dirty_background_ratio", FILE_CONTENT },
	{ "/proc/sys/vm/min_free_kbytes", FILE_CONTENT },
	{ "/proc/sys/vm/watermark_boost_factor", FILE_CONTENT },
	{ "/proc/sys/vm/zone_reclaim_mode", FILE_CONTENT },

	/* console */

	/* services */

	/* hardware */

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
