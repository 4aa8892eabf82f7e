/* SPDX-License-Identifier: Apache-2.0 */
/* The module's events with a pipe in place of the device. */
#include "system/sys.h"

#include "probes/kernel/device.h"
#include "system/clock.h"

#include "check.h"

#include <string.h>

#define FIRST_NS 5000000000LL
#define PERIOD_NS 1000000LL

static struct device device;
static int writing_end;

static void open_as(enum rtproof_mode mode)
{
	int ends[2];

	CHECK(pipe(ends) == 0);
	device = (struct device){ .fd = ends[0], .mode = mode, .first_due_ns = FIRST_NS, .period_ns = PERIOD_NS };
	writing_end = ends[1];
}

static void end_source(void)
{
	CHECK(close(writing_end) == 0);
	writing_end = -1;
}

static void close_all(void)
{
	if (writing_end >= 0)
		end_source();
	CHECK(close(device.fd) == 0);
}

static void say(const void *bytes, size_t length)
{
	CHECK(write(writing_end, bytes, length) == (ssize_t)length);
}

static void tell(uint64_t index, int64_t irq_ns, int64_t task_ns, uint32_t missed, uint32_t lost)
{
	const struct rtproof_event event = { index, irq_ns, task_ns, missed, lost };

	say(&event, sizeof(event));
}

static struct activation take(void)
{
	struct activation activation;

	memset(&activation, 0x55, sizeof(activation));
	CHECK(device_take(&device, &activation) == 0);
	return activation;
}

static int refusal(void)
{
	struct activation activation;

	return device_take(&device, &activation);
}

static void each_mode_has_its_stages(void)
{
	open_as(RTPROOF_TASK);
	tell(0, 600, 4000, 0, 0);
	struct activation got = take();

	CHECK(got.due_ns == FIRST_NS && got.values[0] == 600 && got.values[1] == 4000 && !got.missed && !got.lost);
	close_all();
	open_as(RTPROOF_TIMER);
	tell(1, -7, RTPROOF_NONE, 0, 0);
	CHECK(take().values[0] == -7);
	close_all();
	open_as(RTPROOF_LOOP);
	tell(0, RTPROOF_NONE, 4100, 0, 0);
	CHECK(take().values[0] == 4100);
	close_all();
}

static void the_readers_own_clock_is_the_second_stage(void)
{
	int64_t before_ns = clock_now_ns();

	open_as(RTPROOF_USER);
	tell(3, 600, RTPROOF_NONE, 0, 0);
	tell(4, 700, RTPROOF_NONE, 0, 0);
	struct activation got = take();

	CHECK(got.values[0] == 600 && got.due_ns == FIRST_NS + 3 * PERIOD_NS);
	CHECK(got.due_ns + got.values[1] >= before_ns && got.due_ns + got.values[1] <= clock_now_ns());
	CHECK(device.n == 1 && device.at == 1); /* one event for each read() */
	CHECK(take().values[0] == 700);
	close_all();
}

static void a_batch_is_handed_out_one_by_one(void)
{
	open_as(RTPROOF_TASK);
	for (uint64_t i = 0; i < DEVICE_BATCH + 3; i++)
		tell(i, (int64_t)i, 2 * (int64_t)i, 0, 0);
	end_source();
	for (int64_t i = 0; i < DEVICE_BATCH + 3; i++) {
		struct activation got = take();

		CHECK(got.due_ns == FIRST_NS + i * PERIOD_NS && got.values[0] == i && got.values[1] == 2 * i && !got.lost);
		CHECK(device.n == (i < DEVICE_BATCH ? DEVICE_BATCH : 3));
	}
	CHECK(refusal() == -EPIPE);
	close_all();
}

static void missed_and_lost_are_told_apart(void)
{
	open_as(RTPROOF_TASK);
	tell(0, 1, 2, 4, 0);
	tell(5, 1, 2, 0, 0);
	tell(9, 1, 2, 0, 2); /* the two that were lost had missed one between them */
	tell(20, 1, 2, 0, 0); /* a leap without a reason */
	CHECK(take().missed == 4);
	CHECK(take().lost == 0);
	CHECK(take().lost == 3);
	CHECK(take().lost == 10);
	close_all();
}

static int answer_to(enum rtproof_mode mode, struct rtproof_event event)
{
	open_as(mode);
	tell(event.index, event.irq_ns, event.task_ns, event.missed, event.lost);
	int err = refusal();

	close_all();
	return err;
}

static void nonsense_is_refused(void)
{
	CHECK(answer_to(RTPROOF_TIMER, (struct rtproof_event){ .irq_ns = RTPROOF_NONE }) == -EPROTO);
	CHECK(answer_to(RTPROOF_TASK, (struct rtproof_event){ .task_ns = RTPROOF_NONE }) == -EPROTO);
	CHECK(answer_to(RTPROOF_LOOP, (struct rtproof_event){ .task_ns = RTPROOF_NONE }) == -EPROTO);
	CHECK(answer_to(RTPROOF_TASK, (struct rtproof_event){ .index = UINT64_MAX }) == -EPROTO);
	CHECK(answer_to(RTPROOF_TASK, (struct rtproof_event){ .index = INT64_MAX / PERIOD_NS, .missed = 1 }) == -EPROTO);
	open_as(RTPROOF_TASK);
	tell(7, 1, 2, 2, 0);
	tell(9, 1, 2, 0, 0); /* that due time was said to be missed */
	CHECK(take().due_ns == FIRST_NS + 7 * PERIOD_NS && refusal() == -EPROTO);
	close_all();
}

static void a_torn_event_is_refused(void)
{
	open_as(RTPROOF_TASK);
	say("torn", 4);
	CHECK(refusal() == -EPROTO);
	close_all();
}

static void what_is_left_is_pending(void)
{
	open_as(RTPROOF_TASK);
	tell(0, 1, 2, 0, 0);
	tell(1, 3, 4, 0, 0);
	CHECK(take().values[0] == 1);
	tell(2, 5, 6, 0, 0);
	end_source();
	CHECK(device_pending(&device) && device.stopped && take().values[0] == 3);
	CHECK(device_pending(&device) && take().values[0] == 5);
	CHECK(!device_pending(&device) && !device_pending(&device));
	close_all();
}

static uint64_t bins[RTPROOF_BINS];
static struct probe_file file;

static void make(const struct rtproof_summary *summary)
{
	free(file.content);
	CHECK(account_file(&file, 3, "irq", summary, bins) == 0);
}

static bool is_text(const char *text)
{
	return file.length == strlen(text) && !memcmp(file.content, text, file.length);
}

static void every_number_has_its_line(void)
{
	const struct rtproof_summary summary = { .count = 3, .missed = 4, .lost = 5, .rests = 6, .min = -7, .max = 8, .sum = -9,
						 .sum_squares_low = 10, .below = 11, .above = 12 };

	bins[0] = 1;
	bins[1030] = 2;
	make(&summary);
	CHECK(!strcmp(file.path, "rtproof.ko/thread3/irq"));
	CHECK(is_text("count 3\nmissed 4\nlost 5\nrests 6\nmin -7\nmax 8\nsum -9\nsum_squares 10\nbelow 11\nabove 12\nbin 0 1\n"
		      "bin 1030 2\n"));
}

static void squares_have_128_bits(void)
{
	struct rtproof_summary summary = { .sum_squares_high = 1 };

	make(&summary);
	CHECK(strstr(file.content, "\nsum_squares 18446744073709551616\n"));
	summary.sum_squares_low = summary.sum_squares_high = UINT64_MAX;
	make(&summary);
	CHECK(strstr(file.content, "\nsum_squares 340282366920938463463374607431768211455\n"));
}

/* Under AddressSanitizer this shows that the room is enough. */
static void the_longest_text_has_room(void)
{
	const struct rtproof_summary summary = { .count = UINT64_MAX, .missed = UINT64_MAX, .lost = UINT64_MAX, .rests = UINT64_MAX,
						 .min = INT64_MIN, .max = INT64_MIN, .sum = INT64_MIN,
						 .sum_squares_low = UINT64_MAX, .sum_squares_high = UINT64_MAX,
						 .below = UINT64_MAX, .above = UINT64_MAX };
	char last[64];

	for (int i = 0; i < RTPROOF_BINS; i++)
		bins[i] = UINT64_MAX;
	make(&summary);
	snprintf(last, sizeof(last), "bin %d 18446744073709551615\n", RTPROOF_BINS - 1);
	CHECK(file.length > strlen(last) && !memcmp(file.content + file.length - strlen(last), last, strlen(last)));
}

int main(void)
{
	sys_init();
	clock_init();
	each_mode_has_its_stages();
	the_readers_own_clock_is_the_second_stage();
	a_batch_is_handed_out_one_by_one();
	missed_and_lost_are_told_apart();
	nonsense_is_refused();
	a_torn_event_is_refused();
	what_is_left_is_pending();
	every_number_has_its_line();
	squares_have_128_bits();
	the_longest_text_has_room();
	free(file.content);
	return EXIT_SUCCESS;
}
