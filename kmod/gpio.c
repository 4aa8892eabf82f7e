// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPIO chip without hardware, for tests of programs that answer edges (gpio=1). Eight lines:
 * outputs 0, 2 and 4 are wired to inputs 1, 3 and 5; 6 and 7 are free. Whoever may write the
 * parameter "inject" drives an input from outside:
 *	echo "7 1" > /sys/module/rtproof/parameters/inject
 * Edges raise interrupts, so the kernel stamps them and the character device tells of them as with
 * any chip. With edges_us= a timer changes line 7 that often; with gpio_irq=0 the chip is one
 * without interrupts.
 *
 * The chip stamps what it sees from outside of the kernel's GPIO code and of the program: when the
 * timer changed line 7, and when line 6 was driven to another level. Each such change answers the
 * oldest edge without an answer. The parameter "answers" has the last of these pairs.
 */
#define pr_fmt(fmt) "rtproof: " fmt
#include <linux/bitops.h>
#include <linux/gpio/driver.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "compat.h"
#include "gpio.h"
#include "gpio_compat.h"

#define LINES 8
#define WIRED 6 /* the lines below: even ones drive their odd neighbours */
#define FREE 7 /* driven by inject and by the timer */
#define ANSWER 6 /* what answers the free one */
#define ANSWERS_KEPT 128 /* as many as a page of text has room for */
#define EDGES_LEAST_US 100 /* more often, and a slow machine would do nothing else */

static bool gpio_irq = true;
module_param(gpio_irq, bool, 0444);
MODULE_PARM_DESC(gpio_irq, "with gpio=1: the chip can tell of edges (default: yes)");

static unsigned int edges_us;
module_param(edges_us, uint, 0444);
MODULE_PARM_DESC(edges_us, "with gpio=1: change input 7 every so many us, from 100 (default: never)");

struct loop {
	struct gpio_chip chip;
	struct irq_chip irq;
	struct platform_device *parent;
	struct irq_work edge_work;
	struct hrtimer generator;
	/* Raw: edges are raised in hard interrupt context, where a spinlock_t would sleep on RT. */
	raw_spinlock_t lock;
	unsigned long levels, outputs; /* a bit for each line, all below too */
	unsigned long enabled, rising, falling;
	unsigned long pending;
	struct rtproof_answer {
		u64 edge_ns, answer_ns;
	} answers[ANSWERS_KEPT];
	u32 given, answered; /* since line 7 was last taken for edges */
};

static struct loop *the_loop;
static DEFINE_MUTEX(the_loop_lock); /* against an injection while it is removed */

static const char *const names[LINES] = {
	"rtproof-out0", "rtproof-in1", "rtproof-out2", "rtproof-in3",
	"rtproof-out4", "rtproof-in5", "rtproof-6", "rtproof-7",
};

static ktime_t us_to_time(u64 us)
{
	return ns_to_ktime(us * NSEC_PER_USEC);
}

static void assign(unsigned long *bits, unsigned int line, bool value)
{
	if (value)
		*bits |= BIT(line);
	else
		*bits &= ~BIT(line);
}

/* With the lock held. */
static void drive_input(struct loop *loop, unsigned int line, bool value)
{
	unsigned long edges = value ? loop->rising : loop->falling;

	if (!!(loop->levels & BIT(line)) == value)
		return;
	assign(&loop->levels, line, value);
	if (!(loop->enabled & edges & BIT(line)))
		return;
	loop->pending |= BIT(line);
	irq_work_queue(&loop->edge_work);
}

/* With the lock held. */
static void drive_output(struct loop *loop, unsigned int line, bool value)
{
	if (line == ANSWER && loop->answered != loop->given && !!(loop->levels & BIT(line)) != value)
		loop->answers[loop->answered++ % ANSWERS_KEPT].answer_ns = ktime_get_ns();
	assign(&loop->levels, line, value);
	if (line < WIRED && !(line & 1) && !(loop->outputs & BIT(line + 1)))
		drive_input(loop, line + 1, value);
}

/* Hard interrupt context, on PREEMPT_RT too: what a chip's interrupt would be. */
static void raise_edges(struct irq_work *work)
{
	struct loop *loop = container_of(work, struct loop, edge_work);
	unsigned long pending, flags;
	unsigned int line;

	raw_spin_lock_irqsave(&loop->lock, flags);
	pending = loop->pending;
	loop->pending = 0;
	raw_spin_unlock(&loop->lock);
	for_each_set_bit(line, &pending, LINES)
		rtproof_raise_irq(loop->chip.irq.domain, line);
	local_irq_restore(flags);
}

/* With the lock held. Edges that nobody waits for have no answer. Old ones give way. */
static void note_edge(struct loop *loop, bool value)
{
	if (!(loop->enabled & (value ? loop->rising : loop->falling) & BIT(FREE)))
		return;
	if (loop->given - loop->answered == ANSWERS_KEPT)
		loop->answered++;
	loop->answers[loop->given++ % ANSWERS_KEPT] =
		(struct rtproof_answer){ .edge_ns = ktime_get_ns() };
}

/* Hard interrupt context: no task of this processor waits for the generator or is spared by it. */
static enum hrtimer_restart give_edge(struct hrtimer *timer)
{
	struct loop *loop = container_of(timer, struct loop, generator);
	unsigned long flags;

	raw_spin_lock_irqsave(&loop->lock, flags);
	if (!(loop->outputs & BIT(FREE))) {
		note_edge(loop, !(loop->levels & BIT(FREE)));
		drive_input(loop, FREE, !(loop->levels & BIT(FREE)));
	}
	raw_spin_unlock_irqrestore(&loop->lock, flags);
	hrtimer_forward_now(timer, us_to_time(edges_us));
	return HRTIMER_RESTART;
}

static int loop_get(struct gpio_chip *chip, unsigned int line)
{
	struct loop *loop = gpiochip_get_data(chip);

	return !!(READ_ONCE(loop->levels) & BIT(line));
}

static RTPROOF_GPIO_SET loop_set(struct gpio_chip *chip, unsigned int line, int value)
{
	struct loop *loop = gpiochip_get_data(chip);
	unsigned long flags;

	raw_spin_lock_irqsave(&loop->lock, flags);
	drive_output(loop, line, value);
	raw_spin_unlock_irqrestore(&loop->lock, flags);
	return RTPROOF_GPIO_SET_OK;
}

static int loop_direction_output(struct gpio_chip *chip, unsigned int line, int value)
{
	struct loop *loop = gpiochip_get_data(chip);
	unsigned long flags;

	raw_spin_lock_irqsave(&loop->lock, flags);
	loop->outputs |= BIT(line);
	drive_output(loop, line, value);
	raw_spin_unlock_irqrestore(&loop->lock, flags);
	return 0;
}

/* An input keeps the level it had, or takes that of the output it is wired to. */
static int loop_direction_input(struct gpio_chip *chip, unsigned int line)
{
	struct loop *loop = gpiochip_get_data(chip);
	unsigned long flags;

	raw_spin_lock_irqsave(&loop->lock, flags);
	loop->outputs &= ~BIT(line);
	if (line < WIRED && (line & 1) && (loop->outputs & BIT(line - 1)))
		drive_input(loop, line, loop->levels & BIT(line - 1));
	raw_spin_unlock_irqrestore(&loop->lock, flags);
	return 0;
}

static int loop_get_direction(struct gpio_chip *chip, unsigned int line)
{
	struct loop *loop = gpiochip_get_data(chip);

	return !(READ_ONCE(loop->outputs) & BIT(line)); /* 1 is an input */
}

static void enable(struct irq_data *data, bool value)
{
	struct gpio_chip *chip = irq_data_get_irq_chip_data(data);
	struct loop *loop = gpiochip_get_data(chip);
	unsigned long flags;

	raw_spin_lock_irqsave(&loop->lock, flags);
	assign(&loop->enabled, irqd_to_hwirq(data), value);
	if (value && irqd_to_hwirq(data) == FREE)
		loop->given = loop->answered = 0;
	raw_spin_unlock_irqrestore(&loop->lock, flags);
}

static void loop_irq_mask(struct irq_data *data)
{
	enable(data, false);
	rtproof_gpio_irq_off(irq_data_get_irq_chip_data(data), irqd_to_hwirq(data));
}

static void loop_irq_unmask(struct irq_data *data)
{
	rtproof_gpio_irq_on(irq_data_get_irq_chip_data(data), irqd_to_hwirq(data));
	enable(data, true);
}

static int loop_irq_set_type(struct irq_data *data, unsigned int type)
{
	struct gpio_chip *chip = irq_data_get_irq_chip_data(data);
	struct loop *loop = gpiochip_get_data(chip);
	unsigned long flags;

	if (!type || type & ~(unsigned int)IRQ_TYPE_EDGE_BOTH)
		return -EINVAL;
	raw_spin_lock_irqsave(&loop->lock, flags);
	assign(&loop->rising, irqd_to_hwirq(data), type & IRQ_TYPE_EDGE_RISING);
	assign(&loop->falling, irqd_to_hwirq(data), type & IRQ_TYPE_EDGE_FALLING);
	raw_spin_unlock_irqrestore(&loop->lock, flags);
	return 0;
}

static const struct irq_chip loop_irq_chip = {
	.name = "rtproof-loop",
	.irq_mask = loop_irq_mask,
	.irq_unmask = loop_irq_unmask,
	.irq_set_type = loop_irq_set_type,
	RTPROOF_GPIO_IRQ_CHIP
};

static int inject_into(struct loop *loop, unsigned int line, bool value)
{
	int error = 0;

	raw_spin_lock_irq(&loop->lock);
	if (loop->outputs & BIT(line))
		error = -EPERM;
	else
		drive_input(loop, line, value);
	raw_spin_unlock_irq(&loop->lock);
	return error;
}

static int inject(const char *text, const struct kernel_param *parameter)
{
	unsigned int line, value;
	int error = -ENODEV;
	char more;

	if (sscanf(text, "%u %u %c", &line, &value, &more) != 2 || line >= LINES || value > 1)
		return -EINVAL;
	mutex_lock(&the_loop_lock);
	if (the_loop)
		error = inject_into(the_loop, line, value);
	mutex_unlock(&the_loop_lock);
	return error;
}

static const struct kernel_param_ops inject_ops = { .set = inject };
module_param_cb(inject, &inject_ops, NULL, 0200);
MODULE_PARM_DESC(inject, "with gpio=1: \"LINE VALUE\" sets the level of an input");

/* Lines of two times: of the edge and of its answer, the oldest first. */
static int write_answers(struct loop *loop, char *page)
{
	u32 first, i;
	int used = 0;

	raw_spin_lock_irq(&loop->lock);
	first = loop->given > ANSWERS_KEPT ? loop->given - ANSWERS_KEPT : 0;
	for (i = first; i < loop->answered; i++)
		used += scnprintf(page + used, PAGE_SIZE - used, "%llu %llu\n",
				  loop->answers[i % ANSWERS_KEPT].edge_ns,
				  loop->answers[i % ANSWERS_KEPT].answer_ns);
	raw_spin_unlock_irq(&loop->lock);
	return used;
}

static int show_answers(char *page, const struct kernel_param *parameter)
{
	int used = 0;

	mutex_lock(&the_loop_lock);
	if (the_loop)
		used = write_answers(the_loop, page);
	mutex_unlock(&the_loop_lock);
	return used;
}

static const struct kernel_param_ops answers_ops = { .get = show_answers };
module_param_cb(answers, &answers_ops, NULL, 0444);
MODULE_PARM_DESC(answers, "with gpio=1: edges of the timer and their answers on line 6, in ns");

static void describe_interrupts(struct loop *loop)
{
	struct gpio_irq_chip *irq = &loop->chip.irq;

	loop->irq = loop_irq_chip;
	rtproof_gpio_irq_setup(irq, &loop_irq_chip, &loop->irq);
	irq->default_type = IRQ_TYPE_NONE;
	irq->handler = handle_simple_irq;
}

static void describe(struct loop *loop)
{
	struct gpio_chip *chip = &loop->chip;

	chip->label = "rtproof-loop";
	chip->parent = &loop->parent->dev;
	chip->owner = THIS_MODULE;
	chip->base = -1;
	chip->ngpio = LINES;
	chip->names = names;
	chip->get = loop_get;
	chip->set = loop_set;
	chip->get_direction = loop_get_direction;
	chip->direction_input = loop_direction_input;
	chip->direction_output = loop_direction_output;
	if (gpio_irq)
		describe_interrupts(loop);
	raw_spin_lock_init(&loop->lock);
	RTPROOF_HARD_WORK(&loop->edge_work, raise_edges);
	rtproof_timer_setup(&loop->generator, give_edge, HRTIMER_MODE_ABS_HARD);
}

static int add(struct loop *loop)
{
	int error;

	loop->parent = platform_device_register_simple("rtproof-loop", -1, NULL, 0);
	if (IS_ERR(loop->parent))
		return PTR_ERR(loop->parent);
	describe(loop);
	error = gpiochip_add_data(&loop->chip, loop);
	if (error)
		platform_device_unregister(loop->parent);
	return error;
}

int rtproof_gpio_add(void)
{
	struct loop *loop;
	int error;

	if (edges_us && edges_us < EDGES_LEAST_US) {
		pr_err("edges_us=%u: less than %u\n", edges_us, EDGES_LEAST_US);
		return -EINVAL;
	}
	loop = kzalloc(sizeof(*loop), GFP_KERNEL);
	error = loop ? add(loop) : -ENOMEM;
	if (error) {
		kfree(loop);
		return error;
	}
	if (edges_us)
		hrtimer_start(&loop->generator, ktime_add(ktime_get(), us_to_time(edges_us)),
			      HRTIMER_MODE_ABS_HARD);
	mutex_lock(&the_loop_lock);
	the_loop = loop;
	mutex_unlock(&the_loop_lock);
	return 0;
}

/* The chip's owner keeps the module as long as a line is in use, so no line is. */
void rtproof_gpio_remove(void)
{
	struct loop *loop = the_loop;

	mutex_lock(&the_loop_lock);
	the_loop = NULL;
	mutex_unlock(&the_loop_lock);
	hrtimer_cancel(&loop->generator);
	gpiochip_remove(&loop->chip);
	irq_work_sync(&loop->edge_work);
	platform_device_unregister(loop->parent);
	kfree(loop);
}
