/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/probes.h"

#include "collect/clock_adjust.h"
#include "collect/dma_latency.h"
#include "collect/firmware.h"
#include "collect/kernel_log.h"
#include "collect/network_devices.h"
#include "collect/observers.h"
#include "collect/permissions.h"
#include "collect/process.h"
#include "collect/process_groups.h"
#include "collect/tasks.h"
#include "collect/timer_devices.h"

const struct audit_probe audit_probes[] = {
	{ "tasks", "all threads: PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM", collect_tasks, false, false },
	{ "rt-permitted", "whether a thread may have SCHED_FIFO: yes, or the error", collect_rt_permitted, false, false },
	{ "lock-permitted", "whether a process may lock its memory: yes, or the error", collect_lock_permitted, false, false },
	{ "dma-latency", "what /dev/cpu_dma_latency grants, in us", collect_dma_latency, false, false },
	{ "dma-latency-holders", "who holds a request there: PID COMM", collect_dma_latency_holders, false, false },
	{ "net-devices", "network devices that are up: driver, coalescing, EEE, channels", collect_network_devices, false, false },
	{ "perf-users", "who has events of perf open: PID COMM EVENTS", collect_perf_users, false, false },
	{ "bpf-programs", "programs of BPF in the kernel: ID TYPE NAME", collect_bpf_programs, false, false },
	{ "hypervisor", "what CPUID or the device tree tell of a hypervisor", collect_hypervisor, false, false },
	{ "smi", "system management interrupts: cpuN COUNT", collect_smi, true, false },
	{ "clock-adjust", "how the wall clock is disciplined, and how long the machine slept", collect_clock_adjust, true, false },
	{ "timer-devices", "the lines of /proc/timer_list that name the device of each CPU's timer", collect_timer_devices, false, false },
	{ "process/status", "of the process of --pid: its file status", collect_process_status, false, true },
	{ "process/stat", "its file stat", collect_process_stat, true, true },
	{ "process/limits", "its file limits", collect_process_limits, false, true },
	{ "process/cgroup", "its file cgroup", collect_process_cgroup, false, true },
	{ "process/cgroup-files", "what its control groups and those above grant: PATH VALUE", collect_process_groups, false, true },
	{ "process/maps", "its mappings: NAME KIND SIZE_KB RSS_KB LOCKED_KB", collect_process_maps, false, true },
	{ "process/threads", "its threads, as tasks, with the timer slack in ns", collect_process_threads, false, true },
	{ "process/faults", "page faults of its threads: TID MINFLT MAJFLT", collect_process_faults, true, true },
	{ "process/numa_maps", "its file numa_maps", collect_process_numa_maps, false, true },
	{ "log-messages", "how many messages the kernel has logged", collect_log_messages, true, false },
	{ 0, 0, 0, false, false },
};
