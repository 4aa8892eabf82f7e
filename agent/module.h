/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the kernel module, also for a C library that comes without the kernel's headers. */
#ifndef RTPROOF_MODULE_H
#define RTPROOF_MODULE_H

#include <sys/ioctl.h>

typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

#define RTPROOF_TYPES_ARE_THERE
#include "kmod.h"

#endif
