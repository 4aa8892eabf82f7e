#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: check.sh TEST...    runs each test program: 0 is ok, 77 is skipped (its last line is the reason), all else failed
# RUN may hold a command that runs them, such as "qemu-arm-static -cpu arm926".
set -u
ok=0 skipped=0 failed=0
for test in "$@"; do
	name=$(basename "$test")
	output=$(${RUN:-} "$test" 2>&1)
	code=$?
	case $code in
	0)
		ok=$((ok + 1))
		;;
	77)
		skipped=$((skipped + 1))
		echo "skipped $name: $(printf '%s\n' "$output" | tail -n 1)"
		;;
	*)
		failed=$((failed + 1))
		printf 'FAILED %s (exit code %s)\n%s\n' "$name" "$code" "$output"
		;;
	esac
done
echo "agent tests: $ok ok, $skipped skipped, $failed failed"
[ "$failed" -eq 0 ] && [ "$ok" -gt 0 ]
