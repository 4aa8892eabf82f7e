/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VICTIM_OWN_H
#define VICTIM_OWN_H

/* A thread that makes itself late in one of the ways that own.c knows by name. 0, or 1 if it could not. */
int own(const char *name, long count);

#endif
