// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) "rtproof: " fmt
/* /dev/rtproof: the device and what can be asked of it (rtproof.h). */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "gpio.h"
#include "source.h"

static bool gpio;
module_param(gpio, bool, 0444);
MODULE_PARM_DESC(gpio, "also add a GPIO chip whose outputs are wired to its inputs (default: no)");

static int start(struct source *source, const void __user *from)
{
	struct rtproof_start asked;

	if (copy_from_user(&asked, from, sizeof(asked)))
		return -EFAULT;
	return source_start(source, &asked);
}

static int stop(struct source *source)
{
	if (source->state == SOURCE_NEW)
		return -EINVAL;
	source_stop(source);
	return 0;
}

static int copy_bins(const struct bank *bank, u64 address)
{
	if (!address)
		return 0;
	if (address != (uintptr_t)address)
		return -EFAULT;
	if (copy_to_user((void __user *)(uintptr_t)address, bank->bins, sizeof(bank->bins)))
		return -EFAULT;
	return 0;
}

static int summarise(struct source *source, void __user *at)
{
	struct rtproof_summary summary;
	struct stage *stage;

	if (copy_from_user(&summary, at, sizeof(summary)))
		return -EFAULT;
	if (summary.size != sizeof(summary) || !source_has(source, summary.stage))
		return -EINVAL;
	stage = &source->stages[summary.stage];
	stage_total(source, stage, &summary);
	if (copy_to_user(at, &summary, sizeof(summary)))
		return -EFAULT;
	return copy_bins(stage->total, summary.bins_address);
}

static int tell_task(struct source *source, void __user *at)
{
	s32 id;

	if (!source->task)
		return -ESRCH;
	id = task_pid_vnr(source->task);
	return put_user(id, (s32 __user *)at);
}

static long answer(struct source *source, unsigned int command, void __user *argument)
{
	switch (command) {
	case RTPROOF_START:
		return start(source, argument);
	case RTPROOF_STOP:
		return stop(source);
	case RTPROOF_SUMMARY:
		return summarise(source, argument);
	case RTPROOF_TASK_ID:
		return tell_task(source, argument);
	case RTPROOF_VERSION:
		return put_user(RTPROOF_ABI, (u32 __user *)argument);
	default:
		return -ENOTTY;
	}
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct source *source = file->private_data;
	long result;

	if (mutex_lock_interruptible(&source->control))
		return -ERESTARTSYS;
	result = answer(source, command, (void __user *)argument);
	mutex_unlock(&source->control);
	return result;
}

#ifdef CONFIG_COMPAT
/* The structures are the same for programs of 32 bits; only their pointers are shorter. */
static long device_compat_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	return device_ioctl(file, command, (unsigned long)compat_ptr(argument));
}
#endif

static int device_open(struct inode *inode, struct file *file)
{
	struct source *source;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	source = source_new();
	if (!source)
		return -ENOMEM;
	file->private_data = source;
	return nonseekable_open(inode, file);
}

/* Nobody reads or polls any more when this is called, and no ioctl runs. */
static int device_release(struct inode *inode, struct file *file)
{
	source_free(file->private_data);
	return 0;
}

static const struct file_operations device_operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.read = source_read,
	.poll = source_poll,
	.unlocked_ioctl = device_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = device_compat_ioctl,
#endif
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rtproof",
	.fops = &device_operations,
	.mode = 0600,
};

/* The same bytes for programs of 32 and 64 bits, and no padding that could carry memory out. */
static void check_interface(void)
{
	BUILD_BUG_ON(sizeof(struct rtproof_start) != 64);
	BUILD_BUG_ON(sizeof(struct rtproof_event) != 32);
	BUILD_BUG_ON(sizeof(struct rtproof_summary) != 104);
	BUILD_BUG_ON_NOT_POWER_OF_2(RTPROOF_RING);
}

static int __init rtproof_init(void)
{
	int error = 0;

	check_interface();
	if (gpio)
		error = rtproof_gpio_add();
	if (error == -EOPNOTSUPP)
		pr_err("gpio=1: this kernel was built without GPIOLIB_IRQCHIP\n");
	if (error)
		return error;
	error = misc_register(&device);
	if (error && gpio)
		rtproof_gpio_remove();
	return error;
}

static void __exit rtproof_exit(void)
{
	misc_deregister(&device);
	if (gpio)
		rtproof_gpio_remove();
}

module_init(rtproof_init);
module_exit(rtproof_exit);
MODULE_DESCRIPTION("rtproof: latency of a timer as the kernel itself sees it");
MODULE_AUTHOR("rtproof");
MODULE_LICENSE("GPL");
MODULE_VERSION("1");
