/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/observers.h"

#include "collect/lines.h"
#include "collect/open_files.h"

#include <string.h>

enum { BPF_PROG_GET_NEXT_ID = 11, BPF_PROG_GET_FD_BY_ID = 13, BPF_OBJ_GET_INFO_BY_FD = 15, PROGRAMS_MOST = 4096 };

/* The kernel's union bpf_attr, of these three calls alone. */
union bpf_request {
	struct {
		uint32_t id, next_id, flags;
	} by_id;
	struct {
		uint32_t fd, length;
		uint64_t info;
	} info;
};

/* The beginning of the kernel's struct bpf_prog_info. */
struct program_info {
	uint32_t type, id;
	uint8_t tag[8];
	uint32_t lengths[2];
	uint64_t code[2], loaded_ns;
	uint32_t user, maps;
	uint64_t map_ids;
	char name[16]; /* since Linux 4.15 */
};

int collect_perf_users(struct bytes *text, int pid)
{
	(void)pid;
	return put_holders(text, "anon_inode:[perf_event]", true);
}

static int call_bpf(int command, union bpf_request *request)
{
	return sys_result(syscall(SYS_BPF, command, request, sizeof(*request)));
}

static int put_program(struct bytes *text, uint32_t id)
{
	union bpf_request request;
	struct program_info info;

	memset(&request, 0, sizeof(request));
	memset(&info, 0, sizeof(info));
	request.by_id.id = id;
	int fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &request);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd; /* it has just ended */
	memset(&request, 0, sizeof(request));
	request.info.fd = (uint32_t)fd;
	request.info.length = sizeof(info);
	request.info.info = (uintptr_t)&info;
	int err = call_bpf(BPF_OBJ_GET_INFO_BY_FD, &request);

	close(fd);
	if (!err)
		put_format(text, "%lu %lu %.15s\n", (unsigned long)id, (unsigned long)info.type, *info.name ? info.name : "-");
	return err;
}

int collect_bpf_programs(struct bytes *text, int pid)
{
	union bpf_request request;
	uint32_t id = 0;

	(void)pid;
	for (int i = 0; i < PROGRAMS_MOST; i++) {
		memset(&request, 0, sizeof(request));
		request.by_id.id = id;
		int err = call_bpf(BPF_PROG_GET_NEXT_ID, &request);

		if (err)
			return err == -ENOENT ? 0 : err;
		id = request.by_id.next_id;
		err = put_program(text, id);
		if (err)
			return err;
	}
	return TEXT_IS_CUT;
}
