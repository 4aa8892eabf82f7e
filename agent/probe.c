/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

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

const char *method_unsupported(const struct method *method)
{
	return method->unsupported ? method->unsupported() : NULL;
}
