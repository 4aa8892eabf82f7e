/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "background/background_folder.h"

#include "system/processes.h"
#include "system/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool background_path(char path[BACKGROUND_PATH], const char *folder, const char *name)
{
	return snprintf(path, BACKGROUND_PATH, "%s/%s", folder, name) < BACKGROUND_PATH;
}

int background_flush(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* Some file systems cannot flush a folder. Then there is nothing else to do. */
	(void)fsync(fd);
	close(fd);
	return 0;
}

static int write_flushed(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t length = strlen(text);

	if (fd < 0)
		return -errno;
	ssize_t written = write(fd, text, length);
	int err = written < 0 ? -errno : (size_t)written < length ? -ENOSPC : 0;

	if (!err && fsync(fd) < 0 && errno != EINVAL)
		err = -errno;
	close(fd);
	return err;
}

int background_write(const char *folder, const char *name, const char *text)
{
	char path[BACKGROUND_PATH], whole[BACKGROUND_PATH];

	if (!background_path(path, folder, "new") || !background_path(whole, folder, name))
		return -ENAMETOOLONG;
	int err = write_flushed(path, text);

	if (!err && rename(path, whole) < 0)
		err = -errno;
	if (err)
		unlink(path);
	return err ? err : background_flush(folder);
}

int background_read(const char *folder, struct background *background)
{
	char path[BACKGROUND_PATH], line[160];
	int waiter, agent;
	long long waiter_started, agent_started;

	if (!background_path(path, folder, "state"))
		return -ENAMETOOLONG;
	int err = text_read_line(path, line, sizeof(line));

	if (err)
		return err;
	if (sscanf(line, "%d %lld %d %lld %39s", &waiter, &waiter_started, &agent, &agent_started, background->boot) != 5 ||
	    waiter < 2 || agent < 2)
		return -EINVAL;
	background->waiter = waiter;
	background->agent = agent;
	background->waiter_started = waiter_started;
	background->agent_started = agent_started;
	return 0;
}

void background_standing(const char *folder, const struct background *background, char *words, size_t room)
{
	char path[BACKGROUND_PATH], boot[BOOT_ID_ROOM];
	/* An agent whose waiter was killed goes on all the same. */
	bool lives = processes_live(background->waiter, background->waiter_started) ||
		     processes_live(background->agent, background->agent_started);

	boot_id(boot);
	if (background_path(path, folder, "exit") && text_read_line(path, words, room) == 0)
		return;
	if (strcmp(boot, background->boot) != 0)
		snprintf(words, room, "other-boot");
	else
		snprintf(words, room, lives ? "running" : "vanished");
}

/* The file by which a run's folder is known goes last, so that a removal that was cut off can be done again. */
static bool goes_first(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, "state") != 0;
}

static int remove_files(const char *folder)
{
	DIR *files = opendir(folder);
	int err = 0;

	if (!files)
		return -errno;
	for (struct dirent *each; (each = readdir(files)) && !err;)
		if (goes_first(each->d_name) && unlinkat(dirfd(files), each->d_name, 0) < 0)
			err = -errno;
	if (!err && unlinkat(dirfd(files), "state", 0) < 0)
		err = -errno;
	closedir(files);
	return err;
}

void background_discard(const char *folder)
{
	(void)remove_files(folder);
	(void)rmdir(folder);
}

int background_no_run(const char *folder, int err, char *why, size_t room)
{
	if (err == -ENOENT)
		return text_refuse(why, room, err, "there is no run in %s: %s", folder, strerror(-err));
	return text_refuse(why, room, err, "the run in %s cannot be told: its file state %s%s", folder,
			   err == -EINVAL ? "is damaged" : "cannot be read: ", err == -EINVAL ? "" : strerror(-err));
}

int background_remove(const char *folder)
{
	struct background background;
	char words[40] = "";
	int err = background_read(folder, &background);

	/* The answer to an earlier removal may have been lost on its way. */
	if (err == -ENOENT && (rmdir(folder) == 0 || errno == ENOENT))
		return 0;
	if (err)
		return err;
	background_standing(folder, &background, words, sizeof(words));
	if (!strcmp(words, "running"))
		return -EBUSY;
	err = remove_files(folder);
	if (!err && rmdir(folder) < 0)
		err = -errno;
	return err;
}
