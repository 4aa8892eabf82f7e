#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Four analysers over the agent; each must be there and find nothing.
set -eu
cd "$(dirname "$0")/../agent"
tables=$(realpath -m ../build/lint)
sources=$(make -s O="$tables" sources)
tests=$(ls tests/*.c)

echo "gcc -fanalyzer"
for source in $sources $tests; do
	gcc @cflags -fanalyzer -Werror -c "$source" -o /dev/null
done

echo "cppcheck"
# shellcheck disable=SC2046,SC2086
cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	-D_GNU_SOURCE -I. $sources $tests

echo "clang-tidy"
# shellcheck disable=SC2046,SC2086
clang-tidy-14 --quiet --warnings-as-errors='*' $sources $tests -- $(cat cflags)

echo "scan-build"
scan-build-14 --status-bugs --use-cc=clang-14 -o "$tables/scan" make -s -B O="$tables/objects" CC=clang-14 all
