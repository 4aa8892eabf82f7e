#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: table.sh KIND    (in the agent's folder) writes the C table of every KINDs/*.c to stdout
# A file probes/foo.c must define `const struct probe probe_foo`; if it does not, the link fails and names it.
# Folders below probes/ hold what only some probes use; their files are no probes.
set -eu
LC_ALL=C
kind=$1
names=
for file in "$kind"s/*.c; do
	[ -e "$file" ] && names="$names $(basename "$file" .c)"
done
echo "#include \"${kind}s/$kind.h\""
for name in $names; do
	echo "extern const struct $kind ${kind}_$name;"
done
echo "const struct $kind *const ${kind}s[] = {"
for name in $names; do
	echo "	&${kind}_$name,"
done
echo "	0,"
echo "};"
