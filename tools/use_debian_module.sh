#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a guest of check_debian_packages.sh: DKMS builds the module, and rtproof measures with it.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
ip link set lo up

check() {
	set -eux
	uname -r
	dpkg -i /packages/older/rtproof-agent_*.deb /packages/older/rtproof_*.deb /packages/older/rtproof-dkms_*.deb
	dkms status
	dpkg -i /packages/rtproof-agent_*.deb /packages/rtproof_*.deb /packages/rtproof-dkms_*.deb
	dkms status
	modinfo rtproof
	[ ! -e /dev/rtproof ]
	modprobe rtproof
	ls -l /dev/rtproof
	rtproof-agent list | grep kernel
	rtproof run --probe kernel --method task --period 10ms --duration 1s --output /tmp/run
	modprobe -r rtproof
	[ ! -e /dev/rtproof ]
	dpkg --purge rtproof-dkms
	dkms status
	[ -z "$(find /lib/modules/ /usr/src/ /var/lib/dkms/ -name '*rtproof*')" ]
	if modprobe rtproof; then exit 1; fi
	if dmesg | grep 'BUG:\|Oops\|WARNING:'; then exit 1; fi
	echo "the guest is done"
}
(check) 2>&1
sync
echo o >/proc/sysrq-trigger
sleep 60
