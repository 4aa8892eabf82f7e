#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run four analysers over the agent and its tests, three of them also over the guest's programs, the scanner, those of
# the benchmarks and the module's tests, and one over the module. All of them run, each must be installed, and none may find anything.
set -u
root=$(realpath "$(dirname "$0")/..")
place=$root/build/lint
mkdir -p "$place"

on_each() {
	clean=true
	for source in $sources; do
		"$@" "$source" || clean=false
	done
	$clean
}

# gcc 12 takes what is stored through a pointer for a leak; clang's analyser and AddressSanitizer look for leaks as well.
gcc_analyzer() {
	# shellcheck disable=SC2086 # flags are words
	on_each gcc $flags -fanalyzer -Wno-analyzer-malloc-leak -Werror -o "$place/analysed.o" -c
}

cppcheck_all() {
	# shellcheck disable=SC2086 # flags and sources are words
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -I. \
		$cppcheck_flags $sources
}

# One file at a time: version 14 remembers a va_list from one file to the next and then complains of it.
clang_tidy() {
	on_each clang_tidy_one
}

clang_tidy_one() {
	# shellcheck disable=SC2086 # flags are words, and so is the choice of the checks
	clang-tidy-14 --quiet $config --checks="$less" --warnings-as-errors='*' "$1" -- $flags \
		2>"$place/clang-tidy.log" && return
	grep -v 'warnings* generated' "$place/clang-tidy.log" >&2
	false
}

# It does not look into files of flags, so it is given the flags themselves.
scan_build() {
	scan-build-14 --status-bugs --use-cc=clang-14 -o "$place/scan" \
		make -s -B O="$place/objects" CC=clang-14 CFLAGS="$flags" all
}

# usage: lint FOLDER ANALYSER...    from within the folder, with $sources, $flags, $cppcheck_flags, $config and $less (checks) set
lint() {
	folder=$1
	shift
	for analyser in "$@"; do
		echo "$folder: $analyser"
		$analyser || failed="$failed $folder:$analyser"
	done
}

failed=
less=
config=--config-file=$root/agent/.clang-tidy
cppcheck_flags=-D_GNU_SOURCE

cd "$root/agent" || exit 2
flags=$(tr '\n' ' ' <cflags)
sources=$(make -s O="$place" sources) || exit 2
lint agent gcc_analyzer cppcheck_all clang_tidy scan_build
sources=$(find tests -name '*.c' | sort)
config=--config-file=$root/agent/tests/.clang-tidy
lint agent/tests gcc_analyzer cppcheck_all clang_tidy
config=--config-file=$root/agent/.clang-tidy

cd "$root/guest" || exit 2
flags=$(tr '\n' ' ' <cflags)
sources=$(find . -name '*.c' | sort)
lint guest gcc_analyzer cppcheck_all clang_tidy

cd "$root/soaker" || exit 2
flags=$(tr '\n' ' ' <cflags)
sources=$(find . -name '*.c' | sort)
lint soaker gcc_analyzer cppcheck_all clang_tidy

cd "$root/scanner" || exit 2
flags=$(tr '\n' ' ' <cflags)
sources=$(find . -name '*.c' | sort)
lint scanner gcc_analyzer cppcheck_all clang_tidy

cd "$root/qemu_plugin" || exit 2
flags=$(tr '\n' ' ' <cflags)
sources=$(find . -name '*.c' | sort)
less=-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling
lint qemu_plugin gcc_analyzer cppcheck_all clang_tidy
less=

cd "$root/qemu_guard" || exit 2
flags=$(tr '\n' ' ' <cflags)
sources=$(find . -name '*.c' | sort)
lint qemu_guard gcc_analyzer cppcheck_all clang_tidy

cd "$root/bench" || exit 2
flags="-std=gnu11 -O2 -Wall -Wextra -I../agent"
sources="faults.c sharp_delays.c victim/victim.c"
config=--config-file=$root/agent/tests/.clang-tidy
less=-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling # the C library does not have what it asks for
cppcheck_flags=-D__x86_64__
lint bench gcc_analyzer cppcheck_all clang_tidy
config=--config-file=$root/agent/.clang-tidy

# The module itself needs a kernel's headers to be compiled; what can be said without them is said here.
cd "$root/kmod" || exit 2
flags="-std=gnu11 -O2 -Wall -Wextra -I."
less=-bugprone-reserved-identifier,-bugprone-sizeof-expression # _GNU_SOURCE, and the number of pointers in an array
sources=$(find tests -name 'check*.c' | sort)
lint kmod/tests gcc_analyzer cppcheck_all clang_tidy
cppcheck_flags="-D__KERNEL__ -Dfor_each_set_bit(bit,word,n)=while(((bit)=find(word))<(n))"
sources=$(find . -maxdepth 1 -name '*.c' | sort)
lint kmod cppcheck_all

[ -z "$failed" ] || echo "findings from:$failed" >&2
[ -z "$failed" ]
