#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: parts.sh COMMAND...    runs every command, whether or not one before it has failed
# Each command is one argument for sh -c. At the end it names those that failed, and its exit code is that of the first.
set -u
code=0
failed=
for command in "$@"; do
	echo "$command"
	sh -c "$command"
	ended=$?
	case $ended in
	0) continue ;;
	130 | 143) exit $ended ;; # somebody wants all of it to end
	esac
	[ $code -ne 0 ] || code=$ended
	failed="$failed
failed with exit code $ended: $command"
done
[ -z "$failed" ] || echo "$failed" >&2
exit $code
