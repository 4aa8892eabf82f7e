#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetch two kernels, compare them under three loads in virtual time, open the page.
set -eu
cd "$(dirname "$0")/.."
sh tools/apt.sh qemu-system-x86
sh tools/venv.sh run
rtproof=.venv/bin/rtproof
# What runs in a guest is built by zig alone, so that every machine gets the same bytes.
sh tools/venv.sh cross

output=runs/lab-demo-$(date +%Y-%m-%dT%H%M%S)
mkdir -p runs
$rtproof lab compare --kernel debian-6.1-rt --kernel debian-6.1 --preempt none --preempt full \
	--load idle --load mmap --load net --duration 2s --output "$output"
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null; then
	xdg-open "$output/page.html"
fi
