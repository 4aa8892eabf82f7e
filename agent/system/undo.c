/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "system/undo.h"

#include "system/control_group.h"
#include "system/processes.h"
#include "system/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>

/*
 * A change is a line: a path, a tab, the value from before and, where the file can tell, a tab and the value that was written; no tab
 * for a folder that was made. In place of the path, which begins with a slash: the kind of a kernel object that was made, and behind
 * the tab what it is called.
 */
static const char queue[] = "queue", semaphores[] = "semaphores";

/* The line behind the last change of settings. */
static const char all_applied[] = "#applied";

static const char on_disk[] = "/var/lib/rtproof", settings_name[] = "rtproof-settings", usual_name[] = "rtproof-undo";

enum { CHANGE_MOST = 2048, JOURNAL_MOST = 256 * 1024, TRIES = 100, PLACES = 5, PATH = 256, NAME = 96, BOOT = 8, NAMES_TRIED = 100 };

#define PAUSE_NS 20000000

extern char **environ;

/* Where a journal may be; the first place that can be written gets it, the first of all only settings. NULL: there is no such place. */
static const char *place_of(int i)
{
	const char *const places[PLACES] = { on_disk, "/run", getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp" };

	return places[i];
}

/* Its own process id, when it started, the boot, and a number. */
static void put_name(char name[NAME], const char *kind, int number)
{
	struct process self = { .pid = getpid() };
	char boot[BOOT_ID_ROOM];

	processes_self(&self);
	boot_id(boot);
	snprintf(name, NAME, "%s-%d-%lld-%.*s-%d", kind, (int)self.pid, (long long)self.started, BOOT, boot, number);
}

/* Locked until the agent and its keeper have ended. */
static int open_new(const char *path)
{
	int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat status;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &status) == 0 && status.st_nlink == 1)
		return fd;
	close(fd); /* an agent that sweeps was faster */
	return -EEXIST;
}

static int open_journal(char path[PATH], bool lasting)
{
	char name[NAME];
	int fd = -ENOENT;

	if (lasting)
		(void)mkdir(on_disk, 0700); /* without the right or the folder above it, the next place is taken */
	for (int i = !lasting; i < PLACES && fd < 0; i++) {
		fd = place_of(i) ? -EEXIST : fd;
		for (int n = 0; n < NAMES_TRIED && fd == -EEXIST; n++) {
			put_name(name, lasting ? settings_name : usual_name, n);
			fd = snprintf(path, PATH, "%s/%s", place_of(i), name) < PATH ? open_new(path) : -ENAMETOOLONG;
		}
	}
	return fd;
}

/* line: of which the process reads the end; negative: there is none to wait for. */
static int spawn(pid_t *keeper, int journal, int line)
{
	char *const arguments[] = { (char[]){ "rtproof-agent" }, (char[]){ UNDO_KEEPER }, NULL };
	posix_spawn_file_actions_t actions;
	int err = -posix_spawn_file_actions_init(&actions);

	if (err)
		return err;
	if (line < 0)
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&actions, line, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, journal, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = -posix_spawn(keeper, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (!err)
		control_group_leave(*keeper);
	return err;
}

static int open_either(struct undo *undo, bool lasting)
{
	char path[PATH];
	int ends[2];

	*undo = (struct undo){ .lasting = lasting };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	undo->line = ends[1];
	undo->journal = open_journal(path, lasting);
	int err = undo->journal < 0 ? undo->journal : spawn(&undo->keeper, undo->journal, ends[0]);

	close(ends[0]);
	if (!err)
		return 0;
	close(ends[1]);
	if (undo->journal >= 0) {
		unlink(path);
		close(undo->journal);
	}
	undo->keeper = 0;
	return err;
}

int undo_open(struct undo *undo)
{
	return open_either(undo, false);
}

int undo_open_settings(struct undo *undo)
{
	return open_either(undo, true);
}

/* written: NULL if the file can't tell it. A part of a line would be a change of its own. */
int undo_note(const struct undo *undo, const char *path, const char *before, const char *written)
{
	char change[CHANGE_MOST];
	int length = snprintf(change, sizeof(change), "%s%s%s%s%s\n", path, before ? "\t" : "", before ? before : "", written ? "\t" : "",
			      written ? written : "");
	off_t end = lseek(undo->journal, 0, SEEK_END);

	if (length >= CHANGE_MOST)
		return -ENAMETOOLONG;
	if (end < 0 || end + length > JOURNAL_MOST)
		return -ENOBUFS;
	if (write(undo->journal, change, (size_t)length) == length && (!undo->lasting || fdatasync(undo->journal) == 0 || errno == EINVAL))
		return 0;
	return ftruncate(undo->journal, end) < 0 ? -EIO : -ENOSPC;
}

const char *undo_error(int err)
{
	return err == -ENOBUFS ? "there are more changes than can be noted so that they are put back" :
		err == -EALREADY ? "another run has set it, and restores it when it ends" : strerror(-err);
}

/* Some files show another value than was written: a size is rounded, a filter has its blanks in other places. */
int undo_replace(struct undo *undo, const char *path, const char *value, const char *before)
{
	char shown[SETTING_MOST];
	int err = undo_note(undo, path, before, value);

	if (!err)
		err = text_write_file(path, value);
	if (!err && *value && !setting_read(path, shown) && !text_has_word(shown, value))
		(void)undo_note(undo, path, before, shown);
	return err;
}

int undo_by(struct undo *undo, const char *path, const char *value, const char *taker)
{
	int err = text_write_file(path, value);

	return err ? err : undo_note(undo, taker, value, NULL);
}

int undo_append(struct undo *undo, const char *path, const char *value, const char *taker)
{
	int err = undo_note(undo, path, taker, NULL);

	return err ? err : text_append_file(path, value);
}

int undo_write(struct undo *undo, const char *path, const char *value)
{
	char present[SETTING_MOST];
	int err = setting_read(path, present);

	return err || !strcmp(present, value) ? err : undo_replace(undo, path, value, present);
}

int undo_mkdir(struct undo *undo, const char *path)
{
	int err = access(path, F_OK) == 0 ? -EEXIST : undo_note(undo, path, NULL, NULL); /* one that is there is somebody else's */

	if (err)
		return err;
	return mkdir(path, 0700) < 0 ? -errno : 0;
}

int undo_queue(struct undo *undo, const char *name)
{
	return undo_note(undo, queue, name, NULL);
}

int undo_semaphores(struct undo *undo, int key, int id)
{
	char name[16], made[16];

	snprintf(name, sizeof(name), "%d", key);
	snprintf(made, sizeof(made), "%d", id);
	return undo_note(undo, semaphores, name, id < 0 ? NULL : made);
}

/* Its whole lines: an agent that was killed while it wrote a line has not made that change. */
static size_t read_journal(int fd, char *journal)
{
	ssize_t length = pread(fd, journal, JOURNAL_MOST, 0);

	while (length > 0 && journal[length - 1] != '\n')
		length--;
	return length > 0 ? (size_t)length : 0;
}

/* Whether the journal, which is not this agent's own, belongs to one that is at work, and has a line about that name. */
static bool is_named_in(int fd, const char *name)
{
	char *journal = flock(fd, LOCK_EX | LOCK_NB) < 0 ? calloc(1, JOURNAL_MOST + 1) : NULL;
	char *line = journal && read_journal(fd, journal) ? journal : NULL;
	size_t length = strlen(name);

	while (line && (strncmp(line, name, length) != 0 || line[length] != '\t')) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	free(journal);
	return line;
}

/* Whether another run has set it. That run will restore it, and would take this one's value for its own, or this one the other's. */
static bool is_anothers(const struct undo *undo, const char *name)
{
	char link[32], folder[PATH] = "";
	struct stat own, other;
	struct dirent *entry;
	bool found = false;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", undo->journal);
	if (fstat(undo->journal, &own) < 0 || readlink(link, folder, sizeof(folder) - 1) < 0)
		return false;
	*strrchr(folder, '/') = '\0';
	DIR *place = opendir(folder);

	while (!found && place && (entry = readdir(place))) {
		if (strncmp(entry->d_name, settings_name, strlen(settings_name)) != 0)
			continue;
		int fd = openat(dirfd(place), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		found = fd >= 0 && fstat(fd, &other) == 0 && other.st_ino != own.st_ino && is_named_in(fd, name);
		if (fd >= 0)
			close(fd);
	}
	if (place)
		closedir(place);
	return found;
}

/* Of two agents that set the same at once, both may be refused, but at least one is: each looks again when its line is there. */
int undo_set(struct undo *undo, const char *name, const char *value, char before[SETTING_MOST], char shown[SETTING_MOST])
{
	off_t end = lseek(undo->journal, 0, SEEK_END);
	int err = is_anothers(undo, name) ? -EALREADY : setting_read(name, before);

	if (err || !strcmp(before, value)) {
		snprintf(shown, SETTING_MOST, "%s", before);
		return err;
	}
	err = undo_note(undo, name, before, value);
	if (!err && is_anothers(undo, name))
		err = ftruncate(undo->journal, end) < 0 ? -EIO : -EALREADY;
	if (!err)
		err = setting_write(name, value);
	if (!err)
		err = setting_read(name, shown);
	if (!err && strcmp(shown, value) != 0 && strcmp(shown, before) != 0)
		err = undo_note(undo, name, before, shown);
	return err;
}

int undo_applied(struct undo *undo)
{
	return undo_note(undo, all_applied, NULL, NULL);
}

/* One that somebody stopped goes on. False if it was killed. */
static bool wait_for(pid_t keeper)
{
	int status = 0;

	for (;;) {
		pid_t ended = waitpid(keeper, &status, WUNTRACED);

		if (ended == keeper && WIFSTOPPED(status))
			kill(keeper, SIGCONT);
		else if (ended >= 0 || errno != EINTR)
			return ended != keeper || !WIFSIGNALED(status);
	}
}

void undo_close(struct undo *undo)
{
	if (!undo->keeper)
		return;
	close(undo->line);
	if (!wait_for(undo->keeper) && !spawn(&undo->keeper, undo->journal, -1))
		wait_for(undo->keeper);
	close(undo->journal);
	undo->keeper = 0;
}

/* Who puts back. Heir: the agent has ended just now. Otherwise long ago, and others may have changed the same since. */
enum who { HEIR, LATECOMER };

/* made: the id, which is not used again soon; NULL if the agent ended before it had one, or before it used the semaphores. */
static int remove_semaphores(int key, const char *made, enum who who)
{
	int id = made ? atoi(made) : semget(key, 0, 0);

	if (id >= 0 && !made && who == LATECOMER && semctl(id, 0, GETPID) > 0)
		return 0;
	return id < 0 || semctl(id, 0, IPC_RMID) < 0 ? -errno : 0;
}

/*
 * How to put back. lasting: settings, which are compared first in any case, and a keeper can't say what it finds: it leaves the
 * journal to the next agent. sure: the value after the write is known. An agent that was killed before it could read it back can't
 * tell what the kernel made of the value.
 */
struct manner {
	enum who who;
	bool lasting, sure;
};

/* -ESTALE: somebody else has changed the setting since. What cannot be read of other files is taken to be as it was written. */
static int put_value_back(const char *path, const char *before, const char *written, const struct manner *manner)
{
	bool says = manner->who == LATECOMER, stays = false;
	char present[SETTING_MOST];
	int err = setting_read(path, present);

	if (manner->lasting && !err && !strcmp(present, before))
		return 0;
	if (manner->lasting && err) {
		bool is_gone = err == -ENOENT || err == -ESRCH || err == -ENODEV, is_file = *path == '/';

		if (says && (!is_gone || is_file))
			fprintf(stderr, "rtproof-agent: '%s' can't be restored to '%s': %s\n", path, before, strerror(-err));
		/* A thread that ended is gone for good. A file may come back with its CPU: the next agent looks, and says so. */
		return !is_gone ? err : is_file && !says ? -ESTALE : -ENOENT;
	}
	if (manner->lasting)
		stays = manner->sure && strcmp(present, written) != 0 && strcmp(written, UNDO_ANY) != 0;
	else
		stays = says && !err && *written && !text_has_word(present, written);
	if (stays && says && !text_has_word(present, before))
		fprintf(stderr, "rtproof-agent: %s stays '%s': a run changed it from '%s' to '%s', and somebody else has changed it since\n", path,
			present, before, written);
	if (stays)
		return manner->lasting ? -ESTALE : 0;
	err = manner->lasting ? setting_write(path, before) : text_write_file(path, before);
	if (manner->lasting && says && err != -EBUSY)
		fprintf(stderr, "rtproof-agent: %s %s '%s'%s%s: a killed run left it at '%s'\n", path, err ? "can't be set to" : "is again", before,
			err ? ", " : "", err ? strerror(-err) : "", written);
	return err;
}

static int put_back_once(const char *path, const char *before, const char *written, const struct manner *manner)
{
	if (manner->lasting && (before ? !written : *path != '/'))
		return -EINVAL; /* no agent writes such a line */
	if (!before)
		return rmdir(path) < 0 ? -errno : 0;
	if (!strcmp(path, queue))
		return sys_result(syscall(SYS_mq_unlink, before));
	if (*before == '!' || !strncmp(before, "-:", 2)) /* one of several values of the file: the others stay */
		return text_append_file(path, before);
	if (!strcmp(path, semaphores))
		return remove_semaphores(atoi(before), written, manner->who);
	return written && (manner->lasting || manner->who == LATECOMER) ? put_value_back(path, before, written, manner) : text_write_file(path, before);
}

/* An agent that was killed may be about to let go of what is to be put back. */
static int put_back(char *change, const struct manner *manner)
{
	char *rest = change, *path = strsep(&rest, "\t"), *before = strsep(&rest, "\t");
	int err = -EBUSY;

	for (int i = 0; i < TRIES && err == -EBUSY; i++) {
		if (i)
			sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
		err = put_back_once(path, before, rest, manner);
	}
	return err == -ENOENT ? 0 : err;
}

/* The last line of the journal, cut off; NULL when there is none left. */
static char *last_change(char *journal, size_t *length)
{
	if (!*length)
		return NULL;
	journal[--*length] = '\0'; /* its newline */
	while (*length && journal[*length - 1] != '\n')
		--*length;
	return journal + *length;
}

/* Whether a change of the same thing from the same value was just restored, or left: what a kernel rounded has two lines. */
static bool is_same(const char *change, const char *later)
{
	size_t length = strcspn(change, "\t");

	length += change[length] ? 1 + strcspn(change + length + 1, "\t") : 0;
	return !strncmp(change, later, length) && later[length] == '\t' && change[length] == '\t';
}

/* Of two errors the one that says more: what is in use may be free later, and what somebody else changed is theirs. */
static int worse(int one, int other)
{
	return one == -EBUSY || (other != -EBUSY && one && one != -ESTALE) ? one : other ? other : one;
}

/*
 * The file goes with what it tells of. What is still in use stays in it, for the next agent. Of settings, a line that is done with
 * becomes a comment: it may be that this process is killed before the file is gone.
 */
static int put_all_back(int fd, const char *path, enum who who)
{
	struct manner manner = { who, strstr(path, settings_name), false };
	char *journal = malloc(JOURNAL_MOST), *later = NULL, copy[CHANGE_MOST];
	size_t length = journal ? read_journal(fd, journal) : 0;
	int result = journal ? 0 : -EBUSY, err = 0;

	if (manner.lasting && who == LATECOMER && !length && lseek(fd, 0, SEEK_END) > 0)
		fprintf(stderr, "rtproof-agent: %s has no whole line: the killed run had changed nothing yet, or the file is damaged\n", path);
	(void)fcntl(fd, F_SETFL, 0); /* pwrite() to a file that is appended to would append */
	for (char *change = last_change(journal, &length); change; change = last_change(journal, &length)) {
		bool is_comment = *change == *all_applied;

		if (!is_comment && (!manner.lasting || !later || !is_same(change, later))) {
			snprintf(copy, sizeof(copy), "%s", change);
			err = put_back(copy, &manner);
			result = worse(result, err);
		}
		if (manner.lasting && !is_comment && !err && pwrite(fd, all_applied, 1, (off_t)length) < 0 && errno != EBADF)
			result = worse(result, -errno);
		later = is_comment ? later : change;
		manner.sure = true; /* each earlier change was read back before the next one was noted */
	}
	free(journal);
	if (manner.lasting ? !result || (result == -ESTALE && who == LATECOMER) : result != -EBUSY) {
		unlink(path);
		(void)rmdir(on_disk); /* the last journal was the last thing in it */
	}
	return result;
}

int undo_main(void)
{
	char path[PATH] = "", nothing;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	/* A user's own "rtproof-agent keep > FILE" must not remove the file. */
	if (readlink("/proc/self/fd/1", path, sizeof(path) - 1) < 0 || (!strstr(path, settings_name) && !strstr(path, usual_name)))
		return EXIT_FAILURE;
	while (read(STDIN_FILENO, &nothing, 1) < 0 && errno == EINTR)
		;
	return put_all_back(STDOUT_FILENO, path, HEIR) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool is_journal(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && !(status.st_mode & 077) && status.st_uid == geteuid() &&
	       status.st_nlink == 1 && status.st_size <= JOURNAL_MOST;
}

/* Waits for a keeper that is at work. */
static bool lock_of_dead(int fd, pid_t owner, int64_t started)
{
	for (int i = 0; i < TRIES && !processes_live(owner, started); i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		sys_sleep(CLOCK_MONOTONIC, 0, PAUSE_NS);
	}
	return false;
}

/* Settings of an earlier boot went with it. */
static bool forget(const char *path)
{
	if (strstr(path, settings_name))
		fprintf(stderr, "rtproof-agent: a run was cut off before the last boot; the settings that it changed ended with that boot\n");
	unlink(path);
	(void)rmdir(on_disk);
	return true;
}

/* In a process apart, because it may mount something. True: all of it is restored, or somebody else's by now. */
static bool put_back_for_dead(int fd, const char *path, void (*reach)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		reach();
		_exit(put_all_back(fd, path, LATECOMER) != 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* 0: this is no journal of a dead agent; 1: it is, and all of it is done with; -1: not all. */
static int sweep_one(int place, const char *folder, const char *name, void (*reach)(void))
{
	char path[PATH], kind[NAME], boot[BOOT + 1], present[BOOT_ID_ROOM];
	long long started;
	int owner, found = 0;

	if (sscanf(name, "rtproof-%20[a-z]-%d-%lld-%8[^-]-", kind, &owner, &started, boot) != 4 || owner <= 0 ||
	    (strcmp(kind, strchr(usual_name, '-') + 1) && strcmp(kind, strchr(settings_name, '-') + 1)) ||
	    snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH)
		return 0;
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(place, name, O_RDWR | flags);

	if (fd < 0 && errno == EROFS)
		fd = openat(place, name, O_RDONLY | flags);
	boot_id(present);
	bool is_earlier = strncmp(boot, present, BOOT);
	const char *why = fd < 0 && errno != ENOENT ? strerror(errno) : NULL;

	if (fd >= 0 && !is_journal(fd))
		why = "it is large, or not a file of this user alone";
	else if (fd >= 0 && !lock_of_dead(fd, owner, started))
		why = processes_live(owner, started) ? NULL : "its keeper is still at work";
	else if (fd >= 0 && is_journal(fd))
		found = (is_earlier ? forget(path) : put_back_for_dead(fd, path, reach)) ? 1 : -1;
	if (fd >= 0)
		close(fd);
	/* Elsewhere, anybody may put such a file. */
	if (!why || is_earlier || strncmp(path, on_disk, strlen(on_disk)) != 0)
		return found;
	fprintf(stderr, "rtproof-agent: %s is left alone: %s\n", path, why);
	return -1;
}

int undo_sweep(void (*reach)(void), int *done)
{
	int journals = 0;

	*done = 0;
	for (int i = 0; i < PLACES; i++) {
		DIR *folder = place_of(i) ? opendir(place_of(i)) : NULL;
		struct dirent *entry;

		while (folder && (entry = readdir(folder))) {
			int found = sweep_one(dirfd(folder), place_of(i), entry->d_name, reach);

			journals += found != 0;
			*done += found > 0;
		}
		if (folder)
			closedir(folder);
	}
	return journals;
}

int undo_for_user(void (*reach)(void))
{
	int done, journals = undo_sweep(reach, &done);
	char line[4096];

	if (!text_read_line("/proc/cmdline", line, sizeof(line)) && strstr(line, "rtproof_tune.added=")) {
		fprintf(stderr, "rtproof-agent: the kernel's command line has words that a tuning added: boot again\n");
		return EXIT_FAILURE;
	}
	if (!journals)
		fprintf(stderr, "rtproof-agent: there is nothing to restore: no killed run of this user left a setting changed\n");
	else if (done < journals)
		fprintf(stderr, "rtproof-agent: not all settings could be restored\n");
	return done < journals ? EXIT_FAILURE : EXIT_SUCCESS;
}
