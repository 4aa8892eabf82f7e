/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "loads/common/running.h"

#include "system/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESTART_LEAST_NS 100000000LL

const struct load_option load_common[] = {
	{ "restart", "kill it and start it again this often, such as 65s (default: never)", 0, 0, LOAD_TEXT },
	{ NULL, NULL, 0, 0, 0 },
};

static int parse_restart(struct running_load *running, const char *value, char *why, size_t room)
{
	if (value && !text_duration_ns(value, &running->restart_ns) && running->restart_ns >= RESTART_LEAST_NS)
		return 0;
	snprintf(why, room, "option 'restart' of load '%s' takes a time of at least 100ms, such as 65s", running->name);
	return -EINVAL;
}

static int parse_text(const char *name, const struct load_option *option, const char *value, const char **text,
		      char *why, size_t room)
{
	int64_t length = value ? (int64_t)strlen(value) : -1;

	*text = value;
	if (length >= option->least && length <= option->most)
		return 0;
	snprintf(why, room, "option '%s' of load '%s' takes %lld to %lld characters", option->name, name,
		 (long long)option->least, (long long)option->most);
	return -EINVAL;
}

static int parse_option(struct running_load *running, char *text, char *why, size_t room)
{
	const struct load *load = running->load;
	char *value = strchr(text, '=');

	if (value)
		*value++ = '\0';
	if (!strcmp(text, load_common->name))
		return parse_restart(running, value, why, room);
	for (int i = 0; load->options[i].name; i++) {
		const struct load_option *option = &load->options[i];

		if (strcmp(option->name, text))
			continue;
		if (option->preset == LOAD_TEXT)
			return parse_text(running->name, option, value, &running->order.texts[i], why, room);
		if (value && !text_number(value, option->least, option->most, &running->order.values[i]))
			return 0;
		snprintf(why, room, "option '%s' of load '%s' takes a whole number from %lld to %lld", option->name,
			 running->name, (long long)option->least, (long long)option->most);
		return -EINVAL;
	}
	snprintf(why, room, "load '%s' has no option '%s'", running->name, text);
	return -EINVAL;
}

int load_keep_text(const char *text, struct running_load *running, char *why, size_t room)
{
	memset(running, 0, sizeof(*running));
	running->name = running->given;
	if (snprintf(running->given, LOAD_GIVEN, "%s", text) < LOAD_GIVEN)
		return 0;
	snprintf(why, room, "a load takes fewer than %d characters", LOAD_GIVEN);
	return -EINVAL;
}

/* An @ at the end with what only a list of CPUs has behind it. All other @ are part of an option's value, or wrong. */
static char *find_binding(char *text)
{
	char *at = strrchr(text, '@');

	return at && at[1] && at[1 + strspn(at + 1, "0123456789,-")] == '\0' ? at : NULL;
}

/* Cuts "@0-2,5" off the end. */
static int parse_binding(struct running_load *running, char *why, size_t room)
{
	char *at = find_binding(running->given), *other;

	if (at) {
		*at++ = '\0';
		running->bound = true;
		if (cpus_parse(at, &running->cpus))
			return text_refuse(why, room, -EINVAL, "load '%s' can't be bound to '@%s': a list of CPUs is such as 0-2,5", running->given, at);
	}
	other = strchr(running->given, '@');
	if (at && (find_binding(running->given) || (other && other < strchr(running->given, ':'))))
		return text_refuse(why, room, -EINVAL, "load '%s@%s' is bound twice: give one @ with all of its CPUs, such as @0-2,5",
				   running->given, at);
	if (other && (size_t)(other - running->given) < strcspn(running->given, ":"))
		return text_refuse(why, room, -EINVAL, "load '%s': an @ stands at the end, with a list of CPUs behind it: NAME[:key=value,...]@0-2,5",
				   running->given);
	return 0;
}

static void keep_label(struct running_load *running)
{
	int length = snprintf(running->label, sizeof(running->label), "%.31s@", running->name);

	cpus_format(&running->cpus, running->label + length, sizeof(running->label) - (size_t)length);
	running->name = running->label;
}

int load_parse_options(struct running_load *running, char *why, size_t room)
{
	char *rest = NULL, *options;
	int err = parse_binding(running, why, room);

	if (err)
		return err;
	options = strchr(running->given, ':');
	if (options)
		*options++ = '\0';
	if (!running->load)
		running->load = load_find(running->name);
	if (!running->load) {
		snprintf(why, room, "there is no load '%s'; see rtproof-agent list", running->name);
		return -EINVAL;
	}
	for (int i = 0; i < LOAD_OPTIONS; i++)
		running->order.values[i] = -1;
	for (char *one = options ? strtok_r(options, ",", &rest) : NULL; one && !err; one = strtok_r(NULL, ",", &rest))
		err = parse_option(running, one, why, room);
	if (!err && running->bound)
		keep_label(running);
	return err;
}

int load_parse(const char *text, struct running_load *running, char *why, size_t room)
{
	int err = load_keep_text(text, running, why, room);

	return err ? err : load_parse_options(running, why, room);
}

const char *load_unit(const struct running_load *running)
{
	return running->load->unit_of ? running->load->unit_of(&running->order) : running->load->unit;
}

static void be_the_victim(void)
{
	int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (file < 0) /* kernels before 2.6.36 have no such file */
		return;
	ssize_t written = write(file, "1000", 4);

	(void)written;
	close(file);
}

static int work_on_all(const struct running_load *running)
{
	for (uint32_t i = 0; i < running->slots; i++) {
		pid_t pid = load_spawn();

		if (pid < 0)
			return pid;
		if (pid == 0)
			_exit(-running->load->work(&running->order, &running->order.slots[i]));
	}
	return load_wait_for_children();
}

int load_bind(const struct running_load *running)
{
	int err = running->bound ? cpus_set_affinity(0, &running->cpus) : 0;

	if (err)
		snprintf(running->order.why, LOAD_WHY, "it could not be bound to its CPUs: %s", strerror(-err));
	return err;
}

int load_become(struct running_load *running)
{
	be_the_victim();
	if (running->folder.cleaner && chdir(running->folder.path) < 0)
		return -errno;
	return running->load->work ? work_on_all(running) : running->load->run(&running->order);
}

int64_t load_work(struct running_load *running)
{
	for (uint32_t i = 0; i < running->slots; i++) {
		uint32_t now = running->order.slots[i].work;

		running->work += now - running->seen[i];
		running->worked[i] = running->worked[i] || (running->read && now != running->seen[i]);
		running->seen[i] = now;
	}
	running->read = true;
	return running->work;
}

int load_idle_parts(const struct running_load *running)
{
	int idle = 0;

	for (uint32_t i = 0; i < running->slots; i++)
		idle += !running->worked[i];
	return idle;
}
