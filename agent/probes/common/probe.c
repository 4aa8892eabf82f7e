/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "probes/probe.h"

#include <stdio.h>
#include <string.h>

const struct probe *probe_find(const char *name)
{
	for (const struct probe *const *probe = probes; *probe; probe++)
		if (!strcmp((*probe)->name, name))
			return *probe;
	return NULL;
}

const struct method *probe_method(const struct probe *probe, const char *name)
{
	for (const struct method *const *method = probe->methods; *method; method++)
		if (!strcmp((*method)->name, name))
			return *method;
	return NULL;
}

int method_fields(const struct method *method)
{
	int n = 0;

	while (method->fields && method->fields[n])
		n++;
	return n ? n : 1;
}

const char *method_field(const struct probe *probe, const struct method *method, int field)
{
	return method->fields ? method->fields[field] : probe->field;
}

static int parse_option(const struct probe *probe, char *text, const char **values, char *why, size_t room)
{
	char *value = strchr(text, '=');

	if (value)
		*value++ = '\0';
	for (int i = 0; probe->options && probe->options[i].name; i++) {
		if (strcmp(probe->options[i].name, text))
			continue;
		values[i] = value;
		if (value && *value)
			return 0;
		snprintf(why, room, "option '%s' of probe '%s' needs a value: %s", text, probe->name, probe->options[i].help);
		return -EINVAL;
	}
	snprintf(why, room, "probe '%s' has no option '%s'", probe->name, text);
	return -EINVAL;
}

int probe_parse(char *text, const struct probe **probe, const char **values, char *why, size_t room)
{
	char *rest = NULL, *options = strchr(text, ':');
	int err = 0;

	if (options)
		*options++ = '\0';
	*probe = probe_find(text);
	if (!*probe) {
		snprintf(why, room, "there is no probe '%s'; see rtproof-agent list", text);
		return -EINVAL;
	}
	for (char *one = options ? strtok_r(options, ",", &rest) : NULL; one && !err; one = strtok_r(NULL, ",", &rest))
		err = parse_option(*probe, one, values, why, room);
	return err;
}

const char *method_unsupported(const struct method *method)
{
	return method->unsupported ? method->unsupported() : NULL;
}
