#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: apt.sh PACKAGE...    installs those that are missing, or says which they are where it cannot
set -u
missing=
for package in "$@"; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
	echo "installing with apt-get:$missing"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq update && apt-get -qq install --yes --no-install-recommends $missing >/dev/null && exit 0
fi
echo "missing, and not installed for want of privilege or network:$missing; what needs them is skipped or fails" >&2
