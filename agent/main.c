/* SPDX-License-Identifier: Apache-2.0 */
/* rtproof-agent: measures how late a Linux system reacts, on the system itself, and writes the record. */
#include "system/sys.h"

#include "background_command.h"
#include "facts_command.h"
#include "load_command.h"
#include "loads/common/group.h"
#include "loads/common/program.h"
#include "options.h"
#include "record/record.h"
#include "run/run.h"
#include "run/settings.h"
#include "system/clock.h"
#include "system/folder.h"
#include "system/undo.h"
#include "trace/tracefs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_REFUSED = 2 };

static const char usage[] =
	"usage: rtproof-agent run -o FILE --duration TIME [option ...]\n"
	"       rtproof-agent load NAME[:K=V,..][@CPUS] ... [--program ...] [--duration TIME] [--stop-on-eof]\n"
	"       rtproof-agent background start | follow | signal | remove ...\n"
	"       rtproof-agent facts -o FILE [--pid PID] [--between TIME] | facts --list\n"
	"       rtproof-agent try --set NAME=VALUE ... [-- --set ...]    set it, say what became of it, and restore it\n"
	"       rtproof-agent undo    restore the settings that killed runs of this user left changed, and say which\n"
	"       rtproof-agent list | version | help\n"
	"\n";

static void list_options(const struct load *load, const struct load_option *option)
{
	for (; option->name; option++)
		printf("load_option\t%s\t%s\t%s\n", load->name, option->name, option->help);
}

static void list_load(const char *kind, const struct load *load)
{
	const char *missing = load == &load_program ? NULL : load_missing(load, 1);

	printf("%s\t%s\t%s%s%s\n", kind, load->name, load->help, missing ? "; not here: " : "", missing ? missing : "");
	list_options(load, load->options);
	list_options(load, load_common);
}

static int list(void)
{
	for (const struct probe *const *probe = probes; *probe; probe++) {
		printf("probe\t%s\t%s\n", (*probe)->name, (*probe)->help);
		for (int i = 0; (*probe)->options && (*probe)->options[i].name; i++)
			printf("probe_option\t%s\t%s\t%s\n", (*probe)->name, (*probe)->options[i].name, (*probe)->options[i].help);
		for (const struct method *const *method = (*probe)->methods; *method; method++) {
			const char *reason = method_unsupported(*method);

			printf("method\t%s\t%s\t%s%s%s\n", (*probe)->name, (*method)->name, (*method)->help,
			       reason ? "; not here: " : "", reason ? reason : "");
		}
	}
	for (const struct load *const *load = loads; *load; load++)
		list_load("load", *load);
	list_load("program", &load_program);
	return EXIT_SUCCESS;
}

static int help(void)
{
	fputs(usage, stdout);
	options_print(stdout);
	return ferror(stdout) != 0;
}

static int say(const char *why)
{
	fprintf(stderr, "rtproof-agent: %s\n", why);
	return EXIT_REFUSED;
}

static void reach_tracefs(void)
{
	const char *root;

	(void)tracefs_reach(&root);
}

/* What killed agents left. */
static void sweep(void)
{
	int done;

	(void)undo_sweep(reach_tracefs, &done);
	folder_sweep_files();
	group_sweep();
}

/* Groups of settings, with "--" between them; each is tried by itself. */
static int try_settings(int argc, char **argv)
{
	static struct config config;
	int code = EXIT_SUCCESS;

	for (int first = 0, end; first < argc; first = end) {
		char why[512] = "";

		for (end = first + 1; end < argc && strcmp(argv[end], "--");)
			end++;
		if (!parse_settings(end - first, argv + first, &config, why, sizeof(why)) && !settings_try(&config, why, sizeof(why)))
			continue;
		fprintf(stderr, "refused\t%s\n", why);
		code = EXIT_REFUSED;
	}
	return code;
}

static int run(int argc, char **argv)
{
	static struct config config;
	char why[512] = "";

	if (parse_config(argc, argv, &config, why, sizeof(why)) || run_measure(&config, why, sizeof(why)))
		return say(why);
	return EXIT_SUCCESS;
}

static int load(int argc, char **argv)
{
	char why[512] = "";

	return loading_main(argc, argv, why, sizeof(why)) ? say(why) : EXIT_SUCCESS;
}

static int background(int argc, char **argv)
{
	char why[512] = "";

	return background_main(argc, argv, why, sizeof(why)) ? say(why) : EXIT_SUCCESS;
}

static int facts(int argc, char **argv)
{
	char why[512] = "";

	return facts_main(argc, argv, why, sizeof(why)) ? say(why) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "help";

	sys_init();
	clock_init();
	if (!strcmp(command, "run") || !strcmp(command, "load") || !strcmp(command, "facts") || !strcmp(command, "try"))
		sweep();
	if (!strcmp(command, "run"))
		return run(argc - 1, argv + 1);
	if (!strcmp(command, "load"))
		return load(argc - 1, argv + 1);
	if (!strcmp(command, "background"))
		return background(argc - 1, argv + 1);
	if (!strcmp(command, "facts"))
		return facts(argc - 1, argv + 1);
	if (!strcmp(command, "try"))
		return try_settings(argc - 1, argv + 1);
	if (!strcmp(command, "list"))
		return list();
	if (!strcmp(command, UNDO_KEEPER)) /* for this program's own use, see undo.h */
		return undo_main();
	if (!strcmp(command, "undo"))
		return undo_for_user(reach_tracefs);
	if (!strcmp(command, "version"))
		return printf("%s record %d.%d\n", AGENT_VERSION, RECORD_MAJOR, RECORD_MINOR) < 0;
	if (!strcmp(command, "help") || !strcmp(command, "--help") || !strcmp(command, "-h"))
		return help();
	return say("unknown command; see rtproof-agent help");
}
