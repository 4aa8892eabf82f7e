/* SPDX-License-Identifier: Apache-2.0 */
#include "loads/common/mounts.h"

#include "check.h"

#include <string.h>

static void file_systems_of_others_are_kept(void)
{
	char text[1024] = "rootfs / rootfs rw 0 0\n"
			  "server:/home /home nfs4 rw 0 0\n"
			  "proc /proc proc rw 0 0\n"
			  "//server/share /mnt/a\\040b\\134c cifs rw 0 0\n"
			  "user@host: /mnt/ssh fuse.sshfs rw 0 0\n"
			  "systemd-1 /misc autofs rw 0 0\n"
			  "/dev/sda1 /mnt/nfs ext4 rw 0 0\n"
			  "cut /off";

	mounts_keep_foreign(text);
	CHECK(mounts_hold(text, "/home") && mounts_hold(text, "/mnt/a b\\c"));
	CHECK(mounts_hold(text, "/mnt/ssh") && mounts_hold(text, "/misc"));
	CHECK(!mounts_hold(text, "/") && !mounts_hold(text, "/proc") && !mounts_hold(text, "/mnt/nfs"));
	CHECK(!mounts_hold(text, "/off") && !mounts_hold(text, "/home/one") && !mounts_hold(text, ""));
}

static void nothing_is_kept_of_nothing(void)
{
	char text[3] = "";

	mounts_keep_foreign(text);
	CHECK(!strcmp(text, "") && !mounts_hold(text, "/"));
	memcpy(text, "\n", 2);
	mounts_keep_foreign(text);
	CHECK(!strcmp(text, ""));
}

int main(void)
{
	file_systems_of_others_are_kept();
	nothing_is_kept_of_nothing();
	return EXIT_SUCCESS;
}
