#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measure this machine for 20 s under load, and say why it was late where the kernel can be traced. Succeeds when the demo worked, whatever the verdict on the machine.
set -eu
cd "$(dirname "$0")/.."
sh tools/venv.sh run
rtproof=.venv/bin/rtproof
if ! $rtproof agent path >/dev/null 2>&1; then
	echo "no C compiler here that links statically: building the agent with zig from PyPI"
	sh tools/venv.sh cross
	$rtproof agent path
fi

# Without the privilege for real-time policies the demo still shows something; its verdict is then INVALID and says so.
privilege=
[ "$(id -u)" -eq 0 ] || privilege=--allow-unprivileged
output=runs/demo-$(date +%Y-%m-%dT%H%M%S)
mkdir -p runs
code=0
$rtproof run --duration 20s --limit 500us --load sched --explain $privilege --output "$output" || code=$?
case $code in
0 | 1 | 3 | 4) ;;
*)
	echo "the demo did not work: rtproof ended with exit code $code" >&2
	exit "$code"
	;;
esac
