/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/pages.h"
#include "trace/symbols.h"

#include "check.h"
#include "scratch.h"

#include <string.h>

static const char kernel[] = "0000000000000000 A fixed_percpu_data\n"
			     "ffffffff81000000 T _stext\n"
			     "ffffffff81000000 T startup\n"
			     "ffffffff81000200 t hrtimer_wakeup\n"
			     "ffffffff81000200 t an_alias\n"
			     "ffffffff81000210 d no_code\n"
			     "ffffffff81000300 T schedule\n"
			     "ffffffff81100000 T _etext\n"
			     "ffffffff81200000 D data\n"
			     "ffffffffc0000900 t late_in_module\t[one]\n"
			     "ffffffffc0000100 t early_in_module\t[one]\n"
			     "ffffffffc0100000 t bpf_prog_6deef7357e7b4530\t[bpf]\n"
			     "one 4096 0 - Live 0xffffffffc0000000 (O)\n" /* as in /proc/modules: one file stands for both */
			     "nonsense\n";

static void write_text(const char *text)
{
	FILE *file = fopen(scratch_file(), "w");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The lines for these addresses, which stand between other bytes. */
static void tell(const uint64_t *addresses, int n, char told[1024])
{
	static struct symbols symbols;
	uint8_t bytes[256] = { 0 };
	struct bytes text = { NULL, 0, 0, false };

	for (int i = 0; i < n; i++)
		memcpy(bytes + 4 + 12 * i, &addresses[i], 8);
	CHECK(symbols_open(&symbols, 8, scratch_path, scratch_path) == 0);
	symbols_see(&symbols, bytes, sizeof(bytes));
	symbols_tell(&symbols, scratch_path, &text);
	symbols_close(&symbols);
	memcpy(told, text.data ? (const char *)text.data : "", text.length);
	told[text.length] = '\0';
	bytes_free(&text);
}

static void functions_that_hold_an_address_are_told_once_and_in_order(void)
{
	const uint64_t some[] = { 0xffffffffc0000100, 0xffffffff81000234, 0xffffffff81000200, 0xffffffffc0000905, 0xffff888012345678, 0xffffffff81200000 };
	char told[1024];

	tell(some, 6, told);
	CHECK(!strcmp(told, "ffffffff81000200 t hrtimer_wakeup\n"
			    "ffffffffc0000100 t early_in_module\t[one]\n"
			    "ffffffffc0000900 t late_in_module\t[one]\n"));
}

static void programs_of_bpf_are_told_though_no_file_has_their_length(void)
{
	const uint64_t some[] = { 0xffffffffc0100032, 0xffffffffc0110001 };
	char told[1024];

	tell(some, 2, told);
	CHECK(!strcmp(told, "ffffffffc0100000 t bpf_prog_6deef7357e7b4530\t[bpf]\n"));
}

static void data_and_what_is_far_from_any_function_are_not_told(void)
{
	const uint64_t some[] = { 0xffffffff81050000, 0xffffffffc0000000 };
	char told[1024];

	tell(some, 2, told);
	CHECK(!strcmp(told, ""));
}

static void addresses_of_32_bits_are_found(void)
{
	static struct symbols symbols;
	const uint32_t words[] = { 7, 0xc0008010 };
	struct bytes text = { NULL, 0, 0, false };

	write_text("c0008000 T _stext\nc0008004 t tick\nc0009000 T _etext\n");
	CHECK(symbols_open(&symbols, 4, scratch_path, "/there/is/no/such/file") == 0);
	symbols_see(&symbols, (const uint8_t *)words, sizeof(words));
	symbols_tell(&symbols, scratch_path, &text);
	CHECK(text.length == 16 && !memcmp(text.data, "c0008004 t tick\n", 16));
	bytes_free(&text);
	symbols_close(&symbols);
}

static void hidden_addresses_and_no_symbols_are_errors(void)
{
	static struct symbols symbols;
	struct bytes text = { NULL, 0, 0, false };

	write_text("0000000000000000 T _stext\n0000000000000000 T _etext\n");
	CHECK(symbols_open(&symbols, 8, scratch_path, scratch_path) == -EPERM);
	symbols_see(&symbols, (const uint8_t *)kernel, sizeof(kernel));
	symbols_tell(&symbols, scratch_path, &text);
	CHECK(!text.length);
	CHECK(symbols_open(&symbols, 8, "/there/is/no/such/file", scratch_path) == -ENOENT);
	write_text("ffffffff81000000 T _stext\n");
	CHECK(symbols_open(&symbols, 8, scratch_path, scratch_path) == -ENOENT);
}

static const char header_64[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

static void the_layout_of_a_page_is_read_and_nonsense_refused(void)
{
	struct page_layout layout;
	uint8_t page[16] = { 0 };
	uint64_t stamp = 12345, commit = (1u << 31) | 40;

	CHECK(page_layout_parse(header_64, &layout) == 0);
	CHECK(layout.size == 4096 && layout.commit == 8 && layout.commit_size == 8 && layout.data == 16);
	memcpy(page, &stamp, 8);
	CHECK(page_head(&layout, page).empty && !page_head(&layout, page).lost);
	memcpy(page + 8, &commit, 8);
	CHECK(page_head(&layout, page).stamp == 12345 && page_head(&layout, page).lost && !page_head(&layout, page).empty);
	CHECK(page_layout_parse("", &layout) == -EINVAL);
	CHECK(page_layout_parse(" commit;\toffset:8;\tsize:3; data;\toffset:16;\tsize:9;", &layout) == -EINVAL);
	CHECK(page_layout_parse(" commit;\toffset:8;\tsize:8; data;\toffset:12;\tsize:9;", &layout) == -EINVAL);
	CHECK(page_layout_parse(" commit;\toffset:8;\tsize:8; data;\toffset:16;\tsize:2000000000;", &layout) == -EINVAL);
}

int main(void)
{
	write_text(kernel);
	functions_that_hold_an_address_are_told_once_and_in_order();
	programs_of_bpf_are_told_though_no_file_has_their_length();
	data_and_what_is_far_from_any_function_are_not_told();
	addresses_of_32_bits_are_found();
	hidden_addresses_and_no_symbols_are_errors();
	the_layout_of_a_page_is_read_and_nonsense_refused();
	return EXIT_SUCCESS;
}
