/* SPDX-License-Identifier: Apache-2.0 */
/* What is collected of the system: every part says what it has, or why it has nothing. */
#include "system/sys.h"

#include "facts/machine.h"

#include "check.h"

#include <string.h>

static void expect(const char *text, const char *const *words, bool in_line, const char *kept)
{
	struct bytes bytes = { NULL, 0, 0, false };

	system_filter(&bytes, text, words, in_line);
	put_u8(&bytes, 0);
	CHECK(!strcmp((const char *)bytes.data, kept));
	bytes_free(&bytes);
}

static void lines_with_a_word_are_kept(void)
{
	const char *const begins[] = { "CONFIG_HZ", "Linux/", NULL }, *const has[] = { "while atomic", "throttling", NULL };

	expect("# Linux/arm 6.1 Kernel\n#\nCONFIG_HZ=250\nCONFIG_NET=y\n# CONFIG_HZ_100 is not set\nX_CONFIG_HZ=1\nCONFIG_HZ_2", begins,
	       false, "# Linux/arm 6.1 Kernel\nCONFIG_HZ=250\n# CONFIG_HZ_100 is not set\nCONFIG_HZ_2\n");
	expect("<3>[1.0] BUG: scheduling while atomic: x\nnothing\n\n<6>RT throttling activated\nwhile\natomic", has, true,
	       "<3>[1.0] BUG: scheduling while atomic: x\n<6>RT throttling activated\n");
	expect("", has, true, "");
	expect("#\n# \n\n", begins, false, "");
}

/* Each line of the threads has seven words; this program is one of them. */
static bool this_is_among(struct bytes *threads)
{
	char own[64];

	put_u8(threads, 0);
	snprintf(own, sizeof(own), "\n%d %d TS - ", getpid(), getpid());
	CHECK(!strncmp((const char *)threads->data, "PID TID CLS RTPRIO NICE PSR COMM\n", 33));
	return strstr((const char *)threads->data, own);
}

int main(void)
{
	struct system_part parts[SYSTEM_PARTS];

	lines_with_a_word_are_kept();
	memset(parts, 0, sizeof(parts));
	system_collect(parts);
	for (int i = 0; i < SYSTEM_PARTS; i++) {
		CHECK(*parts[i].path && parts[i].err <= 0 && !parts[i].content.failed);
		CHECK(!parts[i].err || !parts[i].content.length);
	}
	CHECK(!strcmp(parts[0].path, "threads") && parts[0].err == 0);
	CHECK(this_is_among(&parts[0].content));
	system_free(parts);
	return EXIT_SUCCESS;
}
