// SPDX-License-Identifier: GPL-2.0-only
/*
 * rtproof_disturb: disturbs a CPU in known ways, one after the other, to see that an explanation
 * names them. A task of ordinary policy begins each disturbance lead_ns before a due time of
 * somebody's grid: due times are origin_ns plus whole milliseconds, of CLOCK_MONOTONIC. From one
 * disturbance to the next it takes period_ms. Of each kind there are three lengths.
 *
 * An NMI needs the APIC of x86. The deep idle state is a driver of our own, which stays in it with
 * interrupts off, as hardware that needs long to come back. It needs a kernel with cpuidle and
 * without another driver, as in a guest. A function that another CPU has to call disturbs that one,
 * and stop-machine all. A kind that cannot be made is left out.
 *
 * The kernel chooses when a timer of the wheel and a callback of RCU run. They go on until a length
 * after the next due time.
 *
 * /proc/rtproof_disturb has a line for each disturbance: kind, begin, end (of CLOCK_MONOTONIC, in
 * ns) and the thread that did it, 0 if it was an interrupt.
 */
#define pr_fmt(fmt) "rtproof_disturb: " fmt
#include <linux/completion.h>
#include <linux/cpuidle.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/proc_fs.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/stop_machine.h>
#include <linux/timer.h>

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/apic.h>
#include <asm/nmi.h>
#endif

#include "../compat.h"

#define EARLY_NS (100 * NSEC_PER_USEC) /* for the task to wake up in, before it waits awake */
#define MOST 4096

static unsigned long long origin_ns;
module_param(origin_ns, ullong, 0444);
MODULE_PARM_DESC(origin_ns, "a due time of CLOCK_MONOTONIC");

static unsigned int period_ms = 10;
module_param(period_ms, uint, 0444);
MODULE_PARM_DESC(period_ms, "from one disturbance to the next, 4 to 10000 ms");

static unsigned int lead_ns = 20000;
module_param(lead_ns, uint, 0444);
MODULE_PARM_DESC(lead_ns, "how long before a due time a disturbance begins, at most 90000 ns");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "the one kind of disturbance to make; all kinds without it");

static int cpu;
module_param(cpu, int, 0444);
MODULE_PARM_DESC(cpu, "where");

enum kind {
	IRQS_OFF,
	PREEMPT_OFF,
	RAW_SPINLOCK,
	BH_OFF,
	KERNEL_CODE,
	TASKLET,
	HARD_IRQ,
	OTHER_TIMER,
	URGENT_TASK,
	NON_MASKABLE,
	IDLE_EXIT,
	HI_TASKLET,
	TASKLET_IRQS_OFF,
	SPIN_LOCK_IRQSAVE,
	READ_LOCK,
	MIGRATE_DISABLE,
	SOFTIRQ_TIMER,
	RCU_CALLBACK,
	DEADLINE_TASK,
	STOP_MACHINE,
	CALL_FUNCTION,
	KINDS
};

static const char *const names[KINDS] = {
	[IRQS_OFF] = "irqs-off",
	[PREEMPT_OFF] = "preempt-off",
	[RAW_SPINLOCK] = "raw-spinlock",
	[BH_OFF] = "bh-off",
	[KERNEL_CODE] = "kernel-code",
	[TASKLET] = "tasklet",
	[HARD_IRQ] = "hard-irq",
	[OTHER_TIMER] = "other-timer",
	[URGENT_TASK] = "urgent-task",
	[NON_MASKABLE] = "nmi",
	[IDLE_EXIT] = "idle-exit",
	[HI_TASKLET] = "hi-tasklet",
	[TASKLET_IRQS_OFF] = "tasklet-irqs-off",
	[SPIN_LOCK_IRQSAVE] = "spin-lock-irqsave",
	[READ_LOCK] = "read-lock",
	[MIGRATE_DISABLE] = "migrate-disable",
	[SOFTIRQ_TIMER] = "softirq-timer",
	[RCU_CALLBACK] = "rcu-callback",
	[DEADLINE_TASK] = "deadline-task",
	[STOP_MACHINE] = "stop-machine",
	[CALL_FUNCTION] = "call-function",
};
static const unsigned int lengths_us[] = { 100, 300, 1000 };

struct disturbance {
	enum kind kind;
	pid_t tid;
	u64 begin, end;
};

static struct disturbance done[MOST];
static unsigned int count;
/* A thread that disturbs when it is asked to. */
struct helper {
	enum kind kind;
	struct task_struct *task;
	bool wanted;
};

static struct task_struct *task;
static struct helper urgent = { .kind = URGENT_TASK }, deadline = { .kind = DEADLINE_TASK };
static struct hrtimer timer;
static struct irq_work work;
static DEFINE_RAW_SPINLOCK(lock);
static DEFINE_SPINLOCK(spinlock);
static DEFINE_RWLOCK(rwlock);
static struct timer_list wheel_timer;
static struct rcu_head rcu;
static DECLARE_COMPLETION(over);
static u64 length_ns;
static bool nmi_wanted, deep_wanted;
static enum kind tasklet_kind;
static enum kind made[KINDS]; /* the kinds that can be made here */
static unsigned int made_count;

static u64 now_ns(void)
{
	return ktime_to_ns(ktime_get());
}

/* A due time at least this much later. */
static u64 due_after(u64 later_ns)
{
	u64 gone = now_ns() + later_ns - origin_ns;

	return origin_ns + (div64_u64(gone, NSEC_PER_MSEC) + 1) * NSEC_PER_MSEC;
}

/* Spends the time from begin to end, and notes who did. Only one thing at a time disturbs. */
static void spend_until(enum kind kind, pid_t tid, u64 begin, u64 end)
{
	struct disturbance *note = &done[count % MOST];
	u64 last;

	do {
		last = now_ns();
	} while ((s64)(last - end) < 0);
	*note = (struct disturbance){ .kind = kind, .tid = tid, .begin = begin, .end = last };
	smp_store_release(&count, count + 1);
}

static void spend(enum kind kind, pid_t tid)
{
	u64 begin = now_ns();

	spend_until(kind, tid, begin, begin + length_ns);
}

/* What comes when the kernel wants: it makes somebody late only if it meets a due time. */
static void spend_past_due(enum kind kind)
{
	spend_until(kind, 0, now_ns(), due_after(0) + length_ns);
	complete(&over);
}

static void spend_with_irqs_off(enum kind kind, pid_t tid)
{
	unsigned long flags;

	local_irq_save(flags);
	spend(kind, tid);
	local_irq_restore(flags);
}

static void tasklet_runs(unsigned long unused)
{
	if (tasklet_kind == TASKLET_IRQS_OFF)
		spend_with_irqs_off(tasklet_kind, 0);
	else
		spend(tasklet_kind, 0);
}

static void wheel_turns(struct timer_list *unused)
{
	spend_past_due(SOFTIRQ_TIMER);
}

static void rcu_calls(struct rcu_head *unused)
{
	spend_past_due(RCU_CALLBACK);
}

static int machine_stops(void *unused)
{
	spend(STOP_MACHINE, current->pid);
	return 0;
}

static void call_runs(void *unused)
{
	spend(CALL_FUNCTION, 0);
}

static void call_elsewhere(void)
{
	smp_call_function_single(cpumask_any_but(cpu_online_mask, cpu), call_runs, NULL, true);
}

static void work_runs(struct irq_work *unused)
{
	spend(HARD_IRQ, 0);
}

static enum hrtimer_restart timer_fires(struct hrtimer *unused)
{
	spend(OTHER_TIMER, 0);
	return HRTIMER_NORESTART;
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static DECLARE_TASKLET_OLD(tasklet, tasklet_runs);

static int help(void *data)
{
	struct helper *helper = data;

	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		if (xchg(&helper->wanted, false))
			spend(helper->kind, current->pid);
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void ask(struct helper *helper)
{
	WRITE_ONCE(helper->wanted, true);
	wake_up_process(helper->task);
}

/*
 * Non-maskable interrupts. The task sends itself one, so that none comes while the clock is being
 * set.
 */
#ifdef CONFIG_X86_LOCAL_APIC
static int nmi_comes(unsigned int type, struct pt_regs *registers)
{
	if (!xchg(&nmi_wanted, false))
		return NMI_DONE;
	spend(NON_MASKABLE, 0);
	return NMI_HANDLED;
}

static void send_nmi(void)
{
	WRITE_ONCE(nmi_wanted, true);
	apic->send_IPI_mask(cpumask_of(cpu), NMI_VECTOR);
	while (READ_ONCE(nmi_wanted))
		cpu_relax();
}

static bool nmi_begins(void)
{
	return !register_nmi_handler(NMI_LOCAL, nmi_comes, 0, "rtproof_nmi");
}

static void nmi_ends(void)
{
	unregister_nmi_handler(NMI_LOCAL, "rtproof_nmi");
}
#else
static void send_nmi(void)
{
}

static bool nmi_begins(void)
{
	return false;
}

static void nmi_ends(void)
{
}
#endif

/* An idle state that takes long to leave: the interrupt that ends it has to wait. */
#if defined(CONFIG_CPU_IDLE) && (defined(CONFIG_X86) || defined(CONFIG_ARM64))
static void halt_cpu(void)
{
#ifdef CONFIG_X86
	asm volatile("sti; hlt; cli" ::: "memory");
#else
	asm volatile("dsb sy; wfi" ::: "memory");
#endif
}

static int be_idle(struct cpuidle_device *device, struct cpuidle_driver *driver, int state)
{
	if (device->cpu == cpu && xchg(&deep_wanted, false))
		spend(IDLE_EXIT, 0);
	else
		halt_cpu();
	return state;
}

static struct cpuidle_driver idle_driver = {
	.name = "rtproof_idle", /* without owner, or this module could never be removed */
	.states = { {
		.name = "DEEP",
		.desc = "takes long to leave",
		.exit_latency = 1,
		.target_residency = 1,
		.enter = be_idle,
	} },
	.state_count = 1,
};

static bool idle_begins(void)
{
	return !cpuidle_register(&idle_driver, NULL);
}

static void idle_ends(void)
{
	cpuidle_unregister(&idle_driver);
}
#else
static bool idle_begins(void)
{
	return false;
}

static void idle_ends(void)
{
}
#endif

/* Softirqs are off until it is scheduled, so that it runs here and now. */
static void run_tasklet(enum kind kind)
{
	tasklet_kind = kind;
	local_bh_disable();
	if (kind == HI_TASKLET)
		tasklet_hi_schedule(&tasklet);
	else
		tasklet_schedule(&tasklet);
	local_bh_enable();
}

static void with_spinlock(void)
{
	unsigned long flags;

	spin_lock_irqsave(&spinlock, flags);
	spend(SPIN_LOCK_IRQSAVE, current->pid);
	spin_unlock_irqrestore(&spinlock, flags);
}

static void disturb_now(enum kind kind)
{
	switch (kind) {
	case IRQS_OFF:
		spend_with_irqs_off(kind, current->pid);
		break;
	case PREEMPT_OFF:
		preempt_disable();
		spend(kind, current->pid);
		preempt_enable();
		break;
	case RAW_SPINLOCK:
		raw_spin_lock(&lock);
		spend(kind, current->pid);
		raw_spin_unlock(&lock);
		break;
	case BH_OFF:
		local_bh_disable();
		spend(kind, current->pid);
		local_bh_enable();
		break;
	case KERNEL_CODE:
		spend(kind, current->pid);
		break;
	case TASKLET:
	case HI_TASKLET:
	case TASKLET_IRQS_OFF:
		run_tasklet(kind);
		break;
	case SPIN_LOCK_IRQSAVE:
		with_spinlock();
		break;
	case READ_LOCK:
		read_lock(&rwlock);
		spend(kind, current->pid);
		read_unlock(&rwlock);
		break;
	case MIGRATE_DISABLE:
		migrate_disable();
		spend(kind, current->pid);
		migrate_enable();
		break;
	case SOFTIRQ_TIMER:
		mod_timer(&wheel_timer, jiffies + 1);
		wait_for_completion(&over);
		break;
	case RCU_CALLBACK:
		call_rcu(&rcu, rcu_calls);
		wait_for_completion(&over);
		break;
	case STOP_MACHINE:
		stop_machine(machine_stops, NULL, cpumask_of(cpu));
		break;
	case CALL_FUNCTION:
		call_elsewhere();
		break;
	case DEADLINE_TASK:
		ask(&deadline);
		break;
	case HARD_IRQ:
		irq_work_queue(&work);
		break;
	case OTHER_TIMER:
		hrtimer_start(&timer, ns_to_ktime(now_ns() + 2000), HRTIMER_MODE_ABS_PINNED_HARD);
		break;
	case NON_MASKABLE:
		send_nmi();
		break;
	case IDLE_EXIT: /* once this task sleeps */
		WRITE_ONCE(deep_wanted, true);
		break;
	default:
		ask(&urgent);
	}
}

/* False: the task is to end. */
static bool sleep_until(u64 until)
{
	ktime_t expires = ns_to_ktime(until);

	while (now_ns() < until) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout_range(&expires, 0, HRTIMER_MODE_ABS);
	}
	__set_current_state(TASK_RUNNING);
	return !kthread_should_stop();
}

static int disturb(void *unused)
{
	unsigned int n;
	u64 begin;

	for (n = 0; n < MOST; n++) {
		begin = due_after(period_ms * (u64)NSEC_PER_MSEC - NSEC_PER_MSEC) - lead_ns;
		if (!sleep_until(begin - EARLY_NS))
			return 0;
		length_ns = lengths_us[n / made_count % 3] * NSEC_PER_USEC;
		while (now_ns() < begin)
			cpu_relax();
		disturb_now(made[n % made_count]);
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ);
	return 0;
}

static int show(struct seq_file *file, void *unused)
{
	unsigned int i, n = smp_load_acquire(&count);

	for (i = 0; i < n && i < MOST; i++)
		seq_printf(file, "%s %llu %llu %d\n", names[done[i].kind], done[i].begin, done[i].end,
			   done[i].tid);
	return 0;
}

static bool sane(void)
{
	return period_ms >= 4 && period_ms <= 10000 && lead_ns <= 90000 && cpu >= 0 &&
	       cpu < nr_cpu_ids && cpu_online(cpu) && origin_ns <= now_ns();
}

static struct task_struct *make_task(int (*runs)(void *), void *data, const char *name)
{
	struct task_struct *made = kthread_create(runs, data, "%s", name);

	if (!IS_ERR(made))
		kthread_bind(made, cpu);
	return made;
}

/* A runtime that is longer than any disturbance, so that nothing throttles the thread. */
static bool deadline_begins(void)
{
	deadline.task = make_task(help, &deadline, "rtproof_dl");
	if (IS_ERR(deadline.task))
		return false;
	if (!rtproof_set_deadline(deadline.task, 3 * NSEC_PER_MSEC, 8 * NSEC_PER_MSEC)) {
		wake_up_process(deadline.task);
		return true;
	}
	kthread_stop(deadline.task);
	return false;
}

static bool begins(enum kind kind)
{
	switch (kind) {
	case NON_MASKABLE:
		return nmi_begins();
	case IDLE_EXIT:
		return idle_begins();
	case DEADLINE_TASK:
		return deadline_begins();
	case CALL_FUNCTION:
		return num_online_cpus() > 1;
	default:
		return true;
	}
}

static void choose_kinds(void)
{
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++)
		if ((!*only || !strcmp(only, names[kind])) && begins(kind))
			made[made_count++] = kind;
}

static void end_kinds(void)
{
	while (made_count--)
		if (made[made_count] == NON_MASKABLE)
			nmi_ends();
		else if (made[made_count] == IDLE_EXIT)
			idle_ends();
		else if (made[made_count] == DEADLINE_TASK)
			kthread_stop(deadline.task);
}

static int __init disturb_init(void)
{
	int error;

	if (!sane())
		return -EINVAL;
	choose_kinds();
	if (!made_count)
		return -EINVAL;
	rtproof_timer_setup(&timer, timer_fires, HRTIMER_MODE_ABS_PINNED_HARD);
	RTPROOF_HARD_WORK(&work, work_runs);
	timer_setup(&wheel_timer, wheel_turns, TIMER_PINNED);
	error = -ENOMEM;
	if (!proc_create_single("rtproof_disturb", 0444, NULL, show))
		goto no_file;
	urgent.task = make_task(help, &urgent, "rtproof_urgent");
	error = PTR_ERR_OR_ZERO(urgent.task);
	if (error)
		goto no_urgent;
	task = make_task(disturb, NULL, "rtproof_disturb");
	error = PTR_ERR_OR_ZERO(task);
	if (error)
		goto no_task;
	error = rtproof_set_policy(urgent.task, SCHED_FIFO, 97);
	if (error)
		goto no_policy;
	wake_up_process(urgent.task);
	wake_up_process(task);
	return 0;

no_policy:
	kthread_stop(task);
no_task:
	kthread_stop(urgent.task);
no_urgent:
	remove_proc_entry("rtproof_disturb", NULL);
no_file:
	end_kinds();
	return error;
}

static void __exit disturb_exit(void)
{
	kthread_stop(task);
	kthread_stop(urgent.task);
	hrtimer_cancel(&timer);
	irq_work_sync(&work);
	tasklet_kill(&tasklet);
	timer_delete_sync(&wheel_timer);
	rcu_barrier();
	end_kinds();
	remove_proc_entry("rtproof_disturb", NULL);
}

module_init(disturb_init);
module_exit(disturb_exit);
MODULE_DESCRIPTION("rtproof: disturbs a CPU in known ways, to test what explains latencies");
MODULE_AUTHOR("rtproof");
MODULE_LICENSE("GPL");
