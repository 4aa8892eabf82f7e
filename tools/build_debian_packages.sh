#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: build_debian_packages.sh    builds the Debian packages in build/deb, from a copy of this checkout
set -eu
cd "$(dirname "$0")/.."
for program in dpkg-buildpackage dpkg-checkbuilddeps; do
	command -v "$program" >/dev/null || {
		echo "$program is missing (Debian: apt-get install dpkg-dev)" >&2
		exit 2
	}
done
dpkg-checkbuilddeps || {
	echo "install these (Debian 13: apt-get build-dep ./), or build in a root of Debian 13: make packages-check" >&2
	exit 2
}
rm -rf build/deb
sh tools/copy_source.sh build/deb/rtproof
(cd build/deb/rtproof && dpkg-buildpackage -us -uc)
rm -rf build/deb/rtproof
ls build/deb/*.deb
