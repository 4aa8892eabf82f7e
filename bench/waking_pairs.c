// SPDX-License-Identifier: Apache-2.0
/* waking_pairs N: N pairs of processes that wake each other after sleeps of up to 400 us, until the parent is gone. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#define MOST_SLEEP_US 400

static void wake_each_other(int mine, int other, unsigned int seed)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(mine, &byte, 1) == 1) {
		usleep((unsigned int)rand_r(&seed) % (MOST_SLEEP_US + 1));
		if (write(other, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int pairs = argc > 1 ? atoi(argv[1]) : 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int pair = 0; pair < pairs; pair++) {
		int first[2], second[2];

		if (pipe(first) || pipe(second) || write(first[1], "x", 1) != 1)
			return 1;
		if (!fork())
			wake_each_other(first[0], second[1], 2 * (unsigned int)pair);
		if (!fork())
			wake_each_other(second[0], first[1], 2 * (unsigned int)pair + 1);
		close(first[0]), close(first[1]), close(second[0]), close(second[1]);
	}
	pause();
	return 0;
}
