/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "background_command.h"

#include "background/background_folder.h"
#include "background/follow.h"
#include "background/waiter.h"
#include "system/text.h"

#include <stdio.h>
#include <string.h>

static int follow_as_asked(char **words, int n, char *why, size_t room)
{
	int64_t from;
	bool as_text = n == 4 && !strcmp(words[3], "text");

	if (text_number(words[2], 0, INT64_MAX, &from) || (n == 4 && !as_text))
		return text_refuse(why, room, -EINVAL, "usage: background follow FOLDER HOST LOG_OFFSET [text]");
	return follow(words[0], words[1], from, as_text, why, room);
}

static int remove_folder(const char *folder, char *why, size_t room)
{
	int err = background_remove(folder);

	return err ? text_refuse(why, room, err, "%s cannot be removed: %s", folder, strerror(-err)) : 0;
}

int background_main(int argc, char **argv, char *why, size_t room)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc - 2;
	static char name[] = "rtproof-agent";

	if (!strcmp(what, "start") && n >= 2) {
		const char *folder = argv[2];

		argv[2] = name; /* the program's own name comes before its arguments */
		return background_start(folder, argv + 2, why, room);
	}
	if (!strcmp(what, "follow") && (n == 3 || n == 4))
		return follow_as_asked(argv + 2, n, why, room);
	if (!strcmp(what, "signal") && n == 2)
		return background_signal(argv[2], argv[3], why, room);
	if (!strcmp(what, "remove") && n == 1)
		return remove_folder(argv[2], why, room);
	return text_refuse(why, room, -EINVAL,
			   "usage: background start FOLDER run ... | follow FOLDER HOST LOG_OFFSET [text] | signal FOLDER int|term|kill | remove FOLDER");
}
