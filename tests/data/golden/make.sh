#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make.sh [facts] ARCH...    (as root, in a checkout with its .venv or with PYTHON set) makes ARCH-1.3.rtrec beside this file, or
# facts-1.7-ARCH.rtrec
# The agent runs under QEMU with a folder of made-up files as its root, so that a record says nothing of the machine it was
# made on and stays small.
set -eu
here=$(dirname "$(realpath "$0")")
cd "$here/../../.."
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root/dev" "$root/proc/sys/kernel" "$root/sys/devices/system/clocksource/clocksource0"
mknod -m 666 "$root/dev/urandom" c 1 9
echo "cpu  1 0 2 3 0 0 0 0 0 0" >"$root/proc/stat"
echo "ctxt 5" >>"$root/proc/stat"
echo "           CPU0" >"$root/proc/interrupts"
echo "  7:         42  timer" >>"$root/proc/interrupts"
echo "950000" >"$root/proc/sys/kernel/sched_rt_runtime_us"
mkdir -p "$root/sys/class/thermal/thermal_zone0"
echo "42000" >"$root/sys/class/thermal/thermal_zone0/temp"
echo "made_up" >"$root/sys/devices/system/clocksource/clocksource0/current_clocksource"

what=run
if [ "$1" = facts ]; then
	what=facts
	shift
fi

one() {
	arch=$1
	emulator=$(PYTHONPATH=src "${PYTHON:-.venv/bin/python}" -c "
from rtproof.agents.architectures import architecture
print(*architecture('$arch').qemu)")
	# shellcheck disable=SC2086 # the emulator's options are words
	set -- $emulator
	cp "$(command -v "$1-static")" "$root/emulator"
	cp "$(PYTHONPATH=src "${PYTHON:-.venv/bin/python}" -m rtproof agent build --compiler zig --arch "$arch")" "$root/agent"
	shift
	rm -f "$root/golden.rtrec"
	if [ "$what" = facts ]; then
		chroot "$root" /emulator "$@" -r 6.1.0 /agent facts -o /golden.rtrec --between 1ms
		mv "$root/golden.rtrec" "$here/facts-1.7-$arch.rtrec"
		return
	fi
	chroot "$root" /emulator "$@" -r 6.1.0 /agent run -o /golden.rtrec --samples 200 --period 1ms --warmup 20ms \
		--cpus 0-1 --threads 2 --policy other --no-lock-memory --checkpoint 100ms \
		--limit 1h --limit 200us --limit 1ns
	mv "$root/golden.rtrec" "$here/$arch-1.3.rtrec"
}

for arch in "$@"; do
	one "$arch"
done
