#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Four analysers over the agent and its tests. All run, each must be there, and none may find anything.
set -u
cd "$(dirname "$0")/../agent" || exit 2
place=$(realpath -m ../build/lint)
mkdir -p "$place"
sources=$(make -s O="$place" sources) || exit 2
sources="$sources $(find tests -name '*.c' | sort)"

on_each() {
	clean=true
	for source in $sources; do
		"$@" "$source" || clean=false
	done
	$clean
}

# gcc 12 takes what is stored through a pointer for a leak; clang's analyser and AddressSanitizer look for leaks as well.
gcc_analyzer() {
	on_each gcc @cflags -fanalyzer -Wno-analyzer-malloc-leak -Werror -o "$place/analysed.o" -c
}

cppcheck_all() {
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		-D_GNU_SOURCE -I. $sources
}

# One file at a time: version 14 remembers a va_list from one file to the next and then complains of it.
clang_tidy() {
	on_each clang_tidy_one
}

clang_tidy_one() {
	clang-tidy-14 --quiet --warnings-as-errors='*' "$1" -- $(cat cflags) 2>"$place/clang-tidy.log" && return
	grep -v 'warnings* generated' "$place/clang-tidy.log" >&2
	false
}

# It does not look into files of flags, so it is given the flags themselves.
scan_build() {
	scan-build-14 --status-bugs --use-cc=clang-14 -o "$place/scan" \
		make -s -B O="$place/objects" CC=clang-14 CFLAGS="$(tr '\n' ' ' <cflags)" all
}

failed=
for analyser in gcc_analyzer cppcheck_all clang_tidy scan_build; do
	echo "$analyser"
	$analyser || failed="$failed $analyser"
done
[ -z "$failed" ] || echo "findings from:$failed" >&2
[ -z "$failed" ]
