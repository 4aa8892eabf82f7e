#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: check_agent.sh    builds the agent and runs its own tests, or says what they need
cd "$(dirname "$0")/.." || exit
if ! echo 'int main(void) { return 0; }' | cc -static -x c -o /dev/null - 2>/dev/null; then
	echo "skipped: the agent's own tests, because there is no C compiler with a static C library   (apt-get install gcc libc6-dev)"
	exit 0
fi
exec make --silent -C agent check
