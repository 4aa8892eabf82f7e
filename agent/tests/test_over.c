/* SPDX-License-Identifier: Apache-2.0 */
/* What is told to those who watch a limit. */
#include "sys.h"

#include "over.h"

#include "check.h"
#include "scratch.h"

#include <fcntl.h>
#include <string.h>

static char told[4096];
static int saved;

static void listen_from_now(void)
{
	CHECK(fflush(stderr) == 0);
	saved = dup(STDERR_FILENO);
	int fd = open(scratch_file(), O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0 && close(fd) == 0);
}

static void expect(const char *lines)
{
	CHECK(fflush(stderr) == 0);
	ssize_t n = pread(STDERR_FILENO, told, sizeof(told) - 1, 0);

	CHECK(n >= 0 && dup2(saved, STDERR_FILENO) >= 0 && close(saved) == 0);
	told[n] = '\0';
	if (strcmp(told, lines))
		printf("told:\n%s", told);
	CHECK(!strcmp(told, lines));
}

static void a_second_is_told_once_with_its_largest(void)
{
	struct over over = { 0, 0, 0, false };

	listen_from_now();
	over_tell(&over, 3, 1000);
	over_add(&over, 3, 1000, 7, 1001);
	over_add(&over, 3, 1000, 7, 5000);
	over_add(&over, 3, 1000, 7, 4000);
	over_tell(&over, 3, 1000);
	over_tell(&over, 3, 1000);
	over_add(&over, 3, 1000, 7, 6000); /* larger, but it ends in the same second */
	over_tell(&over, 3, 1000);
	expect("over thread=3 limit_ns=1000 second=7 worst_ns=5000\n");
}

static void a_new_second_tells_of_the_one_before(void)
{
	struct over over = { 0, 0, 0, false };

	listen_from_now();
	for (int64_t second = 0; second < 3; second++)
		over_add(&over, 0, 1000, 10 * second, 1001 + second);
	over_tell(&over, 0, 1000);
	expect("over thread=0 limit_ns=1000 second=0 worst_ns=1001\n"
	       "over thread=0 limit_ns=1000 second=10 worst_ns=1002\n"
	       "over thread=0 limit_ns=1000 second=20 worst_ns=1003\n");
}

static void what_reaches_a_second_further_is_told_again(void)
{
	struct over over = { 0, 0, 0, false };

	listen_from_now();
	over_add(&over, 1, 1000, 7, 1001);
	over_tell(&over, 1, 1000);
	over_add(&over, 1, 1000, 7, 1000 + NS_PER_SECOND);
	over_tell(&over, 1, 1000);
	over_add(&over, 1, 1000, 7, 999 + 2 * NS_PER_SECOND);
	over_tell(&over, 1, 1000);
	over_add(&over, 1, 1000, 7, 1000 + 2 * NS_PER_SECOND);
	over_tell(&over, 1, 1000);
	expect("over thread=1 limit_ns=1000 second=7 worst_ns=1001\n"
	       "over thread=1 limit_ns=1000 second=7 worst_ns=1000001000\n"
	       "over thread=1 limit_ns=1000 second=7 worst_ns=2000001000\n");
}

int main(void)
{
	a_second_is_told_once_with_its_largest();
	a_new_second_tells_of_the_one_before();
	what_reaches_a_second_further_is_told_again();
	return EXIT_SUCCESS;
}
