/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/common/cycles.h"

#include "check.h"

#include <errno.h>
#include <string.h>

#define PERIOD_NS 10000000

static char why[256];

static const char *refusal(const char *ignore, const char *low, const char *high)
{
	const char *const values[] = { ignore, low, high };

	*why = '\0';
	CHECK((band_check(values, PERIOD_NS, why, sizeof(why)) == -EINVAL) == !!*why);
	return why;
}

int main(void)
{
	CHECK(!*refusal(NULL, NULL, NULL));
	CHECK(!*refusal("0", "0ms", "1h"));
	CHECK(!*refusal("1000", "10ms", "10ms"));
	CHECK(strstr(refusal("-1", NULL, NULL), "takes a number of cycles, not '-1'"));
	CHECK(strstr(refusal("2147483648", NULL, NULL), "'ignore'"));
	CHECK(strstr(refusal(NULL, "10.001ms", NULL), "'low' takes a time with its unit that is not above the period"));
	CHECK(strstr(refusal(NULL, "9", NULL), "'low'"));
	CHECK(strstr(refusal(NULL, NULL, "9.999ms"), "'high' takes a time with its unit that is not below the period"));
	CHECK(strstr(refusal(NULL, "9ms", "ten"), "not 'ten'"));
	return EXIT_SUCCESS;
}
