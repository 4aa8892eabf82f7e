#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: apt.sh PACKAGE...    installs the packages that are missing, or names them if it cannot or if NO_APT is set
# Other programs may install at the same time. It waits for the locks of dpkg and of apt's lists, at most LOCK_PATIENCE_S seconds (600).
set -u
patience=${LOCK_PATIENCE_S:-600}

find_missing() {
	missing=
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
	done
}

# DPkg::Lock::Timeout is for dpkg's lock only. If the lock of the lists or of the archives is taken, the script asks again.
apt() {
	waited=0
	until said=$(LC_ALL=C apt-get -qq -o DPkg::Lock::Timeout="$patience" "$@" 2>&1 >/dev/null); do
		case $said in
		*"Could not get lock"*) [ "$waited" -lt "$patience" ] || break ;;
		*) break ;;
		esac
		[ "$waited" -gt 0 ] || echo "waiting for another apt-get" >&2
		sleep 1
		waited=$((waited + 1))
	done
	[ -z "$said" ] || echo "$said" >&2
}

find_missing "$@"
[ -n "$missing" ] || exit 0
if [ -z "${NO_APT:-}" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
	echo "installing with apt-get:$missing"
	export DEBIAN_FRONTEND=noninteractive
	apt update
	# shellcheck disable=SC2086 # packages are words
	apt install --yes --no-install-recommends $missing
	find_missing "$@"
	[ -n "$missing" ] || exit 0
fi
echo "missing:$missing; what needs them is skipped or fails. As root: apt-get install$missing" >&2
