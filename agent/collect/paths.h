/* SPDX-License-Identifier: Apache-2.0 */
/* The files, folders and links of the system that an audit reads. The host judges them; nothing here does. */
#ifndef RTPROOF_PATHS_H
#define RTPROOF_PATHS_H

enum path_kind {
	FILE_CONTENT, /* its text */
	FILE_COUNTS,  /* its text, at two moments, because only the difference says something */
	FOLDER_NAMES, /* the names in a folder, a line each, sorted; the path ends with a slash */
	LINK_TARGET,  /* where a symbolic link leads to */
};

/* pattern: a path; "*" and "[...]" in it, as for fnmatch(), stand for any name of a folder. */
struct audit_path {
	const char *pattern;
	enum path_kind kind;
};

/* Both end with a pattern that is NULL. What stands in both is read once. */
extern const struct audit_path audit_paths[];

/* What a run reads for itself right before and right after it measures, and `facts` with the rest. No patterns. */
extern const struct audit_path run_paths[];

#endif
