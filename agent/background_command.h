/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command "rtproof-agent background": runs that outlive the connection to the host. It is there so that a board needs
 * neither setsid nor nohup, tail or stat.
 */
#ifndef RTPROOF_BACKGROUND_COMMAND_H
#define RTPROOF_BACKGROUND_COMMAND_H

#include <stddef.h>

/* 0, or a negative errno and why. */
int background_main(int argc, char **argv, char *why, size_t room);

#endif
