/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SUPERVISE_H
#define SUPERVISE_H

#include "mailbox.h"

/* Run a program: what it says goes to the host, and its standard input stays open and empty.
 * A line `int`, `term` or `kill` on our own standard input, the console, sends it that signal. 0 if it cannot be started. */
int supervise(struct mail *mail, char *const arguments[]);

#endif
